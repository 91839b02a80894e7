"""The operator's ceilings bound what clients and answers ask for."""

from typing import Any

import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.ops.dependencies import check_budget, check_start
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.settings import LimitSettings, ReasoningSettings

LIMITS = LimitSettings(session_tokens=1_000, session_usd=2.0, tokens_ceiling=None, usd_ceiling=3.0)
REASONING = ReasoningSettings(
    engine_choice="openai", OPENAI_API_KEY="k", model_choice="main", model_judge="small", allowed_models="extra, other"
)


def start(**fields: Any) -> StartSession:
    return StartSession(requirement="x", **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"budget": {"tokens": 4_000}},
        {"budget": {"usd": 3.0}},
        {"model": "main"},
        {"model": "small"},
        {"model": "other"},
    ],
)
def test_a_start_within_the_ceilings_is_taken(fields: dict[str, Any]) -> None:
    check_start(start(**fields), LIMITS, REASONING)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"budget": {"tokens": 4_001}}, "at most 4000 tokens"),
        ({"budget": {"usd": 3.01}}, "at most 3 usd"),
        ({"model": "the-most-expensive"}, "not allowed"),
    ],
)
def test_a_start_above_the_ceilings_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        check_start(start(**fields), LIMITS, REASONING)
    assert caught.value.hint


def test_an_answer_cannot_raise_the_budget_above_the_ceilings() -> None:
    check_budget({"tokens": 4_000.0, "usd": 3.0}, LIMITS)
    with pytest.raises(InvalidInputError, match="at most 3 usd"):
        check_budget({"usd": 3.5}, LIMITS)
