"""Decompile a flow to the ops that build it, without handles and references."""

from collections.abc import Iterator, Mapping, Set
from typing import Any

from flowise_dev_agent.patch.compile.agentflow import derived_inputs
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES, type_set
from flowise_dev_agent.patch.model.flow_data import Inputs
from flowise_dev_agent.patch.model.graph import FlowEdge, GraphIR
from flowise_dev_agent.patch.model.json_text import is_uuid
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY, Nested, nested_components, without_value
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import (
    MAX_DESCRIPTION,
    AddNode,
    BindCredential,
    Connect,
    PatchOp,
    SetOutput,
    SetParent,
    SetPosition,
    UnsetParam,
)
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.patch.model.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.model.suggest import resolve_case
from flowise_dev_agent.patch.model.values import is_empty


def decompile(flow: GraphIR | str, schemas: Schemas) -> list[PatchOp]:
    """Ops that build the flow from nothing, in stored order: nodes, then what belongs to them, then connections.

    Compiled with the same schemas they give the same nodes, fields and connections by name, in today's version of each
    node. What a schema no longer has (a field, an output) is left out or gets another name, and an edge that the
    server does not see is left out; a type that no schema has is still an AddNode, which the compiler refuses by name.
    Text that is not a flow raises PatchError.

    >>> from flowise_dev_agent.knowledge.nodes import NodeStore
    >>> from flowise_dev_agent.patch import compile_ops
    >>> schemas = NodeStore.from_snapshot().schemas
    >>> ops = [AddNode(node_name="calculator", node_id="calculator_0")]
    >>> flow = compile_ops(GraphIR.empty(), ops, schemas).graph
    >>> [op.op_type for op in decompile(flow, schemas)]
    ['AddNode', 'SetPosition']
    >>> decompile(flow, schemas)[0] == ops[0]
    True
    """
    graph = GraphIR.from_flow_data(flow) if isinstance(flow, str) else flow
    adds: list[PatchOp] = []
    rest: list[PatchOp] = []
    used = {(edge.source, edge.source_handle) for edge in graph.edges}
    for node in graph.nodes:
        schema = _schema(node, schemas)
        inside = _nested(node)
        adds.append(_add(node, schema, inside))
        rest.extend(_settings(node, schema, schemas, inside, used))
    edges = (_connect(graph, edge, schemas) for edge in graph.edges)
    return adds + rest + [op for op in edges if op is not None]


def _schema(node: FlowNode, schemas: Schemas) -> NodeSchema | None:
    if node.name in schemas:
        return schemas[node.name]
    # A plain note of the canvas has no type name.
    return schemas.get("stickyNote") if node.is_note and not node.name else None


def _add(node: FlowNode, schema: NodeSchema | None, inside: list[Nested]) -> AddNode:
    if schema is None:
        anchors = node.definitions.anchor_names
        params = {name: value for name, value in node.inputs.items() if not is_empty(value) and name not in anchors}
        return AddNode(node_name=node.name or "unknown", node_id=node.id, label=node.label or None, params=params)
    fresh = schema.defaults
    inputs = _without_credentials(node, inside)
    definitions = schema.definitions
    fields = definitions.params_by_name
    # In the order of the schema: the order of clicks in the editor means nothing.
    names = [*(name for name in fresh if name in inputs), *(name for name in inputs if name not in fresh)]
    params = {
        name: value
        for name in names
        if (value := inputs[name]) is not None
        and not _same(value, fresh.get(name, ""))
        and (name in fields or name in definitions.undeclared(node.id))
    }
    label = node.label if node.label and node.label != schema.label else None
    description = _own_description(node, schema)
    return AddNode(node_name=schema.name, node_id=node.id, label=label, description=description, params=params)


def _own_description(node: FlowNode, schema: NodeSchema) -> str | None:
    """The description of an agentflow step, unless it is the text of its type."""
    stored = node.data.get("description")
    if not schema.is_agentflow or not isinstance(stored, str) or schema.description in ("", stored):
        return None
    return stored[:MAX_DESCRIPTION] or None


def _same(value: Any, default: Any) -> bool:
    """Compare as JSON: true is not 1."""
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _nested(node: FlowNode) -> list[Nested]:
    return list(nested_components(node.params, node.inputs))


def _without_credentials(node: FlowNode, inside: list[Nested]) -> Inputs:
    """Inputs without ids of credentials, which have ops of their own."""
    inputs = node.inputs
    for nested in inside:
        if isinstance(nested.config, Mapping) and CREDENTIAL_KEY in nested.config:
            inputs = without_value(inputs, (*nested.steps, CREDENTIAL_KEY))
    return inputs


def _settings(
    node: FlowNode, schema: NodeSchema | None, schemas: Schemas, inside: list[Nested], used: Set[tuple[str, str]]
) -> Iterator[PatchOp]:
    if schema is not None:
        yield from _unset(node, schema, schemas)
    if node.credential:
        yield BindCredential(node_id=node.id, credential_id=node.credential)
    for nested in inside:
        bound = nested.config.get(CREDENTIAL_KEY) if isinstance(nested.config, Mapping) else None
        if isinstance(bound, str) and is_uuid(bound):
            yield BindCredential(node_id=node.id, credential_id=bound, path=nested.path)
    if schema is not None and (output := _chosen_output(node, schema, used)):
        yield SetOutput(node_id=node.id, output=output)
    if node.parent:
        yield SetParent(node_id=node.id, parent_id=node.parent)
    position = node.raw.get("position")
    if isinstance(position, dict) and all(isinstance(position.get(axis), (int, float)) for axis in "xy"):
        yield SetPosition(node_id=node.id, x=position["x"], y=position["y"])


def _unset(node: FlowNode, schema: NodeSchema, schemas: Schemas) -> Iterator[UnsetParam]:
    """UnsetParam ops for current defaults that the node lacks, in its fields and inside its models and tools."""
    inputs, fields = node.inputs, schema.definitions.params_by_name
    for name, value in schema.defaults.items():
        if name in fields and not is_empty(value) and inputs.get(name) is None:
            yield UnsetParam(node_id=node.id, param_name=name)
    if not schema.is_agentflow:
        return
    definitions = schema.definitions.params
    stored = {name: value for name, value in inputs.items() if value is not None}
    settled = derived_inputs(definitions, {**schema.defaults, **stored}, schemas)
    given = {nested.path: nested for nested in nested_components(definitions, stored)}
    for nested in nested_components(definitions, settled):
        before = given[nested.path].config if nested.path in given else None
        had = before if isinstance(before, Mapping) else {}
        for name, value in nested.config.items() if isinstance(nested.config, Mapping) else ():
            if name not in had and name != nested.param and not is_empty(value):
                yield UnsetParam(node_id=node.id, param_name=f"{nested.path}.{name}")


def _chosen_output(node: FlowNode, schema: NodeSchema, used: Set[tuple[str, str]]) -> str:
    """Output for a SetOutput op: selected, not the default, and not implied by a connection.

    ``used`` holds (node id, handle) of every edge's source.
    """
    selected = node.selected_output if schema.multi_output else ""
    if not selected or selected == schema.outputs[0].name:
        return ""
    if selected not in {output.name for output in schema.outputs}:
        return ""
    handles = [output.handle for output in node.outputs if output.name == selected]
    return "" if any((node.id, handle) in used for handle in handles) else selected


def _connect(graph: GraphIR, edge: FlowEdge, schemas: Schemas) -> Connect | None:
    source, target = graph.node(edge.source), graph.node(edge.target)
    if source is None or target is None:
        return None
    entry = target.input_at(edge.target_handle)
    if entry and entry.get("type") in PARAM_TYPES and source.id not in referenced(target.inputs.get(entry["name"])):
        return None  # drawn, but the server goes by the text
    name = _output_name(source, target, edge, schemas)
    if target.is_agentflow:
        return Connect(source_node_id=source.id, source_anchor=name, target_node_id=target.id)
    return Connect(
        source_node_id=source.id,
        source_anchor=name,
        target_node_id=target.id,
        target_anchor=_input_name(target, edge, schemas),
    )


def _output_name(source: FlowNode, target: FlowNode, edge: FlowEdge, schemas: Schemas) -> str | None:
    """Name of the edge's output if there is a choice.

    A name unknown to the current schema is replaced by one of a matching type.
    """
    if source.is_agentflow:
        output = source.output_at(edge.source_handle)
        return (output.name if output else edge.output_name) if len(source.outputs) > 1 else None
    output = source.output_at(edge.source_handle)
    stored = output.name if output else edge.output_name
    schema = schemas.get(source.name)
    if schema is None:
        return stored if len(source.outputs) > 1 else None
    if output and output.independent:
        return stored  # a branch, which a person has named
    if len(schema.outputs) < 2 or stored in {output.name for output in schema.outputs}:
        return stored if len(schema.outputs) > 1 else None
    wanted = type_set(str((target.input_at(edge.target_handle) or {}).get("type") or ""))
    return next((output.name for output in schema.outputs if wanted & set(output.base_classes)), None)


def _input_name(target: FlowNode, edge: FlowEdge, schemas: Schemas) -> str:
    entry = target.input_at(edge.target_handle)
    stored = str(entry["name"]) if entry else edge.input_name
    schema = schemas.get(target.name)
    names = schema.defaults if schema else {}
    return stored if stored in names else resolve_case(stored, names) or stored
