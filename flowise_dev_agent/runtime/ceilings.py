"""What clients may ask for: budgets and models within what the operator has set."""

from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.contracts.requests import StartSession
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.settings import LimitSettings, ReasoningSettings


def check_start(request: StartSession, limits: LimitSettings, reasoning: ReasoningSettings) -> None:
    """Raises InvalidInputError when a start asks for more than the operator allows."""
    if request.model is not None and request.model not in reasoning.models:
        raise InvalidInputError(
            f"The model '{request.model}' is not allowed here.",
            hint=f"Use one of: {', '.join(sorted(reasoning.models))}; REASONING_ALLOWED_MODELS names further ones.",
        )
    if request.budget is not None:
        check_budget(request.budget.model_dump(exclude_none=True), limits)


def check_budget(budget: Mapping[str, Any], limits: LimitSettings) -> None:
    """Raises InvalidInputError when `tokens` or `usd` are above the operator's ceilings."""
    for name, ceiling in limits.ceilings.items():
        if budget.get(name, 0) > ceiling:
            raise InvalidInputError(
                f"A session may have at most {ceiling:g} {name}.",
                hint=f"Ask for less, or have the operator raise SESSION_BUDGET_{name.upper()}_CEILING.",
                details={"ceiling": ceiling},
            )
