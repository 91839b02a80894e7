"""Missing files: a marked stand-in for each file that only the person has."""

from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.values import with_files_to_come


def files_to_come(context: PlanContext) -> PlanContext:
    """Insert a marked stand-in wherever a new node needs a file that is missing."""
    return context.having(with_files_to_come(context.plan, context.schemas)) if context.is_open else context
