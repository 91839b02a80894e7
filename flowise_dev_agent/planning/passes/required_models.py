"""Complete the model of new nodes and steps whose type has no default: the one in use, else a known one."""

from collections.abc import Iterator

from flowise_dev_agent.forms.providers import BY_CHAT
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.model_uses import MODEL_FIELDS
from flowise_dev_agent.patch.validate.params import is_missing
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.schemas.plan import PlannedValue


def required_models(context: PlanContext) -> PlanContext:
    """Add a model wherever a plan chooses a type that has none by default and leaves it out."""
    if not context.is_open:
        return context
    values = list(context.plan.values)
    for node_id, prefix, schema in _chosen(context):
        field = _model_field(schema)
        path = f"{prefix}{field}"
        if field is None or _is_set(values, node_id, path, context):
            continue
        provider = BY_CHAT.get(schema.name)
        if model := _used(context, schema.name, field) or (provider and provider.model):
            values = _with(values, PlannedValue(node_id=node_id, param=path, value=model))
    return context.changed(values=values)


def _chosen(context: PlanContext) -> Iterator[tuple[str, str, NodeSchema]]:
    """Models that the plan chooses: (node id, path in front of their fields, schema)."""
    for node in context.plan.nodes:
        if not node.existing and (schema := context.schemas.get(node.node_name)):
            yield node.node_id, "", schema
    for value in context.plan.values:
        schema = context.schemas.get(value.value) if isinstance(value.value, str) else None
        if schema and value.param.endswith("Model"):
            yield value.node_id, f"{value.param}Config.", schema


def _model_field(schema: NodeSchema) -> str | None:
    """Required field for the model that has neither a value nor a default in a new node."""
    inputs = schema.new_inputs()
    entries = schema.definitions.visible_params(inputs)
    return next((str(one["name"]) for one in entries if one["name"] in MODEL_FIELDS and is_missing(inputs, one)), None)


def _is_set(values: list[PlannedValue], node_id: str, path: str, context: PlanContext) -> bool:
    root, _, field = path.rpartition(".")
    for value in values:
        if value.node_id == node_id and (
            value.param == path or (value.param == root and isinstance(value.value, dict) and value.value.get(field))
        ):
            return True
    node = context.base.node(node_id)
    return bool(node and root and isinstance(node.inputs.get(root), dict) and node.inputs[root].get(field))


def _used(context: PlanContext, type_: str, field: str) -> str | None:
    """Model that the plan or the flow uses for another node of this type."""
    alike = {node.node_id for node in context.plan.nodes if node.node_name == type_}
    planned = [one.value for one in context.plan.values if one.node_id in alike and one.param == field]
    stored = [node.inputs.get(field) for node in context.base.nodes if node.name == type_]
    return next((str(one) for one in (*planned, *stored) if one), None)


def _with(values: list[PlannedValue], new: PlannedValue) -> list[PlannedValue]:
    """Values with one more: inside planned settings if there are any."""
    root, _, field = new.param.rpartition(".")
    for index, value in enumerate(values):
        if root and (value.node_id, value.param) == (new.node_id, root) and isinstance(value.value, dict):
            whole = value.model_copy(update={"value": {**value.value, field: new.value}})
            return [*values[:index], whole, *values[index + 1 :]]
    return [*values, new]
