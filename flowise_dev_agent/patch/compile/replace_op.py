"""ReplaceNode and UpgradeNode: replace a node by a new one that keeps matching fields and connections."""

from typing import Any, Final, cast

from flowise_dev_agent.patch.compile.batch import Batch, LostConnection, suggestion
from flowise_dev_agent.patch.compile.edges import chatflow_edge, remove_edge
from flowise_dev_agent.patch.compile.node_ops import select_output, usable_id
from flowise_dev_agent.patch.layout.columns import node_height
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model import sequential
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES, split_types
from flowise_dev_agent.patch.model.flow_data import InputEntry, OutputEntry, StoredEdge, StoredNode
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.json_text import as_dicts, dump_json
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import ReplaceNode, UpgradeNode
from flowise_dev_agent.patch.model.outputs import Output
from flowise_dev_agent.patch.model.references import reference, referenced, sole_reference, with_new_id
from flowise_dev_agent.patch.model.schema import NodeSchema
from flowise_dev_agent.patch.model.suggest import closest, fold
from flowise_dev_agent.patch.model.values import is_empty, normalize

_LISTED_BY_TYPE: Final = frozenset({"asyncOptions", "asyncMultiOptions"})


def replace_node(batch: Batch, op: ReplaceNode) -> None:
    node = batch.node(op.node_id, "node_id")
    schema = batch.schema(op.node_name, op.node_id) if node is not None else None
    if node is None or schema is None:
        return
    new_id = op.new_node_id or node.id
    if new_id != node.id and not usable_id(batch, new_id, schema.name):
        return
    if schema.is_agentflow != node.is_agentflow:
        batch.fail(
            "KIND_MISMATCH",
            f"{schema.name} belongs to another type of flow than {node.name}.",
            where=node.id,
            name="node_name",
            hint="Choose a node type of the same kind of flow.",
        )
        return
    _rebuild(batch, node, schema, new_id)


def upgrade_node(batch: Batch, op: UpgradeNode) -> None:
    node = batch.node(op.node_id, "node_id")
    schema = batch.schema(node.name, op.node_id) if node is not None else None
    if node is not None and schema is not None:
        _rebuild(batch, node, schema, node.id)


def _rebuild(batch: Batch, old: FlowNode, schema: NodeSchema, new_id: str) -> None:
    into = batch.edges.into(old.id)
    node = _take_place(batch, old, schema, new_id)
    _carry_fields(old, node)
    if new_id != old.id:
        _rename(batch, old, new_id)
    for edge in into:
        _carry_incoming(batch, edge, new_id)
    carried: set[str] = set()
    for edge in batch.edges.out_of(old.id):
        _carry_outgoing(batch, old, edge, new_id, carried)
    if not carried and old.selected_output in {output.name for output in node.outputs}:
        select_output(batch, new_id, old.selected_output)  # needed without an edge too, for example for EndingNode


def _take_place(batch: Batch, old: FlowNode, schema: NodeSchema, new_id: str) -> FlowNode:
    was_added = old.id in batch.added
    del batch.nodes[old.id]
    batch.changed.discard(old.id)
    node = batch.make_node(schema, new_id)
    old_title = batch.schemas[old.name].label if old.name in batch.schemas else old.name
    own = fold(old.label).rstrip("0123456789") not in (fold(old_title).rstrip("0123456789"), fold(old.name))
    if own or (old.name == schema.name and old.label != old_title):
        node.data["label"] = old.label  # a label of its own, not the old type's title with or without a number
    raw: StoredNode = {**old.raw, "id": new_id, "type": node.raw.get("type"), "data": node.data}
    if not schema.is_agentflow and "height" in raw:
        raw["height"] = node_height(node.data)
    node.raw = raw
    if was_added:
        batch.added.discard(old.id)
        batch.added.add(new_id)
    else:
        batch.order[batch.order.index(old.id)] = new_id
    return node


def _carry_fields(old: FlowNode, node: FlowNode) -> None:
    same_type = old.name == node.name
    anchors = old.definitions.anchor_names
    for name, value in old.inputs.items():
        if name in anchors or is_empty(value):
            continue
        defaults = [entry.get("default") for entry in old.params_by_name.get(name, ())]
        # The editor keeps the open tab under a key that ends in the node's id.
        its_name = f"{name.removesuffix(f'_{old.id}')}_{node.id}" if name.endswith(f"_{old.id}") else name
        stored = _fitting(node, its_name, value, same_type=same_type)
        if stored is not None and (same_type or value not in defaults):
            node.inputs[its_name] = stored
    if same_type:
        for name in [name for name, value in old.inputs.items() if is_empty(value) and name in node.params_by_name]:
            node.inputs[name] = old.inputs[name]  # cleared by choice
    _carry_credential(old, node)
    if same_type and sequential.is_condition(node):
        node.set_output_anchors(_with_branches(node, old))
    count = v2.branch_count(node.name, node.inputs)
    if count is not None and count != len(node.outputs):
        node.set_output_anchors(v2.branch_anchors(node.id, node.name, count))


def _with_branches(node: FlowNode, old: FlowNode) -> list[OutputEntry]:
    """The output anchors of a condition with the branches that a person gave to the old node."""
    options: list[OutputEntry] = [
        {**cast("OutputEntry", option), "id": f"{node.id}-output-{option.get('name')}-Condition", "type": "Condition"}
        for anchor in old.output_anchors
        for option in as_dicts(anchor.get("options"))
        if option.get("isAnchor")
    ]
    return [{**anchor, "options": options} if options else anchor for anchor in node.output_anchors]


def _fitting(node: FlowNode, name: str, value: Any, *, same_type: bool) -> Any:
    """The value as the new node stores it; None if it does not fit."""
    definitions = node.params_by_name.get(name)
    if definitions is None:
        return value if name in node.definitions.undeclared(node.id) else None
    if same_type:
        return value
    for definition in definitions:
        # The server lists these choices per type: a model name of one provider is unknown to another.
        if definition.get("type") in _LISTED_BY_TYPE:
            return None
        stored, problem = normalize(definition, value)
        if problem is None:
            return stored
    return None


def _carry_credential(old: FlowNode, node: FlowNode) -> None:
    if not old.credential:
        return
    had = (old.credential_param or {}).get("credentialNames") or ()
    takes = (node.credential_param or {}).get("credentialNames") or ()
    if node.credential_param is not None and (old.name == node.name or set(had) & set(takes)):
        node.data["credential"] = old.credential


def _rename(batch: Batch, old: FlowNode, new_id: str) -> None:
    """Replace the node's id in variables, loops and iterations."""
    was, becomes = f"{old.id}-", f"{new_id}-"
    for other in list(batch.nodes.values()):
        if other.parent == old.id:
            batch.edit(other.id).raw["parentNode"] = new_id
        target = other.inputs.get(v2.LOOP_TARGET)
        if other.name == v2.LOOP and isinstance(target, str) and target.startswith(was):
            batch.set_input(other.id, v2.LOOP_TARGET, becomes + target.removeprefix(was))
        for name, value in other.inputs.items():
            changed = with_new_id(value, old.id, new_id)
            if changed is not value:
                batch.set_input(other.id, name, changed)


def _carry_incoming(batch: Batch, edge: FlowEdge, new_id: str) -> None:
    node, source = batch.nodes[new_id], batch.nodes.get(edge.source)
    if node.is_agentflow:
        batch.edges.replace(edge, _with_ends(edge, {"target": new_id, "targetHandle": new_id}))
        return
    output = _output_of(source, edge)
    entry = _input_for(node, edge.input_name, output) if output else None
    if source is None or output is None or entry is None:
        if source is not None:
            _lose(batch, edge, node.name)
        remove_edge(batch, edge)
        return
    name = str(entry["name"])
    value = node.inputs.get(name)
    # A text says itself where the reference belongs, or ignores the edge.
    if source.id not in referenced(value) and entry["type"] not in PARAM_TYPES:
        ref = reference(source.id)
        items = value if isinstance(value, list) else []
        node.inputs[name] = [*items, ref] if entry.get("list") else ref
    batch.edges.replace(edge, chatflow_edge(source.id, output.handle, new_id, str(entry.get("id"))))


def _input_for(node: FlowNode, name: str, output: Output) -> InputEntry | None:
    """The input of the same name if it takes this type, else a free input that does."""
    fitting = [
        entry
        for entries in node.connectable.values()
        for entry in entries
        if set(split_types(str(entry.get("type") or ""))) & set(output.types)
    ]
    named = [entry for entry in fitting if entry["name"] == name]
    anchors = node.definitions.anchor_names
    free = [
        entry
        for entry in fitting
        if entry["name"] in anchors and (entry.get("list") or is_empty(node.inputs.get(entry["name"])))
    ]
    candidates = [entry for entry in named if entry in free or sole_reference(node.inputs.get(name)) is None] or free
    return candidates[0] if candidates else None


def _carry_outgoing(batch: Batch, old: FlowNode, edge: FlowEdge, new_id: str, carried: set[str]) -> None:
    """Move an outgoing edge to the new node.

    ``carried`` collects the output handles in use: a node gives only one of its outputs.
    """
    node, target = batch.nodes[new_id], batch.nodes.get(edge.target)
    if target is None or not node.outputs:
        if target is not None:
            _lose(batch, edge, node.name)
        _drop(batch, edge, new_id)
        return
    if node.is_agentflow:
        numbers = [output.handle for output in old.outputs]
        number = numbers.index(edge.source_handle) if edge.source_handle in numbers else 0
        if number >= len(node.outputs):
            _lose(batch, edge, node.name)
            _drop(batch, edge, new_id)
        else:
            handle = node.outputs[number].handle
            batch.edges.replace(edge, _with_ends(edge, {"source": new_id, "sourceHandle": handle}))
        return
    entry = target.input_at(edge.target_handle)
    output = _output_for(node, edge.output_name, split_types(str((entry or {}).get("type") or "")))
    chosen = {other.name for other in node.outputs if other.handle in carried}
    if output is None and isinstance(batch.op, ReplaceNode) and entry is not None:
        gives = tuple(dict.fromkeys(kind for output in node.outputs for kind in output.types))
        takes = split_types(str(entry.get("type") or ""))
        batch.lost.append(LostConnection(batch.index, batch.op, old.name, edge, gives, takes))
    if output is None or (not output.independent and chosen - {output.name}):
        _lose(batch, edge, node.name)
        _drop(batch, edge, new_id)
        return
    if node.multi_output and not output.independent and node.selected_output != output.name:
        select_output(batch, new_id, output.name)
    carried.add(output.handle)
    batch.edges.replace(edge, chatflow_edge(new_id, output.handle, edge.target, edge.target_handle))


def _lose(batch: Batch, edge: FlowEdge, node_name: str) -> None:
    """Report a connection that an upgrade would cut: it goes only by an op of its own, which people see."""
    if isinstance(batch.op, UpgradeNode):
        example = {"op_type": "Disconnect", "source_node_id": edge.source, "target_node_id": edge.target}
        batch.fail(
            "CONNECTION_LOST",
            f"Today's {node_name} cannot keep the connection of {edge.source} to `{edge.input_name}` of {edge.target}.",
            where=batch.op.node_id,
            hint=f"Leave the node as it is, or cut the connection first: {dump_json(example)}",
        )


def report_lost(batch: Batch) -> None:
    """Report each input that lost its connection to a replacement and got no other one."""
    given = {(edge.target, edge.input_name) for edge in batch.edges.added}
    for lost in batch.lost:
        target = batch.nodes.get(lost.edge.target)
        if target is None or (target.id, lost.edge.input_name) in given:
            continue
        batch.index, batch.op = lost.index, lost.op
        kinds = {schema.category for name in (lost.op.node_name, lost.was) if (schema := batch.schemas.get(name))}
        fitting = [
            schema.name
            for schema in batch.schemas.values()
            if schema.category in kinds and schema.name != lost.was
            if any(set(output.base_classes) & set(lost.takes) for output in schema.outputs)
        ]
        near = closest(lost.op.node_name, fitting, 5) or tuple(fitting[:5])
        batch.fail(
            "TYPE_MISMATCH",
            f"{lost.op.node_name} cannot take the place of {lost.op.node_id} at `{lost.edge.input_name}` of {target.id}"
            f": it gives {' | '.join(lost.gives) or 'nothing'}, {' or '.join(lost.takes)} is needed.",
            where=lost.op.new_node_id or lost.op.node_id,
            name="node_name",
            allowed=near,
            hint=f"Take a type that fits{suggestion(near)}, or Disconnect first what is meant to go.",
        )


def _drop(batch: Batch, edge: FlowEdge, new_id: str) -> None:
    """Cut a connection for which the new node has no output. References to the old node are renamed already."""
    moved = _with_ends(edge, {"source": new_id})
    batch.edges.replace(edge, moved)
    remove_edge(batch, moved)


def _output_of(source: FlowNode | None, edge: FlowEdge) -> Output | None:
    """The output that an edge leaves from.

    If its handle is from an older version of the node type: the current output of the type that the edge's target
    takes.
    """
    if source is None:
        return None
    given = [output for output in source.outputs if output.independent or output.name == source.selected_output]
    wanted = split_types(edge.target_handle.rpartition("-")[2])
    return source.output_at(edge.source_handle) or next(
        (output for output in given or source.outputs if set(wanted) & set(output.types)), None
    )


def _output_for(node: FlowNode, name: str, wanted: tuple[str, ...]) -> Output | None:
    fitting = [output for output in node.outputs if set(wanted) & set(output.types)]
    return next((output for output in fitting if output.name == name), fitting[0] if fitting else None)


def _with_ends(edge: FlowEdge, ends: StoredEdge) -> FlowEdge:
    """A copy of the edge with another source or target."""
    moved = FlowEdge({**edge.raw, **ends})
    moved.raw["id"] = "-".join((moved.source, moved.source_handle, moved.target, moved.target_handle))
    return moved
