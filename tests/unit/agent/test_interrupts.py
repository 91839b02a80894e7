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


@pytest.mark.parametrize(
    ("interrupt", "action", "texts"),
    [
        (PLAN, "approve", ["approved", "Yes", "accept", "accepted", "ok", " OK. ", "approve"]),
        (PLAN, "request_changes", ["yes but use Claude", "ok, and add memory", "approved if it is cheap", "no"]),
        (REVIEW, "rollback", ["rollback", "Revert"]),
        (REVIEW, "accept", ["accept"]),
        (REVIEW, "iterate", ["please answer in French"]),
    ],
)
def test_p60_plain_words_act_and_others_are_feedback_that_keeps_every_word(
    interrupt: Interrupt, action: str, texts: list[str]
) -> None:
    for text in texts:
        answer = check_answer(interrupt, answer=None, response=text)
        assert answer["action"] == action, text
        assert answer.get("feedback") == (text if action in {"request_changes", "iterate"} else None)
    assert action in str(interrupt.response_schema)


@pytest.mark.parametrize("text", ["", "   ", "\n"])
@pytest.mark.parametrize("interrupt", [PLAN, REVIEW], ids=["plan", "review"])
def test_p60_an_empty_answer_is_refused_everywhere(interrupt: Interrupt, text: str) -> None:
    with pytest.raises(InvalidAnswerError, match="empty"):
        check_answer(interrupt, answer=None, response=text)


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


def test_an_unknown_approach_names_those_there_are() -> None:
    interrupt = TWO_APPROACHES
    with pytest.raises(InvalidAnswerError) as error:
        check_answer(interrupt, answer={"action": "approve", "approach": "Magic"}, response=None)
    assert "With tools" in str(error.value)
    with pytest.raises(InvalidAnswerError, match="approach"):
        check_answer(interrupt, answer=None, response="APPROVED - APPROACH:")


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


def test_a_credential_is_chosen_only_among_those_of_the_instance() -> None:
    candidates = [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]
    interrupt = interrupt_of("credential_check", credentials=[{"type": "openAIApi", "candidates": candidates}])
    assert check_answer(interrupt, answer={"choose": {"openAIApi": "b"}}, response=None)["choose"] == {"openAIApi": "b"}
    with pytest.raises(InvalidAnswerError, match="not one of"):
        check_answer(interrupt, answer={"choose": {"openAIApi": "c"}}, response=None)
