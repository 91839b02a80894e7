"""A fresh node as Flowise's own editor would make it from a schema (its ``initNode``, 3.1.4)."""

import copy
from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.patch.schema import PARAM_TYPES, NodeSchema
from flowise_dev_agent.patch.visibility import is_visible, js_truthy, with_defaults

STICKY_NOTE = "stickyNote"


def init_node_data(schema: NodeSchema, node_id: str) -> dict[str, Any]:
    """``data`` of a new node: the whole schema with inputs, anchors, params and outputs put in the editor's form.

    Nested values are shared with the schema except for ``inputs``; callers change only what they own.
    """
    raw = schema.raw
    definitions = schema.input_definitions
    inputs: dict[str, Any] = {entry["name"]: _initial_value(entry) for entry in definitions}
    anchors: list[dict[str, Any]] = []
    params: list[dict[str, Any]] = []
    credential = raw.get("credential")
    # The editor forgets the credential field of a node that declares no `inputs` at all.
    if credential and "inputs" in raw:
        params.append(_definition(credential, node_id, inputs))
    for entry in definitions:
        target = params if entry["type"] in PARAM_TYPES else anchors
        target.append(_definition(entry, node_id, inputs))
    output_anchors = _output_anchors(schema, node_id)
    data: dict[str, Any] = {
        **raw,
        "id": node_id,
        "inputs": inputs,
        "inputAnchors": anchors,
        "inputParams": params,
        "outputs": {anchor["name"]: anchor.get("default") or "" for anchor in output_anchors}
        if "outputs" in raw
        else {},
        "outputAnchors": output_anchors,
    }
    if credential:
        data["credential"] = ""
    return data


def refresh_visibility(data: Mapping[str, Any]) -> dict[str, Any]:
    """``inputAnchors`` and ``inputParams`` with ``display`` recomputed from the node's present inputs."""
    refreshed: dict[str, Any] = {}
    for key in ("inputAnchors", "inputParams"):
        definitions: list[dict[str, Any]] = data.get(key) or []
        inputs = with_defaults(definitions, data.get("inputs") or {})
        refreshed[key] = [{**entry, "display": is_visible(entry, inputs)} for entry in definitions]
    return refreshed


def _initial_value(entry: Mapping[str, Any]) -> Any:
    default = entry.get("default")
    if not js_truthy(default):
        return ""
    return copy.deepcopy(default) if isinstance(default, (list, dict)) else default


def _definition(entry: Mapping[str, Any], node_id: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **entry,
        "id": f"{node_id}-input-{entry['name']}-{entry['type']}",
        "display": is_visible(entry, inputs),
    }


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
