"""Preview of the flow that a plan leads to, from the plan and the node types only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.forms.wiring import replacements, wire_plan
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    Finding,
    FlowNode,
    GraphIR,
    NodeSchema,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetLabel,
    compile_ops,
)
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.values import with_planned_values
from flowise_dev_agent.schemas.plan import Plan, PlannedNode

#: Ops that cannot be compiled are left out; leaving them out may make others fail.
_ROUNDS: Final = 4


@dataclass(frozen=True)
class FlowPreview:
    """Previewed flow. `unknown`: planned nodes of types that the server lacks; `unconnected`: new nodes without a known
    connection.
    """

    graph: GraphIR
    unknown: tuple[PlannedNode, ...] = ()
    unconnected: tuple[str, ...] = ()


def planned_flow(plan: Plan, base: GraphIR, schemas: Schemas) -> FlowPreview:
    """Apply the nodes, values, removals and connections of a plan to `base`. No model is asked; ops that do not compile
    are left out.
    """
    there = {node.id: schema for node in base.nodes if (schema := schemas.get(node.name))}
    new = [node for node in plan.nodes if not node.existing and base.node(node.node_id) is None]
    added = {node.node_id: schema for node in new if (schema := schemas.get(node.node_name))}
    pairs = replacements(plan, there, added)
    ops = [
        *with_planned_values(_ops(plan, base, added, pairs), plan, base),
        *wire_plan(plan, there, added, pairs, GraphView(base).connected_inputs).ops,
    ]
    graph = compiled_as_far(base, ops, schemas)
    if plan.flow_kind == "AGENTFLOW" and plan.operation == "create" and not plan.connections:
        graph = compiled_as_far(base, [*ops, *_in_order([graph.node(id_) for id_ in added])], schemas)
    linked = {end for edge in graph.edges for end in (edge.source, edge.target)}
    return FlowPreview(
        graph,
        unknown=tuple(node for node in new if node.node_id not in added),
        unconnected=tuple(id_ for id_ in added if len(added) > 1 and id_ not in linked and graph.node(id_)),
    )


def _ops(plan: Plan, base: GraphIR, added: Mapping[str, NodeSchema], pairs: Mapping[str, str]) -> list[PatchOp]:
    """Ops that add, remove, replace and rename the planned nodes."""
    planned = {node.node_id: node for node in plan.nodes}
    ops: list[PatchOp] = [
        AddNode(node_name=schema.name, node_id=id_, label=planned[id_].label or None)
        for id_, schema in added.items()
        if id_ not in pairs.values()
    ]
    ops += [RemoveNode(node_id=id_) for id_ in plan.removals if base.node(id_) and id_ not in pairs]
    ops += [ReplaceNode(node_id=old, node_name=added[id_].name, new_node_id=id_) for old, id_ in pairs.items()]
    titled = {*pairs.values(), *(node.id for node in base.nodes)}
    ops += [SetLabel(node_id=id_, label=one.label) for id_, one in planned.items() if one.label and id_ in titled]
    return ops


def compiled_as_far(base: GraphIR, ops: Sequence[PatchOp], schemas: Schemas) -> GraphIR:
    """Compile the flow with all ops that can be compiled."""
    left = list(ops)
    for _ in range(_ROUNDS):
        if not left:
            return base
        try:
            return compile_ops(base, left, schemas).graph
        except PatchError as error:
            found = [Finding.model_validate(one) for one in error.details["findings"]]
            wrong = {(one.op_index, one.field) for one in found}
            left = [kept for index, op in enumerate(left) if (kept := _without(op, index, wrong))]
    return base


def _without(op: PatchOp, index: int, wrong: set[tuple[int | None, str]]) -> PatchOp | None:
    """Op without its invalid fields; None if it cannot be compiled at all."""
    fields = {field for number, field in wrong if number == index}
    if not fields:
        return op
    if isinstance(op, AddNode) and fields <= op.params.keys():
        kept = {name: value for name, value in op.params.items() if name not in fields}
        return op.model_copy(update={"params": kept})
    return None


def likely_lines(plan: Plan, base: GraphIR, flow: GraphIR) -> list[PatchOp]:
    """Ops that connect the new steps of a planned change of an agentflow, where that leaves one way: into the one line
    that it takes away, else behind its one branch without a line. Empty where it leaves more.

    Where the plan leads to the end of that line from elsewhere, the line has moved, and the new steps end their branch.
    """
    linked = {end for edge in flow.edges for end in (edge.source, edge.target)}
    planned = [flow.node(node.node_id) for node in plan.nodes]
    new = [node for node in planned if node and base.node(node.id) is None and node.id not in linked]
    steps = [node for node in new if node.is_agentflow and not node.is_note and not node.parent]
    if not base.nodes or not steps:
        return []
    cut = {(edge.source, edge.output_name, edge.target) for edge in base.edges}
    cut &= {(one.source, output, one.target) for one in plan.disconnections for _, output, _ in cut}
    led = {(edge.source, edge.output_name) for edge in flow.edges}
    branching = [node for node in planned if node and node.id in linked and len(node.outputs) > 1]
    ways = cut or {
        (node.id, one.name, "") for node in branching for one in node.outputs if (node.id, one.name) not in led
    }
    if len(ways) != 1:
        return []
    ((source, output, target),) = ways
    if any(one.source == source and one.output in ("", output) for one in plan.connections):
        return []
    lines = _in_order(steps, source, output)
    has_moved = target in {one.target for one in plan.connections}
    if target and not has_moved and len(lines) == len(steps) and len(steps[-1].outputs) == 1:
        lines.append(Connect(source_node_id=steps[-1].id, target_node_id=target))
    return lines


def _in_order(nodes: Sequence[FlowNode | None], source: str = "", output: str = "") -> list[PatchOp]:
    """Ops that connect new steps in order, up to the first with several branches; `source` leads to the first."""
    ops: list[PatchOp] = []
    before: FlowNode | None = None
    for node in nodes:
        if node is None or node.is_note:
            continue
        if before is not None:
            ops.append(Connect(source_node_id=before.id, target_node_id=node.id))
        elif source:
            ops.append(Connect(source_node_id=source, source_anchor=output or None, target_node_id=node.id))
        if len(node.outputs) != 1 or node.raw.get("type") == "iteration":
            break
        before = node
    return ops
