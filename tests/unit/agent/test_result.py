"""What of a review stays with its session."""

from typing import Any

from flowise_dev_agent.agent import result_of
from flowise_dev_agent.runtime.views import ResultView

REVIEW: dict[str, Any] = {
    "type": "result_review",
    "message": "The chatflow works: 1 of 1 test questions passed.",
    "data": {
        "chatflow": {"id": "c1"},
        "verdict": {"done": True, "reason": "fine"},
        "tests": [{"question": "hi", "passed": True, "answer": "hello"}],
        "regressions": [],
        "change": {"text": "1 node added", "added": [{"id": "n"}]},
        "warnings": [{"code": "w"}],
        "placeholders": ["the price list"],
        "usage": {},
    },
}


def test_a_review_leaves_its_tests_verdict_and_change_in_words() -> None:
    kept = result_of(REVIEW)
    assert kept is not None
    view = ResultView.model_validate(kept)
    assert view.model_dump() == kept
    assert view.summary == REVIEW["message"]
    assert view.tests == REVIEW["data"]["tests"]
    assert view.change == "1 node added"


def test_a_review_without_a_change_is_kept_too() -> None:
    kept = result_of(REVIEW | {"data": REVIEW["data"] | {"change": None}})
    assert kept is not None
    assert kept["change"] == ""


def test_other_questions_leave_nothing() -> None:
    assert result_of({"type": "plan_approval", "message": "m", "data": {}}) is None
