"""Outline of the flow that a plan leads to: steps with their branches, or the node at the end with what feeds it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast

from flowise_dev_agent.patch import FlowNode, GraphIR
from flowise_dev_agent.patch.model.ways import following, ways_of
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.schemas.shown_plan import Branch, OutlineLine, OutlineState

#: Of a larger flow only what changes is shown, with its neighbours.
_MOST_WHOLE: Final = 20
_DEEPEST: Final = 4
#: Characters of a branch's name.
_BRANCH: Final = 60


def flow_outline(
    plan: Plan, base: GraphIR, flow: GraphIR, titles: Mapping[str, str], set_: Collection[str]
) -> list[OutlineLine]:
    """Lines of the outline, in the order in which the flow runs. `set_` are the nodes with a value that changes."""
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
            line(node, depth, _branches(node, flow, titles, ending=known))
            for node, depth in _in_order(shown, flow, plan)
        ]
    return [line(node, depth) for node, depth in _fed(shown, flow)]


def _inputs(flow: GraphIR) -> dict[str, set[tuple[str, str]]]:
    """Source and input of the lines into each node."""
    found: dict[str, set[tuple[str, str]]] = {}
    for edge in flow.edges:
        found.setdefault(edge.target, set()).add((edge.source, edge.input_name))
    return found


def _branches(node: FlowNode, flow: GraphIR, titles: Mapping[str, str], *, ending: bool) -> list[Branch]:
    """Ways out of a step; the name of a branch is empty if there is one only.

    A branch that ends while others lead on is one of them (`ending`); before any line is known, none is.
    """
    names = branch_names(node)
    found: list[Branch] = []
    for edge in flow.edges:
        if edge.source == node.id and (target := flow.node(edge.target)):
            name = names.get(edge.output_name or "", edge.output_name or "") if names else ""
            found.append(Branch(name=name, to=titles.get(target.id, masked(target.label))))
    led = {edge.output_name or "" for edge in flow.edges if edge.source == node.id}
    ends = [name for output, name in names.items() if ending and found and output not in led]
    return [*found, *(Branch(name=name) for name in ends)]


def branch_names(node: FlowNode) -> dict[str, str]:
    """Words of the branches of a step, by output; empty for a step with one way out."""
    names = {output.name: output.label for output in node.outputs} if len(node.outputs) > 1 else {}
    return names | _said(node) if names else {}


def _said(node: FlowNode) -> dict[str, str]:
    """Words of the branches, by number, where a scenario or a plain condition says them."""
    found: dict[str, str] = {}
    for field in ("conditionAgentScenarios", "conditions"):
        rows = node.inputs.get(field)
        for number, row in enumerate(rows if isinstance(rows, list) else []):
            if isinstance(row, Mapping):
                given = cast("Mapping[str, object]", row)
                words = given.get("scenario") or " ".join(
                    str(given.get(part) or "") for part in ("operation", "value2") if given.get("value2")
                )
                found |= {str(number): shortened(masked(" ".join(str(words).split())), _BRANCH)} if words else {}
    return found


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
    """Nodes at the end of a flow, each with the nodes that feed it below; a node that feeds several comes once."""
    feeds: dict[str, list[str]] = {}
    for edge in flow.edges:
        feeds.setdefault(edge.target, []).append(edge.source)
    sources = {edge.source for edge in flow.edges}
    seen: set[str] = set()

    def below(id_: str, depth: int) -> Iterator[tuple[FlowNode, int]]:
        node = shown.get(id_)
        if node is None or id_ in seen:
            return
        seen.add(id_)
        yield node, depth
        for source in feeds.get(id_, ()):
            yield from below(source, min(depth + 1, _DEEPEST))

    for id_ in [*(one for one in shown if one not in sources), *shown]:
        yield from below(id_, 0)
