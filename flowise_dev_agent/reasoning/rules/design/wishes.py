"""What becomes of each clause of a wish for a change: it asks for a part, it is for the model, it asks for nothing, or
for what is not understood. The second reader says what a clause is; where it is not sure the words decide."""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from flowise_dev_agent.reasoning.rules.design import wording
from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS, behaves
from flowise_dev_agent.reasoning.rules.design.wording import IF, alters, asks, instructs, unquoted
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import sense
from flowise_dev_agent.reasoning.rules.language.text import DONE, Span, quoted, quoted_spans

_REFERS, _REMARK, _DESCRIBES = (pattern("about", name) for name in ("refers", "remark", "describes"))
_WANTS, _REMAINS, _KEEPS = (pattern("change", name) for name in ("wants", "remains", "keeps"))
_OF_IT, _FORMER = pattern("copying", "of_it"), pattern("exchange", "former")
_OUTCOME = pattern("change", "outcome")
_NUMBER_ALONE = re.compile(r"\W*\d[\d.,:]*(?:\s\w+)?\W*")
_VALUE, _ENDS = re.compile(r"\d|[\"“„«「]|\w@\w"), " ,;:–—-•*\n"
#: From here on the second reader is believed; what is less probable than the last is not.
_LIKELY, _CERTAIN, _HALF, _LEAST, _LITTLE, _FEW, _SHORT = 0.6, 0.85, 0.5, 0.3, 0.1, 6, 4
_CITES = frozenset({"returnSourceDocuments"})
#: "A few things, please:"
_OPENS = re.compile(r"\w\s?:\s*$")

#: A value of which nothing says where it is set.
UNPLACED = "@unplaced"

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
    shares = {"tells": about.told, "part": part, "keeps": about.keep, "idle": max(about.idle, about.complaint)}
    best = max(shares, key=lambda one: shares[one])
    return best if shares[best] > _LIKELY else ""


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
    read, found = [*wording.sentences(text, wish.closed)], list[Piece]()
    for number, (start, end, item) in enumerate(read):
        first = len(found)
        last: Kind | None = next((one.kind for one in reversed(found) if one.kind != "remark"), None)
        wished = any(asks(text[a:b].strip()) or (other and not item) for a, b, other in read[number + 1 :])
        for begin, finish, kind in wish.read(start, end, last, wished=wished):
            begin = found.pop().start if found[first:] and found[-1].kind == kind else begin
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
    def facts(self) -> bool:
        """Whether something of it is a fact that is another one."""
        return any(DONE in one.names for one in self.built)

    @property
    def closed(self) -> list[tuple[int, int]]:
        """What neither ends nor begins anew, whatever is in it."""
        return [*quoted_spans(self.text), *(one.span() for one in BRACKETS.finditer(self.text))]

    def read(self, start: int, end: int, last: Kind | None, *, wished: bool) -> list[tuple[int, int, Kind]]:
        """The clauses of a sentence that each say something of their own: one that is not sure goes on with the one in
        front of it, the first with the one behind it. `last`: the kind of what is in front of the sentence."""
        sentence = self.text[start:end].strip(_ENDS)
        if any("://" in self.text[one.start : one.end] for one in self._here(self.lost, start, end)):
            # What hangs on an address that nothing came of would be a rule about nothing.
            return [(start, end, "undone")]
        whole, told = view(sentence), sense(sentence, change=True).told
        if wished and told < _LEAST and _OPENS.search(self.text[start:end]) and not (
                self._here([*self.built, *self.lost], start, end) or _VALUE.search(sentence)):  # fmt: skip
            return [(start, end, "remark")]
        framed = _REMARK.search(self.text, start, end)
        cuts = {*wording.borders(self.text, start, end, self.closed)}
        cuts |= {framed.end()} if framed and asks(self.text[framed.end() : end].strip()) else set()
        # A condition is nothing without what it is for, nor is a fact with the half of what it names.
        ends = [at for at, to in pairwise([*sorted(cuts), end]) if not self._joins(start, at, to)
                and (not IF.match(sentence) or alters(self.text[at:to].strip()))]  # fmt: skip
        found = list[tuple[int, int, Kind | None]]()
        for at, to in pairwise([start, *ends, end]):
            begin, _, former = found[-1] if found else (at, at, None)
            kind = self._sure(at, to, whole, told, former or last, inside=former is not None, wished=wished)
            hangs = (
                kind == "part"
                and former != "wish"
                and _REFERS.match(self.text[at:to])
                and wording.says(self.text[begin:at])
            )
            goes_on = kind in (None, former) if former else kind != "remark"
            if found and (hangs or (goes_on and wording.says(self.text[begin:at]))):
                found[-1] = (begin, to, kind or former)
            else:
                found.append((at, to, kind))
        return [(at, to, kind or self._open(at, to, last, wished=wished)) for at, to, kind in found
                if self.text[at:to].strip(_ENDS)]  # fmt: skip

    def _joins(self, start: int, at: int, end: int) -> bool:
        """Whether "and" only names another thing of the fact in front of it."""
        front, said = self.text[start:at].split(), self.text[at:end].strip(_ENDS)
        read = self._here([one for one in (*self.built, *self.lost) if not one.params >= _CITES], start, end)
        return bool(front and front[-1] in wordset("ands") and not (read or instructs(said) or alters(said)))

    def _here(self, spans: Sequence[Span], start: int, end: int) -> list[Span]:
        return [one for one in spans if one.meets(start, end)]

    def _sure(
        self, start: int, end: int, whole: str, told: float, last: Kind | None, *, inside: bool, wished: bool
    ) -> Kind | None:
        """What a clause certainly asks for. `whole` is what its sentence does, `told` how probable it is that it tells
        the bot something; `last` is the kind of what is in front of it, in the same sentence where `inside`."""
        said = wording.STEP.sub("", self.text[start:end].lstrip(_ENDS)).strip(_ENDS)
        own, built, about = view(said), self._here(self.built, start, end), sense(said, change=True)
        if any(UNPLACED in one.names for one in self._here(self.lost, start, end)):
            return "undone"
        if built:
            return self._built(said, built, tells=own == "tells")
        if (
            inside
            and (whole != "tells" or self.facts)
            and (former := _FORMER.match(said))
            and _NUMBER_ALONE.fullmatch(said[former.end() :])
        ):
            return "part"
        case = IF.match(said)
        tells = last == "part" and instructs(said)
        if not wording.says(said) or (wording.is_word(said) and not self.copied) or (case and inside and not tells):
            return None
        if last == "undone" and _OUTCOME.match(said):
            return "undone"
        fact = _VALUE.search(said) or (self.copied and words("languages").search(said))
        another = self.text[:start].rstrip().rpartition(" ")[2] in wordset("ands")
        plain = not (fact or another or self.copied or self._here(self.lost, start, end)) and (
            _REFERS.match(said) or (whole != "tells" and max(about.told, about.part) < _HALF)
        )
        reason = last == "part" and (plain or words("because").match(said))
        if inside and (reason or (last == "remark" and not fact)) and not instructs(said):
            return "remark" if reason else None
        keeps = not inside or about.keep > _CERTAIN or _REMAINS.search(said) or _KEEPS.match(said)
        if (keeps and (own or whole) == "keeps" and (about.keep > _HALF or not behaves(said))) or not wording.says(
            self.known.sub(" ", said)
        ):
            return "part"
        alone = not inside and (whole == own or whole != "tells")
        short = inside and len(said.split()) < _SHORT
        idle = own == "idle" and not (asks(said) or case or short) and whole != "tells"
        describes = wished and _DESCRIBES.match(said)
        opines, opens = wording.opines(said) and (alone or own != "tells"), _OPENS.search(self.text[start:end])
        opens = opens and len(said.split()) <= _FEW and about.told < _LIKELY and not self._here(self.lost, start, end)
        complains = about.complaint > _LIKELY and not (short or wording.commands(said) or about.told > _LEAST)
        idle = not asks(said) and (idle or (describes and about.part < _HALF))
        if not (self.copied and fact) and (opines or opens or complains or idle):
            return "remark"
        hangs = last == "undone" and not wording.PUT.match(said) and (
            _REFERS.match(said) or (alters(said) and wording.refers(said)))  # fmt: skip
        beside = inside and last == "part" and _VALUE.search(said) and about.told < _CERTAIN and not (
            instructs(said) or self.copied or self.facts)  # fmt: skip
        if (hangs and not case) or beside or self._fails(said, start, end, own or whole, told, inside=inside):
            return "undone"
        says = wording.commands(said) or _VALUE.search(said) or about.told > _LEAST
        if wished and not (inside or says) and max(about.idle, about.complaint, about.aside) > _LITTLE:
            return "remark"
        if self.copied and not instructs(said):
            # Of which flow the copy is; all else is a fact of it.
            fact = fact or about.concepts.get("rename", 0) > _LIKELY
            of_it = _OF_IT.match(said) or (about.part > _HALF and about.told < _LEAST)
            return "wish" if fact or not of_it else "part"
        return "wish" if instructs(said) or own == "tells" or (inside and last == "remark" and fact) else None

    def _open(self, start: int, end: int, last: Kind | None, *, wished: bool) -> Kind:
        """What is not sure is told to the bot, never lost: but for what only announces a wish, or stands beside a part
        of the flow."""
        said = self.text[start:end].strip(_ENDS)
        if not wording.says(said):
            return "part"
        beside = (last != "wish" and bool(self.built or self.lost or self.named)) or wished
        told = instructs(said) or view(said) == "tells" or _VALUE.search(said)
        about = sense(said, change=True)
        if not beside or told or about.told >= _HALF:
            return "wish"
        if about.part < max(_HALF, about.idle, about.complaint):
            return "remark"
        # Of what no part is known it is words for the bot.
        known = max(about.concepts.values(), default=0) > _LEAST or self._here([*self.lost, *self.named], start, end)
        return "undone" if known else "wish"

    def _built(self, said: str, built: Sequence[Span], *, tells: bool) -> Kind:
        """What is done may be told, too: when to use it, and how."""
        more, made = wording.says(self.known.sub(" ", said)), any(DONE in one.names for one in built)
        case = IF.match(said) and not (wording.ALTERS.search(said) or made)
        also = tells and instructs(said) and not (made or alters(said))
        # "It has to cite the page": the switch alone shows the source, and nothing of how it is cited.
        switched = all(one.params >= _CITES for one in built) and not alters(said)
        cites = switched and instructs(said) and (more or max(one.end - one.start for one in built) > len(said) // 2)
        return "wish" if cites or (more and (also or case)) else "part"

    def _fails(self, said: str, start: int, end: int, mine: str, told: float, *, inside: bool) -> bool:
        """Whether a clause asks for a part or a value, and nothing comes of it. Where one reader hears words for the
        bot and the other a part, a word for a part decides."""
        if wording.PUT.match(said):
            return False
        if wording.restores(said):
            return True
        lost, about = self._here(self.lost, start, end), sense(said, change=True)
        changes = alters(unquoted(said)) and not (
            words("insists").search(said.partition(" ")[2]) and about.part < _CERTAIN
        )
        named = self._here(self.named, start, end)
        wants = _WANTS.search(said) and any("parts" in one.params for one in named) and not behaves(said)
        lost = lost and (changes or any("signal" in one.names for one in lost))
        if lost or (wants and about.told < _CERTAIN):
            return True
        # That it should be another way is no part.
        share = max((one for name, one in about.concepts.items() if name != "vague"), default=0)
        sure = alters(said) or about.told < _LITTLE or share > _LEAST
        step = "steps" in self.groups and about.part > _CERTAIN and share > _LIKELY and about.told < _HALF
        heard = sure and about.part > _HALF and max(about.told, told) < _LEAST and not (
            quoted(said) or behaves(said) or IF.match(said) or (self.copied and not named))  # fmt: skip
        heard = (heard or (self.copied and named and not asks(said))) and not (
            inside and not asks(said) and not self.copied
        )
        # What a text says no longer is nothing to tell beside it.
        cut = about.concepts.get("prompt_delete", 0) > _HALF and about.part > max(about.told, _LIKELY)
        spoken = changes and mine != "tells" and texts.concepts(said, *self.groups)
        return bool(cut or heard or step or spoken or wording.edits(wording.line_of(said)))


def lines(
    text: str, said: Sequence[Piece], values: Set[str], *, apart: bool = False
) -> list[tuple[str, list[Piece]]]:  # fmt: skip
    """What is for the model, each stretch whole or each piece `apart`, with its pieces; what only quotes one of the
    `values` is for a field."""
    keyed = ((one, (one.kind, one.start if apart else one.item)) for one in said)
    runs = ([one for one, _ in run] for (kind, _), run in groupby(keyed, key=lambda pair: pair[1]) if kind == "wish")
    found = ((text[run[0].start : run[-1].end], run) for run in runs)
    return [(wording.line_of(one), run) for one, run in found if not ((own := quoted(one)) and values >= {*own})]


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
