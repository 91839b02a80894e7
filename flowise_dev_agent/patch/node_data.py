"""A fresh node as Flowise's own editor would make it from a schema (its ``initNode``, 3.1.4)."""

import copy
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from flowise_dev_agent.patch import agentflow as v2
from flowise_dev_agent.patch.graph import dump_json
from flowise_dev_agent.patch.schema import PARAM_TYPES, NodeSchema
from flowise_dev_agent.patch.visibility import is_conditional, is_visible, js_truthy, with_defaults

#: Stands for the node id in prepared text. Private use area: no catalogue has it, and JSON does not escape it.
_MARK = "\ue000"
_OWN_KEYS = frozenset({"id", "label", "inputs", "outputs", "outputAnchors", "credential"})
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
    data: Mapping[str, Any] = raw["data"]
    parts: list[str] = []
    for key, value in data.items():
        if key in shared.pieces:
            pieces = shared.pieces[key]
            joined = ",".join(
                [piece.shown if entry["display"] else piece.hidden for piece, entry in zip(pieces, value, strict=True)]
            )
            text = f"[{joined.replace(_MARK, raw['id'])}]"
        elif key in _OWN_KEYS:
            text = dump_json(value)
        else:
            text = shared.texts[key]
        parts.append(f'"{key}":{text}')
    keys = list(raw)
    border = keys.index("data")
    before = dump_json({key: raw[key] for key in keys[:border]})[1:-1]
    after = dump_json({key: raw[key] for key in keys[border + 1 :]})[1:-1]
    pieces_of_node = [before, f'"data":{{{",".join(parts)}}}', after]
    return f"{{{','.join([piece for piece in pieces_of_node if piece])}}}"


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

    __slots__ = ("_display", "_entry", "_suffix", "hidden", "shown")

    def __init__(self, entry: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
        self._entry = entry
        self._suffix = f"-input-{entry['name']}-{entry['type']}"
        self._display = is_visible(entry, inputs)
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
        self.texts = {key: dump_json(value) for key, value in raw.items()}


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
