"""Bind ops to the approved plan: nothing outside of its capability is written.

A flow's text, a tool's text or a pattern can make a model write other ops; they come back as findings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from flowise_dev_agent.approval.promises import in_short
from flowise_dev_agent.forms.wiring import fitting_output
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Disconnect,
    Finding,
    GraphIR,
    NodeSchema,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetLabel,
    SetParam,
    UnsetParam,
)
from flowise_dev_agent.patch.model.field_kinds import FieldKind
from flowise_dev_agent.patch.model.reach import (
    acting,
    flows_in,
    is_setting,
    reached,
    sets_credential,
    tools_in,
)
from flowise_dev_agent.schemas.plan import (
    Capability,
    Plan,
)

#: Acting values in words.
_HOLDS: Final = {
    FieldKind.CODE: "code",
    FieldKind.COMMAND: "a command",
    FieldKind.FILE: "a file of the server",
    FieldKind.SECRET: "a secret",
    FieldKind.REQUEST: "a part of a request",
}


def outside_plan(
    ops: Sequence[PatchOp], plan: Plan, capability: Capability, schemas: Schemas, base: GraphIR
) -> list[Finding]:
    """Findings for ops that the approved plan does not cover."""
    return [
        Finding(
            code="OUTSIDE_PLAN",
            severity="error",
            detail=f"The approved plan does not cover this op: {problem}.",
            where=_touched(op)[0],
            hint="Leave it out. If the plan cannot be met without it, answer with `amend`: the person is asked then.",
            op_index=index,
            op_type=op.op_type,
        )
        for index, op in enumerate(ops)
        if not _implied(op, ops, plan, base)
        for problem in _beyond(op, plan, capability, schemas, base)
    ]


def _touched(op: PatchOp) -> tuple[str, ...]:
    return (op.source_node_id, op.target_node_id) if isinstance(op, Connect | Disconnect) else (op.node_id,)


def _beyond(op: PatchOp, plan: Plan, capability: Capability, schemas: Schemas, base: GraphIR) -> Iterator[str]:
    ids = _touched(op)
    if isinstance(op, ReplaceNode):
        # REMOVAL_NOT_PLANNED covers the removed node; the new node must be of a planned type.
        if op.node_name.casefold() not in {node.node_name.casefold() for node in plan.nodes}:
            yield f"it does not name {op.node_name}, which would replace '{op.node_id}'"
        ids = (op.new_node_id or op.node_id,)
    if isinstance(op, RemoveNode):
        return
    if not any(id_ in capability.nodes for id_ in ids):
        yield f"{' and '.join(ids)} {'are' if len(ids) > 1 else 'is'} not part of it"
        return
    if isinstance(op, Connect) and plan.operation != "create":
        yield from (f"it does not list '{id_}', which the line joins" for id_ in _beside(op, plan, schemas, base))
    if isinstance(op, AddNode):
        planned = capability.nodes[op.node_id]
        if planned.action != "add":
            yield f"'{op.node_id}' is not planned as a new node"
        elif planned.node_name.casefold() != op.node_name.casefold():
            yield f"'{op.node_id}' is planned as {planned.node_name}, not {op.node_name}"
        if op.label and not _is_title(op.node_id, op.label, plan, base):
            yield f"'{op.node_id}' gets a title that it does not say"
        values: Mapping[str, JsonValue] = op.params
        schema = schemas.get(op.node_name)
    elif isinstance(op, SetParam):
        values, schema = {op.param_name: op.value}, _schema_of(op.node_id, plan, schemas, base)
    elif isinstance(op, BindCredential):
        allowed = {one.type for one in capability.credentials if one.node_id in ("*", op.node_id)}
        schema = _schema_of(op.node_id, plan, schemas, base)
        taken = {op.credential_type} if op.credential_type else set(schema.credential_names if schema else ())
        if taken and not taken & allowed:
            yield f"a credential of type {' or '.join(sorted(taken))} is not in it"
        return
    elif isinstance(op, SetLabel):
        if not _is_title(op.node_id, op.label, plan, base):
            yield f"'{op.node_id}' gets a title that it does not say"
        return
    elif isinstance(op, UnsetParam):
        values, schema = {op.param_name: ""}, _schema_of(op.node_id, plan, schemas, base)
    else:
        return
    yield from _not_named(ids[0], values, plan, capability)
    yield from _reaching_out(ids[0], values, schema, plan, capability, base)


def _is_title(node_id: str, label: str, plan: Plan, base: GraphIR) -> bool:
    """True for the planned or present title of a node, and any of a new node for which the plan has none."""
    node = base.node(node_id)
    planned = next((one.label for one in plan.nodes if one.node_id == node_id), "")
    return label in (planned, node.label if node else "") or (not planned and node_id in plan.new_nodes)


def _beside(op: Connect, plan: Plan, schemas: Schemas, base: GraphIR) -> list[str]:
    """Ids of nodes that a line leads to or from a new one, and that the plan does not list: none that the type of the
    new one alone tells, and none beside a node that goes.
    """
    ends, listed = (op.source_node_id, op.target_node_id), {node.node_id for node in plan.nodes}
    gone = {*plan.removals}
    near = {edge.target for edge in base.edges if edge.source in gone}
    near |= {edge.source for edge in base.edges if edge.target in gone}
    unlisted = [id_ for id_ in ends if id_ not in listed | near]
    if not (unlisted and {*ends} & plan.new_nodes):
        return []
    there = {node.id: schema for node in base.nodes if node.id not in gone and (schema := schemas.get(node.name))}
    new = next((schemas.get(one.node_name) for one in plan.nodes if one.node_id in ends and not one.existing), None)
    named = [one for one in new.anchors if one.name == op.target_anchor] if new else []
    fitting = [
        id_
        for id_, one in there.items()
        if (
            any(fitting_output(one, anchor) for anchor in named)
            if unlisted[0] == ends[0]
            else new and any(fitting_output(new, anchor) for anchor in one.anchors)
        )
    ]
    return [] if fitting == unlisted else unlisted


def _implied(op: PatchOp, ops: Sequence[PatchOp], plan: Plan, base: GraphIR) -> bool:
    """True for a line that the plan takes away, puts a new node into, or closes over a removed one. Lines of an
    agentflow are compared as a whole.
    """
    if plan.flow_kind == "AGENTFLOW":
        return isinstance(op, Connect | Disconnect)
    if isinstance(op, Disconnect):
        ends = (op.source_node_id, op.target_node_id)
        lines = [one for one in ops if isinstance(one, Connect)]
        fed = {one.target_node_id for one in lines if one.source_node_id == op.source_node_id} & plan.new_nodes
        feeding = {one.source_node_id for one in lines if one.target_node_id == op.target_node_id} & plan.new_nodes
        return any((one.source, one.target) == ends for one in plan.disconnections) or bool(fed and feeding)
    if isinstance(op, Connect):
        behind = {edge.target for edge in base.edges if edge.source == op.source_node_id}
        ahead = {edge.source for edge in base.edges if edge.target == op.target_node_id}
        return bool(behind & ahead & {*plan.removals})
    return False


def _not_named(node_id: str, values: Mapping[str, JsonValue], plan: Plan, capability: Capability) -> Iterator[str]:
    """Problems with fields of an existing node that the plan does not name."""
    node = capability.nodes.get(node_id)
    if node is None or node.action != "change" or node.params == "all":
        return
    named = _named(plan, node_id)
    for path, value in values.items():
        if not _is_named(path, named) and not is_setting(path, value):
            fields = ", ".join(sorted(named)) or "none"
            yield f"`{path}` of '{node_id}' is not among the fields that it changes ({fields})"


def _named(plan: Plan, node_id: str) -> set[str]:
    return {value.param for value in plan.values if value.node_id == node_id}


def _is_named(path: str, named: Iterable[str]) -> bool:
    """True if the plan names this field or one that contains it."""
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in named)


def _reaching_out(
    node_id: str,
    values: Mapping[str, JsonValue],
    schema: NodeSchema | None,
    plan: Plan,
    capability: Capability,
    base: GraphIR,
) -> Iterator[str]:
    """Problems with hosts, code, commands, files, tools and flows in node values that the plan does not allow."""
    known = _known(node_id, plan, schema, base)
    defaults = {entry["name"]: entry.get("default") for entry in schema.input_definitions} if schema else {}
    tools = {one.name for one in capability.tools}
    for path, value in values.items():
        if sets_credential(path, value):
            yield f"`{path}` sets a credential, which only BindCredential may"
        if value == defaults.get(path):
            continue
        for address in reached(path, value, schema):
            if not address.clear:
                yield f"`{path}` holds an address that can be read in more than one way ({in_short(address.origin)})"
            elif address.origin not in capability.hosts:
                yield f"`{path}` reaches {in_short(address.origin)}"
        for one in acting(path, value, schema):
            writes = one.kind is FieldKind.CODE and one.path == path and node_id in capability.code
            if one.identity not in known and not (writes and "." not in path):
                yield f"`{one.path}` holds {_HOLDS[one.kind]} that it does not name ({in_short(one.text)})"
        for tool in tools_in({path: value}):
            if tool not in tools:
                yield f"`{path}` gives the tool {tool}"
        for flow in flows_in({path: value}):
            if flow not in tools:
                yield f"`{path}` starts the flow {flow}"


def _known(node_id: str, plan: Plan, schema: NodeSchema | None, base: GraphIR) -> set[tuple[FieldKind, str]]:
    """Acting values of a node in the plan and in the flow."""
    node = base.node(node_id)
    planned = [(one.param, one.value) for one in plan.values if one.node_id == node_id]
    stored = list(node.inputs.items()) if node else []
    return {one.identity for path, value in [*planned, *stored] for one in acting(path, value, schema)}


def _schema_of(node_id: str, plan: Plan, schemas: Schemas, base: GraphIR) -> NodeSchema | None:
    planned = next((node.node_name for node in plan.nodes if node.node_id == node_id), None)
    stored = next((node.name for node in base.nodes if node.id == node_id), "")
    return schemas.get(planned or stored)
