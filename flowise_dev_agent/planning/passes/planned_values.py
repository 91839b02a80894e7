"""Check planned values: invalid options, and texts that nobody asked to replace."""

from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.plan_findings import lost_texts, texts_lost_with_nodes, unknown_options


def planned_values(context: PlanContext) -> PlanContext:
    """Find values that are no option of their field, and unrequested changes of the flow's texts."""
    plan, request = context.plan, context.request
    lost = [*lost_texts(plan.values, request), *texts_lost_with_nodes(plan, request)]
    return context.found([*unknown_options(plan, request), *lost])
