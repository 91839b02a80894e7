"""Outputs of a node: its output anchors as the editor stores them, and by name."""

from collections.abc import Sequence
from typing import NamedTuple

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.definitions import split_types
from flowise_dev_agent.patch.model.flow_data import NodeType, OutputEntry
from flowise_dev_agent.patch.model.json_text import as_dict, as_dicts


class Output(NamedTuple):
    """One output of a node. ``handle`` is the editor's id; ``independent`` outputs can be used side by side.

    Outputs of an agentflow node have no types: their edges define the next step.
    """

    name: str
    label: str
    handle: str
    types: tuple[str, ...]
    independent: bool


def read_outputs(
    node_id: str, node_name: str, output_anchors: Sequence[OutputEntry], *, agentflow: bool
) -> tuple[Output, ...]:
    """Outputs from stored anchors. Branches are identified by number: their anchors carry the node's name or none."""
    if agentflow:
        handles = [str(anchor.get("id") or "") for anchor in output_anchors]
        names = [handle.removeprefix(f"{node_id}-output-") for handle in handles]
        labels = v2.branch_labels(node_name, len(output_anchors))
        return tuple(Output(*parts, types=(), independent=True) for parts in zip(names, labels, handles, strict=True))
    entries = [
        entry
        for anchor in output_anchors
        for entry in (as_dicts(anchor["options"]) if "options" in anchor else (as_dict(anchor),))
    ]
    return tuple(
        Output(
            name=str(entry.get("name") or ""),
            label=str(entry.get("label") or ""),
            handle=str(entry.get("id") or ""),
            types=split_types(str(entry.get("type") or "")),
            independent=bool(entry.get("isAnchor")),
        )
        for entry in entries
    )


def output_anchors(node_type: NodeType, node_id: str) -> list[OutputEntry]:
    """Output anchors of a new chatflow node."""
    if node_type.get("hideOutput"):
        return []
    outputs = node_type.get("outputs") or []
    if not outputs:
        return [
            _anchor(
                {
                    "name": node_type["name"],
                    "label": node_type.get("type"),
                    "description": node_type.get("description") or "",
                    "baseClasses": node_type.get("baseClasses") or (),
                },
                node_id,
            )
        ]
    return [
        {
            "name": "output",
            "label": "Output",
            "type": "options",
            "description": outputs[0].get("description") or "",
            "options": [_option(output, node_id) for output in outputs],
            "default": outputs[0]["name"],
        }
    ]


def _option(output: OutputEntry, node_id: str) -> OutputEntry:
    option = _anchor(output, node_id)
    if "isAnchor" in output:
        option["isAnchor"] = output["isAnchor"]
    if "hidden" in output:
        option["hidden"] = output["hidden"]
    return option


def _anchor(output: OutputEntry, node_id: str) -> OutputEntry:
    classes = output.get("baseClasses") or ()
    return {
        "id": f"{node_id}-output-{output['name']}-{'|'.join(classes)}",
        "name": output["name"],
        "label": output.get("label"),
        "description": output.get("description") or "",
        "type": " | ".join(classes),
    }
