"""Summary of a person's own edits, by the titles of nodes and fields, for the conversation about a flow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.nested import Steps, parse_path, value_at
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import AddNode, Connect, Disconnect, PatchOp, ReplaceNode, SetParam, UnsetParam
from flowise_dev_agent.patch.model.schema import Schemas
from flowise_dev_agent.patch.model.values import is_empty, on_one_line
from flowise_dev_agent.patch.views.canvas_view import public_value
from flowise_dev_agent.redaction import masked

_LONGEST: Final = 400
_IN_WORDS: Final[Mapping[str, str]] = {
    "AddNode": "Added: {node}",
    "RemoveNode": "Removed: {node}",
    "ReplaceNode": "Replaced: {node} → {other}",
    "Connect": "Connected: {node} → {other}",
    "Disconnect": "Disconnected: {node} → {other}",
}


@dataclass(frozen=True, slots=True)
class EditView:
    """View of one op. ``node`` is the title of the changed node, ``other`` of the connected or replacing one.

    ``field`` is a label; both values are safe to show, '' for none.
    """

    op_type: str
    node: str
    other: str = ""
    field: str = ""
    before: str = ""
    after: str = ""

    @property
    def in_words(self) -> str:
        """One line of English, even for values of several lines."""
        if not self.field:
            return _IN_WORDS.get(self.op_type, "Changed: {node}").format(node=self.node, other=self.other)
        change = " → ".join(on_one_line(one) for one in (self.before, self.after or "(none)") if one)
        return f"{self.field} of {self.node}: {change}"


def edit_views(ops: Sequence[PatchOp], flow: GraphIR, schemas: Schemas) -> Iterator[EditView]:
    """Views of the ops with titles and values of the flow before them; ids and names for unknown nodes."""
    added = {op.node_id: op.label or _title(op.node_name, schemas) for op in ops if isinstance(op, AddNode)}
    types = {op.node_id: op.node_name for op in ops if isinstance(op, AddNode)}

    def titled(node_id: str) -> str:
        node = flow.node(node_id)
        return masked(node.label) if node else added.get(node_id, node_id)

    for op in ops:
        match op:
            case SetParam() | UnsetParam():
                node = flow.node(op.node_id)
                value = op.value if isinstance(op, SetParam) else None
                schema = schemas.get(types.get(op.node_id, ""))
                fields = schema.input_definitions if schema else ()
                new = [entry for entry in fields if entry["name"] == op.param_name]
                yield _of_field(op.op_type, titled(op.node_id), node, op.param_name, value, schemas, new)
            case Connect() | Disconnect():
                yield EditView(op.op_type, titled(op.source_node_id), other=titled(op.target_node_id))
            case ReplaceNode():
                yield EditView(op.op_type, titled(op.node_id), other=_title(op.node_name, schemas))
            case _:
                yield EditView(op.op_type, titled(op.node_id))


def _of_field(
    op_type: str,
    title: str,
    node: FlowNode | None,
    path: str,
    value: Any,
    schemas: Schemas,
    new: Sequence[InputEntry] = (),
) -> EditView:
    steps = parse_path(path) or (path,)
    name = next(str(step) for step in reversed(steps) if isinstance(step, str))
    entries = list(_entries(node, path, steps, schemas)) if node else [*new]
    hidden = any(entry.get("type") == "password" for entry in entries)
    before = value_at(node.inputs, steps) if node else None
    return EditView(
        op_type,
        title,
        field=masked(str(entries[0].get("label") or name)) if entries else name,
        before=_text(public_value(name, before, hidden=hidden)),
        after=_text(public_value(name, value, hidden=hidden)),
    )


def _entries(node: FlowNode, path: str, steps: Steps, schemas: Schemas) -> Iterator[InputEntry]:
    """Definitions of a field: from the node, or from the component in whose config it is."""
    yield from node.params_by_name.get(path, [])
    *around, owner, name = ("", *steps)
    component = value_at(node.inputs, (*around[1:], str(owner).removesuffix("Config")))
    schema = schemas.get(component) if isinstance(component, str) else None
    if schema:
        yield from (entry for entry in schema.input_definitions if entry["name"] == name)


def _title(name: str, schemas: Schemas) -> str:
    schema = schemas.get(name)
    return schema.label if schema else name


def _text(value: Any) -> str:
    if is_empty(value):
        return ""
    text = value if isinstance(value, str) else dump_json(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
