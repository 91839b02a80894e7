"""Files that only the person has: a marked file stands in for each."""

from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.values import with_files_to_come


def files_to_come(context: PlanContext) -> PlanContext:
    """Put a marked file wherever a new node needs one that is not there."""
    return context.having(with_files_to_come(context.plan, context.schemas)) if context.is_open else context
