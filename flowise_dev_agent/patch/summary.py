"""A flow in a few lines for prompts: ids, labels, what is set, and who feeds whom."""

from typing import Any

from flowise_dev_agent.patch.graph import FlowEdge, FlowNode, GraphIR
from flowise_dev_agent.patch.references import referenced
from flowise_dev_agent.patch.secrecy import looks_secret
from flowise_dev_agent.patch.values import is_empty, shown
from flowise_dev_agent.patch.visibility import js_truthy

_LONGEST_TEXT = 120


def summarize(graph: GraphIR, limit: int = 4000) -> str:
    """Nodes with their non-default fields, then connections by name; at most ``limit`` characters.

    Texts over 120 characters appear as their length, credentials and other secrets only as set or not set.
    """
    nodes = [_node_line(node) for node in graph.nodes if not node.is_note]
    edges = [_edge_line(graph, edge) for edge in graph.edges]
    notes = sum(1 for node in graph.nodes if node.is_note)
    lines = [f"{len(nodes)} nodes:", *nodes, f"{len(edges)} connections:", *edges]
    if notes:
        lines.append(f"{notes} sticky note{'s' if notes > 1 else ''}")
    return _bounded(lines, limit)


def _node_line(node: FlowNode) -> str:
    title = f" {node.label!r}" if node.label != node.name else ""
    settings = [f"{name}={_value(node, name, value)}" for name, value in node.inputs.items() if _is_set(node, name)]
    if node.credential_param is not None:
        settings.append("credential bound" if node.credential else "no credential")
    if node.multi_output and node.selected_output:
        settings.append(f"gives {node.selected_output}")
    return f"- {node.id} ({node.name}){title}: {', '.join(settings) or 'defaults'}"


def _is_set(node: FlowNode, name: str) -> bool:
    """A field that says something: not an anchor, not empty, not what a fresh node holds."""
    value = node.inputs[name]
    if is_empty(value) or any(entry["name"] == name for entry in node.anchors):
        return False
    defaults = [entry.get("default") for entry in node.params if entry["name"] == name]
    return value not in defaults and (js_truthy(value) or any(js_truthy(default) for default in defaults))


def _value(node: FlowNode, name: str, value: Any) -> str:
    kinds = {entry.get("type") for entry in node.params if entry["name"] == name}
    if "password" in kinds or looks_secret(name, value):
        return "(hidden)"
    text = value if isinstance(value, str) else None
    if text is not None and len(text) > _LONGEST_TEXT and not referenced(text):
        return f"(text of {len(text)} characters)"
    return shown(value) if text is None else repr(shown(text))


def _edge_line(graph: GraphIR, edge: FlowEdge) -> str:
    source = graph.node(edge.source)
    output = f".{edge.output_name}" if source and source.multi_output and edge.output_name else ""
    return f"- {edge.source}{output} -> {edge.target}.{edge.input_name or '?'}"


def _bounded(lines: list[str], limit: int) -> str:
    kept: list[str] = []
    size = 0
    for index, line in enumerate(lines):
        rest = f"... {len(lines) - index} more lines"
        if size + len(line) + 1 + (len(rest) if index < len(lines) - 1 else 0) > limit:
            return "\n".join([*kept, rest])[:limit]
        kept.append(line)
        size += len(line) + 1
    return "\n".join(kept)
