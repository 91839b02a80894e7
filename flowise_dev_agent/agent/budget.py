"""The hard stop: no model call beyond the session's budget; the person may raise it, and the same step goes on."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from langgraph.runtime import Runtime

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.errors import BudgetSpentError
from flowise_dev_agent.reasoning.contracts import Budget, Usage
from flowise_dev_agent.settings import LimitSettings

P = ParamSpec("P")
Node = Callable[Concatenate[AgentState, Runtime[AgentContext], P], Awaitable[dict[str, Any]]]


def budget_of(state: Mapping[str, Any], limits: LimitSettings) -> Budget:
    """The session's own ceilings, else those of the settings, with what is spent."""
    own: Mapping[str, Any] = state["budget"]
    return Budget(
        max_tokens=own.get("tokens") or limits.session_tokens,
        max_usd=own.get("usd") or limits.session_usd,
        spent=Usage(**state["usage"]),
    )


def asks_for_budget(node: Node[P]) -> Node[P]:
    """A node that, instead of failing when the budget is spent, has the person asked and is run again."""

    @wraps(node)
    async def guarded(
        state: AgentState, runtime: Runtime[AgentContext], *args: P.args, **kwargs: P.kwargs
    ) -> dict[str, Any]:
        try:
            return await node(state, runtime, *args, **kwargs)
        except BudgetSpentError as error:
            stop = {"reason": "budget", "message": error.message, "then": getattr(node, "__name__", "")}
            return {"stop": stop, "answer": None, "usage": error.details.get("usage", Usage().model_dump())}

    return guarded


def waits_for_budget(state: Mapping[str, Any], node: str) -> bool:
    """Whether this node has stopped for want of budget."""
    return (state.get("stop") or {}).get("then") == node
