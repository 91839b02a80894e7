"""The hard stop: no model call beyond the session's budget. The person may raise it; then the same step continues."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Concatenate, Final, ParamSpec

from langgraph.runtime import Runtime

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.state import AgentState, BudgetQuestion, BudgetState, Update
from flowise_dev_agent.errors import BudgetSpentError
from flowise_dev_agent.models.messages import SessionBudget
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.settings import LimitSettings

P = ParamSpec("P")
Node = Callable[Concatenate[AgentState, Runtime[AgentContext], P], Awaitable[Update]]

#: The nodes that `preflight_validate_patch` leads back to when the budget is raised. The other nodes that ask for
#: budget lie between there and the write anyway.
RESUMED: Final = ("classify_intent", "plan_v2", "evaluate")


def budget_of(state: AgentState, limits: LimitSettings) -> SessionBudget:
    """Ceilings of the session, else of the settings, with the amounts spent."""
    return SessionBudget(
        max_tokens=state.budget.ceilings.tokens or limits.session_tokens,
        max_usd=state.budget.ceilings.usd or limits.session_usd,
        spent=state.usage.spent,
    )


def over_budget(state: AgentState, limits: LimitSettings) -> str | None:
    """Sentence that names the exceeded ceiling; None while the session is within its budget."""
    return budget_of(state, limits).exceeded_by(Usage())


def asks_for_budget(node: Node[P]) -> Node[P]:
    """Wrap a node: when the budget is spent, it asks the person instead of failing, then runs again."""

    @wraps(node)
    async def guarded(state: AgentState, runtime: Runtime[AgentContext], *args: P.args, **kwargs: P.kwargs) -> Update:
        try:
            return await node(state, runtime, *args, **kwargs)
        except BudgetSpentError as error:
            question = BudgetQuestion(node=getattr(node, "__name__", ""), message=error.message)
            return {"budget": BudgetState(question=question), "answer": None, "usage": state.usage.spent_on(error)}

    return guarded


def waits_for_budget(state: AgentState, node: str) -> bool:
    """True if this node stopped because the budget is used up."""
    question = state.budget.question
    return question is not None and question.node == node


def raised_budget(budget: BudgetState, question: BudgetQuestion, raised: Mapping[str, float]) -> BudgetState:
    """Apply the answer to the budget question: new ceilings (`tokens`, `usd`), and the node that continues."""
    ceilings = budget.ceilings.model_copy(update=dict(raised))
    return BudgetState(ceilings=ceilings, question=None, resume_at=question.node)
