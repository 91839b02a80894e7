"""What differs between two states of a flow, in words and as data."""

from typing import Any

from flowise_dev_agent.patch.graph import FlowEdge, FlowNode, GraphIR
from flowise_dev_agent.patch.secrecy import looks_secret

_SHOWN = 300


def changes(before: GraphIR, after: GraphIR) -> dict[str, Any]:
    """`{text, added, removed, changed, connected, disconnected, moved}`; small JSON, secrets hidden.

    `text` is one line per change. `changed` has `{id, name, fields: [{name, before, after}]}`; titles, types and
    credentials are fields called `(title)`, `(type)` and `(credential)`. `moved` counts nodes of another position.
    """
    old, new = ({node.id: node for node in graph.nodes} for graph in (before, after))
    added = [_brief(node) for id_, node in new.items() if id_ not in old]
    removed = [_brief(node) for id_, node in old.items() if id_ not in new]
    changed = [
        {"id": id_, "name": node.name, "fields": fields}
        for id_, node in new.items()
        if id_ in old and (fields := _fields(old[id_], node))
    ]
    had, has = ({_edge(edge) for edge in graph.edges} for graph in (before, after))
    result: dict[str, Any] = {
        "added": added,
        "removed": removed,
        "changed": changed,
        "connected": [list(edge) for edge in sorted(has - had)],
        "disconnected": [list(edge) for edge in sorted(had - has)],
        "moved": sum(
            1 for id_, node in new.items() if id_ in old and node.raw.get("position") != old[id_].raw.get("position")
        ),
    }
    return {"text": _words(result), **result}


def _brief(node: FlowNode) -> dict[str, str]:
    return {"id": node.id, "name": node.name, "label": node.label}


def _edge(edge: FlowEdge) -> tuple[str, str]:
    return edge.source, f"{edge.target}.{edge.input_name}" if edge.input_name else edge.target


def _fields(old: FlowNode, new: FlowNode) -> list[dict[str, Any]]:
    anchors = {entry.get("name") for entry in (*old.anchors, *new.anchors)}
    pairs: list[tuple[str, Any, Any]] = [
        ("(type)", old.name, new.name),
        ("(title)", old.label, new.label),
        ("(credential)", old.credential or None, new.credential or None),
        ("(output)", old.selected_output or None, new.selected_output or None),
    ]
    # What stands at an anchor is a connection, told as such.
    names = [name for name in {**old.inputs, **new.inputs} if name not in anchors]
    pairs += [(name, old.inputs.get(name), new.inputs.get(name)) for name in names]
    return [
        {"name": name, "before": _shown(name, was), "after": _shown(name, is_)}
        for name, was, is_ in pairs
        if was != is_
    ]


def _shown(name: str, value: Any) -> Any:
    if looks_secret(name, value):
        return "(hidden)"
    if isinstance(value, str):
        return value if len(value) <= _SHOWN else f"{value[: _SHOWN - 1]}…"
    if isinstance(value, list | dict):
        text = repr(value)
        return value if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return value


def _words(result: dict[str, Any]) -> str:
    lines = [f"+ {node['id']} ({node['label']})" for node in result["added"]]
    lines += [f"- {node['id']} ({node['label']})" for node in result["removed"]]
    lines += [
        f"~ {node['id']}.{field['name']}: {_quoted(field['before'])} → {_quoted(field['after'])}"
        for node in result["changed"]
        for field in node["fields"]
    ]
    lines += [f"+ {source} → {target}" for source, target in result["connected"]]
    lines += [f"- {source} → {target}" for source, target in result["disconnected"]]
    if result["moved"]:
        lines.append(f"{result['moved']} node{'s' if result['moved'] > 1 else ''} moved")
    return "\n".join(lines) or "no difference"


def _quoted(value: Any) -> str:
    return "nothing" if value in (None, "") else f"'{value}'"
