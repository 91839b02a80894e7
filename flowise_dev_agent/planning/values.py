"""Set the values of the approved plan by code: the op writer may omit them and cannot change them."""

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from flowise_dev_agent.forms.step_plans import INSIDE
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    Disconnect,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetParam,
    SetParent,
    UnsetParam,
    UpgradeNode,
)
from flowise_dev_agent.patch.model.equal_values import held
from flowise_dev_agent.patch.model.nested import is_path, parse_path, value_at, with_bound
from flowise_dev_agent.patch.model.ops import MAX_DESCRIPTION
from flowise_dev_agent.patch.model.placeholders import MARK
from flowise_dev_agent.patch.validate.params import is_missing
from flowise_dev_agent.planning.added_text import with_added_text
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Plan, PlannedValue

#: A field: node id and path.
_Field = tuple[str, str]


def with_planned_values(ops: Sequence[PatchOp], plan: Plan, base: GraphIR) -> list[PatchOp]:
    """Add every planned value to the ops; on conflict the plan wins.

    A field of a new node goes into its `AddNode`. Other fields become a `SetParam` directly after the op that makes the
    node, or first: connections may depend on them (branches of a condition). A value of null takes the field away. The
    description of a new agentflow step is its purpose.
    """
    removed = {op.node_id for op in ops if isinstance(op, RemoveNode)}
    wanted = {place: value for place, value in _wanted(ops, plan, base).items() if place[0] not in removed}
    made = [op for op in ops if not (isinstance(op, UnsetParam) and (op.node_id, op.param_name) in wanted)]
    if plan.flow_kind == "AGENTFLOW":
        made = _described(made, plan)
    behind: dict[int, list[PatchOp]] = {}
    for (node_id, param), value in wanted.items():
        if (index := _setting(made, node_id, param)) is not None:
            made[index] = _set(node_id, param, value)
            continue
        index = _making(made, node_id)
        maker = made[index] if index >= 0 else None
        if isinstance(maker, AddNode) and not is_path(param) and value is not None:
            made[index] = maker.model_copy(update={"params": {**maker.params, param: value}})
        elif maker is not None or ((node := base.node(node_id)) and not _stands(_at(node.inputs, param), value)):
            behind.setdefault(index, []).append(_set(node_id, param, value))
    return [*behind.get(-1, []), *(new for index, op in enumerate(made) for new in (op, *behind.get(index, [])))]


def with_planned_lines(ops: Sequence[PatchOp], plan: Plan, base: GraphIR) -> list[PatchOp]:
    """Add the changes of lines that the plan of an agentflow says and the ops do not have."""
    if plan.flow_kind != "AGENTFLOW":
        return [*ops]
    ids = _ids_in_ops(ops, plan)
    gone = {op.node_id for op in ops if isinstance(op, RemoveNode | ReplaceNode)}
    cut = {
        (op.source_node_id, _branch(op.source_node_id, op.source_anchor, base), op.target_node_id)
        for op in ops
        if isinstance(op, Disconnect)
    }
    there = {(one.source, branch, one.target) for one in base.edges for branch in ("", one.output_name)}
    lines: list[PatchOp] = [
        Disconnect(source_node_id=source, source_anchor=branch or None, target_node_id=target)
        for one in plan.disconnections
        for source, branch, target in [(one.source, _branch(one.source, one.output, base), one.target)]
        if (source, branch, target) in there and not {source, target} & gone
        if not any((source, target) == (one, two) and (other in ("", branch) or not branch) for one, other, two in cut)
    ]
    inside = {op.node_id for op in ops if isinstance(op, SetParent)}
    drawn = {(op.source_node_id, op.source_anchor or "", op.target_node_id) for op in ops if isinstance(op, Connect)}
    for one in plan.connections:
        source, target = (ids.get(id_, id_) for id_ in (one.source, one.target))
        if one.output == INSIDE and target not in inside:
            lines.append(SetParent(node_id=target, parent_id=source))
        elif one.output != INSIDE and (source, one.output, target) not in drawn:
            lines.append(Connect(source_node_id=source, source_anchor=one.output or None, target_node_id=target))
    return [*ops, *lines]


def _branch(node_id: str, name: str | None, base: GraphIR) -> str:
    """Number of a branch of a step; empty for a step with one way out, and for all its branches."""
    node = base.node(node_id)
    output = node.output_called(name) if node and name and len(node.outputs) > 1 else None
    return output.name if output else ""


def with_files_to_come(plan: Plan, schemas: Schemas) -> Plan:
    """Insert a marked stand-in wherever a new node needs a file, or a text that the plan says is still to come, so that
    the flow can run and be tested.
    """
    set_already = {(value.node_id, value.param) for value in plan.values}
    required = [
        (node.node_id, entry)
        for node in plan.nodes
        if not node.existing and (schema := schemas.get(node.node_name))
        for inputs in [schema.new_inputs()]
        for entry in schema.definitions.visible_params(inputs)
        if (node.node_id, entry["name"]) not in set_already
        if entry["type"] in ("file", "string") and not entry.get("optional")
        if entry["type"] == "file" or is_missing(inputs, entry)
    ]
    texts = [one for one in required if one[1]["type"] == "string"]
    promised = [one for one in plan.placeholders if not any(one in str(value.value) for value in plan.values)]
    lacking = [one for one in required if one not in texts or len(texts) <= len(promised)]
    named = list(plan.placeholders) or [str(entry.get("label") or entry["name"]) for _, entry in lacking]
    values = [
        PlannedValue(node_id=node_id, param=entry["name"], value=f"{MARK}: {'; '.join(named)}]")
        for node_id, entry in lacking
    ]
    return plan.model_copy(update={"values": [*plan.values, *values], "placeholders": named}) if lacking else plan


def _set(node_id: str, param: str, value: JsonValue) -> PatchOp:
    """Op that gives a field its planned value."""
    if value is None:
        return UnsetParam(node_id=node_id, param_name=param)
    return SetParam(node_id=node_id, param_name=param, value=value)


def _stands(stored: Any, value: JsonValue) -> bool:
    """True if the flow has the value already, beside defaults and credentials that the compiler adds. An empty text
    does not stand where nothing is: a row of the state fails without one.
    """
    return (value, stored) != ("", None) and held(stored, with_bound(value, stored))


def _described(ops: Sequence[PatchOp], plan: Plan) -> list[PatchOp]:
    """Ops whose new nodes have the titles and the purposes of the plan."""
    planned = {node.node_id: node for node in plan.nodes}
    found: list[PatchOp] = []
    for op in ops:
        node = planned.get(op.node_id) if isinstance(op, AddNode) else None
        if isinstance(op, AddNode) and node:
            purpose = shortened(" ".join(node.purpose.split()), MAX_DESCRIPTION)
            named = {"label": node.label or op.label, "description": op.description or purpose or None}
            op = op.model_copy(update=named)
        found.append(op)
    return found


def _wanted(ops: Sequence[PatchOp], plan: Plan, base: GraphIR) -> dict[_Field, JsonValue]:
    """Map each field to its final planned value; outer fields come before inner ones."""
    ids = _ids_in_ops(ops, plan)
    wanted: dict[_Field, JsonValue] = {}
    for value in sorted(plan.values, key=lambda value: len(parse_path(value.param) or ())):
        place = (ids.get(value.node_id, value.node_id), value.param)
        if value.mode == "set":
            wanted[place] = value.value
            continue
        node = base.node(place[0])
        old = wanted.get(place, _at(node.inputs, value.param) if node else None)
        wanted[place] = with_added_text(old, [str(value.value)])
    return wanted


def _ids_in_ops(ops: Sequence[PatchOp], plan: Plan) -> dict[str, str]:
    """Map planned ids to ids in the ops, for new nodes that replace another node and keep its id.

    Of several of one type, the first of the plan takes the place of the first of its removals.
    """
    added = {op.node_id for op in ops if isinstance(op, AddNode)}
    order = {node_id: place for place, node_id in enumerate(plan.removals)}
    swaps = sorted((op for op in ops if isinstance(op, ReplaceNode)), key=lambda op: order.get(op.node_id, len(order)))
    given = {op.new_node_id for op in swaps}
    taken_over = {
        name: [op.new_node_id or op.node_id for op in swaps if op.node_name.casefold() == name]
        for name in {op.node_name.casefold() for op in swaps}
    }
    ids: dict[str, str] = {}
    for node in plan.nodes:
        free = taken_over.get(node.node_name.casefold(), [])
        if node.existing or node.node_id in added or not free:
            continue
        ids[node.node_id] = node.node_id if node.node_id in given else free[0]
        free[:] = [one for one in free if one != ids[node.node_id]]
    return ids


def _making(ops: Sequence[PatchOp], node_id: str) -> int:
    """Index of the last op that gives the node its type; -1 if there is none."""
    return max(
        (
            index
            for index, op in enumerate(ops)
            if (isinstance(op, AddNode | UpgradeNode) and op.node_id == node_id)
            or (isinstance(op, ReplaceNode) and (op.new_node_id or op.node_id) == node_id)
        ),
        default=-1,
    )


def _setting(ops: Sequence[PatchOp], node_id: str, param: str) -> int | None:
    """Index of the last op that sets the field; None if there is none."""
    steps = parse_path(param)
    found = [
        index
        for index, op in enumerate(ops)
        if isinstance(op, SetParam) and op.node_id == node_id and parse_path(op.param_name) == steps
    ]
    return found[-1] if found else None


def _at(inputs: object, param: str) -> object:
    steps = parse_path(param)
    return value_at(inputs, steps) if steps and isinstance(inputs, dict) else None
