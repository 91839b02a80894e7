"""A chatflow's ``flowData`` as a graph that can be read by name and written back without loss."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch.findings import Finding, error
from flowise_dev_agent.patch.node_data import STICKY_NOTE
from flowise_dev_agent.patch.schema import split_types

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Output:
    """One thing that a node gives. ``handle`` is the editor's id of it; ``independent`` outputs work side by side."""

    name: str
    label: str
    handle: str
    types: tuple[str, ...]
    independent: bool


@dataclass(frozen=True)
class FlowNode:
    """A stored node, read tolerantly: what is absent reads as empty. ``raw`` must not be changed."""

    raw: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.raw["id"])

    @property
    def data(self) -> dict[str, Any]:
        return self.raw["data"]

    @property
    def name(self) -> str:
        """The node type, for example ``chatOpenAI``."""
        return str(self.data.get("name") or "")

    @property
    def label(self) -> str:
        return str(self.data.get("label") or self.name)

    @property
    def category(self) -> str:
        return str(self.data.get("category") or "")

    @property
    def is_note(self) -> bool:
        """Sticky notes take no part in the flow."""
        return self.raw.get("type") == STICKY_NOTE or self.name == STICKY_NOTE

    @property
    def inputs(self) -> dict[str, Any]:
        return _as_dict(self.data.get("inputs"))

    @property
    def anchors(self) -> list[dict[str, Any]]:
        return _as_dicts(self.data.get("inputAnchors"))

    @property
    def params(self) -> list[dict[str, Any]]:
        """Fields without the credential's."""
        return [entry for entry in _as_dicts(self.data.get("inputParams")) if entry.get("type") != "credential"]

    @property
    def credential_param(self) -> dict[str, Any] | None:
        entries = _as_dicts(self.data.get("inputParams"))
        return next((entry for entry in entries if entry.get("type") == "credential"), None)

    @property
    def credential(self) -> str:
        """The bound credential's id or ''."""
        return str(self.data.get("credential") or "")

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """By the node's own stored anchors, whatever the schema says today."""
        found: list[Output] = []
        for anchor in _as_dicts(self.data.get("outputAnchors")):
            entries = _as_dicts(anchor.get("options")) if "options" in anchor else [anchor]
            found.extend(
                Output(
                    name=str(entry.get("name") or ""),
                    label=str(entry.get("label") or ""),
                    handle=str(entry.get("id") or ""),
                    types=split_types(str(entry.get("type") or "")),
                    independent=bool(entry.get("isAnchor")),
                )
                for entry in entries
            )
        return tuple(found)

    @property
    def multi_output(self) -> bool:
        """The node gives one of several things, chosen by ``data.outputs.output``."""
        return any("options" in anchor for anchor in _as_dicts(self.data.get("outputAnchors")))

    @property
    def selected_output(self) -> str:
        return str(_as_dict(self.data.get("outputs")).get("output") or "")


@dataclass(frozen=True)
class FlowEdge:
    """A stored edge. ``raw`` must not be changed."""

    raw: dict[str, Any]

    @property
    def source(self) -> str:
        return str(self.raw.get("source") or "")

    @property
    def target(self) -> str:
        return str(self.raw.get("target") or "")

    @property
    def source_handle(self) -> str:
        return str(self.raw.get("sourceHandle") or "")

    @property
    def target_handle(self) -> str:
        return str(self.raw.get("targetHandle") or "")

    @property
    def input_name(self) -> str:
        """The target's input by name, read from the handle ``<node>-input-<name>-<type>``."""
        return _between(self.target_handle, f"{self.target}-input-")

    @property
    def output_name(self) -> str:
        """The source's output by name, read from the handle ``<node>-output-<name>-<classes>``."""
        return _between(self.source_handle, f"{self.source}-output-")


class GraphIR:
    """A whole flow. Immutable by agreement: who wants another flow builds another document."""

    __slots__ = ("_by_id", "document", "edges", "nodes")

    def __init__(self, document: dict[str, Any]) -> None:
        """Takes a document of the right shape; use `from_flow_data` for text from outside."""
        self.document = document
        self.nodes: tuple[FlowNode, ...] = tuple(FlowNode(raw) for raw in document["nodes"])
        self.edges: tuple[FlowEdge, ...] = tuple(FlowEdge(raw) for raw in document["edges"])
        self._by_id = {node.id: node for node in self.nodes}

    @classmethod
    def empty(cls) -> "GraphIR":
        return cls({"nodes": [], "edges": [], "viewport": {"x": 0, "y": 0, "zoom": 1}})

    @classmethod
    def from_flow_data(cls, text: str) -> "GraphIR":
        """Raises PatchError with the SHAPE findings in ``details["findings"]`` when the text is no flow."""
        document, findings = parse_document(text)
        if document is None:
            raise PatchError(
                f"This is not a Flowise flow: {findings[0].message}",
                details={"findings": [finding.model_dump() for finding in findings]},
            )
        return cls(document)

    def to_flow_data(self) -> str:
        """Compact JSON. The same document gives the same text; unknown keys and their order are kept."""
        return dump_json(self.document)

    def node(self, node_id: str) -> FlowNode | None:
        return self._by_id.get(node_id)


def dump_json(value: Any) -> str:
    """Compact JSON, non-ASCII kept, encodable as UTF-8 whatever a model wrote."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text if text.isascii() else _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def parse_document(text: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The document, or None and why Flowise would not save or run it at all."""
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        return None, [error("SHAPE", f"flowData is not valid JSON ({exc}).")]
    if not isinstance(document, dict):
        return None, [error("SHAPE", "flowData must be a JSON object with `nodes` and `edges`.")]
    findings = [
        error("SHAPE", f"`{key}` must be an array.", field=key, hint="Flowise refuses to save such a flow.")
        for key in ("nodes", "edges")
        if not isinstance(document.get(key), list)
    ]
    if findings:
        return None, findings
    for index, node in enumerate(document["nodes"]):
        if not isinstance(node, dict) or not isinstance(node.get("id"), str) or not node["id"]:
            findings.append(error("SHAPE", f"Node {index} is no object with a text `id`.", field="nodes"))
        elif not isinstance(node.get("data"), dict):
            findings.append(error("SHAPE", "The node has no `data` object.", where=node["id"], field="data"))
    findings.extend(
        error("SHAPE", f"Edge {index} is no object.", field="edges")
        for index, edge in enumerate(document["edges"])
        if not isinstance(edge, dict)
    )
    return (None, findings) if findings else (document, [])


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _between(handle: str, prefix: str) -> str:
    if not handle.startswith(prefix):
        return ""
    return handle[len(prefix) :].partition("-")[0]


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
