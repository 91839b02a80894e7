"""What a prompt sees of a flow: all of a small one, and of a large one the part that matters, always bounded."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flowise_dev_agent.patch import FlowNode, GraphIR, summarize
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.reasoning.contracts import AgentTools
from flowise_dev_agent.redaction import looks_secret

#: Characters; a flow of 15 nodes takes about 1 500.
SUMMARY_LIMIT = 6_000
#: The share of the limit that nodes and connections in focus may take.
_FOCUS_SHARE = 0.6
_TEXT_SHOWN, _TEXTS_TOTAL, _LONG_TEXT = 4_000, 12_000, 40
_WORD = re.compile(r"[a-z0-9]{3,}")


def focused_summary(graph: GraphIR, text: str, scope: Iterable[str] = (), limit: int = SUMMARY_LIMIT) -> str:
    """At most `limit` characters. Nodes in `scope`, else those that `text` mentions, with their neighbours come in
    full with their connections; of the others the ids, types and titles, as far as they fit."""
    whole = summarize(graph, limit=10 * limit)
    if len(whole) <= limit:
        return whole
    focus = {node_id for node_id in scope if graph.node(node_id)} or _spoken_of(graph, text)
    near = set(focus)
    for edge in graph.edges:
        if edge.source in focus or edge.target in focus:
            near |= {edge.source, edge.target}
    part = GraphIR(
        {
            "nodes": [node.raw for node in graph.nodes if node.id in near],
            "edges": [edge.raw for edge in graph.edges if edge.source in near and edge.target in near],
        }
    )
    shown = summarize(part, limit=int(limit * _FOCUS_SHARE)) if near else ""
    others = [node for node in graph.nodes if node.id not in near and not node.is_note]
    lines = [f"A flow of {len(graph.nodes)} nodes and {len(graph.edges)} connections. The part that matters:", shown]
    lines.append(f"{len(others)} other nodes, by id, type and title:")
    return _filled("\n".join(lines), [_brief(node) for node in others], limit)


def connected_inputs(graph: GraphIR) -> frozenset[str]:
    """The inputs that a connection leads to, as `node id.input`."""
    return frozenset(f"{edge.target}.{edge.input_name}" for edge in graph.edges)


def texts_in_scope(graph: GraphIR, scope: Iterable[str] = ()) -> dict[str, str]:
    """`node id.field` -> the longer texts (prompts, templates) of the nodes in scope, for whoever is to change them.

    For rows and values inside a node the field is a path as in `SetParam`, `agentMessages[0].content`. Each text
    is cut to 4 000 characters, all together to 12 000. Documents and secrets are left out.
    """
    chosen = {node_id for node_id in scope if graph.node(node_id)} or {node.id for node in graph.nodes}
    found: dict[str, str] = {}
    room = _TEXTS_TOTAL
    for node in graph.nodes:
        if node.id not in chosen or node.is_note or node.category == "Document Loaders":
            continue
        for path, value in _texts(node.inputs):
            shown = value if len(value) <= _TEXT_SHOWN else f"{value[: _TEXT_SHOWN - 1]}…"
            if len(shown) > room:
                return found
            room -= len(shown)
            found[f"{node.id}.{path}"] = shown
    return found


def components_of(graph: GraphIR) -> dict[str, str]:
    """`node id.path` -> the model or tool configured there, for the agentflow nodes of a flow."""
    return {
        f"{node.id}.{nested.path}": nested.component
        for node in graph.nodes
        if node.is_agentflow
        for nested in nested_components(node.params, node.inputs)
    }


def agents_of(graph: GraphIR) -> tuple[AgentTools, ...]:
    """The agentflow nodes that may use tools, with those that they have."""
    return tuple(
        AgentTools(node.id, node.label, entry["name"], tuple(row for row in rows if isinstance(row, dict)))
        for node in graph.nodes
        if node.is_agentflow
        for entry in node.params
        if any(part.get("name") == "agentSelectedTool" for part in entry.get("array") or ())
        and isinstance(rows := node.inputs.get(entry["name"]) or [], list)
    )


def _texts(inputs: Mapping[str, Any], around: str = "") -> Iterator[tuple[str, str]]:
    for name, value in inputs.items():
        path = f"{around}{name}"
        if isinstance(value, list):
            for index, row in enumerate(value):
                if isinstance(row, dict):
                    yield from _texts(row, f"{path}[{index}].")
        elif isinstance(value, dict):
            yield from _texts(value, f"{path}.")
        elif (
            isinstance(value, str)
            and len(value) >= _LONG_TEXT
            and not looks_secret(name, value)
            and not referenced(value)
        ):
            yield path, value


def _spoken_of(graph: GraphIR, text: str) -> set[str]:
    words = set(_WORD.findall(text.casefold()))
    return {
        node.id
        for node in graph.nodes
        if not node.is_note
        and words & set(_WORD.findall(f"{re.sub('(?<=[a-z])(?=[A-Z])', ' ', node.name)} {node.label}".casefold()))
    }


def _brief(node: FlowNode) -> str:
    return f"- {node.id} ({node.name})" + (f" {node.label[:60]!r}" if node.label != node.name else "")


def _filled(text: str, lines: list[str], limit: int) -> str:
    for index, line in enumerate(lines):
        rest = f"\n... {len(lines) - index} more"
        if len(text) + len(line) + 1 + len(rest) > limit:
            return (text + rest)[:limit]
        text += "\n" + line
    return text
