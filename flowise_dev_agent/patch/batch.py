"""A flow while a batch of ops is being applied to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flowise_dev_agent.patch.diff import DiffSummary
from flowise_dev_agent.patch.findings import Finding
from flowise_dev_agent.patch.graph import FlowEdge, FlowNode, GraphIR, dump_json
from flowise_dev_agent.patch.layout import WIDTH, Box, Link, node_height, place
from flowise_dev_agent.patch.node_data import refresh_visibility
from flowise_dev_agent.patch.ops import PatchOp
from flowise_dev_agent.patch.references import referenced
from flowise_dev_agent.patch.schema import Schemas
from flowise_dev_agent.patch.suggest import closest


@dataclass
class Batch:
    """The flow while it is being changed. Nodes of the base are copied at the first change."""

    base: GraphIR
    schemas: Schemas
    nodes: dict[str, FlowNode] = field(init=False)
    edges: list[FlowEdge] = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    summary: DiffSummary = field(default_factory=DiffSummary)
    #: New ids whose AddNode failed: further ops on them are silently dropped, the cause is reported once.
    failed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    index: int = 0
    op: PatchOp | None = None

    def __post_init__(self) -> None:
        self.nodes = {node.id: node for node in self.base.nodes}
        self.edges = list(self.base.edges)

    def fail(
        self, code: str, message: str, *, where: str = "", name: str = "", allowed: Sequence[str] = (), hint: str = ""
    ) -> None:
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

    def change(self, node: FlowNode, **data: Any) -> FlowNode:
        """The node with some keys of its ``data`` replaced."""
        changed = FlowNode({**node.raw, "data": {**node.data, **data}})
        self.nodes[node.id] = changed
        self.changed.add(node.id)
        return changed

    def finish(self) -> GraphIR:
        """New nodes placed and stored sources first, new edges by target and input: order carries no chance."""
        for node_id in sorted(self.changed):
            node = self.nodes[node_id]
            if not node.is_note:
                self.change(node, **refresh_visibility(node.data))
        known = {node.id for node in self.base.nodes}
        fresh = {node_id: node for node_id, node in self.nodes.items() if node_id not in known}
        boxes = place(
            {node_id: node_height(node.data) for node_id, node in fresh.items()},
            [self._link(edge) for edge in self.edges],
            {node.id: _standing_box(node) for node in self.base.nodes},
        )
        nodes = [self.nodes[node.id].raw for node in self.base.nodes]
        nodes += [_placed(fresh[node_id], box) for node_id, box in boxes.items()]
        rank = {node["id"]: index for index, node in enumerate(nodes)}
        edges = self.edges[: len(self.base.edges)]
        added = self.edges[len(self.base.edges) :]
        added.sort(key=lambda edge: (rank[edge.target], self._link(edge).order, rank[edge.source]))
        return GraphIR({**self.base.document, "nodes": nodes, "edges": [edge.raw for edge in edges + added]})

    def _link(self, edge: FlowEdge) -> Link:
        node = self.nodes.get(edge.target)
        if node is None:
            return Link(edge.source, edge.target, (0, 0))
        names = [entry["name"] for entry in node.anchors + node.params]
        name = edge.input_name
        ids = referenced(node.inputs.get(name))
        return Link(
            edge.source,
            edge.target,
            (
                names.index(name) if name in names else len(names),
                ids.index(edge.source) if edge.source in ids else len(ids),
            ),
        )


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


def _standing_box(node: FlowNode) -> Box:
    position: Mapping[str, Any] = node.raw.get("position") or {}
    return Box(
        float(position.get("x") or 0),
        float(position.get("y") or 0),
        float(node.raw.get("width") or WIDTH),
        float(node.raw.get("height") or node_height(node.data)),
    )


def _placed(node: FlowNode, box: Box) -> dict[str, Any]:
    position = {"x": box.x, "y": box.y}
    return {
        "id": node.id,
        "position": position,
        "type": node.raw["type"],
        "data": node.data,
        "width": box.width,
        "height": box.height,
        "selected": False,
        "positionAbsolute": dict(position),
        "dragging": False,
    }
