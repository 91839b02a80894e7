"""Words of an answer, as the ledger and the summary keep them."""

from typing import Any

import pytest

from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.schemas.interrupts import PlanApprovalData, PlanApprovalInterrupt
from flowise_dev_agent.sessions.answer_words import words_of
from tests.unit.agent.rig import plan

ASKED = PlanApprovalInterrupt(
    reason="plan_ready", message="?", options=[option("approve")], data=PlanApprovalData(contract=plan())
)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"action": "request_changes", "feedback": "Answer in French"}, "Answer in French"),
        ({"action": "approve", "approach": None, "test_questions": []}, None),
        ({"action": "approve", "test_questions": ["Hi?", "Why?"]}, "test questions: Hi?; Why?"),
        ({"action": "choose", "choose": {"openAIApi": "c-1"}}, "choose: openAIApi: c-1"),
    ],
)
def test_the_words_of_an_answer_are_no_json(answer: dict[str, Any], words: str | None) -> None:
    assert words_of(ASKED, {"type": "plan_approval", **answer}) == words
