"""A fresh node as Flowise's own editor would make it from a schema (its ``initNode``, 3.1.4)."""

import copy
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from flowise_dev_agent.patch import agentflow as v2
from flowise_dev_agent.patch.graph import dump_json
from flowise_dev_agent.patch.layout import node_height
from flowise_dev_agent.patch.schema import PARAM_TYPES, NodeSchema
from flowise_dev_agent.patch.visibility import is_conditional, is_visible, js_truthy, with_defaults

#: Stands for the node id in prepared text. Private use area: no catalogue has it, and JSON does not escape it.
_MARK = "\ue000"
_OWN_KEYS = frozenset({"id", "label", "inputs", "outputs", "outputAnchors", "credential"})
#: Combinations of shown and hidden inputs that are kept as text per type.
_STATES_KEPT = 64
_DEFINITION_KEYS = ("inputAnchors", "inputParams")


def init_node_data(schema: NodeSchema, node_id: str, *, agentflow: bool = False) -> dict[str, Any]:
    """``data`` of a new node: the whole schema with inputs, anchors, params and outputs put in the editor's form.

    ``agentflow`` is the editor's own switch: in an AGENTFLOW outputs are branches without types. Nested values are
    shared with the schema except for ``inputs``; callers change only what they own.
    """
    raw = schema.raw
    shared = _blueprint(schema)
    inputs = copy.deepcopy(shared.inputs) if shared.nested_inputs else dict(shared.inputs)
    output_anchors = v2.output_anchors(raw, node_id) if agentflow else _output_anchors(schema, node_id)
    data: dict[str, Any] = {
        **raw,
        "id": node_id,
        "inputs": inputs,
        "inputAnchors": [piece.definition(node_id) for piece in shared.pieces["inputAnchors"]],
        "inputParams": [piece.definition(node_id) for piece in shared.pieces["inputParams"]],
        "outputs": {anchor["name"]: anchor.get("default") or "" for anchor in output_anchors}
        if "outputs" in raw
        else {},
        "outputAnchors": output_anchors,
    }
    if raw.get("credential"):
        data["credential"] = ""
    return data


def fresh_text(schema: NodeSchema, raw: Mapping[str, Any]) -> str:
    """JSON of a node whose ``data`` came from `init_node_data`: what the schema says is not encoded again."""
    shared = _blueprint(schema)
    node_id: str = raw["id"]
    data: Mapping[str, Any] = raw["data"]
    head, _, rest = dump_json({**raw, "data": None}).partition('"data":null')
    parts = [head, '"data":{']
    for before, key in shared.layout:
        parts.append(before)
        if key in _DEFINITION_KEYS:
            state = tuple([entry["display"] for entry in data[key]])
            parts.append(node_id.join(shared.definitions(key, state)))
        elif key == "outputAnchors" and schema.name not in v2.BRANCHES_FROM:
            parts.append(node_id.join(shared.output_text))
        else:
            parts.append(dump_json(data[key]) if data[key] != {} else "{}")
    parts += shared.after, "}", rest
    return "".join(parts)


def fresh_height(schema: NodeSchema, data: Mapping[str, Any]) -> int:
    """`node_height` of such a node, reckoned once for all that show the same inputs."""
    shared = _blueprint(schema)
    state = tuple([entry["display"] for key in _DEFINITION_KEYS for entry in data[key]])
    height = shared.heights.get(state)
    if height is None:
        height = node_height(data)
        if len(shared.heights) < _STATES_KEPT:
            shared.heights[state] = height
    return height


def settle_visibility(schema: NodeSchema, data: dict[str, Any]) -> None:
    """`refresh_visibility` of such a node, in place: only inputs with conditions are looked at."""
    for key, (numbers, defaults) in _blueprint(schema).conditional.items():
        definitions: list[dict[str, Any]] = data[key]
        inputs = {**defaults, **data["inputs"]}
        for number in numbers:
            definitions[number] = _displayed(definitions[number], is_visible(definitions[number], inputs))


def refresh_visibility(data: Mapping[str, Any]) -> dict[str, Any]:
    """``inputAnchors`` and ``inputParams`` with ``display`` recomputed from the node's present inputs."""
    refreshed: dict[str, Any] = {}
    for key in _DEFINITION_KEYS:
        definitions: list[dict[str, Any]] = data.get(key) or []
        conditional = any(is_conditional(entry) for entry in definitions)
        inputs = with_defaults(definitions, data.get("inputs") or {}) if conditional else {}
        refreshed[key] = [_displayed(entry, is_visible(entry, inputs)) for entry in definitions]
    return refreshed


def _displayed(entry: dict[str, Any], visible: bool) -> dict[str, Any]:
    return entry if entry.get("display") is visible else {**entry, "display": visible}


class _Piece:
    """One input of a type: its definition but for the node id, and the same as text."""

    __slots__ = ("_display", "_entry", "_suffix", "conditional", "hidden", "shown")

    def __init__(self, entry: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
        self._entry = entry
        self._suffix = f"-input-{entry['name']}-{entry['type']}"
        self._display = is_visible(entry, inputs)
        self.conditional = is_conditional(entry)
        self.shown, self.hidden = (dump_json(self._made(_MARK, display)) for display in (True, False))

    def definition(self, node_id: str) -> dict[str, Any]:
        return self._made(node_id, self._display)

    def _made(self, node_id: str, display: bool) -> dict[str, Any]:
        return {**self._entry, "id": node_id + self._suffix, "display": display}


class _Blueprint:
    """What all fresh nodes of one type share."""

    def __init__(self, schema: NodeSchema) -> None:
        raw = schema.raw
        definitions = schema.input_definitions
        self.inputs: dict[str, Any] = {entry["name"]: _initial_value(entry) for entry in definitions}
        self.nested_inputs = any(isinstance(value, (list, dict)) for value in self.inputs.values())
        self.pieces: dict[str, list[_Piece]] = {key: [] for key in _DEFINITION_KEYS}
        credential = raw.get("credential")
        # The editor forgets the credential field of a node that declares no `inputs` at all.
        if credential and "inputs" in raw:
            self.pieces["inputParams"].append(_Piece(credential, self.inputs))
        for entry in definitions:
            key = "inputParams" if entry["type"] in PARAM_TYPES else "inputAnchors"
            self.pieces[key].append(_Piece(entry, self.inputs))
        made = v2.output_anchors(raw, _MARK) if schema.is_agentflow else _output_anchors(schema, _MARK)
        self.output_text = dump_json(made).split(_MARK)
        #: For each kind of inputs that has any with conditions: which, and the defaults that those are read against.
        self.conditional: dict[str, tuple[list[int], dict[str, Any]]] = {}
        for key, pieces in self.pieces.items():
            numbers = [number for number, piece in enumerate(pieces) if piece.conditional]
            if numbers:
                self.conditional[key] = numbers, with_defaults([piece.definition("") for piece in pieces], {})
        self.heights: dict[tuple[bool, ...], int] = {}
        self.layout, self.after = _layout(raw)
        self._joined: dict[tuple[str, tuple[bool, ...]], list[str]] = {}

    def definitions(self, key: str, displayed: tuple[bool, ...]) -> list[str]:
        """JSON of all inputs of one kind, cut where the node id goes. Nodes of a type differ in few ways."""
        found = self._joined.get((key, displayed))
        if found is None:
            pieces = zip(self.pieces[key], displayed, strict=True)
            text = f"[{','.join([piece.shown if shown else piece.hidden for piece, shown in pieces])}]"
            found = text.split(_MARK)
            if len(self._joined) < _STATES_KEPT:
                self._joined[key, displayed] = found
        return found


def _layout(raw: Mapping[str, Any]) -> tuple[list[tuple[str, str]], str]:
    """The text of a node's data around what differs from node to node: (text before, key) in order, text after."""
    own = {*_OWN_KEYS, *_DEFINITION_KEYS}
    made = ("id", "inputs", "inputAnchors", "inputParams", "outputs", "outputAnchors")
    layout: list[tuple[str, str]] = []
    text = ""
    for number, key in enumerate({**raw, **dict.fromkeys(made)}):
        text += f'{"," if number else ""}"{key}":'
        if key in own:
            layout.append((text, key))
            text = ""
        else:
            text += dump_json(raw[key])
    return layout, text


_BLUEPRINTS: WeakKeyDictionary[NodeSchema, _Blueprint] = WeakKeyDictionary()


def _blueprint(schema: NodeSchema) -> _Blueprint:
    found = _BLUEPRINTS.get(schema)
    if found is None:
        found = _BLUEPRINTS[schema] = _Blueprint(schema)
    return found


def _initial_value(entry: Mapping[str, Any]) -> Any:
    default = entry.get("default")
    return default if js_truthy(default) else ""


def _output_anchors(schema: NodeSchema, node_id: str) -> list[dict[str, Any]]:
    raw = schema.raw
    if raw.get("hideOutput"):
        return []
    if not schema.multi_output:
        classes = schema.base_classes
        return [
            {
                "id": f"{node_id}-output-{schema.name}-{'|'.join(classes)}",
                "name": schema.name,
                "label": raw.get("type"),
                "description": raw.get("description") or "",
                "type": " | ".join(classes),
            }
        ]
    outputs: list[Mapping[str, Any]] = raw["outputs"]
    return [
        {
            "name": "output",
            "label": "Output",
            "type": "options",
            "description": outputs[0].get("description") or "",
            "options": [_output_option(option, node_id) for option in outputs],
            "default": outputs[0]["name"],
        }
    ]


def _output_option(option: Mapping[str, Any], node_id: str) -> dict[str, Any]:
    classes = option.get("baseClasses") or []
    entry = {
        "id": f"{node_id}-output-{option['name']}-{'|'.join(classes)}",
        "name": option["name"],
        "label": option.get("label"),
        "description": option.get("description") or "",
        "type": " | ".join(classes),
    }
    return entry | {key: option[key] for key in ("isAnchor", "hidden") if key in option}
