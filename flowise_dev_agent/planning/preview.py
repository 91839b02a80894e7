"""Preview of the flow that a plan leads to, from the plan and the node types only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.forms.wiring import replacements, wire_plan
from flowise_dev_agent.patch import (
    AddNode,
    Finding,
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
