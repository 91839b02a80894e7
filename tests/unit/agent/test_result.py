"""What of a plan and of a review stays with its session."""

from typing import Any

from flowise_dev_agent.agent import approved_plan, result_of
from flowise_dev_agent.agent.interrupts import check_answer
from flowise_dev_agent.schemas.base import read
from flowise_dev_agent.schemas.interrupts import Interrupt
from flowise_dev_agent.schemas.session import ApprovedPlan, ResultView
from tests.fixtures.interrupts import interrupt_of
from tests.unit.agent.rig import plan

MESSAGE = "The chatflow works: 1 of 1 test questions passed."
REVIEW: dict[str, Any] = {
    "chatflow": {"id": "c1", "url": "http://f/canvas/c1"},
    "verdict": {"done": True, "reason": "fine"},
    "tests": [{"question": "hi", "passed": True, "answer": "hello"}],
    "regressions": [],
    "change": {"text": "1 node added", "added": [{"id": "n", "name": "n", "label": "N"}]},
    "warnings": [{"code": "w", "severity": "warning", "message": "m"}],
    "placeholders": ["the price list"],
    "usage": {},
}


def test_a_review_leaves_its_tests_verdict_and_change_in_words() -> None:
    kept = result_of(interrupt_of("result_review", message=MESSAGE, **REVIEW))
    assert kept is not None
    assert read(ResultView, kept.model_dump(mode="json")) == kept
    assert kept.summary == MESSAGE
    assert [(test.question, test.answer) for test in kept.tests] == [("hi", "hello")]
    assert kept.change == "1 node added"


def test_a_review_without_a_change_is_kept_too() -> None:
    kept = result_of(interrupt_of("result_review", **REVIEW | {"change": None}))
    assert kept is not None
    assert kept.change == ""


def test_other_questions_leave_nothing() -> None:
    assert result_of(interrupt_of("plan_approval")) is None


def question(**contract: Any) -> Interrupt:
    approaches = [{"label": "Short", "description": ""}, {"label": "Long", "description": ""}]
    return interrupt_of("plan_approval", plan="...", contract=plan(**contract).model_dump(), approaches=approaches)


def approved(asked: Interrupt, **answer: Any) -> ApprovedPlan | None:
    return approved_plan(asked, check_answer(asked, answer=answer, response=None))


def test_an_approved_plan_stays_with_what_the_answer_made_of_it() -> None:
    view = approved(question(), action="approve", approach="long", test_questions=["Why?"])
    assert view is not None
    assert view.contract is not None
    assert view.approach == "Long"
    assert view.contract.test_questions == ["Why?"]
    assert "## Test questions\n- “Why?”\n" in view.text
    assert "Who are you?" not in view.text
    assert view.contract.credential_requirements == ["openAIApi"]


def test_a_plan_that_is_not_approved_is_not_kept() -> None:
    assert approved(question(), action="cancel") is None
    assert approved(question(), action="request_changes", feedback="other") is None
    assert approved_plan(interrupt_of("result_review"), {"action": "accept"}) is None
