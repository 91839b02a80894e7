"""New nodes as Flowise's own editor makes them from a node type."""

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.flow_data import InputEntry, NodeData, NodeType, StoredNode
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.outputs import output_anchors
from flowise_dev_agent.patch.model.schema import NodeSchema
from flowise_dev_agent.patch.model.visibility import refresh_visibility


def new_node(schema: NodeSchema, node_id: str) -> FlowNode:
    """A node of this type, without a place on the canvas."""
    raw: StoredNode = {
        "id": node_id,
        "type": v2.canvas_type(schema.name, agentflow=schema.is_agentflow),
        "data": init_node(schema, node_id, agentflow=schema.is_agentflow),
    }
    return FlowNode(raw)


def init_node(schema: NodeSchema, node_id: str, *, agentflow: bool) -> NodeData:
    """The editor's ``initNode`` (3.1.4). With ``agentflow`` the outputs are branches."""
    node_type: NodeType = schema.raw
    anchors = v2.output_anchors(node_type, node_id) if agentflow else output_anchors(node_type, node_id)
    chosen = {str(anchor["name"]): str(anchor.get("default") or "") for anchor in anchors}
    data: NodeData = {
        **node_type,
        "id": node_id,
        "inputs": schema.new_inputs(),
        "inputAnchors": [_with_id(entry, node_id) for entry in schema.definitions.anchors],
        "inputParams": [_with_id(entry, node_id) for entry in schema.definitions.with_credential],
        "outputs": chosen if "outputs" in node_type else {},
        "outputAnchors": anchors,
    }
    if node_type.get("credential"):
        data["credential"] = ""
    refresh_visibility(data)
    return data


def _with_id(entry: InputEntry, node_id: str) -> InputEntry:
    return {**entry, "id": f"{node_id}-input-{entry['name']}-{entry['type']}"}
