"""What follows from the fields of agentflow nodes: branches from conditions, configs from chosen models and tools."""

from collections.abc import Sequence

from flowise_dev_agent.patch.compile.batch import Batch
from flowise_dev_agent.patch.compile.edges import cut
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.flow_data import InputEntry, Inputs
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.nested import complete_config, nested_components, with_value
from flowise_dev_agent.patch.model.schema import Schemas


def derive_agentflow_fields(batch: Batch) -> None:
    """Run once all plain fields of the batch are set, before anything that needs branches or configs."""
    changed = [node for node_id in batch.changed if (node := batch.nodes.get(node_id)) and node.is_agentflow]
    for node_id in sorted(node.id for node in changed):
        _derive_branches(batch, node_id)
        _derive_configs(batch, node_id)


def derived_inputs(definitions: Sequence[InputEntry], inputs: Inputs, schemas: Schemas) -> Inputs:
    """The inputs with the config of every chosen model and tool complete; the same object when they are."""
    for nested in list(nested_components(definitions, inputs)):
        schema = schemas.get(nested.component)
        if schema is None:
            continue  # the validator says so
        config = complete_config(nested, schema)
        if config != nested.config:
            inputs = with_value(inputs, nested.steps, config)
    return inputs


def _derive_configs(batch: Batch, node_id: str) -> None:
    node = batch.nodes[node_id]
    inputs = derived_inputs(node.params, node.inputs, batch.schemas)
    if inputs is not node.inputs:
        batch.edit(node_id).set_inputs(inputs)


def _derive_branches(batch: Batch, node_id: str) -> None:
    node = batch.nodes[node_id]
    wanted, present = v2.branch_count(node.name, node.inputs), len(node.outputs)
    if wanted is None or wanted == present:
        return
    batch.edit(node_id).set_output_anchors(v2.branch_anchors(node_id, node.name, wanted))
    has_else = node.name == v2.CONDITION
    stay = {f"{node_id}-output-{number}" for number in range(min(wanted, present) - has_else)}
    for edge in batch.edges.out_of(node_id):
        if has_else and edge.source_handle == f"{node_id}-output-{present - 1}":
            batch.edges.replace(edge, _at_branch(batch, edge, f"{node_id}-output-{wanted - 1}"))
        elif edge.source_handle not in stay:
            cut(batch, edge)


def _at_branch(batch: Batch, edge: FlowEdge, handle: str) -> FlowEdge:
    """The same edge, leaving from another branch."""
    source, target = batch.nodes[edge.source], batch.nodes.get(edge.target)
    if target is None:
        return edge
    inside = edge.raw.get("zIndex") == v2.EDGE_INSIDE_ITERATION
    moved = v2.step_edge(source.data, handle, target.data, inside_iteration=inside)
    drawn = v2.edge_data(source.data, handle, target.data)
    return FlowEdge({**edge.raw, **moved, "data": {**edge.raw.get("data", {}), **drawn}})
