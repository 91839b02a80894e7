"""A chatflow's ``flowData`` as a graph that can be read by name and written back without loss."""

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Final, Literal

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch.model.findings import Finding
from flowise_dev_agent.patch.model.flow_data import FlowData, StoredEdge
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.schema import KIND_OF_CATEGORY
from flowise_dev_agent.patch.model.shape import parse_document
from flowise_dev_agent.texts import text as said

#: A step reads the same flow a few times, and sessions take turns. Larger flows are rare and take much memory.
_KEPT_FLOWS: Final = 32
_KEPT_CHARS: Final = 100_000


class FlowEdge:
    """A stored edge. ``raw`` must not be changed."""

    def __init__(self, raw: StoredEdge) -> None:
        self.raw = raw
        self.source = str(raw.get("source") or "")
        self.target = str(raw.get("target") or "")
        self.source_handle = str(raw.get("sourceHandle") or "")
        self.target_handle = str(raw.get("targetHandle") or "")

    @property
    def ends(self) -> tuple[str, str, str, str]:
        """The identity of the edge: source, source handle, target, target handle."""
        return self.source, self.source_handle, self.target, self.target_handle

    @cached_property
    def input_name(self) -> str:
        """The target's input by name, read from the handle ``<node>-input-<name>-<type>``; '' in an agentflow."""
        return _between(self.target_handle, f"{self.target}-input-")

    @cached_property
    def output_name(self) -> str:
        """The source's output by name, read from the handle ``<node>-output-<name>-<classes>``."""
        return _between(self.source_handle, f"{self.source}-output-")


class GraphIR:
    """A whole flow. Immutable by convention: every change makes another graph.

    >>> text = '{"nodes":[{"id":"a","data":{"name":"calculator","label":"Sums"},"own":1}],"edges":[]}'
    >>> graph = GraphIR.from_flow_data(text)
    >>> graph.node("a").label
    'Sums'
    >>> graph.to_flow_data() == text
    True
    """

    def __init__(self, document: FlowData) -> None:
        """Take a document of the right shape; use `from_flow_data` for text from outside."""
        self.document = document
        self.nodes: tuple[FlowNode, ...] = tuple(map(FlowNode, document["nodes"]))
        self.edges: tuple[FlowEdge, ...] = tuple(map(FlowEdge, document["edges"]))
        self._by_id = {node.id: node for node in self.nodes}

    @classmethod
    def empty(cls) -> "GraphIR":
        """A flow without nodes."""
        return cls({"nodes": [], "edges": [], "viewport": {"x": 0, "y": 0, "zoom": 1}})

    @classmethod
    def from_flow_data(cls, text: str) -> "GraphIR":
        """Parse ``flowData``.

        Raises PatchError with the SHAPE findings in ``details["findings"]`` if it is not a flow.
        """
        graph, findings = read_flow(text)
        if graph is None:
            first = findings[0]
            where = f"node {first.where}: " if first.where else ""
            raise PatchError(
                said("error.not_shown_by_flowise", problem=f"{where}{first.message}"),
                hint=first.hint or None,
                details={"findings": [finding.model_dump(mode="json") for finding in findings]},
            )
        return graph

    def with_parts(self, nodes: Iterable[FlowNode], edges: Iterable[FlowEdge]) -> "GraphIR":
        """A flow with other nodes and edges in the same document."""
        return GraphIR({**self.document, "nodes": [node.raw for node in nodes], "edges": [edge.raw for edge in edges]})

    @property
    def kind(self) -> Literal["CHATFLOW", "AGENTFLOW", "MULTIAGENT"]:
        """The type by the nodes, the first that belongs to one; the server stores the type beside the flow."""
        kinds = {"AGENTFLOW" if node.is_agentflow else KIND_OF_CATEGORY.get(node.category) for node in self.nodes}
        if "AGENTFLOW" in kinds:
            return "AGENTFLOW"
        return "MULTIAGENT" if "MULTIAGENT" in kinds else "CHATFLOW"

    def to_flow_data(self) -> str:
        """Compact JSON. The same flow gives the same text; unknown keys and their order are kept."""
        return dump_json(self.document)

    def node(self, node_id: str) -> FlowNode | None:
        return self._by_id.get(node_id)


def read_flow(text: str) -> tuple[GraphIR | None, list[Finding]]:
    """The flow, or None and the reasons why it is none; see `parse_document`. A text that was just read is known."""
    graph, findings = _kept(text) if len(text) <= _KEPT_CHARS else _read(text)
    return graph, list(findings)


def _read(text: str) -> tuple[GraphIR | None, Sequence[Finding]]:
    document, findings = parse_document(text)
    return (None if document is None else GraphIR(document)), findings


_kept = lru_cache(maxsize=_KEPT_FLOWS)(_read)


def _between(handle: str, prefix: str) -> str:
    if not handle.startswith(prefix):
        return ""
    return handle[len(prefix) :].partition("-")[0]
