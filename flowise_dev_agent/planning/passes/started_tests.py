"""Tests of a plan as they will run: started in the way in which the flow starts, with what that gives them."""

from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.testing.cases import cases_for


def started_tests(context: PlanContext) -> PlanContext:
    """Adapt the tests to the start of the planned flow, so that the person reads what is run."""
    plan = context.plan
    if not context.is_open or not plan.tests or plan.flow_kind != "AGENTFLOW":
        return context
    graph = planned_flow(plan, context.base, context.schemas).graph
    return context.changed(tests=list(cases_for(plan.tests, graph)))
