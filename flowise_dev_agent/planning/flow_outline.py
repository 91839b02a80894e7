"""Outline of the flow that a plan leads to: steps with their branches, or the node at the end with what feeds it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, cast

from flowise_dev_agent.patch import FlowNode, GraphIR
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model import sequential
from flowise_dev_agent.patch.model.ways import following, ways_of
from flowise_dev_agent.planning.value_text import condition_words
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import LineChange, Plan
from flowise_dev_agent.schemas.shown_plan import Branch, OutlineLine, OutlineState
from flowise_dev_agent.texts import say_in

#: Of a larger flow only what changes is shown, with its neighbours.
_MOST_WHOLE: Final = 20
_DEEPEST: Final = 4
#: Characters of a branch's name.
_BRANCH: Final = 1_000


def flow_outline(
    plan: Plan, base: GraphIR, flow: GraphIR, titles: Mapping[str, str], set_: Collection[str], language: str = "en"
) -> list[OutlineLine]:
    """Lines of the outline, in the order in which the flow runs. `set_` are the nodes with a value that changes."""
    said = partial(say_in, language)
    nodes = [node for node in flow.nodes if not node.is_note]
    if len(nodes) > _MOST_WHOLE:
        touched = {node.node_id for node in plan.nodes} | {value.node_id for value in plan.values}
        touched |= {end for one in plan.disconnections for end in (one.source, one.target)}
        ends = [(edge.source, edge.target) for edge in flow.edges if {edge.source, edge.target} & touched]
        near = touched.union(*ends)
        nodes = [node for node in nodes if node.id in near]
    purposes = {node.node_id: node.purpose for node in plan.nodes}
    labels = {node.id: node.label for node in base.nodes}
    renamed = {one.node_id for one in plan.nodes if one.label and one.label != labels.get(one.node_id, one.label)}
    fed, before = _inputs(flow), _inputs(base)
    # A step of an agentflow is the same behind another one; a node of a chatflow works with what is connected to it.
    rewired = {node.id for node in nodes if not node.is_agentflow and fed.get(node.id) != before.get(node.id)}
    changed = {*set_, *renamed, *rewired} - {*plan.kept}

    def line(node: FlowNode, depth: int, leads_to: Sequence[Branch] = ()) -> OutlineLine:
        state: OutlineState = "new" if base.node(node.id) is None else "changed" if node.id in changed else "same"
        return OutlineLine(
            node_id=node.id,
            title=titles.get(node.id, masked(node.label)),
            purpose=purposes.get(node.id, ""),
            depth=depth,
            state=state,
            leads_to=list(leads_to),
        )

    shown = {node.id: node for node in nodes}
    if any(node.is_agentflow for node in nodes):
        linked = {end for way in ways_of(flow) for end in way[::2]}
        # What an open branch leads to is not known while a new step has no line.
        known = all(node.id in linked or base.node(node.id) for node in nodes)
        return [
            line(node, depth, _branches(node, flow, titles, said, ending=known))
            for node, depth in _in_order(shown, flow, plan)
        ]
    if steps := {node.id: node for node in nodes if sequential.is_step(node)}:
        ordered = [node for node, _ in _in_order(steps, flow, plan)]
        return [
            line(node, depth, _branches(node, flow, titles, said, ending=True) if sequential.is_step(node) else ())
            for node, depth in _below([*ordered, *nodes], shown, flow)
        ]
    return [line(node, depth) for node, depth in _fed(shown, flow)]


def _inputs(flow: GraphIR) -> dict[str, set[tuple[str, str]]]:
    """Source and input of the lines into each node, without those from the step before."""
    found: dict[str, set[tuple[str, str]]] = {}
    for edge in (one for one in flow.edges if one.input_name not in sequential.LEADS):
        found.setdefault(edge.target, set()).add((edge.source, edge.input_name))
    return found


def _branches(
    node: FlowNode, flow: GraphIR, titles: Mapping[str, str], said: Callable[..., str], *, ending: bool
) -> list[Branch]:
    """Ways out of a step in the order of its branches; the name of a branch is empty if there is one only.

    A branch without a line ends while others lead on (`ending`); before any line is known, that is not known.
    """
    names = branch_names(node, titles, said)
    targets: dict[str, list[str]] = {}
    for edge in flow.edges:
        if edge.source == node.id and (target := flow.node(edge.target)):
            targets.setdefault(edge.output_name or "", []).append(titles.get(target.id, masked(target.label)))
    if node.name == v2.LOOP and (back := flow.node(v2.loop_target_id(str(node.inputs.get(v2.LOOP_TARGET) or "")))):
        return [Branch(to=titles.get(back.id, masked(back.label)))]
    if node.name == sequential.LOOP:
        to = sequential.id_called(str(node.inputs.get(sequential.LOOP_TO) or ""), flow.nodes)
        return [Branch(to=titles.get(to, to))] if to else []
    if not names:
        return [Branch(to=one) for found in targets.values() for one in found]
    led = [(names.get(output, output), to) for output in {**names, **targets} for to in targets.get(output, [""])]
    return [Branch(name=name, to=to, known=bool(to or (ending and targets))) for name, to in led]


def branches_of_lines(
    plan: Plan, base: GraphIR, after: GraphIR, titles: Mapping[str, str], language: str
) -> dict[LineChange, list[str]]:
    """Words of the branches that lines of the plan are added to and taken from, read off the two flows: the number of
    a branch is another one where the plan changes the conditions before it. None for a line that stays.
    """
    said = partial(say_in, language)

    def leading(flow: GraphIR, source: str, target: str) -> list[str]:
        node = flow.node(source)
        names = branch_names(node, titles, said) if node else {}
        ends = [edge for edge in flow.edges if (edge.source, edge.target) == (source, target)]
        return [names.get(edge.output_name or "", "") for edge in ends]

    given = plan.capability.lines if plan.capability else []
    pairs = {(one.source, one.target) for one in given if one.change == "remove"}
    pairs &= {(one.source, one.target) for one in given if one.change == "add"}
    found: dict[LineChange, list[str]] = {}
    for one in given:
        ends = one.source, one.target
        before, now = leading(base, *ends), leading(after, *ends)
        mine, other = (now, before) if one.change == "add" else (before, now)
        # A line that both flows have alike, though the plan names it once, is told without its branch.
        if words := [name for name in mine if name not in other]:
            found[one] = words
        elif mine and ends in pairs:
            found[one] = []
    return found


def branch_names(node: FlowNode, titles: Mapping[str, str], said: Callable[..., str]) -> dict[str, str]:
    """Words of the branches of a step, by output; empty for a step with one way out."""
    if len(node.outputs) < 2:
        return {}
    names = {output.name: output.label for output in node.outputs}
    if node.name == v2.HUMAN_INPUT:
        return {name: said(f"plan.branch.{label}") for name, label in names.items()}
    rows = node.inputs.get(v2.BRANCHES_FROM.get(node.name, ""))
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        if isinstance(row, Mapping):
            given = cast("Mapping[str, object]", row)
            words = (
                condition_words(given, titles, said) if node.name == v2.CONDITION else str(given.get("scenario") or "")
            )
            names |= {str(number): shortened(masked(" ".join(words.split())), _BRANCH)} if words else {}
    return {name: said("plan.branch.else") if words == "else" else words for name, words in names.items()}


def _in_order(shown: Mapping[str, FlowNode], flow: GraphIR, plan: Plan) -> Iterator[tuple[FlowNode, int]]:
    """Steps as they run, the steps of an iteration below it; what nothing leads to comes in the order of the plan."""
    after = following(ways_of(flow))
    led_to = {target for targets in after.values() for target in targets}
    planned = [node.node_id for node in plan.nodes]
    rank = {id_: planned.index(id_) if id_ in planned else -1 for id_ in shown}
    waiting = sorted((id_ for id_ in shown if id_ not in led_to and not shown[id_].parent), key=lambda id_: rank[id_])
    seen: set[str] = set()
    rest = [*shown]
    while waiting or rest:
        id_ = waiting.pop(0) if waiting else rest.pop(0)
        node = shown.get(id_)
        if node is None or id_ in seen or (node.parent in shown and node.parent not in seen):
            continue
        seen.add(id_)
        yield node, 1 if node.parent in shown else 0
        # Once in an iteration, its other steps come before what follows it.
        waiting = sorted([*after.get(id_, ()), *waiting], key=lambda one: not (one in shown and shown[one].parent))


def _fed(shown: Mapping[str, FlowNode], flow: GraphIR) -> Iterator[tuple[FlowNode, int]]:
    """Nodes at the end of a flow, each with the nodes that feed it below."""
    sources = {edge.source for edge in flow.edges}
    ends = [node for id_, node in shown.items() if id_ not in sources]
    yield from _below([*ends, *shown.values()], shown, flow)


def _below(tops: Sequence[FlowNode], shown: Mapping[str, FlowNode], flow: GraphIR) -> Iterator[tuple[FlowNode, int]]:
    """Nodes, each with those that feed it below; a node that feeds several comes once. Steps feed no other step."""
    feeds: dict[str, list[str]] = {}
    for edge in flow.edges:
        if edge.input_name not in sequential.LEADS:
            feeds.setdefault(edge.target, []).append(edge.source)
    seen: set[str] = set()

    def below(id_: str, depth: int) -> Iterator[tuple[FlowNode, int]]:
        node = shown.get(id_)
        if node is None or id_ in seen:
            return
        seen.add(id_)
        yield node, depth
        for source in feeds.get(id_, ()):
            yield from below(source, min(depth + 1, _DEEPEST))

    for node in tops:
        yield from below(node.id, 0)
