"""A chatflow's ``flowData`` as a graph that can be read by name and written back without loss."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch.agentflow import (
    AGENTFLOW_CATEGORY,
    AGENTFLOW_TYPES,
    NOTE_NAMES,
    STICKY_NOTE,
    branch_labels,
)
from flowise_dev_agent.patch.findings import Finding, error
from flowise_dev_agent.patch.schema import split_types

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Output(NamedTuple):
    """One thing that a node gives. ``handle`` is the editor's id of it; ``independent`` outputs work side by side.

    What an agentflow node gives has no type: its edges say what runs next.
    """

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
        return self.raw.get("type") == STICKY_NOTE or self.name in NOTE_NAMES

    @property
    def is_agentflow(self) -> bool:
        """A node of an AGENTFLOW (V2), which has one unnamed input and outputs without types."""
        kind = self.raw.get("type")
        return kind in AGENTFLOW_TYPES or (kind is None and self.category == AGENTFLOW_CATEGORY)

    @property
    def parent(self) -> str:
        """Id of the iteration that the node stands in, or ''."""
        return str(self.raw.get("parentNode") or "")

    @property
    def inputs(self) -> dict[str, Any]:
        return _as_dict(self.data.get("inputs"))

    @cached_property
    def anchors(self) -> list[dict[str, Any]]:
        return _as_dicts(self.data.get("inputAnchors"))

    @cached_property
    def params(self) -> list[dict[str, Any]]:
        """Fields without the credential's."""
        return [entry for entry in _as_dicts(self.data.get("inputParams")) if entry.get("type") != "credential"]

    @cached_property
    def params_by_name(self) -> dict[str, list[dict[str, Any]]]:
        """A name may occur more than once, told apart by show and hide."""
        grouped: dict[str, list[dict[str, Any]]] = {}
        for entry in self.params:
            grouped.setdefault(str(entry.get("name")), []).append(entry)
        return grouped

    @cached_property
    def credential_param(self) -> dict[str, Any] | None:
        entries = _as_dicts(self.data.get("inputParams"))
        return next((entry for entry in entries if entry.get("type") == "credential"), None)

    @cached_property
    def connectable(self) -> dict[str, list[dict[str, Any]]]:
        """Inputs that take a connection by name: anchors, and fields that take variables."""
        grouped: dict[str, list[dict[str, Any]]] = {}
        for entry in [*self.anchors, *(entry for entry in self.params if entry.get("acceptVariable"))]:
            grouped.setdefault(str(entry.get("name")), []).append(entry)
        return grouped

    @cached_property
    def input_ranks(self) -> dict[str, int]:
        """Number of each input, top to bottom: connections first, then fields."""
        names = dict.fromkeys(str(entry.get("name")) for entry in self.anchors + self.params)
        return {name: rank for rank, name in enumerate(names)}

    @property
    def credential(self) -> str:
        """The bound credential's id or ''."""
        return str(self.data.get("credential") or "")

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """By the node's own stored anchors, whatever the schema says today."""
        if self.is_agentflow:
            return self._agentflow_outputs()
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

    def _agentflow_outputs(self) -> tuple[Output, ...]:
        """Branches are known by their number; the anchors' own names say the node's name or nothing."""
        anchors = _as_dicts(self.data.get("outputAnchors"))
        handles = [str(anchor.get("id") or "") for anchor in anchors]
        names = [handle.removeprefix(f"{self.id}-output-") for handle in handles]
        labels = branch_labels(self.name, len(anchors))
        return tuple(Output(*parts, types=(), independent=True) for parts in zip(names, labels, handles, strict=True))

    @cached_property
    def multi_output(self) -> bool:
        """The node gives one of several things, chosen by ``data.outputs.output``."""
        return any("options" in anchor for anchor in _as_dicts(self.data.get("outputAnchors")))

    @property
    def names_outputs(self) -> bool:
        """An edge must say which output it leaves from: several to choose from, or several branches."""
        return self.multi_output or len(self.outputs) > 1

    @property
    def selected_output(self) -> str:
        return str(_as_dict(self.data.get("outputs")).get("output") or "")

    @cached_property
    def text(self) -> str:
        """Compact JSON of ``raw``."""
        return dump_json(self.raw)


class FlowEdge:
    """A stored edge. ``raw`` must not be changed."""

    __slots__ = ("raw", "source", "source_handle", "target", "target_handle")

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.source = str(raw.get("source") or "")
        self.target = str(raw.get("target") or "")
        self.source_handle = str(raw.get("sourceHandle") or "")
        self.target_handle = str(raw.get("targetHandle") or "")

    @property
    def ends(self) -> tuple[str, str, str, str]:
        """What tells one edge from another."""
        return self.source, self.source_handle, self.target, self.target_handle

    @property
    def input_name(self) -> str:
        """The target's input by name, read from the handle ``<node>-input-<name>-<type>``; '' in an agentflow."""
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
    def of(cls, document: dict[str, Any], nodes: Sequence[FlowNode], edges: Sequence[FlowEdge]) -> "GraphIR":
        """The same as from ``document`` alone, with what is known about its nodes already."""
        graph = cls.__new__(cls)
        graph.document = document
        graph.nodes = tuple(nodes)
        graph.edges = tuple(edges)
        graph._by_id = {node.id: node for node in graph.nodes}
        return graph

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

    @property
    def kind(self) -> str:
        """AGENTFLOW when any node is one of that kind, else CHATFLOW; the server keeps the type beside the flow."""
        return "AGENTFLOW" if any(node.is_agentflow for node in self.nodes) else "CHATFLOW"

    def to_flow_data(self) -> str:
        """Compact JSON. The same document gives the same text; unknown keys and their order are kept."""
        parts: list[str] = []
        for key, value in self.document.items():
            # Nodes are most of the text, and most of them are as they were.
            text = f"[{','.join([node.text for node in self.nodes])}]" if key == "nodes" else dump_json(value)
            parts.append(f"{dump_json(key)}:{text}")
        return f"{{{','.join(parts)}}}"

    def node(self, node_id: str) -> FlowNode | None:
        return self._by_id.get(node_id)


def dump_json(value: Any) -> str:
    """Compact JSON, non-ASCII kept, encodable as UTF-8 whatever a model wrote."""
    try:
        return to_json(value).decode()
    except ValueError:
        # Half of a surrogate pair, or nesting deeper than the fast encoder goes.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def parse_document(text: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The document, or None and why Flowise would not save or run it at all."""
    try:
        document = _parsed(text)
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


def _parsed(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        # Says better what is wrong, and reads half surrogate pairs and deep nesting.
        return json.loads(text, parse_constant=_no_constant)


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
