"""What a wish changes in the graph of an AgentFlow: an approval that is not wanted any more, the number of a condition,
how often a loop goes back. What the graph leaves open is not done."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from flowise_dev_agent.contracts.plan import DesignConnection, PlannedValue
from flowise_dev_agent.patch import FlowNode, GraphIR
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.json_text import as_dict
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import build
from flowise_dev_agent.reasoning.rules.design.clauses import Clause, leaves
from flowise_dev_agent.reasoning.rules.design.owners import apart, stems_of, titled
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER, concept, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import HALF, MAYBE, PERHAPS, SURE
from flowise_dev_agent.reasoning.rules.language.text import Span, quoted, to_number

_STRAIGHT, _PLAIN, _EXCEPT = (pattern("graph", name) for name in ("straight", "plain", "except"))
_FROM, _OVER = pattern("graph", "from"), pattern("graph", "over")
_NOT, _NUMBER = pattern("text", "no"), re.compile(NUMBER, re.IGNORECASE)
_FIRST, _COPIED = {v2.START, *v2.NOTE_NAMES}, {"directReplyAgentflow", "httpAgentflow"}
#: What says that a number is another one.
MOVES = (pattern("values", "range"), *(pattern("exchange", name) for name in ("swaps", "rises", "now")))
_SMALL = re.compile(rf"(?i)(?<!\w)(?:{'|'.join(wordset('prepositions'))})(?!\w)")
#: Characters in front of a number that say of what it is.
_NEAR = 8
#: A connection: the node and the output where it begins, and where it leads to.
_Way = tuple[str, str, str]


@dataclass(frozen=True)
class Graph:
    """`spans` say what is done, `added` is node id -> type; `exact`: the number that was is named, too, so that nothing
    else can be meant."""

    spans: Sequence[Span]
    removed: Sequence[str] = ()
    cuts: Sequence[DesignConnection] = ()
    links: Sequence[DesignConnection] = ()
    values: Sequence[PlannedValue] = ()
    added: Mapping[str, str] = field(default_factory=dict[str, str])
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    exact: bool = False


def graphs_of(request: PlanRequest, read: Sequence[Clause], taken: Sequence[Span]) -> list[Graph]:
    """What a wish changes of it; `taken` asks for values."""
    if (base := request.base) is None:
        return []
    found = [_unapproved(request, base, read, taken)]
    for one in sorted(read, key=lambda one: one.whole):
        free = not any(span.meets(one.start, one.end) for made in found if made for span in made.spans)
        found.append(_compared(base, one) or _limited(request, base, one) if free else None)
    return [*filter(None, found)]


def branch_of(request: PlanRequest, link: DesignConnection) -> str:
    """The branch of a condition that a connection leads on from, as people call it; "" where a step has one way on."""
    base, node = request.base, request.base.node(link.source) if request.base else None
    if base is None or node is None or node.name not in v2.BRANCHES_FROM:
        return ""
    return f"{node.label}: {_title(base, link.source, link.output)}".rstrip(": ")


def sentence_of(read: Sequence[Clause], start: int) -> Clause:
    """The sentence that something is said in."""
    return next(one for one in read if one.whole and one.start <= start < one.end)


# --- An approval


def _unapproved(request: PlanRequest, base: GraphIR, read: Sequence[Clause], taken: Sequence[Span]) -> Graph | None:
    """The flow in which all, or the steps that are named, lead past the approval to what follows on its yes. None where
    the wish leaves open which ones these are, or says more of it."""
    dropped = next((one for one in leaves(read) if drops_approval(request, one)), None)
    if dropped is None or len(ids := titled(request, dropped.said, _people(request)) or _people(request)) > 1:
        return None
    human, ways, rest = ids[0], _ways(base), [one for one in leaves(read) if one is not dropped]
    # What is within an iteration is approved for each item of it.
    if any(one.id == human and one.raw.get("parentNode") for one in base.nodes):
        return None
    yes, no = ([edge.target for edge in base.edges if (edge.source, edge.output_name) == (human, way)] for way in "01")
    straight = [one for one in rest if _goes_straight(request, human, one)]
    ends = _chosen(request, base, human, dropped.said, " ".join(one.said for one in straight))
    kept = [one for one in ways if one[2] != human or one[:2] not in ends]
    on = [way for end in ends for target in yes if (way := (*end, target)) not in kept]
    there = _reached({one.id for one in base.nodes if one.name in _FIRST or one.raw.get("parentNode")}, [*kept, *on])
    gone = [one.id for one in base.nodes if one.id not in there and one.id in {human, *_reached({human}, ways)}]
    # A step that two ways lead to waits for both: beside an approval that stays the others have their own.
    twice = [one for one in base.nodes if human in there and one.id in _reached({*yes}, ways)]
    fresh = build.fresh_ids([one.name for one in twice], request.existing)
    new = dict(zip([one.id for one in twice], fresh, strict=True))
    links = [(source, output, new.get(target, target)) for source, output, target in on]
    links += [(new[source], output, new[target]) for source, output, target in ways if source in new]
    open_ = [one for one in rest if not (one in straight or _stays(one, read)) and _words_of(request, human, one.said)]
    behind, sentence = {*gone, *no} - {human, *yes}, sentence_of(read, dropped.start)
    own = _labels(request, behind) - _labels(request, {*request.labels} - behind)
    # Where a wish says what is done on a no, or where else they lead, another flow is meant.
    odd = {id_ for one in straight for id_ in titled(request, one.said)} - {human, *yes, *(id_ for id_, _ in ends)}
    odd |= {one.said for one in open_ if own & stems_of(one.said) or not (
        one.sense.told > SURE or one.meets(taken) or sentence_of(read, one.start) is not sentence)}  # fmt: skip
    odd |= {one.id for one in twice if one.name not in _COPIED or one.data.get("credential")}
    held = {word for one in base.nodes if one.id in there for word in re.findall(r"\w+", str(one.inputs))}
    if odd or not (yes and ends) or held & {*gone}:
        return None
    values = [PlannedValue(node_id=new[one.id], param=name, value=_with_ids(value, new))
              for one in twice for name, value in one.inputs.items() if value not in (None, "")]  # fmt: skip
    return Graph([Span(one.start, one.end) for one in leaves(read) if one not in open_], gone,
                 [_link(*end, human) for end in ends if human in there], [_link(*one) for one in links],
                 values, fresh, {new[one.id]: one.label for one in twice})  # fmt: skip


def _goes_straight(request: PlanRequest, human: str, one: Clause) -> bool:
    """Whether a clause asks that something goes on without a stop: "it can go straight out"; not "name the price
    directly"."""
    asks = one.sense.part > MAYBE or len(_words_of(request, human, one.said)) < 2
    asks = asks and one.sense.told < HALF and not re.search(r"\d", one.said)
    return asks and _STRAIGHT.search(one.said) is not None


def _with_ids(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_ids(one, ids) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_ids(one, ids) for one in value]
    return re.sub(r"\w+", lambda one: ids.get(one[0], one[0]), value) if isinstance(value, str) else value


def _link(source: str, output: str, target: str) -> DesignConnection:
    return DesignConnection(source=source, output=output, target=target)


def _people(request: PlanRequest) -> list[str]:
    return [id_ for id_, name in request.existing.items() if name == v2.HUMAN_INPUT]


def drops_approval(request: PlanRequest, one: Clause) -> bool:
    """Whether a clause says that an approval is not wanted."""
    about, people = one.sense, _people(request)
    named = people and titled(request, one.said, people)
    heard = named or about.concepts.get("approval", 0) > PERHAPS or concept("own", "approval").search(one.said)
    # "Do not remove the approval" keeps it.
    out, nots = words("remove").search(one.said), len(_NOT.findall(one.said))
    unwanted = (one.off or (out if not nots else nots == 1)) and not (out and nots)
    return bool(people and heard and unwanted and (named or about.told < HALF) and not _EXCEPT.search(one.said))


def _chosen(request: PlanRequest, base: GraphIR, human: str, said: str, beside: str) -> list[tuple[str, str]]:
    """What leads into the approval and is meant by a clause: what it names, or all where it names nothing."""
    titles = {way: _title(base, *way[:2]) for way in _ways(base)}
    own = apart({way: stems_of(title) for way, title in titles.items() if way[2] == human})
    left = _words_of(request, human, said)
    named = [way for way in own if own[way] & left]
    known = " ".join([*request.labels.values(), *titles.values(), request.target or ""]) if named else ""
    # "Quotes need no approval, the quote goes straight out": what alone leads there is called so.
    free = stems_of(f"{known} {beside if len(own) == 1 else ''}")
    return [way[:2] for way in named or own] if left <= free else []


def _words_of(request: PlanRequest, human: str, said: str) -> set[str]:
    """The stems of a clause that say more than that the approval goes."""
    plain = (words("remove"), concept("own", "approval"), concept("steps", "step"), _PLAIN, _NOT, _STRAIGHT, _SMALL)
    return stems_of(reduce(lambda text, one: one.sub(" ", text), plain, said)) - _labels(request, {human})


def _labels(request: PlanRequest, ids: Collection[str]) -> set[str]:
    return stems_of(" ".join(label for id_, label in request.labels.items() if id_ in ids))


def _stays(one: Clause, read: Sequence[Clause]) -> bool:
    """Whether it says, or its sentence does, that the rest stays as it is."""
    says = (one.sense, sentence_of(read, one.start).sense)
    return any(about.keep > max(about.part, PERHAPS) and about.told < HALF for about in says) and not quoted(one.said)


def _ways(base: GraphIR) -> list[_Way]:
    several = {node.id for node in base.nodes if node.names_outputs}
    return [(one.source, one.output_name if one.source in several else "", one.target) for one in base.edges]


def _title(base: GraphIR, id_: str, output: str) -> str:
    """What people call what leads on there: a branch by what it is for, a step by its title and the branch to it."""
    node = base.node(id_)
    if node is not None and node.name in v2.BRANCHES_FROM:
        row = dict(_rows(node)).get(output, {})
        return str(row.get("scenario") or row.get("value2") or "")
    before = [_title(base, *one[:2]) for one in _ways(base) if one[2] == id_ and one[1]]
    return " ".join([node.label if node else "", *before])


def _rows(node: FlowNode) -> list[tuple[str, Mapping[str, Any]]]:
    """The branches of a condition, by their outputs."""
    rows = node.inputs.get(v2.BRANCHES_FROM[node.name])
    return [(str(number), as_dict(row)) for number, row in enumerate(rows)] if isinstance(rows, list) else []


def _reached(there: set[str], ways: Sequence[_Way]) -> set[str]:
    """These nodes, and all that they lead to."""
    while more := {target for source, _, target in ways if source in there} - there:
        there |= more
    return there


# --- Numbers


def _compared(base: GraphIR, one: Clause) -> Graph | None:
    """The number that a condition compares with from now on. The one that was has to be said, and be nowhere else."""
    said = {to_number(found[0]): found[0] for found in _NUMBER.finditer(one.said) if found[0][0].isdigit()}
    held = [(node, number, row, to_number(value)) for node in base.nodes if node.name == v2.CONDITION
            for number, row in _rows(node) if row.get("type") == "number" and _NUMBER.fullmatch(
                value := str(row.get("value2"))) and to_number(value) in said]  # fmt: skip
    about = one.sense.told < HALF and one.sense.concepts.get("number_condition", 0) > PERHAPS
    if len(said) != 2 or len(held) != 1 or not (about and _moves(one.said)):
        return None
    ((node, number, row, old),) = held
    (new,) = {*said} - {old}
    # "40 instead of 60" where it is 40 says something else.
    if any((at := _NUMBER.match(one.said, found.end() + 1)) and to_number(at[0]) == new
           for found in words("instead_of").finditer(one.said)):  # fmt: skip
        return None
    elsewhere = " ".join(str(other.inputs) for other in base.nodes if other is not node)
    if re.search(rf"(?<![\w.,]){re.escape(said[old])}(?!\w|[.,]\d)", elsewhere):
        return None
    # With itself, or without.
    kind, values = str(row.get("operation")).removesuffix("Equal"), {"value2": int(new) if new == int(new) else new}
    bound = [found is _FROM for found in (_FROM, _OVER) for at in found.finditer(one.said)
             if to_number((_NUMBER.search(one.said, at.start()) or at)[0]) == new]  # fmt: skip
    if bound and kind in ("larger", "smaller"):
        values |= {"operation": kind + "Equal" * ((kind == "larger") == bound[0])}
    title = re.sub(rf"(?<!\d){re.escape(said[old])}(?!\d)", said[new], node.label)
    made = [PlannedValue(node_id=node.id, param=f"conditions[{number}].{name}", value=value)
            for name, value in values.items() if value != row.get(name)]  # fmt: skip
    return Graph([Span(one.start, one.end)], values=made, titles={node.id: title}, exact=True)


def _limited(request: PlanRequest, base: GraphIR, one: Clause) -> Graph | None:
    """How often at most a loop goes back: the only one, or the one that is named."""
    loops = {node.id: str(node.inputs.get("maxLoopCount")) for node in base.nodes if node.name == v2.LOOP}
    ids = (titled(request, one.said, loops) or [*loops]) if loops else []
    heard, approval = (one.sense.concepts.get(name, 0) for name in ("loop", "approval"))
    # "Back to step 2" counts nothing.
    numbers = {int(to_number(found[0])) for found in _NUMBER.finditer(one.said)
               if not concept("steps", "step").search(one.said[: found.start()][-_NEAR:])}  # fmt: skip
    new = {number for number in numbers if str(number) not in [loops[id_] for id_ in ids]}
    exact = len(numbers) == 2 and _moves(one.said)
    asked = one.sense.told < PERHAPS and max(one.sense.part, heard) > SURE
    sure = (heard > HALF and len(numbers) == 1) or (exact and heard + approval > PERHAPS)
    if len(ids) != 1 or len(new) != 1 or not (asked and sure):
        return None
    value = PlannedValue(node_id=ids[0], param="maxLoopCount", value=new.pop())
    return Graph([Span(one.start, one.end)], values=[value], exact=exact)


def _moves(said: str) -> bool:
    return any(one.search(said) for one in (*MOVES, _NOT, words("instead_of")))
