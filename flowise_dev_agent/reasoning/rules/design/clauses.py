"""A wish in clauses, each with what it is about: the second reader, beside the rules that look for words."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.rules.design import wording
from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS, without
from flowise_dev_agent.reasoning.rules.design.wording import IF, borders, sentences
from flowise_dev_agent.reasoning.rules.language.lexicon import constants, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import (
    CERTAIN,
    HALF,
    LITTLE,
    MAYBE,
    MOSTLY,
    PERHAPS,
    RATHER,
    SURE,
    Around,
    Sense,
    sense,
)
from flowise_dev_agent.reasoning.rules.language.text import Span, detect_language, quoted_spans, squeeze

_FEWEST, _FEW = 2, 3
#: That nothing of a conversation is kept, what people do to get something, and a bot in a page of the web.
_FORGETS, _FOR_THAT = pattern("reading", "forgets"), pattern("facts", "for_that")
_ON_SITE = pattern("reading", "on_site")
_WORD, _NOT, _FIGURE = re.compile(r"\w+"), pattern("text", "no"), re.compile(r"\w+://|\d")
_BOT = re.compile("|".join(words(name).pattern for name in ("any_bot", "chat", "agent")), re.IGNORECASE)
#: "A chatbot that ...", "a helper for a zoo".
_PURPOSE = re.compile(rf"{pattern('reading', 'purpose').pattern}|(?:{words('any_bot').pattern})\s+\w")
#: The parts that the design of a flow does, by the types and fields that do them.
_DOERS: Mapping[str, Sequence[str]] = constants("does")
#: The parts that only an AgentFlow has; of the latter one alone may be said of a conversation, too.
STEPS = frozenset({"approval", "for_each", "form", "loop", "number_condition", "schedule", "webhook"})
_STEP_LIKE = frozenset({"branch", "step", "fixed_reply"})
_NUMBERS = frozenset({"loop", "number_condition"})
#: Of these nothing is a word for the bot; of the others where they are built.
_TECHNICAL, _BUILT = (frozenset(constants("kinds")[name]) for name in ("technical", "built"))
#: Without what is wished for of these the flow is another one, and the person is asked; what else is not done is told.
_ESSENTIAL = STEPS | {"branch", "fixed_reply", "file_upload", "http", "impossible", "other_flow", "send_out"}


@dataclass(frozen=True)
class Clause:
    """A sentence (`whole`) or a clause of it, and where its first word begins and its last one ends."""

    start: int
    end: int
    said: str
    sense: Sense
    words: tuple[int, int]
    whole: bool = False

    def asks(self) -> list[str]:
        """The parts that it asks for, the most probable one first; where it surely asks for one, at least that."""
        part, shares = self.sense.part, self.sense.concepts
        least = RATHER if len(self.said.split()) <= _FEW else MAYBE
        named = [name for name, share in shares.items() if part >= HALF and share >= least]
        top = max(shares.values(), default=0)
        # What is far less probable than the other is what it is named by: "sources, so that they see the page".
        named = [name for name in named if shares[name] > top / 2]
        named = named or [name for name, share in shares.items() if part >= SURE and share == top >= PERHAPS]
        return sorted(named, key=lambda name: -shares[name])

    @property
    def off(self) -> bool:
        """Whether what it names is not wanted."""
        return self.sense.off >= (LITTLE if _NOT.search(self.said) else MOSTLY)

    @property
    def nameless(self) -> bool:
        """Whether it surely asks for a part, and nothing says for which; that a new flow is a bot is done."""
        sure = self.sense.told < 1 - CERTAIN and self.sense.part > CERTAIN and not self.asks()
        return sure and len(self.said.split()) > _FEW + 1 and not _BOT.search(self.said)

    def builds(self, nodes: Mapping[str, NodeSchema], *, read: bool) -> bool:
        """Whether all that it asks for is there: values that were `read`, or parts that these nodes are."""
        own = {*self.asks()} - (_TECHNICAL if read else set())
        return self.sense.told < HALF and all(name in _BUILT and doers(name, nodes, ()) for name in own)

    def meets(self, spans: Sequence[Span]) -> bool:
        """Whether one of these stretches asks for a part or a value in it."""
        return any((one.names or one.params) and not one.task and one.meets(self.start, self.end) for one in spans)


def clauses(text: str, *, change: bool) -> Iterator[Clause]:
    """The sentences of a text, each followed by its clauses where it has several; all are read between those around
    them."""
    parted = [*_parted(text)]
    said = ["", *(_said(text, *place) for start, end, inner in parted for place in inner or [(start, end)]), ""]
    first = 0
    for start, end, inner in parted:
        behind = first + (len(inner) or 1)
        yield clause_of(text, start, end, change=change, around=(said[first], said[behind + 1]), whole=True)
        for n, place in enumerate(inner, first):
            yield clause_of(text, *place, change=change, around=(said[n], said[n + 2]))
        first = behind


def _parted(text: str) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Where the sentences of a text begin and end, each with its clauses where it has several."""
    closed = [*quoted_spans(text), *(one.span() for one in BRACKETS.finditer(text))]
    ands = wordset("ands", detect_language(text))
    for start, end, _ in sentences(text, closed):
        if not _WORD.search(text, start, end):
            continue
        cuts = [start]
        for joint in [*(at for at in borders(text, start, end, closed) if _joins(text[start:at], ands)), end]:
            # A word alone is no clause, and a condition is nothing without what it is for.
            short = len(_WORD.findall(text, cuts[-1], joint)) < _FEWEST
            if not (short or (len(cuts) == 1 and IF.match(text[start:].lstrip(" -•*")) and joint < end)):
                cuts.append(joint)
        cuts[-1] = end
        yield start, end, [*pairwise(cuts)] if len(cuts) > 2 else []


def _joins(before: str, ands: Set[str]) -> bool:
    """Whether a clause ends here: a word that means "and" does so in its language alone."""
    last = before.split()[-1].casefold()
    return last in ands or last not in wordset("ands")


def clause_of(
    text: str, start: int, end: int, *, change: bool, around: Around | None = None, whole: bool = False
) -> Clause:
    said, spoken = _said(text, start, end), [one.span() for one in _WORD.finditer(text, start, end)] or [(start, end)]
    about = sense(said, change=change, around=around)
    return Clause(start, end, said, about, (spoken[0][0], spoken[-1][1]), whole)


def _said(text: str, start: int, end: int) -> str:
    plain = squeeze(text[start:end].replace("\x00", " ")).strip(" ,;:–—-•*")
    return without(plain, wordset("ands"), front=False)


def stepwise(found: Sequence[Clause], read: Sequence[Span], *, flow: bool) -> list[Clause]:
    """The clauses that speak of what only a flow of steps does: where a `flow` is wished for, one that speaks of a step
    is enough. A number that was `read` is a value, no condition."""
    certain = law(found)
    asked = [(one, {*one.asks()[:1]} - (_NUMBERS if one.meets(read) else set())) for one in leaves(found)
             if not any(rule.start <= one.start < rule.end for rule in certain)]  # fmt: skip
    certain = [one for one, names in asked if names & STEPS]
    like = [one for one, names in asked if names & _STEP_LIKE and one not in certain]
    one = flow and any(names & {"branch", "step"} for _, names in asked)
    return certain + like if certain or one or len(like) > 1 else []


def technical(found: Sequence[Clause], read: Sequence[Span], nodes: Mapping[str, NodeSchema]) -> list[Span]:
    """The sentences that say how the flow is made and nothing else, and clauses of others that do, of values that were
    `read`. A sentence that names the bot may say what it is for, too."""
    kept = list[Clause]()
    for whole, inner in _sentences(found):
        names, about = whole.asks(), whole.sense
        # What a wish begins with says what the flow is for, beside a part of it.
        own = [*names, *(name for one in inner for name in one.asks())]
        if whole is found[0] and ({*names} & _BUILT - {"memory"} or not {*own} & _TECHNICAL):
            continue
        least = 1 - CERTAIN if inner or not names else about.part / 2
        asks = names or whole.meets(read)
        if asks and about.told < least and all(one.builds(nodes, read=one.meets(read)) for one in (whole, *inner)):
            kept.append(whole)
        made = [one for one in inner if one.sense.part >= HALF and one.sense.told < 1 - CERTAIN and (
                ({*one.asks()} & _TECHNICAL and one.meets(read)) or (one.off and one.asks() == ["memory"]
                                                                  and not doers("memory", nodes, ())))]  # fmt: skip
        # Nothing is left of a sentence of which the rest tells nothing: "use Claude if you can, my brother likes it".
        rest = [one for one in inner if one not in made and (one.sense.told >= HALF or re.search(r"\d", one.said))]
        kept += [whole] if made and made[0] is inner[0] and not rest and about.told < HALF else made
    return [Span(*one.words, keep=True) for one in kept if not _PURPOSE.search(one.said)]


def doers(concept: str, nodes: Mapping[str, NodeSchema], values: Sequence[PlannedValue]) -> list[str] | None:
    """The nodes by which a design does a part, None where it does not."""
    does = {*_DOERS.get(concept, ())}
    found = [id_ for id_, one in nodes.items() if {one.name, f"@{one.category}"} & does]
    found += [one.node_id for one in values if f".{one.param.rpartition('.')[2]}" in does
              or any(doer in _held(one.value) for doer in does)]  # fmt: skip
    return [*dict.fromkeys(found)] if found or concept not in _DOERS else None


def _held(value: object) -> str:
    """A value in which a type is found that stands inside of it; of a text only the whole."""
    return str(value) if not isinstance(value, str) or value.isalnum() else ""


def _sentences(found: Sequence[Clause]) -> list[tuple[Clause, list[Clause]]]:
    """Each sentence with its clauses, where it has several."""
    groups = list[tuple[Clause, list[Clause]]]()
    for one in found:
        if one.whole:
            groups.append((one, []))
        else:
            groups[-1][1].append(one)
    return groups


def law(found: Sequence[Clause]) -> list[Clause]:
    """The sentences that surely tell the bot something and ask for no part, whatever a clause of them alone may be
    taken for ("repeat the date and wait for a yes"); not those that say which bot it is."""
    return [one for one in found if one.whole and one.sense.told > CERTAIN and one.sense.part < PERHAPS
            and not _BOT.search(one.said)]  # fmt: skip


def leaves(found: Sequence[Clause]) -> list[Clause]:
    """The clauses, and the sentences that have none; together they are the whole text."""
    return [one for whole, inner in _sentences(found) for one in inner or [whole]]


def unmet(
    found: Sequence[Clause], nodes: Mapping[str, NodeSchema], values: Sequence[PlannedValue]
) -> list[tuple[Clause, str]]:
    """What clauses ask for and a design does not do, each in the shortest stretch that asks for it."""
    lacks = list[tuple[Clause, str]]()
    for whole, inner in _sentences(found):
        said = {name for other in inner for name in other.sense.concepts}
        # What a sentence as a whole tells the bot is not asked for by a clause of it: "to join, write to ...".
        mine = inner if whole.sense.told <= HALF else [one for one in inner if {*one.asks()} & {*whole.asks()}]
        # In a list of fields a date is one.
        mine = [one for one in mine if whole.asks()[:1] != ["json_fields"] or len(one.said.split()) > _FEW]
        asked = [(one, name) for one in (whole, *mine) if one.sense.told < SURE for name in one.asks()]
        for one, name in (item for item in asked if item[1] != "send_out" or not _FOR_THAT.match(whole.said)):
            does, off = doers(name, nodes, values), one.off or (
                name == "memory" and (_FORGETS.search(one.said) or _NOT.search(one.said)))  # fmt: skip
            # Flowise puts each chatflow into a page of the web.
            embeds = name == "channel" and _ON_SITE.search(one.said)
            # An address or a number that is in a field is used, whichever limit was heard.
            held = (str(value.value) for value in values if name in {"http", *_TECHNICAL})
            used = any(_FIGURE.match(each) and wording.whole(each).search(one.said) for each in held)
            if not (embeds or used or (one.whole and name in said)) and (does if off else does is None):
                lacks.append((one, name))
    return lacks


def missing(lacks: Sequence[tuple[Clause, str]]) -> list[str]:
    """Those clauses without whose part, whatever it is, the flow is another one than was wished for."""
    sure = (one for one, name in lacks if name in _ESSENTIAL and one.sense.concepts[name] >= HALF
            and one.sense.told < MAYBE and len(one.said.split()) > _FEW and not IF.match(one.said))  # fmt: skip
    return list(dict.fromkeys(one.said for one in sure))
