"""Shared basis of the rules: the flow with its edges resolved to inputs and outputs, and the registry of rules.

A rule is a generator over the flow; the decorator lists the codes that it can raise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model import sequential
from flowise_dev_agent.patch.model.definitions import Definitions
from flowise_dev_agent.patch.model.findings import Finding
from flowise_dev_agent.patch.model.flow_data import InputEntry, Values
from flowise_dev_agent.patch.model.graph import FlowEdge, GraphIR
from flowise_dev_agent.patch.model.model_uses import ModelEnd, ModelEnds
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY, Nested, nested_components
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.outputs import Output
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.patch.model.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.model.ways import reached_from

#: Kind (``document store``, ``flow``, ``custom tool``, ``assistant``, ``variable``) -> id -> name.
ServerThings = Mapping[str, Mapping[str, str]]


@dataclass(slots=True)
class Connection:
    """An edge between two existing nodes.

    ``input`` and ``output`` are None if the handle matches none of the node's.
    """

    edge: FlowEdge
    source: FlowNode
    target: FlowNode
    output: Output | None
    input: InputEntry | None
    input_name: str


@dataclass(frozen=True, slots=True)
class Component:
    """A node, or a model or tool inside one, with the fields that count in its current state.

    ``path`` leads from the node's inputs to its fields: ``agentModelConfig.``, '' for the node itself.
    """

    node: FlowNode
    path: str
    name: str
    inputs: Values
    credential: Any


@dataclass(frozen=True, eq=False)
class FlowContext:
    """A flow under check. ``known_names`` are node types that the flow had before the update.

    ``credentials`` maps ids to types; None means unknown. ``server`` are other things that the server has, by kind and
    id; a kind that is left out is unknown. ``model_ends`` are the models that have ended or end soon.
    """

    graph: GraphIR
    schemas: Schemas
    credentials: Mapping[str, str] | None
    known_names: frozenset[str] = frozenset()
    kind: str = "CHATFLOW"
    server: ServerThings = field(default_factory=dict[str, Mapping[str, str]])
    model_ends: ModelEnds = field(default_factory=dict[tuple[str, str], ModelEnd])

    @cached_property
    def nodes(self) -> list[FlowNode]:
        """All nodes except sticky notes."""
        return [node for node in self.graph.nodes if not node.is_note]

    def schema(self, node: FlowNode) -> NodeSchema | None:
        return self.schemas.get(node.name)

    @cached_property
    def connections(self) -> list[Connection]:
        """Edges whose ends exist, in stored order."""
        found: list[Connection] = []
        for edge in self.graph.edges:
            source, target = self.graph.node(edge.source), self.graph.node(edge.target)
            if source is None or target is None:
                continue
            output = source.output_at(edge.source_handle)
            entry = _input_with(target.anchors, edge.target_handle) or _input_with(target.params, edge.target_handle)
            name = str(entry["name"]) if entry is not None else edge.input_name
            found.append(Connection(edge, source, target, output, entry, name))
        return found

    @cached_property
    def connections_into(self) -> dict[str, list[Connection]]:
        grouped: dict[str, list[Connection]] = {}
        for connection in self.connections:
            grouped.setdefault(connection.target.id, []).append(connection)
        return grouped

    @cached_property
    def connections_out_of(self) -> dict[str, list[Connection]]:
        grouped: dict[str, list[Connection]] = {}
        for connection in self.connections:
            grouped.setdefault(connection.source.id, []).append(connection)
        return grouped

    @cached_property
    def connections_by_input(self) -> dict[str, dict[str, list[Connection]]]:
        """Node id -> incoming connections by the name of the input."""
        grouped: dict[str, dict[str, list[Connection]]] = {}
        for connection in self.connections:
            grouped.setdefault(connection.target.id, {}).setdefault(connection.input_name, []).append(connection)
        return grouped

    @cached_property
    def successors(self) -> dict[str, list[str]]:
        """Node id -> ids of the nodes that it feeds, without duplicates."""
        grouped: dict[str, dict[str, None]] = {node.id: {} for node in self.nodes}
        for connection in self.connections:
            grouped.setdefault(connection.source.id, {})[connection.target.id] = None
        return {node_id: list(targets) for node_id, targets in grouped.items()}

    @cached_property
    def cycles(self) -> list[list[str]]:
        """Groups of nodes that feed each other or themselves, each in stored order."""
        position = {node.id: index for index, node in enumerate(self.graph.nodes)}
        return [sorted(group, key=lambda node_id: position.get(node_id, 0)) for group in _cycles(self.successors)]

    @cached_property
    def reached(self) -> frozenset[str]:
        """Ids of the nodes that a question to a chatflow runs, or an upsert if it only fills vector stores.

        The server runs what leads to an answering node, and what follows of it once all its sources have run; of a
        sequential flow what leads to its steps. In an agentflow, and where no node answers, all nodes count.
        """
        if self.kind not in ANCHORED:
            return frozenset(self.successors)
        ends = [node for node in self.ends if node.answers] or [node for node in self.ends if node.category == STORES]
        if self.kind == MULTIAGENT:
            ends = [node for node in self.nodes if node.category in sequential.CATEGORIES]
        found, queue = {node.id for node in ends}, [node.id for node in ends]
        while queue:
            for one in self.connections_into.get(queue.pop(), ()):
                if one.source.id not in found:
                    found.add(one.source.id)
                    queue.append(one.source.id)
        queue = [*found]
        while queue:
            for target in self.successors.get(queue.pop(), ()):
                sources = {one.source.id for one in self.connections_into[target]}
                if target not in found and sources <= found:
                    found.add(target)
                    queue.append(target)
        return frozenset(found or self.successors)

    @cached_property
    def certain(self) -> frozenset[str]:
        """Ids of the nodes that each question runs: in an agentflow those before its first branches, else all."""
        if self.kind != AGENTFLOW:
            return frozenset(self.successors)
        forks = {node.id for node in self.nodes if node.name in v2.BRANCHING}
        after = {id_: [] if id_ in forks else targets for id_, targets in self.successors.items()}
        starts = [node.id for node in self.nodes if node.name == v2.START]
        return reached_from(starts, after)

    @cached_property
    def skipped(self) -> frozenset[str]:
        """Ids of the document loaders that a question skips: they feed a vector store that lasts."""
        if self.kind != CHATFLOW or self.only_indexes:
            return frozenset()
        return frozenset(
            one.source.id
            for one in self.connections
            if one.source.category == LOADERS and one.target.category == STORES and one.target.name not in IN_MEMORY
        )

    @property
    def only_indexes(self) -> bool:
        """True for a chatflow that answers no question and fills vector stores from its documents."""
        return bool(self.ends) and all(
            node.category == STORES
            and any(one.input and one.input["type"] == "Document" for one in self.connections_into.get(node.id, ()))
            for node in self.ends
        )

    @cached_property
    def ends(self) -> list[FlowNode]:
        """Nodes that end a chatflow, by the server's test: nothing follows, and something leads there."""
        if len(self.graph.nodes) == 1:
            return self.nodes
        return [node for node in self.nodes if not self.successors[node.id] and self.connections_into.get(node.id)]

    def definitions(self, node: FlowNode) -> Definitions:
        """Inputs of the current schema, or the stored ones if the type has no schema."""
        schema = self.schema(node)
        if schema is not None:
            return schema.definitions
        return node.definitions

    def visible_anchors(self, node: FlowNode) -> list[InputEntry]:
        return self._visible[node][0]

    def visible_params(self, node: FlowNode) -> list[InputEntry]:
        """Fields that the editor shows in the current state, on the node or behind its button."""
        return self._visible[node][1]

    @cached_property
    def _visible(self) -> dict[FlowNode, tuple[list[InputEntry], list[InputEntry]]]:
        found: dict[FlowNode, tuple[list[InputEntry], list[InputEntry]]] = {}
        for node in self.nodes:
            definitions = self.definitions(node)
            found[node] = definitions.visible_anchors(node.inputs), definitions.visible_params(node.inputs)
        return found

    @cached_property
    def components(self) -> list[Component]:
        """All nodes, each followed by the models and tools inside it."""
        found: list[Component] = []
        for node in self.nodes:
            shown = {entry["name"] for entry in self.visible_params(node)}
            inputs = {name: value for name, value in node.inputs.items() if name in shown}
            found.append(Component(node, "", node.name, inputs, node.credential))
            for one in self.nested(node):
                if isinstance(one.config, dict):
                    bound = one.config.get(CREDENTIAL_KEY)
                    found.append(Component(node, f"{one.path}.", one.component, one.config, bound))
        return found

    def nested(self, node: FlowNode) -> list[Nested]:
        """Models and tools inside an agentflow node that run in its current state."""
        return self._nested.get(node.id, [])

    @cached_property
    def _nested(self) -> dict[str, list[Nested]]:
        return {
            node.id: list(nested_components(self.visible_params(node), node.inputs))
            for node in self.nodes
            if node.is_agentflow
        }

    def is_connected(self, node: FlowNode, name: str) -> bool:
        """True if there is an edge or a reference. If one of them is missing, another rule reports it."""
        return name in self.connections_by_input.get(node.id, ()) or bool(referenced(node.inputs.get(name)))

    def version_drifted(self, node: FlowNode) -> bool:
        """True if the node was stored under an older version of its type than the instance has."""
        schema = self.schema(node)
        if schema is None:
            return False
        return not isinstance(node.version, (int, float)) or float(node.version) < schema.version


def _input_with(entries: list[InputEntry], handle: str) -> InputEntry | None:
    for entry in entries:
        if entry.get("id") == handle:
            return entry
    return None


def known_names(graph: GraphIR) -> frozenset[str]:
    """Node types of a flow, including models and tools inside its nodes."""
    inner = (nested.component for node in graph.nodes for nested in nested_components(node.params, node.inputs))
    return frozenset([*(node.name for node in graph.nodes), *inner])


def _cycles(successors: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Strongly connected groups of several nodes, and nodes that feed themselves (Tarjan, without recursion)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    groups: list[list[str]] = []
    for root in successors:
        if root in order:
            continue
        work = [(root, iter(successors[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node_id, targets = work[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(successors.get(target, ()))))
                    break
                if target in on_stack:
                    low[node_id] = min(low[node_id], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node_id])
                if low[node_id] == order[node_id]:
                    cut = stack.index(node_id)
                    group, stack[cut:] = stack[cut:], []
                    on_stack.difference_update(group)
                    if len(group) > 1 or node_id in successors.get(node_id, ()):
                        groups.append(group)
    return groups


Check = Callable[[FlowContext], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One check and the codes of its findings."""

    codes: tuple[str, ...]
    check: "Check"
    kinds: tuple[str, ...]


RULES: list[Rule] = []


CHATFLOW = "CHATFLOW"
AGENTFLOW = "AGENTFLOW"
MULTIAGENT = "MULTIAGENT"
ASSISTANT = "ASSISTANT"
ALL_KINDS = (CHATFLOW, AGENTFLOW, MULTIAGENT)
#: Types of flow whose nodes are joined by named and typed inputs.
ANCHORED = (CHATFLOW, MULTIAGENT)
STORES = "Vector Stores"
LOADERS = "Document Loaders"
#: Vector stores that hold only what the question itself put into them. Others may have been filled by an upsert.
IN_MEMORY = frozenset({"memoryVectorStore"})


def rule(*codes: str, kinds: tuple[str, ...] = ALL_KINDS) -> Callable[[Check], Check]:
    """Register a check with the codes that it raises and the types of flow to which it applies."""

    def register(check: Check) -> Check:
        RULES.append(Rule(codes, check, kinds))
        return check

    return register
