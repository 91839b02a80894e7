"""Drawing of a flow for people: boxes with their ports and fields, never a credential or a secret."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.graph import FlowEdge, GraphIR
from flowise_dev_agent.patch.model.json_text import as_dict, dump_json
from flowise_dev_agent.patch.model.nested import BOUND, CREDENTIAL_KEYS, with_bound
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.redaction import looks_secret, masked, named_items

HIDDEN: Final = "(hidden)"
#: Maximum length of one value, and of all values of a flow together.
_LONGEST_VALUE: Final = 32_000
_LONGEST_VALUES: Final = 1_500_000
_DEEPEST: Final = 12


@dataclass(frozen=True, slots=True)
class CanvasPort:
    """A port of a node. ``id`` is the handle that edges name."""

    id: str
    name: str
    label: str


@dataclass(frozen=True, slots=True)
class CanvasParam:
    """A non-empty field. ``value`` is safe to show; ``cut`` is true if it is not all of the field: it is too long, or a
    secret is hidden. Such a value must not be written back.
    """

    name: str
    label: str
    value: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class CanvasNode:
    """A box. ``kind`` is node, agent, iteration or note; ``credential`` is bound, missing or '' for none needed.

    ``x``, ``y``, ``width`` and ``height`` are editor pixels, relative to the parent's corner if there is one.
    """

    id: str
    name: str
    label: str
    category: str
    kind: str
    version: str
    color: str
    parent: str
    x: float
    y: float
    width: float | None
    height: float | None
    inputs: tuple[CanvasPort, ...]
    outputs: tuple[CanvasPort, ...]
    credential: str = ""
    note: str = ""
    params: tuple[CanvasParam, ...] = ()


@dataclass(frozen=True, slots=True)
class CanvasEdge:
    """A line. ``output`` and ``input`` are names as in `flow_diff.Connected`, so that both can be compared."""

    id: str
    source: str
    source_handle: str
    output: str
    target: str
    target_handle: str
    input: str
    label: str


@dataclass(frozen=True, slots=True)
class CanvasView:
    """A whole flow for drawing. ``cut`` is true if values were left out because the flow has too many."""

    kind: str
    nodes: tuple[CanvasNode, ...] = ()
    edges: tuple[CanvasEdge, ...] = field(default=())
    cut: bool = False


def canvas_view(graph: GraphIR, *, params: bool = True) -> CanvasView:
    """Draw a flow; without ``params`` only the data of a small picture.

    >>> from flowise_dev_agent.knowledge.nodes import NodeStore
    >>> from flowise_dev_agent.patch import AddNode, compile_ops
    >>> schemas = NodeStore.from_snapshot().schemas
    >>> ops = [AddNode(node_name="calculator", node_id="calculator_0")]
    >>> (node,) = canvas_view(compile_ops(GraphIR.empty(), ops, schemas).graph).nodes
    >>> node.id, node.kind, node.x, [port.name for port in node.outputs]
    ('calculator_0', 'node', 0.0, ['calculator'])
    """
    ends = _ends(graph)
    left = _LONGEST_VALUES
    nodes: list[CanvasNode] = []
    for node in graph.nodes:
        shown = tuple(_params(node, left)) if params and not node.is_note else ()
        left -= sum(len(param.value) for param in shown)
        nodes.append(_node(node, ends.get(node.id, ()), shown))
    known = {node.id for node in graph.nodes}
    edges = tuple(
        _edge(graph, edge, number)
        for number, edge in enumerate(graph.edges)
        if edge.source in known and edge.target in known
    )
    return CanvasView(graph.kind, tuple(nodes), edges, cut=params and left <= 0)


def public_value(name: str, value: Any, *, hidden: bool = False) -> Any:
    """The value of a field without credentials and secrets, at any depth."""
    return HIDDEN if hidden and not is_empty(value) else _public(name, value, 0)


def public_op(op: Mapping[str, Any]) -> dict[str, Any]:
    """An op as JSON, with its values passed through `public_value`."""
    shown = dict(op)
    if "value" in op:
        shown["value"] = public_value(str(op.get("param_name", "")).rpartition(".")[2], op["value"])
    if "params" in op:
        shown["params"] = public_value("", op["params"])
    return shown


def _public(name: str, value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {
            key: (BOUND if item else "") if key in CREDENTIAL_KEYS else _public(named, item, depth + 1)
            for key, named, item in named_items(value)
        }
    if isinstance(value, list):
        return [_public(name, item, depth + 1) for item in value]
    if looks_secret(name, value):
        return HIDDEN
    if isinstance(value, str) and value[:1] in {"{", "["}:
        inner = _parsed(value)
        # JSON inside a text, as fields of type json hold it.
        if inner is not None:
            return value if (public := _public(name, inner, depth + 1)) == inner else dump_json(public)
    return masked(value) if isinstance(value, str) else value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _ends(graph: GraphIR) -> dict[str, tuple[tuple[str, str], ...]]:
    """Node id -> distinct (side, handle) pairs that edges use."""
    found: dict[str, dict[tuple[str, str], None]] = {}
    for edge in graph.edges:
        found.setdefault(edge.source, {})["output", edge.source_handle] = None
        found.setdefault(edge.target, {})["input", edge.target_handle] = None
    return {node_id: tuple(ends) for node_id, ends in found.items()}


def _node(node: FlowNode, ends: tuple[tuple[str, str], ...], params: tuple[CanvasParam, ...]) -> CanvasNode:
    place = as_dict(node.raw.get("position"))
    return CanvasNode(
        id=node.id,
        name=node.name,
        label=masked(node.label),
        category=masked(node.category),
        kind=_kind(node),
        version=str(node.version or ""),
        color=str(node.data.get("color") or ""),
        parent=node.parent,
        x=_number(place.get("x")) or 0.0,
        y=_number(place.get("y")) or 0.0,
        width=_number(node.raw.get("width")),
        height=_number(node.raw.get("height")),
        inputs=() if node.is_note else tuple(_inputs(node, {end for side, end in ends if side == "input"})),
        outputs=() if node.is_note else tuple(_outputs(node, {end for side, end in ends if side == "output"})),
        credential=_credential(node),
        note=masked(str(node.inputs.get("note") or ""))[:_LONGEST_VALUE] if node.is_note else "",
        params=params,
    )


def _kind(node: FlowNode) -> str:
    if node.is_note:
        return "note"
    if node.raw.get("type") == v2.CANVAS_ITERATION:
        return "iteration"
    return "agent" if node.is_agentflow else "node"


def _credential(node: FlowNode) -> str:
    if node.credential:
        return "bound"
    entry = node.credential_param
    return "missing" if entry is not None and not entry.get("optional") else ""


def _inputs(node: FlowNode, used: set[str]) -> Iterator[CanvasPort]:
    """All connection points, then fields and unknown handles at which an edge ends."""
    if node.is_agentflow:
        yield CanvasPort(node.id, "", "")
        used = used - {node.id}
    anchors = [(True, anchor) for anchor in node.anchors if anchor.get("display", True)]
    for always, entry in (*anchors, *((False, entry) for entry in node.params)):
        handle = str(entry.get("id") or "")
        if handle and (always or handle in used):
            used = used - {handle}
            name = str(entry.get("name") or "")
            yield CanvasPort(handle, name, masked(str(entry.get("label") or name)))
    for handle in sorted(used):
        yield CanvasPort(handle, "", "")


def _outputs(node: FlowNode, used: set[str]) -> Iterator[CanvasPort]:
    """The outputs that are used or selected, and every independent one."""
    for output in node.outputs:
        selected = not node.multi_output or output.independent or output.name == node.selected_output
        if output.handle and (selected or output.handle in used):
            used = used - {output.handle}
            yield CanvasPort(output.handle, output.name, masked(output.label))
    for handle in sorted(used):
        yield CanvasPort(handle, "", "")


def _params(node: FlowNode, left: int) -> Iterator[CanvasParam]:
    """The fields of a node; without their values once the flow has shown too many."""
    anchors = node.definitions.anchor_names
    for name, value in node.inputs.items():
        if name in anchors or is_empty(value):
            continue
        entries = node.params_by_name.get(name, [])
        hidden = any(entry.get("type") == "password" for entry in entries)
        public = public_value(name, value, hidden=hidden)
        text = public if isinstance(public, str) else dump_json(public)
        label = str(entries[0].get("label") or name) if entries else name
        cut = len(text) > _LONGEST_VALUE
        shown = "" if left <= 0 else f"{text[: _LONGEST_VALUE - 1]}…" if cut else text
        yield CanvasParam(name, label, shown, cut or left <= 0 or with_bound(public, value) != value)


def _edge(graph: GraphIR, edge: FlowEdge, number: int) -> CanvasEdge:
    source, data = graph.node(edge.source), edge.raw.get("data")
    label = data.get("edgeLabel") if isinstance(data, dict) else None
    return CanvasEdge(
        id=f"e{number}",
        source=edge.source,
        source_handle=edge.source_handle,
        output=edge.output_name if source is not None and source.names_outputs else "",
        target=edge.target,
        target_handle=edge.target_handle,
        input=edge.input_name,
        label=masked(str(label)) if label is not None else "",
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
