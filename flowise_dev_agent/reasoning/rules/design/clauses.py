"""A wish in clauses, each with what it is about: the second reader, beside the rules that look for words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.rules.design.prompt import without
from flowise_dev_agent.reasoning.rules.design.wording import IF, borders, sentences
from flowise_dev_agent.reasoning.rules.language.lexicon import constants, wordset
from flowise_dev_agent.reasoning.rules.language.senses import Sense, sense
from flowise_dev_agent.reasoning.rules.language.text import Span, quoted_spans, squeeze

#: From here on it is believed what a clause asks for, or that it asks for no part.
_LIKELY, _HALF, _NEAR = 0.6, 0.5, 0.3
_FEWEST, _FEW, _SURE, _CLEAR = 2, 3, 0.8, 0.9
_WORD = re.compile(r"\w+")
#: The parts that the design of a flow does, by the types and fields that do them.
_DOERS: Mapping[str, Sequence[str]] = constants("does")
#: The parts that only an AgentFlow has; of the latter one alone may be said of a conversation, too.
STEPS = frozenset({"approval", "for_each", "form", "loop", "number_condition", "schedule", "webhook"})
_PERHAPS = frozenset({"branch", "step", "fixed_reply"})


@dataclass(frozen=True)
class Clause:
    """A sentence (`whole`) or a clause of it."""

    start: int
    end: int
    said: str
    sense: Sense
    whole: bool = False

    def asks(self, least: float = _LIKELY) -> list[str]:
        """The parts that it asks for. One that surely asks for a part asks for the most probable one."""
        part, shares = self.sense.part, self.sense.concepts
        short = len(self.said.split()) <= _FEW
        sure, top = part >= (_CLEAR if short else _SURE), max(shares.values(), default=0)
        least = _CLEAR if short and not sure else _HALF if short else least
        named = [name for name, share in shares.items() if part >= _HALF and share >= least]
        return named or [name for name, share in shares.items() if sure and not short and share == top >= _NEAR]


def clauses(text: str, *, change: bool) -> Iterator[Clause]:
    """The sentences of a text, each followed by its clauses where it has several."""
    closed = quoted_spans(text)
    for start, end, _ in sentences(text, closed):
        if not _WORD.search(text, start, end):
            continue
        yield _clause(text, start, end, change=change, whole=True)
        cuts = [start]
        for joint in [*borders(text, start, end, closed), end]:
            # A word alone is no clause, and a condition is nothing without what it is for.
            short = len(_WORD.findall(text, cuts[-1], joint)) < _FEWEST
            if not (short or (len(cuts) == 1 and IF.match(text[start:].lstrip(" -•*")) and joint < end)):
                cuts.append(joint)
        cuts[-1] = end
        if len(cuts) > 2:
            yield from (_clause(text, *place, change=change) for place in pairwise(cuts))


def _clause(text: str, start: int, end: int, *, change: bool, whole: bool = False) -> Clause:
    said = without(squeeze(text[start:end].replace("\x00", " ")).strip(" ,;:–—-•*"), wordset("ands"), front=False)
    return Clause(start, end, said, sense(said, change=change), whole)


def stepwise(found: Sequence[Clause], read: Sequence[Span]) -> list[Clause]:
    """The clauses that speak of what only a flow of steps does, besides the values that were `read`."""
    values = [span for span in read if span.params and not (span.names or span.task)]
    own = [one for one in leaves(found) if not any(span.meets(one.start, one.end) for span in values)]
    certain = [one for one in own if STEPS & {*one.asks()}]
    perhaps = [one for one in own if _PERHAPS & {*one.asks()}]
    return certain + perhaps if certain or len(perhaps) > 1 else []


def doers(concept: str, nodes: Mapping[str, NodeSchema], values: Sequence[PlannedValue]) -> list[str] | None:
    """The nodes by which a design does a part, None where it does not."""
    does = {*_DOERS.get(concept, ())}
    found = [id_ for id_, one in nodes.items() if {one.name, f"@{one.category}"} & does]
    found += [one.node_id for one in values if f".{one.param.rpartition('.')[2]}" in does or (isinstance(one.value, str) and one.value in does)
              or any(f"'{doer}'" in str(one.value) for doer in does)]  # fmt: skip
    return [*dict.fromkeys(found)] if found or concept not in _DOERS else None


def leaves(found: Sequence[Clause]) -> list[Clause]:
    """The clauses, and the sentences that have none; together they are the whole text."""
    ends = [*(other.whole for other in found[1:]), True][: len(found)]
    return [one for one, alone in zip(found, ends, strict=True) if not one.whole or alone]


def unmet(
    found: Sequence[Clause], nodes: Mapping[str, NodeSchema], values: Sequence[PlannedValue]
) -> list[tuple[Clause, str]]:
    """What clauses ask for and a design does not do, each in the shortest stretch that asks for it."""
    lacks = list[tuple[Clause, str]]()
    for number, one in enumerate(found):
        inner = list[Clause]()
        for other in found[number + 1 :] if one.whole else ():
            if other.whole:
                break
            inner.append(other)
        said = {name for other in inner for name in other.asks(_NEAR)}
        own = [name for name in one.asks(_LIKELY if one.whole else _HALF) if name not in said]
        off = one.sense.off > _HALF
        lacks += [(one, name) for name in own if (doers(name, nodes, values) is None) is not off]
    return lacks
