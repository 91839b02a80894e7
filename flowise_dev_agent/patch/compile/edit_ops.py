"""Ops that remove or move: RemoveNode, Disconnect, SetPosition, SetParent."""

from flowise_dev_agent.patch.compile.batch import Batch, suggestion
from flowise_dev_agent.patch.compile.edges import remove_edge, remove_reference
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.flow_data import Position
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import Disconnect, RemoveNode, SetParent, SetPosition
from flowise_dev_agent.patch.model.suggest import closest, resolve_case

# --- RemoveNode --------------------------------------------------------------------------------------------------


def remove_node(batch: Batch, op: RemoveNode) -> None:
    if op.node_id in batch.removed:
        return  # removed with its iteration, or named twice
    if batch.node(op.node_id, "node_id"):
        _remove(batch, op.node_id)


def _remove(batch: Batch, node_id: str) -> None:
    for child in [node.id for node in batch.nodes.values() if node.parent == node_id and node.id != node_id]:
        if child in batch.nodes:
            _remove(batch, child)
    # An edge from a node to itself occurs on both sides.
    for edge in dict.fromkeys([*batch.edges.into(node_id), *batch.edges.out_of(node_id)]):
        remove_edge(batch, edge)
    for node in list(batch.nodes.values()):
        for name in node.inputs:
            remove_reference(batch, batch.nodes[node.id], name, node_id)
    del batch.nodes[node_id]
    batch.changed.discard(node_id)
    batch.order.remove(node_id)
    batch.removed.add(node_id)


# --- Disconnect --------------------------------------------------------------------------------------------------


def disconnect(batch: Batch, op: Disconnect) -> None:
    if {op.source_node_id, op.target_node_id} & batch.removed:
        return  # the connection went with its node
    source = batch.node(op.source_node_id, "source_node_id")
    target = batch.node(op.target_node_id, "target_node_id")
    if source is None or target is None:
        return
    between = [edge for edge in batch.edges.out_of(source.id) if edge.target == target.id]
    chosen = [edge for edge in between if _matches(op, source, edge)]
    for edge in chosen:
        remove_edge(batch, edge)
    if chosen:
        return
    present = (between or batch.edges.into(target.id))[:3]
    ends = [{"source_node_id": edge.source, "target_node_id": edge.target} for edge in present]
    batch.fail(
        "NOT_CONNECTED",
        f"{source.id} is not connected to {target.id} like this.",
        where=target.id,
        name=op.target_anchor or "source_node_id",
        allowed=[f"{edge.source} -> {edge.target}.{edge.input_name}".rstrip(".") for edge in present],
        hint=f"For example {dump_json({'op_type': op.op_type, **ends[0]})}"
        if ends
        else "Nothing is connected to it; leave this op out.",
    )


def _matches(op: Disconnect, source: FlowNode, edge: FlowEdge) -> bool:
    if op.target_anchor and edge.input_name and resolve_case(op.target_anchor, [edge.input_name]) is None:
        return False
    if op.source_anchor is None or not source.names_outputs:
        return True
    output = next((one for one in source.outputs if one.handle == edge.source_handle), None)
    words = [output.name, output.label] if output else [edge.output_name]
    return any(resolve_case(op.source_anchor, [word]) for word in words)


# --- SetPosition, SetParent --------------------------------------------------------------------------------------


def set_position(batch: Batch, op: SetPosition) -> None:
    node = batch.node(op.node_id, "node_id")
    if node is None:
        return
    batch.positioned.add(node.id)
    position: Position = {"x": op.x, "y": op.y}
    if node.raw.get("position") != position:
        batch.edit(node.id).raw["position"] = position


def set_parent(batch: Batch, op: SetParent) -> None:
    node = batch.node(op.node_id, "node_id")
    parent = batch.node(op.parent_id, "parent_id") if op.parent_id else None
    if node is None or (op.parent_id and parent is None) or node.parent == (op.parent_id or ""):
        return
    if parent is not None and (parent.name != v2.ITERATION or node.id == parent.id or node.name == v2.ITERATION):
        iterations = [other.id for other in batch.nodes.values() if other.name == v2.ITERATION and other.id != node.id]
        near = closest(parent.id, iterations)
        batch.fail(
            "BAD_PARENT",
            f"{node.id} cannot be inside {parent.id}: only iterations contain nodes, and never another iteration.",
            where=node.id,
            name="parent_id",
            allowed=near,
            hint=f"Use the id of an iteration node{suggestion(near)}.",
        )
        return
    raw = batch.edit(node.id).raw
    if parent is None:
        raw.pop("parentNode", None)
        raw.pop("extent", None)
    else:
        raw |= {"parentNode": parent.id, "extent": "parent"}
    batch.reparented.add(node.id)
