"""Planned values as the flow holds them, checked: invalid options, addresses, texts that nobody asked to replace."""

from typing import Final

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.item_fields import FIELD, as_item_fields
from flowise_dev_agent.patch.model.values import normalize
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.plan_findings import (
    lost_texts,
    texts_lost_with_nodes,
    unclear_addresses,
    unknown_options,
)
from flowise_dev_agent.schemas.plan import PlannedValue

#: Fields whose values have names that are read in any case, or by their label.
_NAMED: Final = frozenset({"options", "boolean"})


def planned_values(context: PlanContext) -> PlanContext:
    """Say values as Flowise stores them, so that plan and flow compare; find values that are no option of their field,
    and unrequested changes of the flow's texts.
    """
    request = context.request
    types = {**request.flow.existing, **{node.node_id: node.node_name for node in context.plan.nodes}}
    values = [_as_stored(one, context.schemas.get(types.get(one.node_id, ""))) for one in context.plan.values]
    context = context.changed(values=values)
    plan = context.plan
    lost = [*lost_texts(plan.values, request), *texts_lost_with_nodes(plan, request)]
    return context.found([*unknown_options(plan, request), *lost])


def _as_stored(value: PlannedValue, schema: NodeSchema | None) -> PlannedValue:
    if value.param.rpartition(".")[2] == FIELD:
        return value.model_copy(update={"value": as_item_fields(value.value)})
    for entry in schema.input_definitions if schema else ():
        if entry["name"] == value.param and entry["type"] in _NAMED:
            stored, problem = normalize(entry, value.value)
            if problem is None:
                return value.model_copy(update={"value": stored})
    return value


def form_addresses(context: PlanContext) -> PlanContext:
    """Find addresses of a form that readers take for different ones. A model's plan with one is not taken."""
    types = {node.node_id: node.node_name for node in context.plan.nodes}
    return context.found(unclear_addresses(context.plan.values, types, context.schemas))
