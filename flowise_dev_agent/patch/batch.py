"""A flow while a batch of ops is being applied to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flowise_dev_agent.patch import agentflow as v2
from flowise_dev_agent.patch.arrange import arrange
from flowise_dev_agent.patch.diff import DiffSummary
from flowise_dev_agent.patch.findings import Finding
from flowise_dev_agent.patch.graph import FlowEdge, FlowNode, GraphIR, dump_json
from flowise_dev_agent.patch.layout import Link
from flowise_dev_agent.patch.node_data import (
    fresh_height,
    fresh_text,
    init_node_data,
    refresh_visibility,
    settle_visibility,
)
from flowise_dev_agent.patch.ops import AddNode, PatchOp, corrected_op, example_op
from flowise_dev_agent.patch.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.suggest import closest, resolve_case


@dataclass
class Batch:
    """The flow while it is being changed. Nodes of the base are copied at the first change."""

    base: GraphIR
    schemas: Schemas
    nodes: dict[str, FlowNode] = field(init=False)
    edges: "EdgeSet" = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    summary: DiffSummary = field(default_factory=DiffSummary)
    #: New ids whose AddNode failed: further ops on them are silently dropped, the cause is reported once.
    failed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    #: Nodes made from a schema in this batch: new ones, and those that took the place of another.
    made_from: dict[str, NodeSchema] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    #: Ids of the nodes that stand, in their stored order.
    standing: list[str] = field(init=False)
    #: Nodes that an op has put somewhere, and nodes that moved into or out of an iteration.
    positioned: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    #: Fields of AddNode inside a model or tool: op index, op, path, value.
    later: list[tuple[int, AddNode, str, Any]] = field(default_factory=list)
    index: int = 0
    op: PatchOp | None = None

    def __post_init__(self) -> None:
        self.nodes = {node.id: node for node in self.base.nodes}
        self.edges = EdgeSet(self.base.edges)
        self.standing = list(self.nodes)

    def fail(
        self, code: str, message: str, *, where: str = "", name: str = "", allowed: Sequence[str] = (), hint: str = ""
    ) -> None:
        """Report what is wrong with the op at hand; where a hint shows no op, the corrected one follows it."""
        if self.op and '"op_type"' not in hint:
            if allowed:
                hint = f"{hint} For example {corrected_op(self.op, name, allowed[0])}".strip()
            elif not hint:
                hint = f"For example {example_op(self.op.op_type)}"
        self.findings.append(
            Finding(
                code=code,
                severity="error",
                message=message,
                where=where or (f"op {self.index}" if self.op else ""),
                field=name,
                allowed=tuple(allowed),
                hint=hint,
                op_index=self.index if self.op else None,
                op_type=self.op.op_type if self.op else "",
            )
        )

    def node(self, node_id: str, name: str) -> FlowNode | None:
        """The node that an op speaks of; reports when there is none."""
        if node := self.nodes.get(node_id):
            return node
        if node_id not in self.failed:
            near = closest(node_id, self.nodes)
            self.fail(
                "UNKNOWN_NODE",
                f"There is no node {node_id!r} in the flow.",
                where=node_id,
                name=name,
                allowed=near,
                hint=f"Add it with AddNode or use an existing id{such_as(near)}.",
            )
        return None

    def schema(self, name: str, where: str) -> NodeSchema | None:
        """The node type that an op names, case not minding; reports when there is none."""
        if schema := self.schemas.get(name):
            return schema
        if right := resolve_case(name, self.schemas):
            return self.schemas[right]
        near = closest(name, self.schemas)
        self.fail(
            "UNKNOWN_NODE_NAME",
            f"There is no node type {name!r}.",
            where=where,
            name="node_name",
            allowed=near,
            hint=f"Use a type of the catalogue{such_as(near)}.",
        )
        return None

    def make(self, schema: NodeSchema, node_id: str) -> FlowNode:
        """A fresh node in the flow, without a place yet."""
        data = init_node_data(schema, node_id, agentflow=schema.is_agentflow)
        if schema.is_agentflow:
            kind = v2.canvas_type(schema.name)
        else:
            kind = v2.STICKY_NOTE if schema.name in v2.NOTE_NAMES else "customNode"
        node = FlowNode({"id": node_id, "type": kind, "data": data})
        self.nodes[node_id] = node
        self.changed.add(node_id)
        self.made_from[node_id] = schema
        return node

    def edit(self, node_id: str) -> FlowNode:
        """The node in a form whose ``raw``, ``data`` and ``inputs`` may be changed in place."""
        node = self.nodes[node_id]
        if node_id not in self.changed:
            data = {**node.data, "inputs": dict(node.inputs)}
            node = self.nodes[node_id] = FlowNode({**node.raw, "data": data})
            self.changed.add(node_id)
        return node

    def set_input(self, node_id: str, name: str, value: Any) -> None:
        self.edit(node_id).data["inputs"][name] = value

    def set_anchors(self, node_id: str, anchors: list[dict[str, Any]]) -> None:
        """Other outputs: the node is read anew."""
        node = self.edit(node_id)
        node.data["outputAnchors"] = anchors
        self.nodes[node_id] = FlowNode(node.raw)

    def finish(self) -> GraphIR:
        """New nodes placed and stored sources first, new edges by target and input: order carries no chance."""
        for node_id in self.changed & self.nodes.keys():
            node, schema = self.nodes[node_id], self.made_from.get(node_id)
            if schema is not None:
                settle_visibility(schema, node.data)
            elif not node.is_note:
                node.data.update(refresh_visibility(node.data))
            if schema and node.raw["type"] == "customNode" and node_id in self.added:
                node.raw["height"] = fresh_height(schema, node.data)
        self._layer_edges()
        ranks = {edge: self.input_rank(edge) for edge in self.edges}
        links = [Link(edge.source, edge.target, rank) for edge, rank in ranks.items()]
        raws = arrange(self.nodes, self.standing, links, (self.added | self.moved) - self.positioned, self.positioned)
        nodes: list[FlowNode] = []
        for raw in raws:
            node = self.nodes[raw["id"]]
            if schema := self.made_from.get(node.id):
                node = FlowNode(raw)
                # The text is known without encoding the whole schema once more.
                node.__dict__["text"] = fresh_text(schema, raw)
            elif node.raw is not raw or node.id in self.changed:
                node = FlowNode(raw)  # nothing read before the last change is kept
            nodes.append(node)
        edges = self._ordered_edges([node.id for node in nodes], ranks)
        document = {
            **self.base.document,
            "nodes": [node.raw for node in nodes],
            "edges": [edge.raw for edge in edges],
        }
        return GraphIR.of(document, nodes, edges)

    def _layer_edges(self) -> None:
        """Edges of nodes that moved into or out of an iteration lie above or below it."""
        for node_id in self.moved & self.nodes.keys():
            for edge in [*self.edges.into(node_id), *self.edges.out_of(node_id)]:
                parents = {self.nodes[end].parent for end in (edge.source, edge.target) if end in self.nodes}
                raw = {key: value for key, value in edge.raw.items() if key != "zIndex"}
                if len(parents) == 1 and parents != {""}:
                    raw["zIndex"] = v2.EDGE_INSIDE_ITERATION
                if raw != edge.raw:
                    self.edges.replace(edge, FlowEdge(raw))

    def _ordered_edges(self, node_ids: Sequence[str], ranks: Mapping[FlowEdge, tuple[int, int]]) -> list[FlowEdge]:
        rank = {node_id: index for index, node_id in enumerate(node_ids)}
        kept, added = self.edges.kept_and_added()
        added.sort(key=lambda edge: (rank[edge.target], ranks[edge], rank[edge.source], edge.source_handle))
        return kept + added

    def input_rank(self, edge: FlowEdge) -> tuple[int, int]:
        """Where an edge arrives: number of the input on its node, then place in a list anchor."""
        node = self.nodes.get(edge.target)
        if node is None or node.is_agentflow:
            return 0, 0
        name = edge.input_name
        value = node.inputs.get(name)
        place = 0
        if isinstance(value, list):
            reference = f"{{{{{edge.source}.data.instance}}}}"
            place = value.index(reference) if reference in value else len(value)
        return node.input_ranks.get(name, len(node.input_ranks)), place


class EdgeSet:
    """The edges of a batch in order, found by their ends."""

    def __init__(self, edges: Sequence[FlowEdge]) -> None:
        self._base = edges
        self._edges: dict[int, FlowEdge] = dict(enumerate(edges))
        self._next = len(edges)
        self._ends = {edge.ends for edge in edges}
        self._by_source: dict[str, list[int]] = {}
        self._by_target: dict[str, list[int]] = {}
        for key, edge in self._edges.items():
            self._by_source.setdefault(edge.source, []).append(key)
            self._by_target.setdefault(edge.target, []).append(key)

    def __iter__(self) -> Iterator[FlowEdge]:
        return iter(list(self._edges.values()))

    def has(self, ends: tuple[str, str, str, str]) -> bool:
        return ends in self._ends

    def out_of(self, node_id: str) -> list[FlowEdge]:
        found = [self._edges[key] for key in self._by_source.get(node_id, ()) if key in self._edges]
        return [edge for edge in found if edge.source == node_id]

    def into(self, node_id: str) -> list[FlowEdge]:
        found = [self._edges[key] for key in self._by_target.get(node_id, ()) if key in self._edges]
        return [edge for edge in found if edge.target == node_id]

    def add(self, edge: FlowEdge) -> None:
        key = self._next
        self._next += 1
        self._edges[key] = edge
        self._ends.add(edge.ends)
        self._by_source.setdefault(edge.source, []).append(key)
        self._by_target.setdefault(edge.target, []).append(key)

    def remove(self, edge: FlowEdge) -> None:
        for key in self._by_source.get(edge.source, ()):
            if self._edges.get(key) is edge:
                del self._edges[key]
        self._ends.discard(edge.ends)

    def replace(self, old: FlowEdge, new: FlowEdge) -> None:
        """Put another edge in the same place."""
        key = next(key for key in self._by_source[old.source] if self._edges.get(key) is old)
        self._edges[key] = new
        self._ends.discard(old.ends)
        self._ends.add(new.ends)
        if old.source != new.source:
            self._by_source.setdefault(new.source, []).append(key)
        if old.target != new.target:
            self._by_target.setdefault(new.target, []).append(key)

    def kept_and_added(self) -> tuple[list[FlowEdge], list[FlowEdge]]:
        """Edges in the places of the base, then those that came."""
        border = len(self._base)
        kept = [edge for key, edge in self._edges.items() if key < border]
        return kept, [edge for key, edge in self._edges.items() if key >= border]


def such_as(names: Sequence[str]) -> str:
    return f", such as {', '.join(names)}" if names else ""


def connect_example(source_id: str, target_id: str, anchor: str) -> str:
    return dump_json(
        {"op_type": "Connect", "source_node_id": source_id, "target_node_id": target_id, "target_anchor": anchor}
    )


def next_id(node_id: str, taken: Mapping[str, Any]) -> str:
    """A free id of the same stem: ``chatOpenAI_1`` when ``chatOpenAI_0`` is taken."""
    stem = node_id.rstrip("0123456789").rstrip("_") or node_id
    number = 0
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"
