"""Complete the lines of an agentflow, and ask for those that are left open."""

from dataclasses import replace

from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.planned_lines import ask_for_lines, with_following_lines


def lines(context: PlanContext) -> PlanContext:
    """Plan with all lines of its new steps, and of those that lose theirs; nodes of a pattern bring their own."""
    if not context.is_open or context.request.pattern:
        return context
    plan = with_following_lines(context.plan, context.base, context.schemas)
    problems = ask_for_lines(plan, context.base, context.schemas)
    return replace(context.having(plan), problems=(*context.problems, *problems))
