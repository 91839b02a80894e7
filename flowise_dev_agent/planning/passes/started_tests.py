"""Tests of a plan as they will run: started in the way in which the flow starts, each once."""

from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.testing.cases import held_for


def started_tests(context: PlanContext) -> PlanContext:
    """Adapt the tests to the start of the planned flow, so that the person reads what is run."""
    plan = context.plan
    if not context.is_open or not plan.tests:
        return context
    starts = plan.flow_kind == "AGENTFLOW"
    held = held_for(plan.tests, planned_flow(plan, context.base, context.schemas).graph if starts else context.base)
    criteria = [
        one.model_copy(update={"tests": list(dict.fromkeys(held[id_].id for id_ in one.tests if id_ in held))})
        for one in plan.criteria
    ]
    return context.changed(tests=list({case.id: case for case in held.values()}.values()), criteria=criteria)
