"""What rules look at: the flow by name, with edges resolved to inputs and outputs once for all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flowise_dev_agent.patch.definitions import PARAM_TYPES
from flowise_dev_agent.patch.graph import FlowEdge, GraphIR
from flowise_dev_agent.patch.nested import Nested, nested_components
from flowise_dev_agent.patch.node import FlowNode
from flowise_dev_agent.patch.prototype import Output
from flowise_dev_agent.patch.references import referenced
from flowise_dev_agent.patch.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.visibility import is_visible, with_defaults


@dataclass(frozen=True)
class Wire:
    """An edge between two nodes that exist. ``input`` and ``output`` are None when the handle names none of theirs."""

    edge: FlowEdge
    source: FlowNode
    target: FlowNode
    output: Output | None
    input: Mapping[str, Any] | None

    @property
    def input_name(self) -> str:
        return str(self.input["name"]) if self.input is not None else self.edge.input_name


@dataclass(frozen=True)
class FlowContext:
    """One flow under check. ``known_names`` are node types that the flow had before the update.

    ``credentials`` maps ids to types, ``tools`` ids to names; None for what is not known.
    """

    graph: GraphIR
    schemas: Schemas
    credentials: Mapping[str, str] | None
    known_names: frozenset[str] = frozenset()
    kind: str = "CHATFLOW"
    tools: Mapping[str, str] | None = None

    @cached_property
    def nodes(self) -> list[FlowNode]:
        """Without sticky notes."""
        return [node for node in self.graph.nodes if not node.is_note]

    def schema(self, node: FlowNode) -> NodeSchema | None:
        return self.schemas.get(node.name)

    @cached_property
    def wires(self) -> list[Wire]:
        """Edges whose ends exist, in stored order."""
        found: list[Wire] = []
        for edge in self.graph.edges:
            source, target = self.graph.node(edge.source), self.graph.node(edge.target)
            if source is None or target is None:
                continue
            output = next((one for one in source.outputs if one.handle == edge.source_handle), None)
            entries = (entry for entry in [*target.anchors, *target.params] if entry.get("id") == edge.target_handle)
            found.append(Wire(edge, source, target, output, next(entries, None)))
        return found

    @cached_property
    def wires_into(self) -> dict[str, list[Wire]]:
        grouped: dict[str, list[Wire]] = {}
        for wire in self.wires:
            grouped.setdefault(wire.target.id, []).append(wire)
        return grouped

    @cached_property
    def successors(self) -> dict[str, list[str]]:
        """Node id to the ids that it feeds, duplicates removed."""
        grouped: dict[str, dict[str, None]] = {node.id: {} for node in self.nodes}
        for wire in self.wires:
            grouped.setdefault(wire.source.id, {})[wire.target.id] = None
        return {node_id: list(targets) for node_id, targets in grouped.items()}

    def definitions(self, node: FlowNode) -> list[Mapping[str, Any]]:
        """Input definitions by today's schema, or the stored ones of a type that no schema knows."""
        schema = self.schema(node)
        return list(schema.input_definitions) if schema else [*node.anchors, *node.params]

    def visible_anchors(self, node: FlowNode) -> list[Mapping[str, Any]]:
        anchors = [entry for entry in self.definitions(node) if entry["type"] not in PARAM_TYPES]
        inputs = with_defaults(anchors, node.inputs)
        return [entry for entry in anchors if is_visible(entry, inputs)]

    def visible_params(self, node: FlowNode) -> list[Mapping[str, Any]]:
        """Fields that the editor shows now, on the node or behind its button."""
        params = [entry for entry in self.definitions(node) if entry["type"] in PARAM_TYPES]
        inputs = with_defaults(params, node.inputs)
        return [entry for entry in params if not entry.get("hidden") and is_visible(entry, inputs)]

    def nested(self, node: FlowNode) -> list[Nested]:
        """Models and tools inside an agentflow node that run in its present state."""
        return self._nested.get(node.id, [])

    @cached_property
    def _nested(self) -> dict[str, list[Nested]]:
        return {
            node.id: list(nested_components(self.visible_params(node), node.inputs))
            for node in self.nodes
            if node.is_agentflow
        }

    def is_connected(self, node: FlowNode, name: str) -> bool:
        """An edge or a reference: when only one of them is there, another rule says so."""
        return bool(referenced(node.inputs.get(name))) or any(
            wire.input_name == name for wire in self.wires_into.get(node.id, [])
        )

    def version_drifted(self, node: FlowNode) -> bool:
        """The node was stored under an older version of its schema than the instance has."""
        schema = self.schema(node)
        if schema is None:
            return False
        version = node.data.get("version")
        return not isinstance(version, (int, float)) or float(version) < schema.version


def known_names(graph: GraphIR) -> frozenset[str]:
    """Node types of a flow, those of models and tools inside its nodes included."""
    inner = (nested.component for node in graph.nodes for nested in nested_components(node.params, node.inputs))
    return frozenset([*(node.name for node in graph.nodes), *inner])
