"""What becomes of each sentence of a wish for a change: it asks for a part, it is for the model, it asks for nothing or
for what is not understood. The second reader says what a sentence is. Words for the model are never lost: what is not
sure is for the model, and a sentence is cut only beside what asks for a part in it."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from flowise_dev_agent.reasoning.rules.design import naming, wording
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves
from flowise_dev_agent.reasoning.rules.design.parts import IMPOSSIBLE
from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS
from flowise_dev_agent.reasoning.rules.design.wording import IF, alters, asks, instructs, unquoted
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import CERTAIN, HALF, LIKELY, LITTLE, MAYBE, PERHAPS, SURE, sense
from flowise_dev_agent.reasoning.rules.language.text import DONE, NUL, Span, quoted, quoted_spans

_VALUE, _ENDS = re.compile(r"\d|[\"“„«「]|\w@\w"), " ,;:–—-•*\n"
_FEW, _HEAD = 5, 40
_ADDRESS, _RULE = frozenset({"@address"}), pattern("change", "rule")
#: What is nothing without the clause in front of it: "but only for the weather", "for the temporary shows".
_HANGS = re.compile(rf"{pattern('change', 'only').pattern}|(?:{'|'.join(wordset('prepositions'))})\s", re.IGNORECASE)
_RATHER = pattern("change", "rather")
#: What was read already.
_HIDDEN = frozenset({"@hidden"})
#: A switch that shows sources, and nothing of how they are cited.
_CITES = frozenset({"returnSourceDocuments"})
#: "Everything else stays".
_SCOPE, _COURTESY, _NOT = pattern("change", "scope"), pattern("change", "courtesy"), pattern("text", "no")

Kind = Literal["part", "wish", "remark", "undone"]


class Piece(NamedTuple):
    """A stretch of a wish. `item`: of which item of a list it is (0: of none)."""

    start: int
    end: int
    kind: Kind
    item: int


def pieces(
    text: str, done: Sequence[Span], lost: Sequence[Span], reworded: Sequence[Span] = (), *, copied: bool = False
) -> list[Piece]:
    """What each stretch of a wish asks for. By `done` and `reworded`, which exchange a text, something changes, `lost`
    asks for a part and nothing comes of it. What was read already is a NUL. Of a copy the facts are all told."""
    hidden = [Span(*one.span(), _HIDDEN) for one in re.finditer(f"{NUL}+", text)]
    asked = [one for one in done if (one.names or one.params) and not (one.keep or one.denied)]
    known = "|".join(re.escape(text[one.start : one.end]) for one in [*done, *reworded, *hidden])
    # In a sentence that surely tells the bot something an address is a fact: "the list is at https://...".
    told = [place for *place, _ in wording.sentences(text, quoted_spans(text))
            if sense(text[slice(*place)].strip(_ENDS), change=True).told > CERTAIN]  # fmt: skip
    lost = [one for one in lost if one.params != _ADDRESS or not any(one.meets(*place) for place in told)]
    wish = _Wish(text, [*asked, *reworded, *hidden], lost, reworded, re.compile(known or r"\Z\A"), copied)
    found = list[Piece]()
    for start, end, item in wording.sentences(text, wish.closed):
        first = len(found)
        for begin, finish, kind in wish.read(start, end):
            begin = found.pop().start if found[first:] and found[-1].kind == kind else begin
            found.append(Piece(begin, finish, kind, item))
    # Where nothing is wished for what is neither a complaint nor by the way is the wish.
    if not any(one.kind in ("wish", "undone") or wish.asks_part(*one[:2]) for one in found):
        found = [one._replace(kind="wish") if one.kind == "remark" and wish.may_tell(*one[:2]) else one
                 for one in found]  # fmt: skip
    return found


@dataclass(frozen=True)
class _Wish:
    """`built`: where what is done is asked for, `reworded` what of it is exchanged in texts; `lost`: what is not done;
    `known`: all of these words."""

    text: str
    built: Sequence[Span]
    lost: Sequence[Span]
    reworded: Sequence[Span]
    known: re.Pattern[str]
    copied: bool

    @property
    def closed(self) -> list[tuple[int, int]]:
        """What neither ends nor begins anew, whatever is in it."""
        return [*quoted_spans(self.text), *(one.span() for one in BRACKETS.finditer(self.text))]

    def asks_part(self, start: int, end: int) -> bool:
        return any(one.meets(start, end) for one in self.built)

    def may_tell(self, start: int, end: int) -> bool:
        about = sense(self.text[start:end].strip(_ENDS), change=True)
        return max(about.complaint, about.aside) < HALF

    def read(self, start: int, end: int) -> list[tuple[int, int, Kind]]:
        """A sentence: as one where no part is asked for in it, else its clauses. A clause that says nothing of its own
        belongs to the one in front of it, the first to the one behind it."""
        said, opens = self.text[start:end].strip(_ENDS), self.text[start:end].rstrip()[-1:] == ":"
        if _impossible(said) > HALF:
            places = pairwise([start, *sorted(wording.borders(self.text, start, end, self.closed)), end])
            return [(at, to, "wish" if self._is_rule(at, to) else "undone") for at, to in places]
        case = IF.match(said) and sense(said, change=True).told > MAYBE and not alters(said)
        orders, here = wording.takes_out(said), any(one.meets(start, end) for one in (*self.built, *self.lost))
        if case or not (orders or here or texts.concepts(said, "parts") or _SCOPE.search(f" {said}") or _keeps(said)):
            return [(start, end, "wish" if case else self._plain(said, opens=opens))]
        beside = any(one.names and one.meets(start, end) for one in self.built)
        cuts = [start, *sorted(wording.borders(self.text, start, end, self.closed)), end]
        read: list[tuple[int, int, Kind | None]]
        read = [(at, to, self._clause(at, to, orders=orders, beside=beside)) for at, to in pairwise(cuts)]
        # Beside what stays a value is another one: "the course goes up to 54 euros, the other one stays".
        read = [(at, to, kind or ("wish" if not (here or orders) and _VALUE.search(self.text, at, to) else None))
                for at, to, kind in read]  # fmt: skip
        kinds = {kind for *_, kind in read}
        # "A web search, but only for the weather": what limits a part is nothing without it.
        limits = not orders and any(
            kind == "wish" and _HANGS.match(self.text[at:to].strip(_ENDS)) for at, to, kind in read[1:]
        )
        # "It is not to calculate, but to ...": the one is nothing without the other.
        limits = limits or any(
            kind == "wish" and _RATHER.match(self.text[at:to].strip(_ENDS)) for at, to, kind in read[1:]
        )
        if "undone" not in kinds and (limits or ("remark" not in kinds and self._is_said_with(start, end, read))):
            return [(start, end, "wish")]
        # A rule that says of something how it is to stay is one.
        if not (here or orders) and kinds == {"part", "wish"}:
            read = [(at, to, "part" if _is_scope(self.text[at:to].strip(_ENDS)) else "wish") for at, to, _ in read]
        found = list[tuple[int, int, Kind | None]]()
        for at, to, kind in read:
            if found and (kind == found[-1][2] or None in (kind, found[-1][2])):
                found[-1] = (found[-1][0], to, kind or found[-1][2])
            else:
                found.append((at, to, kind))
        return [(at, to, kind or "part") for at, to, kind in found]

    def _is_rule(self, start: int, end: int) -> bool:
        """Whether a clause beside what no flow can do surely tells the bot something."""
        said = self.text[start:end].strip(_ENDS)
        return sense(said, change=True).told > CERTAIN and _impossible(said) < PERHAPS

    def _is_said_with(self, start: int, end: int, read: Sequence[tuple[int, int, Kind | None]]) -> bool:
        """Whether a sentence says more than what is exchanged in texts: "Ada has left, it is Bo, her number is 5"."""
        more = any(kind in (None, "wish") and wording.says(self.text[at:to]) for at, to, kind in read)
        exchanges = any(one.meets(start, end) for one in self.reworded)
        return more and exchanges and NUL not in self.text[start:end].strip(f"{NUL}{_ENDS}.")

    def _plain(self, said: str, *, opens: bool) -> Kind:
        """What a sentence asks for in which no rule found a part; it `opens` a list."""
        about = sense(said, change=True)
        if not wording.says(_COURTESY.sub(" ", f" {said} ")) or _keeps(said):
            return "part"
        # A signature is short.
        short = len(said.split()) <= _FEW and about.aside > HALF
        quiet = about.told < MAYBE and (about.idle > SURE or opens or short)
        # What is not allowed is a rule, however it sounds.
        quiet = quiet and not (_NOT.search(said) and max(about.aside, about.complaint) < HALF)
        idle = max(about.idle, about.complaint) > max(HALF, about.told)
        idle = idle or (about.told < LIKELY and wording.opines(said))
        idle = quiet or (
            idle and not any(asks(one) or (one != said and sense(one, change=True).tells) for one in said.split(", "))
        )
        if idle and max(about.concepts.values(), default=0) < HALF and not (
                _VALUE.search(said) or quoted_spans(said)):  # fmt: skip
            return "remark"
        return "undone" if self._fails(said) else "wish"

    def _clause(self, start: int, end: int, *, orders: bool, beside: bool) -> Kind | None:
        """What a clause asks for of a sentence in which a part is asked for (`beside`: and built), or which `orders` to
        take something out; None for one that says nothing of its own, or why."""
        said = self.text[start:end].strip(_ENDS)
        about, built = sense(said, change=True), [one for one in self.built if one.meets(start, end)]
        lost = [one for one in self.lost if one.meets(start, end)]
        if not built and _keeps(said):
            return "part"
        signals = {name for one in lost for name in one.names if "signal" in one.names}
        if lost and (signals & IMPOSSIBLE or about.told < (SURE if signals else HALF)):
            return "undone"
        rest = said.replace(NUL, " ")
        if built and (any(one.params or one.names - _HIDDEN for one in built) or not wording.says(rest)):
            # A clause of what is read as a whole, as the text of a prompt, is no word besides.
            whole = any(one.start < start and end <= one.end for one in built)
            return "wish" if not whole and self._is_told_too(said, built) else "part"
        said = rest.strip(_ENDS)
        # "A copy with a node ...".
        if self.copied and texts.concepts(said, "parts", "own") and not asks(said):
            return "undone"
        # "Go to 600/80": a value of which nothing says what it is.
        bare = re.search(r"\d", said) and sum(map(wording.says, said.split())) <= 1
        if wording.takes_out(said) or (bare and not self.copied):
            return "undone"
        if beside and about.concepts.get("show_sources", 0) > MAYBE and instructs(said):
            # "Look it up on the web and name the source".
            return "wish"
        if not wording.says(said) or (wording.is_word(said) and not self.copied) or (
                IF.match(said) and not instructs(said.partition(",")[2].strip())):  # fmt: skip
            return None
        value = _VALUE.search(said)
        # What only says in other words what is asked for beside it.
        named = max(about.concepts.values(), default=0) < HALF or texts.concepts(said, "parts", "own", "sources")
        if about.part > SURE and about.told < MAYBE and not (value or alters(said) or (named and instructs(said))):
            return None
        if self._fails(said):
            # "Please add our price list, it's a PDF": what comes is said beside it.
            comes = beside and words("add").search(said) and not (value or texts.concepts(said, "parts", "own"))
            return None if comes else "undone"
        told = about.told > (CERTAIN if orders or not value else LIKELY) or (
            self.copied and about.part < HALF and (value or about.told > MAYBE))  # fmt: skip
        return "wish" if told or (instructs(said) and about.told > max(about.complaint, about.keep)) else None

    def _is_told_too(self, said: str, built: Sequence[Span]) -> bool:
        """Whether words that ask for a part are for the model, too: when to use it, how to cite a source."""
        about = sense(said, change=True)
        if _RULE.search(said) and about.told > MAYBE:
            return True
        if any(DONE in one.names for one in built) or alters(said) or not instructs(said) or about.off > HALF:
            return False
        more, long = wording.says(self.known.sub(" ", said)), max(one.end - one.start for one in built) > len(said) // 2
        long = long and about.told > LITTLE
        return (more or long) if all(one.params >= _CITES for one in built) else more and about.told > LIKELY

    def _fails(self, said: str) -> bool:
        """Whether it asks for a part or a value of which no rule knows, or only makes sense to who edits a text."""
        about = sense(said, change=True)
        if wording.PUT.search(said[:_HEAD]) and about.part < SURE:
            return False
        # That it should be another way is no part.
        share = max((one for name, one in about.concepts.items() if name != "vague"), default=0.0)
        heard, plain = about.concepts.get, not _VALUE.search(said)
        cut = heard("prompt_delete", 0) > HALF or (plain and heard("impossible", 0) > PERHAPS)
        asks_part = about.told < MAYBE and ((about.part > SURE and not instructs(said))
                                             or (share > HALF and about.part > MAYBE))  # fmt: skip
        # A fact that is said anew is told: "the course goes up to 205 euros, change that".
        anew = heard("prompt_replace", 0) > PERHAPS
        edits = alters(unquoted(said)) and about.told < (LIKELY if anew else HALF) and (plain or not anew)
        named = texts.concepts(said, "parts") or (alters(unquoted(said)) and texts.concepts(said, "own"))
        edits = edits or bool(named and about.told < SURE and not IF.match(said))
        return cut or asks_part or edits or wording.restores(said) or wording.edits(wording.line_of(said))


def _impossible(said: str) -> float:
    """How probable it is that no flow can do what a stretch asks for."""
    return sense(said, change=True).concepts.get("impossible", 0)


def _is_scope(said: str) -> bool:
    """Whether it names what stays: all else, the prompt."""
    scope = _SCOPE.search(f" {said}") and not wording.says(_SCOPE.sub(" ", f" {said}"))
    return bool(scope or (naming.keeps_prompt(said) and sense(said, change=True).told < SURE))


def _keeps(said: str) -> bool:
    """Whether it says of something that it stays."""
    about = sense(said, change=True)
    named = _is_scope(said) or (naming.stays(said) and about.told < SURE)
    return named or about.keep > SURE or (about.keep > max(about.told, HALF) and not instructs(said))


def lines(text: str, said: Sequence[Piece], values: Set[str]) -> list[tuple[str, list[Piece]]]:
    """What is for the model, an item of a list or a sentence each, with its pieces; what only quotes one of the
    `values` is for a field."""
    keyed = ((one, (one.kind, one.item or -one.start)) for one in said)
    runs = ([one for one, _ in run] for (kind, _), run in groupby(keyed, key=lambda pair: pair[1]) if kind == "wish")
    found = ((text[run[0].start : run[-1].end].replace(NUL, " "), run) for run in runs)
    return [(wording.line_of(one), run) for one, run in found if not ((own := quoted(one)) and values >= {*own})]


def unasked(text: str) -> str:
    """A wish with NULs for what asks for no part, whatever it names: what the bot is told, and what is left alone."""
    for one in leaves([*clauses(text, change=True)]):
        said, about = one.said, one.sense
        heard = max(about.concepts.values(), default=0) > LIKELY
        # "Memory window 8 -> 20".
        setting = re.search(r"\d", said) and texts.concepts(said, "parts") and len(said.split()) <= _FEW + 1
        rule = about.told > (about.part if IF.match(said) else SURE) and not (
            heard or setting or alters(said) or quoted(said))  # fmt: skip
        # Where a sentence ends is seen by its mark.
        end = one.words[0] + len(text[slice(*one.words)].rstrip(" .!?\n"))
        text = texts.masked(text, one.words[0], end) if rule or about.keep > LIKELY else text
    return text
