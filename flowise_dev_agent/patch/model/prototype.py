"""Fresh nodes as Flowise's own editor makes them from a schema (its ``initNode``, 3.1.4), prepared once per type."""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

from flowise_dev_agent.patch.layout.columns import node_height
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES, Definitions, split_types
from flowise_dev_agent.patch.model.json_text import as_dicts, dump_json
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.model.visibility import (
    condition_keys,
    is_conditional,
    is_visible,
    js_truthy,
    with_defaults,
)

#: Stands for the node id in prepared text. Private use area: no catalogue has it, and JSON does not escape it.
MARK = "\ue000"
_DEFINITION_KEYS = ("inputAnchors", "inputParams")
#: What differs from node to node and stands as JSON in the text of its data.
_OWN_KEYS = frozenset({"label", "inputs", "outputs", "credential"})
#: Combinations of shown and hidden inputs that are kept as text per type.
_STATES_KEPT = 64
_ABSENT = object()

#: For each input with conditions whether it is shown.
Shown = tuple[bool, ...]


class Output(NamedTuple):
    """One thing that a node gives. ``handle`` is the editor's id of it; ``independent`` outputs work side by side.

    What an agentflow node gives has no type: its edges say what runs next.
    """

    name: str
    label: str
    handle: str
    types: tuple[str, ...]
    independent: bool


class _Piece(NamedTuple):
    """Text up to a key that each node says for itself, cut where the node id goes, and what a fresh node says there."""

    before: list[str]
    key: str
    fresh: Any
    fresh_text: str


class Prototype:
    """What all fresh nodes of one type share. Nothing of it is changed; nodes copy what is theirs."""

    def __init__(self, raw: Mapping[str, Any], *, agentflow: bool) -> None:
        """``raw`` as `GET /nodes` sends it; ``agentflow`` is the editor's own switch: there outputs are branches."""
        definitions: list[dict[str, Any]] = raw.get("inputs") or []
        credential = raw.get("credential")
        self.raw = raw
        self.name = str(raw["name"])
        self.agentflow = agentflow
        #: The ``type`` of a node on the canvas.
        self.canvas_type = v2.canvas_type(self.name, agentflow=agentflow)
        self.is_step = self.canvas_type in v2.AGENTFLOW_TYPES
        self.is_note = self.canvas_type == v2.STICKY_NOTE
        self.branching = agentflow and self.name in v2.BRANCHES_FROM
        self.inputs: dict[str, Any] = {entry["name"]: _initial_value(entry) for entry in definitions}
        self._nested = any(isinstance(value, (list, dict)) for value in self.inputs.values())
        anchors = [entry for entry in definitions if entry["type"] not in PARAM_TYPES]
        # The editor forgets the credential field of a node that declares no `inputs` at all.
        asked = [credential] if credential and "inputs" in raw else []
        params = [*asked, *(entry for entry in definitions if entry["type"] in PARAM_TYPES)]
        self.definitions = Definitions({"inputAnchors": anchors, "inputParams": params})
        fields = self.definitions.params_by_name
        #: Fields in which a fresh node has a value.
        self.filled = [name for name, value in self.inputs.items() if name in fields and not is_empty(value)]
        self._defaults = [with_defaults(entries, {}) for entries in (anchors, params)]
        #: Inputs with conditions, each with the number of its kind.
        self._conditional = [
            (number, entry)
            for number, entries in enumerate((anchors, params))
            for entry in entries
            if is_conditional(entry)
        ]
        self._conditions_read = {
            key: self.inputs.get(key, _ABSENT) for _, entry in self._conditional for key in condition_keys(entry)
        }
        self.shown: Shown = self._evaluated(self.inputs)
        output_anchors = self.output_anchors(MARK)
        self._outputs = [
            output._replace(handle=output.handle.removeprefix(MARK))
            for output in read_outputs(MARK, self.name, output_anchors, agentflow=self.is_step)
        ]
        self.multi_output = any("options" in anchor for anchor in output_anchors)
        #: ``data`` of a fresh node as far as it has no definitions, in the editor's order.
        self.data: dict[str, Any] = {
            **raw,
            "id": "",
            "inputs": {},
            "inputAnchors": None,
            "inputParams": None,
            "outputs": {anchor["name"]: anchor.get("default") or "" for anchor in output_anchors}
            if "outputs" in raw
            else {},
            "outputAnchors": None,
        }
        if credential:
            self.data["credential"] = ""
        self._output_text = dump_json(output_anchors)
        self._texts: dict[Shown, list[_Piece]] = {}
        self._heights: dict[Shown, int] = {}

    def fresh_inputs(self) -> dict[str, Any]:
        return copy.deepcopy(self.inputs) if self._nested else self.inputs.copy()

    def shown_with(self, inputs: Mapping[str, Any]) -> Shown:
        """Which inputs with conditions the editor shows of a node with these inputs."""
        for key, value in self._conditions_read.items():
            if inputs.get(key, _ABSENT) is not value:
                return self._evaluated(inputs)
        return self.shown

    def shows(self, entry: Mapping[str, Any], shown: Shown) -> bool:
        """Whether a node in this state shows one of its type's inputs."""
        states = zip(self._conditional, shown, strict=True)
        return next((state for (_, conditional), state in states if conditional is entry), True)

    def _evaluated(self, inputs: Mapping[str, Any]) -> Shown:
        if not self._conditional:
            return ()
        read = [{**defaults, **inputs} for defaults in self._defaults]
        return tuple([is_visible(entry, read[number]) for number, entry in self._conditional])

    def outputs(self, node_id: str) -> tuple[Output, ...]:
        return tuple(
            [
                Output(name, label, f"{node_id}{end}", types, independent)
                for name, label, end, types, independent in self._outputs
            ]
        )

    def output_anchors(self, node_id: str) -> list[dict[str, Any]]:
        return v2.output_anchors(self.raw, node_id) if self.agentflow else _output_anchors(self.raw, node_id)

    def stored_definitions(self, node_id: str, shown: Shown) -> dict[str, list[dict[str, Any]]]:
        """``inputAnchors`` and ``inputParams`` of one node."""
        states = iter(shown)
        kinds = zip(_DEFINITION_KEYS, (self.definitions.anchors, self.definitions.with_credential), strict=True)
        return {
            key: [
                {
                    **entry,
                    "id": f"{node_id}{input_suffix(entry)}",
                    "display": next(states) if is_conditional(entry) else True,
                }
                for entry in entries
            ]
            for key, entries in kinds
        }

    def height(self, shown: Shown) -> int:
        """`node_height` of such a node, reckoned once for all that show the same inputs."""
        height = self._heights.get(shown)
        if height is None:
            definitions = self.stored_definitions("", shown)
            height = node_height({**definitions, "outputAnchors": self.output_anchors("")})
            if len(self._heights) < _STATES_KEPT:
                self._heights[shown] = height
        return height

    def text(self, data: Mapping[str, Any], shown: Shown) -> str:
        """JSON of the ``data`` of a node of this type: what the schema says is not encoded again.

        ``data`` needs no definitions, and output anchors only where the type is ``branching``.
        """
        pieces = self._texts.get(shown)
        if pieces is None:
            pieces = self._pieces(shown)
            if len(self._texts) < _STATES_KEPT:
                self._texts[shown] = pieces
        node_id: str = data["id"]
        parts: list[str] = []
        for before, key, fresh, fresh_text in pieces:
            parts.append(node_id.join(before))
            value = data.get(key)
            parts.append(fresh_text if value is fresh else dump_json(value))
        return "".join(parts)

    def _pieces(self, shown: Shown) -> list[_Piece]:
        definitions = self.stored_definitions(MARK, shown)
        pieces: list[_Piece] = []
        text = "{"
        for number, (key, value) in enumerate(self.data.items()):
            text += f'{"," if number else ""}"{key}":'
            if key == "outputAnchors" and self.branching:
                pieces.append(_Piece(text.split(MARK), key, _ABSENT, ""))
                text = ""
            elif key in _OWN_KEYS:
                pieces.append(_Piece(text.split(MARK), key, value, dump_json(value)))
                text = ""
            elif key == "id":
                text += f'"{MARK}"'
            elif key == "outputAnchors":
                text += self._output_text
            else:
                text += dump_json(definitions.get(key, value))
        return [*pieces, _Piece(f"{text}}}".split(MARK), "", None, "")]


def input_suffix(entry: Mapping[str, Any]) -> str:
    """What follows the node id in the handle of an input."""
    return f"-input-{entry['name']}-{entry['type']}"


def read_outputs(
    node_id: str, node_name: str, output_anchors: list[dict[str, Any]], *, agentflow: bool
) -> tuple[Output, ...]:
    """Outputs by stored anchors. Branches are known by their number; their anchors' names say the node's or nothing."""
    if agentflow:
        handles = [str(anchor.get("id") or "") for anchor in output_anchors]
        names = [handle.removeprefix(f"{node_id}-output-") for handle in handles]
        labels = v2.branch_labels(node_name, len(output_anchors))
        return tuple(Output(*parts, types=(), independent=True) for parts in zip(names, labels, handles, strict=True))
    return tuple(
        [
            Output(
                str(entry.get("name") or ""),
                str(entry.get("label") or ""),
                str(entry.get("id") or ""),
                split_types(str(entry.get("type") or "")),
                bool(entry.get("isAnchor")),
            )
            for anchor in output_anchors
            for entry in (as_dicts(anchor.get("options")) if "options" in anchor else (anchor,))
        ]
    )


def _initial_value(entry: Mapping[str, Any]) -> Any:
    default = entry.get("default")
    return default if js_truthy(default) else ""


def _output_anchors(raw: Mapping[str, Any], node_id: str) -> list[dict[str, Any]]:
    """Output anchors of a fresh node of a chatflow, by its schema."""
    if raw.get("hideOutput"):
        return []
    outputs: list[Mapping[str, Any]] = raw.get("outputs") or []
    if not outputs:
        classes = raw.get("baseClasses") or ()
        return [
            {
                "id": f"{node_id}-output-{raw['name']}-{'|'.join(classes)}",
                "name": raw["name"],
                "label": raw.get("type"),
                "description": raw.get("description") or "",
                "type": " | ".join(classes),
            }
        ]
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
