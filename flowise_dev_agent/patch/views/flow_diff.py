"""Differences between two flows, by names: for the approval, for the page's drawing, for events."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Any

from flowise_dev_agent.patch.model.flow_data import Values
from flowise_dev_agent.patch.model.graph import FlowEdge, GraphIR
from flowise_dev_agent.patch.model.json_text import dump_json, inner_json
from flowise_dev_agent.patch.model.labels import without_id
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.values import is_empty, on_one_line
from flowise_dev_agent.patch.views.canvas_view import public_value
from flowise_dev_agent.redaction import looks_secret, masked, named_items, named_secret, redacted

#: Maximum length of a shown value, and of its unchanged beginning.
_SHOWN = 80
_BEFORE_CHANGE = 20
#: Characters of a value that is compared by line.
_LONGEST_HUNK = 20_000
#: Text and summary of flows that are the same.
NO_DIFFERENCE = "no difference"
#: Keys whose value is the id of a credential, in nodes and in settings of a flow.
_CREDENTIAL_IDS = frozenset((CREDENTIAL_KEY, "credentialId"))
#: Formats a value that differs from another one from an index on.
_Show = Callable[[Any, int], str]


@dataclass(frozen=True, slots=True)
class AddedNode:
    """A node of one of the flows, by type (``name``) and title (``label``)."""

    id: str
    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection by names. ``output`` is empty for nodes with a single output, ``input`` in agentflows."""

    source: str
    output: str
    target: str
    input: str


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field by name or path. Both values are safe to show: short, secrets hidden, '' for none."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class NodeChange:
    """Changes of a node that is in both flows. Type, title, version and output appear among the fields."""

    id: str
    name: str
    label: str
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class FlowDiff:
    """All differences, in the order of the later flow's nodes and edges, then removed ones."""

    added: tuple[AddedNode, ...]
    removed: tuple[AddedNode, ...]
    changed: tuple[NodeChange, ...]
    connected: tuple[Connected, ...]
    disconnected: tuple[Connected, ...]
    #: Ids of nodes with another position.
    moved: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """True if the flows behave the same; positions do not matter."""
        return not (self.added or self.removed or self.changed or self.connected or self.disconnected)

    @property
    def summary(self) -> str:
        """One line: ``2 nodes added, 1 removed; 3 fields changed; 2 connections made, 1 cut``."""
        fields = sum(len(node.fields) for node in self.changed)
        groups = (
            _counted("node", (len(self.added), "added"), (len(self.removed), "removed"), (len(self.moved), "moved")),
            _counted("field", (fields, "changed")),
            _counted("connection", (len(self.connected), "made"), (len(self.disconnected), "cut")),
        )
        return "; ".join(group for group in groups if group) or NO_DIFFERENCE

    @property
    def text(self) -> str:
        """One line per difference: ``+`` added, ``-`` removed, ``~`` changed."""
        lines = [f"+ {_titled(node)}" for node in self.added]
        lines += [f"- {_titled(node)}" for node in self.removed]
        for node in self.changed:
            lines.append(f"~ {node.id} ({node.name})")
            lines += [
                f"    {field.name}:\n{field.after}"
                if "\n" in field.after
                else f"    {field.name}: {field.before or '(none)'} -> {field.after or '(none)'}"
                for field in node.fields
            ]
        lines += [f"+ {_arrow(edge)}" for edge in self.connected]
        lines += [f"- {_arrow(edge)}" for edge in self.disconnected]
        if self.moved:
            lines.append(f"~ moved: {', '.join(self.moved)}")
        return "\n".join(lines) or NO_DIFFERENCE


def diff(before: GraphIR, after: GraphIR) -> FlowDiff:
    """Compare two flows. Nodes are identified by their ids, connections by their ends and names.

    >>> from flowise_dev_agent.knowledge.nodes import NodeStore
    >>> from flowise_dev_agent.patch import AddNode, SetParam, compile_ops
    >>> schemas = NodeStore.from_snapshot().schemas
    >>> model = AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"temperature": 0.2})
    >>> before = compile_ops(GraphIR.empty(), [model], schemas).graph
    >>> warmer = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.7)
    >>> found = diff(before, compile_ops(before, [warmer], schemas).graph)
    >>> found.summary
    '1 field changed'
    >>> print(found.text)
    ~ chatOpenAI_0 (chatOpenAI)
        temperature: 0.2 -> 0.7
    """
    both = [(old, node) for node in after.nodes if (old := before.node(node.id)) is not None]
    changes = [
        NodeChange(node.id, node.name, masked(node.label), tuple(_changes(old, node, _shown))) for old, node in both
    ]
    had, has = _edges(before), _edges(after)
    return FlowDiff(
        added=tuple(_node(node) for node in after.nodes if before.node(node.id) is None),
        removed=tuple(_node(node) for node in before.nodes if after.node(node.id) is None),
        changed=tuple(change for change in changes if change.fields),
        connected=tuple(edge for edge in has if edge not in had),
        disconnected=tuple(edge for edge in had if edge not in has),
        moved=tuple(node.id for old, node in both if _place(old) != _place(node)),
    )


def hunks(before: GraphIR, after: GraphIR) -> str:
    """`FlowDiff.text` in which long texts, lists and objects are compared by line, as git prints them: two unchanged
    lines around each change, the others folded."""
    found = diff(before, after)
    shown: list[NodeChange] = []
    for node in found.changed:
        old, new = before.node(node.id), after.node(node.id)
        whole = field_changes(old, new, longest=_LONGEST_HUNK) if old and new else ()
        fields = {
            field.name: FieldChange(field.name, "", "\n".join(lines))
            for field in whole
            if (lines := _hunk_lines(field))
        }
        shown.append(replace(node, fields=tuple(fields.get(field.name, field) for field in node.fields)))
    return replace(found, changed=tuple(shown)).text


def _hunk_lines(field: FieldChange) -> list[str]:
    """Lines of one field as git prints them; none for values of one short line."""
    old, new = (_lines(value) for value in (field.before, field.after))
    if len(old) < 2 and len(new) < 2 and len(field.before) + len(field.after) <= _SHOWN:
        return []
    # Without the names of the files, which come first.
    return [f"      {line}" for line in [*unified_diff(old, new, n=2, lineterm="")][2:]]


def _lines(value: str) -> list[str]:
    """A text by line; a list or an object with each item in lines of its own."""
    found = inner_json(value)
    if isinstance(found, dict | list):
        value = json.dumps(found, ensure_ascii=False, indent=2)
    return value.splitlines()


def field_changes(before: FlowNode, after: FlowNode, *, longest: int) -> Iterator[FieldChange]:
    """Field changes of a node as in `NodeChange`, with values of up to ``longest`` characters."""

    def whole(value: Any, start: int) -> str:
        del start
        text = _as_text(value)
        return text if len(text) <= longest else f"{text[: longest - 1]}…"

    return _changes(before, after, whole)


def value_changes(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    """Changes inside a value of JSON, by path; as in `NodeChange` they are safe to show."""
    return _value_changes(path, before, after, _shown, hidden=False)


def is_same_node(node_id: str, before: GraphIR, after: GraphIR) -> bool:
    """True for a node of both flows with the same type, title, place, fields, credential and lines."""
    return _whole(node_id, before) == _whole(node_id, after) is not None


def _whole(node_id: str, graph: GraphIR) -> tuple[Any, ...] | None:
    node = graph.node(node_id)
    lines = {
        (edge.source, edge.source_handle, edge.target, edge.target_handle)
        for edge in graph.edges
        if node_id in (edge.source, edge.target)
    }
    return (node.name, node.label, node.parent, node.inputs, node.credential, lines) if node else None


def _node(node: FlowNode) -> AddedNode:
    return AddedNode(node.id, node.name, masked(node.label))


def _place(node: FlowNode) -> tuple[Any, ...]:
    position = node.raw.get("position")
    return (position.get("x"), position.get("y")) if isinstance(position, dict) else ()


def _edges(graph: GraphIR) -> dict[Connected, None]:
    return {_by_names(graph, edge): None for edge in graph.edges}


def _by_names(graph: GraphIR, edge: FlowEdge) -> Connected:
    source = graph.node(edge.source)
    output = edge.output_name if source is not None and source.names_outputs else ""
    return Connected(edge.source, output, edge.target, edge.input_name)


def _changes(before: FlowNode, after: FlowNode, show: _Show) -> Iterator[FieldChange]:
    if before.raw is after.raw:
        return
    for name, old, new in (
        ("type", before.name, after.name),
        ("version", before.version, after.version),
        ("title", masked(before.label), masked(after.label)),
        ("output", before.selected_output, after.selected_output),
        ("inside", before.parent, after.parent),
    ):
        if old != new:
            yield FieldChange(name, show(old, 0), show(new, 0))
    if before.credential != after.credential:
        yield _credential_change("credential", before.credential, after.credential)
    if before.inputs == after.inputs:
        return
    anchors = before.definitions.anchor_names | after.definitions.anchor_names
    for name in dict.fromkeys([*after.inputs, *before.inputs]):
        if name in anchors:
            continue  # reported as connections
        hidden = any(entry.get("type") == "password" for entry in after.params_by_name.get(name, ()))
        yield from _value_changes(name, before.inputs.get(name), after.inputs.get(name), show, hidden=hidden)


def _value_changes(path: str, before: Any, after: Any, show: _Show, *, hidden: bool) -> Iterator[FieldChange]:
    """Single differences inside objects and lists, by path."""
    if before == after or (is_empty(before) and is_empty(after)):
        return
    before, after = _as_settings(before, after), _as_settings(after, before)
    if isinstance(before, dict) and isinstance(after, dict):
        hidden = hidden or _is_secret_row(before) or _is_secret_row(after)
        for key in dict.fromkeys([*after, *before]):
            yield from _value_changes(f"{path}.{key}", before.get(key), after.get(key), show, hidden=hidden)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _value_changes(f"{path}[{index}]", old, new, show, hidden=hidden)
    else:
        name = path.rpartition(".")[2]
        if name in _CREDENTIAL_IDS:
            yield _credential_change(path, before, after)
        elif hidden or _has_secret(name, before) or _has_secret(name, after):
            old, new = (_as_text(public_value(name, value, hidden=hidden)) for value in (before, after))
            start = _first_difference(old, new)
            yield FieldChange(path, show(old, start), show(new, start) if new != old else "(hidden; another one)")
        else:
            old, new = _readable(before), _readable(after)
            start = _first_difference(old, new)
            yield FieldChange(path, show(old, start), show(new, start))


def _as_settings(value: Any, other: Any) -> Any:
    """An empty object for no settings, so that fields of an added or removed component are listed one by one."""
    return {} if is_empty(value) and isinstance(other, dict) else value


def _credential_change(path: str, before: Any, after: Any) -> FieldChange:
    return FieldChange(path, _state(before, "bound"), _state(after, "bound to another" if before else "bound"))


def _state(value: Any, word: str) -> str:
    return "" if is_empty(value) else word


def _has_secret(name: str, value: Any) -> bool:
    if isinstance(value, dict):
        return any(key == CREDENTIAL_KEY or _has_secret(named, item) for key, named, item in named_items(value))
    if isinstance(value, list):
        return any(_has_secret(name, item) for item in value)
    # JSON inside a text may name a secret.
    return looks_secret(name, value) or (isinstance(value, str) and redacted(value) != masked(value))


def _is_secret_row(value: Values) -> bool:
    return "value" in value and named_secret(str(value.get("key")))


def _readable(value: Any) -> Any:
    return masked(value) if isinstance(value, str) else value


def _first_difference(before: Any, after: Any) -> int:
    old, new = _as_text(before), _as_text(after)
    ends = min(len(old), len(new))
    return next((index for index in range(ends) if old[index] != new[index]), ends)


def _as_text(value: Any) -> str:
    if is_empty(value):
        return ""
    return without_id(value) if isinstance(value, str) else dump_json(value)


def _shown(value: Any, start: int = 0) -> str:
    """A short piece of the value around the first difference."""
    text = _as_text(value)
    begin = max(0, start - _BEFORE_CHANGE) if len(text) > _SHOWN else 0
    # No name or address is cut at its beginning, if it is not too long.
    begin = text.rfind(" ", max(0, begin - _BEFORE_CHANGE), begin) + 1 or begin
    piece = on_one_line(text[begin : begin + _SHOWN])
    return f"{'…' if begin else ''}{piece}{'…' if begin + _SHOWN < len(text) else ''}"


def _counted(noun: str, *parts: tuple[int, str]) -> str:
    present = [(count, verb) for count, verb in parts if count]
    if not present:
        return ""
    count, verb = present[0]
    first = f"{count} {noun}{'s' if count > 1 else ''} {verb}"
    return ", ".join([first, *(f"{count} {verb}" for count, verb in present[1:])])


def _titled(node: AddedNode) -> str:
    title = f" {masked(node.label)!r}" if node.label not in (node.name, node.id) else ""
    return f"{node.id} ({node.name}){title}"


def _arrow(edge: Connected) -> str:
    output = f".{edge.output}" if edge.output else ""
    name = f".{edge.input}" if edge.input else ""
    return f"{edge.source}{output} -> {edge.target}{name}"
