"""Disconnecting: removes the edge, the exact reference, and an output selection that served only this edge."""

from typing import Any

from flowise_dev_agent.patch.compile.batch import Batch
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.json_text import as_dict
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import referenced, sole_reference, without_reference


def chatflow_edge(source_id: str, source_handle: str, target_id: str, target_handle: str) -> FlowEdge:
    """An edge as the editor draws it."""
    return FlowEdge(
        {
            "source": source_id,
            "sourceHandle": source_handle,
            "target": target_id,
            "targetHandle": target_handle,
            "type": "buttonedge",
            "id": f"{source_id}-{source_handle}-{target_id}-{target_handle}",
        }
    )


def remove_edge(batch: Batch, edge: FlowEdge) -> None:
    """Remove a connection and everything that Connect wrote for it."""
    batch.edges.remove(edge)
    target, source = batch.nodes.get(edge.target), batch.nodes.get(edge.source)
    if target is not None and edge.input_name:
        still = any(
            other.target == edge.target and other.input_name == edge.input_name
            for other in batch.edges.out_of(edge.source)
        )
        if not still:
            remove_reference(batch, target, edge.input_name, edge.source)
    if source is not None:
        _release_output(batch, source)


def remove_reference(batch: Batch, node: FlowNode, name: str, source_id: str) -> None:
    """Remove the reference to ``source_id`` from one input; references to longer ids stay."""
    value = node.inputs.get(name)
    if source_id not in referenced(value):
        return
    batch.set_input(node.id, name, _without(value, source_id))


def _without(value: Any, source_id: str) -> Any:
    if isinstance(value, list):
        # An anchor without connections holds '' like a fresh one.
        return [item for item in value if sole_reference(item) != source_id] or ""
    return "" if sole_reference(value) == source_id else without_reference(value, source_id)


def _release_output(batch: Batch, source: FlowNode) -> None:
    """Reset the output selection of a node without outgoing edges to its default."""
    if not source.multi_output or batch.edges.out_of(source.id):
        return
    default = next((anchor.get("default") for anchor in source.output_anchors if "options" in anchor), None)
    if default and source.selected_output != default:
        data = batch.edit(source.id).data
        data["outputs"] = {**as_dict(data.get("outputs")), "output": str(default)}
