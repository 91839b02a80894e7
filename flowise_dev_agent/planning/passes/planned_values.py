"""Check planned values: invalid options, addresses, and texts that nobody asked to replace."""

from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.plan_findings import (
    lost_texts,
    texts_lost_with_nodes,
    unclear_addresses,
    unknown_options,
)


def planned_values(context: PlanContext) -> PlanContext:
    """Find values that are no option of their field, and unrequested changes of the flow's texts."""
    plan, request = context.plan, context.request
    lost = [*lost_texts(plan.values, request), *texts_lost_with_nodes(plan, request)]
    return context.found([*unknown_options(plan, request), *lost])


def form_addresses(context: PlanContext) -> PlanContext:
    """Find addresses of a form that readers take for different ones. A model's plan with one is not taken."""
    types = {node.node_id: node.node_name for node in context.plan.nodes}
    return context.found(unclear_addresses(context.plan.values, types, context.schemas))
