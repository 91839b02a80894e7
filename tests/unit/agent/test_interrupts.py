"""What a person may answer, and what it is taken for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.agent.interrupts import check_answer
from flowise_dev_agent.errors import InvalidAnswerError
from flowise_dev_agent.schemas.interrupts import Interrupt
from tests.fixtures.interrupts import interrupt_of

PLAN = interrupt_of("plan_approval")
TWO_APPROACHES = interrupt_of("plan_approval", approaches=[{"label": "With tools", "description": ""}])
REVIEW = interrupt_of("result_review")


@pytest.mark.parametrize("text", ["approved", "Yes", "accept", "accepted", "ok", " OK. ", "approve"])
def test_p60_plain_yes_words_approve(text: str) -> None:
    assert check_answer(PLAN, answer=None, response=text)["action"] == "approve"


@pytest.mark.parametrize("text", ["", "   ", "\n"])
@pytest.mark.parametrize("interrupt", [PLAN, REVIEW], ids=["plan", "review"])
def test_p60_an_empty_answer_is_refused_everywhere(interrupt: Interrupt, text: str) -> None:
    with pytest.raises(InvalidAnswerError, match="empty"):
        check_answer(interrupt, answer=None, response=text)


@pytest.mark.parametrize("text", ["yes but use Claude", "ok, and add memory", "approved if it is cheap", "no"])
def test_p60_a_yes_with_a_condition_is_feedback_and_keeps_every_word(text: str) -> None:
    answer = check_answer(PLAN, answer=None, response=text)
    assert (answer["action"], answer["feedback"]) == ("request_changes", text)


@given(st.text(min_size=1, max_size=60))
def test_p60_free_text_approves_only_when_it_is_exactly_a_yes_word(text: str) -> None:
    try:
        answer = check_answer(PLAN, answer=None, response=text)
    except InvalidAnswerError:
        # Nothing was said, or an approach is approved that was not offered.
        said = text.strip().casefold()
        assert not said or said.startswith("approved - approach:")
        return
    plain = text.strip().casefold().rstrip(".! ")
    assert (answer["action"] == "approve") == (plain in {"approved", "approve", "yes", "accept", "accepted", "ok"})


def test_an_approach_is_approved_by_its_label_in_either_form() -> None:
    interrupt = TWO_APPROACHES
    by_text = check_answer(interrupt, answer=None, response="approved - approach: with tools")
    by_answer = check_answer(interrupt, answer={"action": "approve", "approach": "With tools"}, response=None)
    assert by_text == by_answer
    assert by_text["approach"] == "With tools"


def test_an_approval_of_an_approach_that_is_not_named_is_refused() -> None:
    with pytest.raises(InvalidAnswerError, match="approach"):
        check_answer(TWO_APPROACHES, answer=None, response="APPROVED - APPROACH:")


def test_an_unknown_approach_names_those_there_are() -> None:
    interrupt = TWO_APPROACHES
    with pytest.raises(InvalidAnswerError) as error:
        check_answer(interrupt, answer={"action": "approve", "approach": "Magic"}, response=None)
    assert "With tools" in str(error.value)


def test_an_action_that_is_not_offered_is_refused() -> None:
    interrupt = interrupt_of("patch_review", "overwrite", "cancel", reason="stale_base")
    with pytest.raises(InvalidAnswerError, match="not offered"):
        check_answer(interrupt, answer={"action": "continue"}, response=None)


def test_unknown_fields_of_an_answer_are_refused() -> None:
    with pytest.raises(InvalidAnswerError):
        check_answer(PLAN, answer={"action": "approve", "aproach": "x"}, response=None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"action": "request_changes", "feedback": " "}, "feedback"),
        ({"action": "request_changes"}, "feedback"),
        ({"action": "aprove"}, "action"),
        ({}, "action"),
    ],
)
def test_a_wrong_answer_is_refused_with_the_one_thing_that_is_wrong(answer: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidAnswerError) as error:
        check_answer(PLAN, answer=answer, response=None)
    assert words in error.value.message
    assert ";" not in error.value.message
    assert "request_changes" in str(error.value.hint)


def test_answer_and_response_together_are_refused() -> None:
    with pytest.raises(InvalidAnswerError, match="either"):
        check_answer(PLAN, answer={"action": "approve"}, response="yes")


@pytest.mark.parametrize(("text", "action"), [("rollback", "rollback"), ("Revert", "rollback"), ("accept", "accept")])
def test_commands_at_the_review_act(text: str, action: str) -> None:
    assert check_answer(REVIEW, answer=None, response=text)["action"] == action


def test_other_text_at_the_review_is_feedback() -> None:
    answer = check_answer(REVIEW, answer=None, response="please answer in French")
    assert (answer["action"], answer["feedback"]) == ("iterate", "please answer in French")


def test_a_credential_is_chosen_only_among_those_of_the_instance() -> None:
    candidates = [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]
    interrupt = interrupt_of("credential_check", credentials=[{"type": "openAIApi", "candidates": candidates}])
    assert check_answer(interrupt, answer={"choose": {"openAIApi": "b"}}, response=None)["choose"] == {"openAIApi": "b"}
    with pytest.raises(InvalidAnswerError, match="not one of"):
        check_answer(interrupt, answer={"choose": {"openAIApi": "c"}}, response=None)


def test_the_response_schema_of_an_interrupt_is_a_json_schema_that_names_the_actions() -> None:
    schema = PLAN.response_schema
    assert "approve" in str(schema)
    assert "request_changes" in str(schema)
