"""All that a session says reads in the person's language: no sentence of the English catalogue is left in it."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest

from flowise_dev_agent.flowise.models import Prediction
from flowise_dev_agent.patch import Finding
from flowise_dev_agent.schemas.plan import Intent, Part
from flowise_dev_agent.texts import LANGUAGES, catalogue, text
from tests.unit.agent.rig import Bench
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.agent.test_judgement import refused
from tests.unit.agent.test_update import PLAN, add_flow, made_for

_PLACE: Final = re.compile(r"\{\{\w+\}\}")
#: What programs read, the person's own words, and names of nodes.
_NOT_SAID: Final = ("texts", "params", "response_schema", "contract", "degraded", "usage")
#: Fewer words of a text are no sentence.
_WORDS: Final = 3


@cache
def fragments(language: str) -> list[str]:
    """The longest fixed piece of each English text that its translation does not have as well."""
    found: list[str] = []
    for key, english in catalogue("en").items():
        piece = max(_PLACE.split(english), key=len).strip(" .:,;")
        if len(piece.split()) >= _WORDS and piece not in catalogue(language)[key]:
            found.append(piece)
    return found


def said(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from said(inner)


def told(question: dict[str, Any]) -> Iterator[str]:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(one) for name, one in value.items() if name not in _NOT_SAID}
        return [without(one) for one in value] if isinstance(value, list) else value

    yield from said(without(question))


def english_in(questions: list[dict[str, Any]], language: str) -> list[str]:
    return [
        f"{question['type']}: {words}"
        for question in questions
        for words in told(question)
        if any(piece in words for piece in fragments(language))
    ]


def intent(operation: Any, language: str, **more: Any) -> Intent:
    return Intent(operation=operation, ambiguity=0, title="x", language=language, **more)


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
async def test_no_english_sentence_of_ours_is_left_in_a_session_in_another_language(language: str) -> None:
    created = Bench(ops(), credentials())
    created.reasoner.intents = [intent("create", language)]
    gone = Part(id="p1", quote="x", state="covered", reason=text("plan.reason.not_shown"))
    found = Finding(code="MODEL_ENDS", severity="warning", detail="?", params={"model": "m", "day": "2027-01-01"})
    created.reasoner.plans = [
        PLAN.model_copy(update={"parts": [gone], "findings": [found], "placeholders": ["x"], "operation": "create"})
    ]
    created.flowise.answers = {
        question: refused("connect ECONNREFUSED 10.0.0.1:443 " + "while reading the answer " * 20)
        for question in PLAN.test_questions
    }
    questions = [await created.start("x")]
    while len(questions) < 6 and questions[-1]["type"] != "result_review":
        match questions[-1]["type"]:
            case "plan_approval":
                questions.append(await created.answer(action="approve"))
            case "credential_check":
                questions.append(await created.answer(action="skip"))
            case other:
                raise AssertionError(other)
    assert {one["type"] for one in questions} == {"plan_approval", "credential_check", "result_review"}

    changed = made_for("update", "Sales bot")
    changed.reasoner.intents = [intent("update", language, target_hint="Sales bot")]
    await add_flow(changed)
    changed.flowise.in_turn = ["Hello"] * len(PLAN.test_questions)
    broken = Prediction.model_validate({"text": "x", "usedTools": [{"tool": "prices", "error": "gone " * 100}]})
    changed.flowise.answers = dict.fromkeys(PLAN.test_questions, broken)
    questions.append(await changed.start("x"))
    questions.append(await changed.answer(action="approve"))
    assert questions[-1]["type"] == "result_review"
    assert questions[-1]["data"]["regressions"]
    assert english_in(questions, language) == []
