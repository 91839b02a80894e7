"""A flow while a batch of ops is being applied to it."""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flowise_dev_agent.patch.layout.columns import Link
from flowise_dev_agent.patch.layout.placement import place_nodes
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding
from flowise_dev_agent.patch.model.graph import FlowEdge, GraphIR
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.nested import Steps
from flowise_dev_agent.patch.model.node import FlowNode, new_node
from flowise_dev_agent.patch.model.ops import AddNode, PatchOp, ReplaceNode, corrected_op, example_op
from flowise_dev_agent.patch.model.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.model.suggest import closest, closest_types, resolve_case


class EdgeList:
    """The edges of a flow under change: in order, and indexed by the nodes at their ends."""

    def __init__(self, base: Sequence[FlowEdge]) -> None:
        #: `kept`: edges of the base; `added`: edges made by ops.
        self.kept = list(base)
        self.added: list[FlowEdge] = []
        self._out_of: defaultdict[str, list[FlowEdge]] = defaultdict(list)
        self._into: defaultdict[str, list[FlowEdge]] = defaultdict(list)
        for edge in base:
            self._out_of[edge.source].append(edge)
            self._into[edge.target].append(edge)

    def __iter__(self) -> Iterator[FlowEdge]:
        return iter([*self.kept, *self.added])

    def out_of(self, node_id: str) -> list[FlowEdge]:
        return list(self._out_of[node_id])

    def into(self, node_id: str) -> list[FlowEdge]:
        return list(self._into[node_id])

    def has(self, ends: tuple[str, str, str, str]) -> bool:
        """True if an edge with exactly these ends exists."""
        return any(edge.ends == ends for edge in self._out_of[ends[0]])

    def add(self, edge: FlowEdge) -> None:
        self.added.append(edge)
        self._out_of[edge.source].append(edge)
        self._into[edge.target].append(edge)

    def remove(self, edge: FlowEdge) -> None:
        self._list_with(edge).remove(edge)
        self._out_of[edge.source].remove(edge)
        self._into[edge.target].remove(edge)

    def replace(self, old: FlowEdge, new: FlowEdge) -> None:
        """Put another edge in the same position."""
        edges = self._list_with(old)
        edges[edges.index(old)] = new
        for by_node, before, after in ((self._out_of, old.source, new.source), (self._into, old.target, new.target)):
            if before == after:
                by_node[after][by_node[after].index(old)] = new
            else:
                by_node[before].remove(old)
                by_node[after].append(new)

    def _list_with(self, edge: FlowEdge) -> list[FlowEdge]:
        return self.kept if edge in self.kept else self.added


@dataclass(frozen=True)
class LostConnection:
    """A connection that a ReplaceNode of the batch could not keep, because the types do not match."""

    index: int
    op: ReplaceNode
    was: str
    edge: FlowEdge
    gives: tuple[str, ...]
    takes: tuple[str, ...]


@dataclass
class Batch:
    """A flow under change. Nodes of the base are copied on their first change."""

    base: GraphIR
    schemas: Schemas
    #: Credential type -> id of the chosen credential.
    credentials: Mapping[str, str] = field(default_factory=dict[str, str])
    nodes: dict[str, FlowNode] = field(init=False)
    edges: EdgeList = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    #: New ids whose AddNode failed: later ops on them are dropped silently, so that the cause is reported once.
    failed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    added: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    #: Ids of the remaining nodes of the base, in stored order.
    order: list[str] = field(init=False)
    #: Nodes with a position from an op, and nodes that moved into or out of an iteration.
    positioned: set[str] = field(default_factory=set)
    reparented: set[str] = field(default_factory=set)
    #: Fields of AddNode inside a model or tool: op index, op, path, value.
    deferred: list[tuple[int, AddNode, str, Any]] = field(default_factory=list)
    #: Credentials bound by ops of the batch: node id, and the path to the model or tool inside the node.
    bound: set[tuple[str, Steps]] = field(default_factory=set[tuple[str, Steps]])
    #: Connections lost by ReplaceNode; each is reported unless a later op replaces it.
    lost: list[LostConnection] = field(default_factory=list[LostConnection])
    index: int = 0
    op: PatchOp | None = None

    def __post_init__(self) -> None:
        self.nodes = {node.id: node for node in self.base.nodes}
        self.edges = EdgeList(self.base.edges)
        self.order = list(self.nodes)

    def fail(
        self, code: str, message: str, *, where: str = "", name: str = "", allowed: Sequence[str] = (), hint: str = ""
    ) -> None:
        """Report an error of the current op; a hint without an op is followed by a corrected example."""
        if self.op and '"op_type"' not in hint:
            if allowed:
                hint = f"{hint} For example {corrected_op(self.op, name, allowed[0])}".strip()
            elif not hint:
                hint = f"For example {example_op(self.op.op_type)}"
        self.findings.append(
            Finding(
                code=code,
                severity="error",
                detail=message,
                where=where or (f"op {self.index}" if self.op else ""),
                field=name,
                allowed=tuple(allowed),
                hint=hint,
                op_index=self.index if self.op else None,
                op_type=self.op.op_type if self.op else "",
            )
        )

    def node(self, node_id: str, name: str) -> FlowNode | None:
        """The node with this id; reports UNKNOWN_NODE if there is none."""
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
                hint=f"Add it with AddNode or use an existing id{suggestion(near)}.",
            )
        return None

    def schema(self, name: str, where: str) -> NodeSchema | None:
        """The node type with this name, ignoring case; reports UNKNOWN_NODE_NAME if there is none."""
        if schema := self.schemas.get(name):
            return schema
        if right := resolve_case(name, self.schemas):
            return self.schemas[right]
        near = closest_types(name, self.schemas)
        self.fail(
            "UNKNOWN_NODE_NAME",
            f"There is no node type {name!r}.",
            where=where,
            name="node_name",
            allowed=near,
            hint=f"Use a type of the catalogue{suggestion(near)}.",
        )
        return None

    def make_node(self, schema: NodeSchema, node_id: str) -> FlowNode:
        """Add a new node to the flow, without a position."""
        node = self.nodes[node_id] = new_node(schema, node_id)
        self.changed.add(node_id)
        return node

    def edit(self, node_id: str) -> FlowNode:
        """The node, copied on first use so that it can be changed in place."""
        node = self.nodes[node_id]
        if node_id not in self.changed:
            node = self.nodes[node_id] = node.copy()
            self.changed.add(node_id)
        return node

    def set_input(self, node_id: str, name: str, value: Any) -> None:
        self.edit(node_id).inputs[name] = value

    def finish(self) -> GraphIR:
        """Place and sort new nodes (sources first) and new edges (by target and input): the result is deterministic."""
        for node_id in self.changed & self.nodes.keys():
            self.nodes[node_id] = self.nodes[node_id].finished()
        self._layer_edges()
        unplaced = self.added | self.reparented
        near = [edge for edge in self.edges if edge.source in unplaced or edge.target in unplaced] if unplaced else []
        ranks = {edge: self.input_rank(edge) for edge in near}
        links = [Link(edge.source, edge.target, rank) for edge, rank in ranks.items()]
        nodes = place_nodes(self.nodes, self.order, links, unplaced - self.positioned, self.positioned)
        return self.base.with_parts(nodes, self._ordered_edges(nodes, ranks))

    def _layer_edges(self) -> None:
        """Set the z-index of edges whose nodes moved into or out of an iteration."""
        for node_id in self.reparented & self.nodes.keys():
            for edge in [*self.edges.into(node_id), *self.edges.out_of(node_id)]:
                parents = {self.nodes[end].parent for end in (edge.source, edge.target) if end in self.nodes}
                raw = edge.raw.copy()
                raw.pop("zIndex", None)
                if len(parents) == 1 and parents != {""}:
                    raw["zIndex"] = v2.EDGE_INSIDE_ITERATION
                if raw != edge.raw:
                    self.edges.replace(edge, FlowEdge(raw))

    def _ordered_edges(self, nodes: Sequence[FlowNode], ranks: Mapping[FlowEdge, tuple[int, int]]) -> list[FlowEdge]:
        added = self.edges.added
        if len(added) > 1:
            place = {node.id: index for index, node in enumerate(nodes)}
            keys = {
                edge: (place[edge.target], ranks.get(edge) or self.input_rank(edge), place[edge.source])
                for edge in added
            }
            asked = [edge for edge in added if (node := self.nodes.get(edge.source)) and node.is_agentflow]
            added.sort(key=lambda edge: (*keys[edge], edge.source_handle))
            # The steps behind one step run in the order of its edges: it stays as it was asked for.
            for source in {edge.source for edge in asked}:
                in_order = iter([edge for edge in asked if edge.source == source])
                added[:] = [next(in_order) if edge.source == source else edge for edge in added]
        return [*self.edges.kept, *added]

    def input_rank(self, edge: FlowEdge) -> tuple[int, int]:
        """Sort key of an edge at its target: number of the input, then position in a list anchor."""
        node = self.nodes.get(edge.target)
        if node is None or node.is_agentflow:
            return 0, 0
        name = edge.input_name
        value = node.inputs.get(name)
        place = 0
        if isinstance(value, list):
            reference = f"{{{{{edge.source}.data.instance}}}}"
            place = value.index(reference) if reference in value else len(value)
        ranks = node.definitions.ranks
        return ranks.get(name, len(ranks)), place


def suggestion(names: Sequence[str]) -> str:
    return f", such as {', '.join(names)}" if names else ""


def connect_example(source_id: str, target_id: str, anchor: str) -> str:
    return dump_json(
        {"op_type": "Connect", "source_node_id": source_id, "target_node_id": target_id, "target_anchor": anchor}
    )


def next_id(node_id: str, taken: Container[str]) -> str:
    """A free id with the same stem: ``chatOpenAI_1`` when ``chatOpenAI_0`` is taken."""
    stem = node_id.rstrip("0123456789").rstrip("_") or node_id
    number = 0
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"
