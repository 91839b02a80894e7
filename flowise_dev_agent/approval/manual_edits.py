"""Manual edits: fields and nodes that a person changes at the plan or at the result. No model is asked; the edits are
checked and compiled like any op, and widen the approval by exactly themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from flowise_dev_agent.approval.amending import amended
from flowise_dev_agent.approval.binding import capability_of, with_agreed
from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.knowledge.credential_requirements import nested_types, required_types
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    Disconnect,
    Finding,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetParam,
    UnsetParam,
    compile_ops,
    errors,
    ops_from_list,
    validate_flow,
)
from flowise_dev_agent.planning.passes.feasibility import overlap, unfed
from flowise_dev_agent.planning.plan_findings import unclear_addresses
from flowise_dev_agent.planning.preview import compiled_as_far, planned_flow
from flowise_dev_agent.schemas.answers import ManualEdits
from flowise_dev_agent.schemas.plan import AmendAnswer, NamedConnection, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.texts import text

#: Finding codes of credentials, which are asked for before the write.
_LATER = frozenset({"CREDENTIAL_UNBOUND", "NESTED_CREDENTIAL_UNBOUND"})


def ops_of(answer: Mapping[str, Any]) -> list[PatchOp]:
    """Convert the manual edits in a checked answer to ops."""
    if edits := answer.get("edits"):
        given = ManualEdits.model_validate(edits)
        return [
            *(SetParam(node_id=one.node_id, param_name=one.param, value=one.value) for one in given.values),
            *(RemoveNode(node_id=node_id) for node_id in given.removals),
        ]
    ops: list[Any] | None = answer.get("ops")
    return ops_from_list(ops) if ops else []


def with_ops(plan: Plan, ops: Sequence[PatchOp], base: GraphIR, schemas: Schemas) -> Plan:
    """Merge manual ops for the flow `base` into the plan, so that the flow is checked against them."""
    set_ = [op for op in ops if isinstance(op, SetParam)]
    fields = [(op.node_id, op.param_name) for op in ops if isinstance(op, SetParam | UnsetParam)]
    nodes = [
        PlannedNode(node_id=op.node_id, node_name=op.node_name, purpose=op.description or "", label=op.label or "")
        for op in ops
        if isinstance(op, AddNode)
    ]
    nodes += [
        PlannedNode(node_id=op.new_node_id or op.node_id, node_name=op.node_name, purpose="")
        for op in ops
        if isinstance(op, ReplaceNode)
    ]
    gone = [op.node_id for op in ops if isinstance(op, RemoveNode | ReplaceNode)]
    left, filled = list[PlannedValue](), list[str]()
    for value in plan.values:
        if value.node_id in gone or any(value.node_id == id_ and overlap(value.param, field) for id_, field in fields):
            # What stood in for something that the person has given now.
            filled.append(f"{value.node_id}.{value.param}: {value.value}")
        else:
            left.append(value)
    touched = {*gone, *(id_ for id_, _ in fields)}
    answer = AmendAnswer(
        nodes=nodes,
        removals=gone,
        connections=[_line(op) for op in ops if isinstance(op, Connect)],
        disconnections=[_line(op) for op in ops if isinstance(op, Disconnect)],
        values=[PlannedValue(node_id=op.node_id, param=op.param_name, value=op.value) for op in set_],
        reason="",
    )
    came = [schema for node in nodes if (schema := schemas.get(node.node_name))]
    credentials = [*required_types(came, {}), *nested_types(ops, schemas, {})]
    kept = plan.model_copy(
        update={
            "values": left,
            "kept": [id_ for id_ in plan.kept if id_ not in touched],
            "placeholders": [one for one in plan.placeholders if not any(one in text for text in filled)],
        }
    )
    wider = amended(kept, answer, credentials, schemas, reason=text("plan.reason.taken_out"))
    made = capability_of(wider, schemas, base)
    return wider.model_copy(update={"capability": with_agreed(made, plan.capability)})


def _line(op: Connect | Disconnect) -> NamedConnection:
    return NamedConnection(
        source=op.source_node_id, output=op.source_anchor or "", target=op.target_node_id, input=op.target_anchor
    )


def plan_of(ops: Sequence[PatchOp], base: GraphIR, schemas: Schemas, *, goal: str, name: str) -> Plan:
    """Plan of nothing but a person's ops, which change the flow `base`; an empty one is a new flow."""
    plan = Plan(
        goal=goal,
        operation="update" if base.nodes else "create",
        flow_name=name,
        flow_kind=compiled_as_far(base, ops, schemas).kind,
    )
    return with_ops(plan, ops, base, schemas)


def edit_findings(plan: Plan | None, answer: Mapping[str, Any], base: GraphIR, schemas: Schemas) -> list[Finding]:
    """Findings on the manual edits in a checked answer. `base` is the flow that the plan or the ops apply to."""
    ops = ops_of(answer)
    if answer.get("edits"):
        return _wrong_edits(plan, ops, base, schemas) if plan and ops else []
    return ops_findings(ops, base, schemas)


def _wrong_edits(plan: Plan, ops: Sequence[PatchOp], base: GraphIR, schemas: Schemas) -> list[Finding]:
    """Findings on edits of a plan for the flow `base`: unknown fields and nodes, values that do not fit, inputs left
    without a connection.
    """
    planned = planned_flow(plan, base, schemas).graph
    if found := uncompilable(planned, ops, schemas):
        return found
    edited = with_ops(plan, ops, base, schemas)
    types = {node.id: node.name for node in planned.nodes}
    if found := unclear_addresses(edited.values, types, schemas):
        return found
    before = {(one.where, one.field) for one in unfed(plan, base, planned, schemas)}
    after = planned_flow(edited, base, schemas).graph
    return [one for one in unfed(edited, base, after, schemas) if (one.where, one.field) not in before]


def ops_findings(ops: Sequence[PatchOp], base: GraphIR, schemas: Schemas) -> list[Finding]:
    """Findings on edits of the flow `base`, without problems that it had before."""
    if found := uncompilable(base, ops, schemas):
        return found

    made = compile_ops(base, ops, schemas).graph

    def wrong(flow: GraphIR) -> list[Finding]:
        return errors(validate_flow(flow.to_flow_data(), schemas=schemas, credentials=None, kind=made.kind))

    before = {one.key for one in wrong(base)} if base.nodes else set[object]()
    return [one for one in wrong(made) if one.key not in before and one.code not in _LATER]


def uncompilable(base: GraphIR, ops: Sequence[PatchOp], schemas: Schemas) -> list[Finding]:
    """Findings on ops that cannot be compiled, each with the index of its op."""
    try:
        compile_ops(base, ops, schemas)
    except PatchError as error:
        return [Finding.model_validate(one) for one in error.details["findings"]]
    return []
