"""Bodies that clients send: what is refused before anything happens."""

from typing import Any

import pytest
from pydantic import ValidationError

from flowise_dev_agent.schemas.requests import ResumeSession, StartSession


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"requirement": ""},
        {"requirement": "   \n"},
        {"requirement": "x" * 32_001},
        {"requirement": "a\x00b"},
        {"requirement": "a\ud800b"},
        {"requirement": "x", "session_name": "y" * 121},
        {"requirement": "x", "thread_id": "not-a-uuid"},
        {"requirement": "x", "operation": "destroy"},
        {"requirement": "x", "test_trials": 0},
        {"requirement": "x", "test_trials": 11},
        {"requirement": "x", "test_questions": ["q"] * 11},
        {"requirement": "x", "test_questions": [" "]},
        {"requirement": "x", "budget": {"usd": 0}},
        {"requirement": "x", "budget": {"euro": 1}},
        {"requirement": "x", "unknown_field": 1},
        {"requirement": "x", "webhook_url": ""},
        {"requirement": "x", "webhook_url": "https://h/" + "x" * 2_000},
        {"requirement": "x", "webhook_own_secret": True},
    ],
)
def test_p64_a_start_that_cannot_be_meant_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StartSession.model_validate(body)


def test_a_requirement_of_the_full_length_is_taken() -> None:
    assert len(StartSession(requirement="x" * 32_000).requirement) == 32_000


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"response": ""},
        {"response": "  "},
        {"response": "yes", "answer": {}, "interrupt_id": "i"},
        {"answer": {"action": "approve"}},
        {"answer": [], "interrupt_id": "i"},
        {"answer": {"feedback": {"deep": ["a\x00"]}}, "interrupt_id": "i"},
        {"answer": {"n": float("nan")}, "interrupt_id": "i"},
        {"answer": {"text": "x" * 200_001}, "interrupt_id": "i"},
        {"response": "yes", "other": 1},
    ],
)
def test_p60_an_answer_is_exactly_one_storable_answer(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ResumeSession.model_validate(body)


def test_the_fingerprint_tells_bodies_apart_but_not_the_order_of_their_fields() -> None:
    one = StartSession.model_validate({"requirement": "x", "operation": "create"})
    same = StartSession.model_validate({"operation": "create", "requirement": "x"})
    other = StartSession.model_validate({"requirement": "y", "operation": "create"})
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
