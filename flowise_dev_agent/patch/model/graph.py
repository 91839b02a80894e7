"""A chatflow's ``flowData`` as a graph that can be read by name and written back without loss."""

from collections.abc import Iterable, Mapping
from typing import Any

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.lazy import lazy
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.shape import parse_document


class FlowEdge:
    """A stored edge. ``raw`` must not be changed."""

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

    @lazy
    def input_name(self) -> str:
        """The target's input by name, read from the handle ``<node>-input-<name>-<type>``; '' in an agentflow."""
        return _between(self.target_handle, f"{self.target}-input-")

    @lazy
    def output_name(self) -> str:
        """The source's output by name, read from the handle ``<node>-output-<name>-<classes>``."""
        return _between(self.source_handle, f"{self.source}-output-")


class GraphIR:
    """A whole flow. Immutable by agreement: who wants another flow builds another one."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Takes a document of the right shape; use `from_flow_data` for text from outside."""
        self.document = document
        self._read(document, map(FlowNode, document["nodes"]), map(FlowEdge, document["edges"]))

    def _read(self, document: Mapping[str, Any], nodes: Iterable[FlowNode], edges: Iterable[FlowEdge]) -> None:
        #: What else the document holds, and the order of all of it.
        self._frame = document
        self.nodes: tuple[FlowNode, ...] = tuple(nodes)
        self.edges: tuple[FlowEdge, ...] = tuple(edges)
        self.by_id: Mapping[str, FlowNode] = {node.id: node for node in self.nodes}

    def with_parts(self, nodes: Iterable[FlowNode], edges: Iterable[FlowEdge]) -> "GraphIR":
        """Another flow in the same document."""
        graph = GraphIR.__new__(GraphIR)
        graph._read(self._frame, nodes, edges)
        return graph

    @lazy
    def document(self) -> dict[str, Any]:
        nodes, edges = [node.raw for node in self.nodes], [edge.raw for edge in self.edges]
        return {**self._frame, "nodes": nodes, "edges": edges}

    @classmethod
    def empty(cls) -> "GraphIR":
        return cls({"nodes": [], "edges": [], "viewport": {"x": 0, "y": 0, "zoom": 1}})

    @classmethod
    def from_flow_data(cls, text: str) -> "GraphIR":
        """Raises PatchError with the SHAPE findings in ``details["findings"]`` when the text is no flow."""
        document, findings = parse_document(text)
        if document is None:
            first = findings[0]
            where = f"node {first.where}: " if first.where else ""
            raise PatchError(
                f"This is not a flow that Flowise can show: {where}{first.message}",
                hint=first.hint or None,
                details={"findings": [finding.model_dump() for finding in findings]},
            )
        return cls(document)

    @property
    def kind(self) -> str:
        """AGENTFLOW when any node is one of that kind, else CHATFLOW; the server keeps the type beside the flow."""
        return "AGENTFLOW" if any(node.is_agentflow for node in self.nodes) else "CHATFLOW"

    def to_flow_data(self) -> str:
        """Compact JSON. The same flow gives the same text; unknown keys and their order are kept."""
        parts: list[str] = []
        for key, value in self._frame.items():
            if key == "nodes":
                # Most of the text, and most of them are as they were or made from prepared text.
                text = f"[{','.join([node.text for node in self.nodes])}]"
            else:
                text = dump_json([edge.raw for edge in self.edges] if key == "edges" else value)
            parts.append(f"{dump_json(key)}:{text}")
        return f"{{{','.join(parts)}}}"

    def node(self, node_id: str) -> FlowNode | None:
        return self.by_id.get(node_id)


def _between(handle: str, prefix: str) -> str:
    if not handle.startswith(prefix):
        return ""
    return handle[len(prefix) :].partition("-")[0]
