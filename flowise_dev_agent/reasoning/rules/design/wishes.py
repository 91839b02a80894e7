"""What becomes of each clause of a wish for a change: it asks for a part, it is for the model, it asks for nothing, or
for what is not understood. The rules and the second reader both have a say."""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from flowise_dev_agent.reasoning.rules.design import wording
from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS, behaves
from flowise_dev_agent.reasoning.rules.design.wording import IF, alters, asks, complains, instructs, unquoted
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import sense
from flowise_dev_agent.reasoning.rules.language.text import DONE, NUL, Span, quoted, quoted_spans

_REFERS, _REMARK, _DESCRIBES = (pattern("about", name) for name in ("refers", "remark", "describes"))
_FORMER = words("instead_of")
_WANTS, _REMAINS, _KEEPS = (pattern("change", name) for name in ("wants", "remains", "keeps"))
_OF_IT = pattern("copying", "of_it")
_NOW, _VALUE = pattern("exchange", "now"), re.compile(r"\d|[\"“„«「]")
_NUMBER_ALONE = re.compile(r"\W*\d[\d.,:]*(?:\s\w+)?\W*")
#: From here on the second reader is believed; what has fewer words than these is cut off by words alone.
_LIKELY, _CERTAIN, _LEAST, _FEWEST = 0.6, 0.85, 0.3, 4

Kind = Literal["part", "wish", "remark", "undone"]


class Piece(NamedTuple):
    """A stretch of a wish. `item`: of which item of a list it is (0: of none)."""

    start: int
    end: int
    kind: Kind
    item: int


def view(said: str) -> str:
    """What a clause does in the eyes of the second reader: it tells the bot something, asks for a part, keeps
    something or is idle; empty where that is not sure."""
    if len(said.split()) < 2:
        return ""
    about = sense(said, change=True)
    # What tells, too, tells: words for the bot are never lost.
    part = about.part if about.told < _LIKELY else 0
    idle = max(about.idle, about.complaint)
    shares = {"tells": about.told, "part": part, "keeps": about.keep, "idle": idle}
    best = max(shares, key=lambda one: shares[one])
    return best if shares[best] > _LIKELY else ""


def _is_remark(said: str) -> bool:
    """Whether a clause says for both readers only how it is now, or who wants it."""
    return _opines(said) or (wording.grumbles(said) and sense(said, change=True).idle > _LIKELY)


def _opines(said: str) -> bool:
    return wording.opines(said) and view(said) != "tells"


def pieces(
    text: str, done: Sequence[Span], lost: Sequence[Span], kept: Iterable[Span] = (), *,
    groups: Sequence[str] = ("parts", "own"), copied: bool = False,
) -> list[Piece]:  # fmt: skip
    """What each clause of a wish asks for. By `done` something changes, `lost` asks for a part and nothing comes of it,
    `kept` names what is there; `groups` are the concepts that name a part. In a copy all is told. What was read already
    is a NUL."""
    hidden = [Span(*one.span(), frozenset({one[0]})) for one in re.finditer(r"\x00+", text)]
    asked = [one for one in done if (one.names or one.params) and not one.keep] + hidden
    there = [*kept, *(one for one in texts.concepts(text, *groups) if copied and "copy" in one.names)]
    named = [one for one in texts.concepts(text, *groups) if not any(one.meets(span.start, span.end) for span in there)]
    known = "|".join(re.escape(text[one.start : one.end]) for one in [*done, *hidden])
    wish = _Wish(text, [one for one in asked if not one.denied], lost, named, re.compile(known or r"\Z\A"),
                 groups, copied)  # fmt: skip
    read = [*wording.sentences(text, wish.closed)]
    found = list[Piece]()
    for start, end, item in read:
        wished, first = any(asks(text[a:b].strip()) for a, b, _ in read if a >= end), len(found)
        for begin, finish in wish.stretches(start, end):
            if not (text[begin:finish].strip(" ,;:–—-•*\n")):
                continue
            last = next((one.kind for one in reversed(found) if one.kind != "remark"), "")
            kind = wish.kind(begin, finish, text[start:end].strip(), last, inside=begin > start, wished=wished)
            if found[first:] and found[-1].kind == kind:
                begin = found.pop().start
            found.append(Piece(begin, finish, kind, item))
    return found


@dataclass(frozen=True)
class _Wish:
    """`built`: where what is done is asked for; `lost`: what is not; `named`: parts that are not there."""

    text: str
    built: Sequence[Span]
    lost: Sequence[Span]
    named: Sequence[Span]
    known: re.Pattern[str]
    groups: Sequence[str]
    copied: bool

    @property
    def steps(self) -> bool:
        return "steps" in self.groups

    @property
    def closed(self) -> list[tuple[int, int]]:
        """What neither ends nor begins anew, whatever is in it."""
        return [*quoted_spans(self.text), *(one.span() for one in BRACKETS.finditer(self.text))]

    def stretches(self, start: int, end: int) -> list[tuple[int, int]]:
        """The clauses of a sentence that each say something of their own."""
        framed = _REMARK.search(self.text, start, end)
        cuts = {*wording.borders(self.text, start, end, self.closed)}
        cuts |= {framed.end()} if framed and asks(self.text[framed.end() : end].strip()) else set()
        found, whole = [start], self.text[start:end].strip(" -•*\n")
        for at, ends in pairwise([*sorted(cuts), end]):
            # A condition is nothing without what it is for.
            case = IF.match(whole)
            if alters(self.text[at:ends].strip()) if case else self._is_own(found[-1], at, ends, view(whole)):
                found.append(at)
        return [*pairwise([*found, end])]

    def _is_own(self, start: int, at: int, end: int, whole: str) -> bool:
        """Whether a clause says another thing than what is in front of it; `whole`: what their sentence does."""
        before, said = (self.text[slice(*place)].strip(" ,;:–—-•*\n") for place in ((start, at), (at, end)))
        if not re.search(r"\w", said) or wording.is_word(said):
            return False
        if not wording.says(before) or wording.is_word(before):
            return NUL in before
        done, mine, theirs = self._here(self.built, at, end), view(said), view(before)
        apart = bool(done) != bool(self._here(self.built, start, at))
        if apart and done and _REFERS.match(said):
            # "Add our price list, it is a PDF" is one wish.
            return False
        orders = mine or instructs(said) or alters(said) or _VALUE.search(said) or _FORMER.match(said)
        long = len(said.split()) >= _FEWEST and not _NOW.search(said)
        other = long and whole != "tells" and mine and theirs and mine != theirs
        # A complaint in front of a wish may say what it is about; one behind it says why.
        opines = _opines(before) != _opines(said)
        remark = opines or (long and _is_remark(said) and not _is_remark(before) and len(before.split()) > 2)
        language = self.copied and words("languages").search(said)
        return bool(asks(said) or (apart and orders) or remark or other or language)

    def _here(self, spans: Sequence[Span], start: int, end: int) -> list[Span]:
        return [one for one in spans if one.meets(start, end)]

    def kind(self, start: int, end: int, sentence: str, last: str, *, inside: bool, wished: bool) -> Kind:
        """What a stretch of a sentence asks for. `last` is the kind of what is in front of it, in the same sentence
        where `inside`; `wished`: a later sentence asks for something."""
        said = wording.STEP.sub("", self.text[start:end].strip(" ,;:–—-•*\n"))
        built, whole = self._here(self.built, start, end), view(sentence)
        mine = view(said) or whole
        if mine == "keeps" and (whole != "tells" or _REMAINS.search(said) or _KEEPS.match(said)):
            return "part"
        if (former := _FORMER.match(said)) and inside and _NUMBER_ALONE.fullmatch(said[former.end() :]):
            return "part"
        orders = instructs(said) or bool({*self.text[:start].split()[-1:]} & wordset("thats"))
        if built:
            return self._built(said, built, orders=orders, tells=mine == "tells")
        if self.known.search(said) and not wording.says(self.known.sub(" ", said)):
            return "part"
        if not asks(said) and self._is_idle(
            start, end, said, mine, whole, beside=inside and last == "part", wished=wished
        ):
            return "remark"
        if self.copied and _OF_IT.match(said) and not (orders or _VALUE.search(said)):
            # Of which flow the copy is.
            return "part"
        more = mine == "part" or not (orders or mine)
        refers = _REFERS.match(said) or (alters(said) and wording.refers(said)) or (inside and more)
        hangs = last == "undone" and refers and not IF.match(said)
        # A number beside a part is no remark: "gpt-4o, and the price to 130".
        beside = inside and last == "part" and not (orders or self.copied) and _VALUE.search(said)
        if hangs or beside or self._fails(said, start, end, mine, orders=orders):
            return "undone"
        about = sense(said, change=True)
        unread = not (mine or about.tells or self.copied or _VALUE.search(said))
        # "A few updates, please" only announces what is wished.
        announces = wished and unread and not wording.commands(said) and about.told < _LEAST
        beside = last != "wish" and bool(self.built or self.lost or self.named)
        return "remark" if announces or (unread and beside and not orders) else "wish"

    def _is_idle(self, start: int, end: int, said: str, mine: str, whole: str, *, beside: bool, wished: bool) -> bool:
        """Whether a stretch says only how it is, or who wants it: a part of a sentence that tells something only where
        both readers say so."""
        alone = not wording.borders(self.text, start, end, self.closed)
        now = (alone or whole != "tells") and (complains(said) or wording.opines(said))
        idle = mine == "idle" and (whole != "tells" or beside) and not IF.match(said)
        return bool(now or idle or _is_remark(said) or (wished and _DESCRIBES.match(said)))

    def _built(self, said: str, built: Sequence[Span], *, orders: bool, tells: bool) -> Kind:
        """What is done may be told, too: when to use it, and how."""
        more = wording.says(self.known.sub(" ", said))
        made = any(DONE in one.names for one in built)
        case = IF.match(said) and not (wording.ALTERS.search(said) or made)
        also = tells and orders and not (made or alters(said))
        return "wish" if more and (also or case) else "part"

    def _fails(self, said: str, start: int, end: int, mine: str, *, orders: bool) -> bool:
        """Whether a stretch asks for a part or a value, and nothing comes of it. Where one reader hears words for the
        bot and the other a part, a word for a part decides."""
        if wording.PUT.match(said):
            return False
        named, lost = self._here(self.named, start, end), self._here(self.lost, start, end)
        # A "no" in front answers; what is always or never to be is a rule.
        about, insists = sense(said, change=True), words("insists").search(said.partition(" ")[2])
        certain = [one for one in named if "://" not in self.text[one.start : one.end] and "source" not in one.names]
        changes = alters(unquoted(said)) and not (insists and about.part < _CERTAIN)
        signals = any("signal" in one.names for one in lost)
        wants = _WANTS.search(said) and any("parts" in one.params for one in named)
        if mine == "tells":
            return bool((lost and (changes or signals)) or (wants and about.told < _CERTAIN and not behaves(said)))
        spoken = texts.concepts(said, *self.groups)
        firm = ((lost or spoken) and changes) or (lost and signals) or (wants and not behaves(said))
        sure = about.part > _CERTAIN and not (self.steps or self.copied or quoted(said) or said.endswith(":"))
        sure = sure and (spoken or not (orders or wording.tells(said)))
        quiet = mine == "part" or (certain and not _VALUE.search(said))
        return bool(firm or sure or (quiet and not orders))


def lines(text: str, said: Sequence[Piece], values: Set[str]) -> list[str]:
    """What is for the model, each stretch whole; what only quotes one of the `values` is for a field."""
    runs = ([*run] for (kind, _), run in groupby(said, key=lambda one: (one.kind, one.item)) if kind == "wish")
    found = (text[run[0].start : run[-1].end] for run in runs)
    return [wording.line_of(one) for one in found if not ((own := quoted(one)) and values >= {*own})]


def unasked(text: str) -> str:
    """A wish with NULs for what asks for no part, whatever it names: what the bot is told, and what is left alone."""
    for start, end in wording.clauses(text):
        said = text[start:end].strip(" -•*")
        about = sense(said, change=True)
        heard = max(about.concepts.values(), default=0) > _LIKELY
        rule = about.told > (about.part if IF.match(said) else _CERTAIN) and not (heard or alters(said) or quoted(said))
        # Where a sentence begins and ends is seen by what is around it.
        begin, finish = end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip(" .!?\n"))
        text = texts.masked(text, begin, finish) if rule or about.keep > _LIKELY else text
    return text
