"""Sessions without a model, on the real graph: starters, forms, changes in words, plain copies and renaming."""

from typing import Any

import pytest

from flowise_dev_agent.errors import InvalidAnswerError
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.phased import PhasedReasoner
from flowise_dev_agent.settings import ReasoningSettings
from flowise_dev_agent.texts import say_in
from tests.unit.agent.rig import OPENAI, Bench, Script
from tests.unit.agent.test_graph import credentials
from tests.unit.agent.test_update import add_flow


@pytest.fixture
def bench() -> Bench:
    return Bench([], credentials(OPENAI), reasoner=DeterministicReasoner())


def actions(question: dict[str, Any]) -> set[str]:
    return {one["value"] for one in question["options"]}


async def test_a_sentence_becomes_a_starter_that_can_be_approved(bench: Bench) -> None:
    question = await bench.start("A friendly assistant for new colleagues")
    assert (question["type"], question["reason"]) == ("plan_approval", "starter")
    assert "approve" in actions(question)
    data = question["data"]
    assert data["form"] == data["starter"]["form"]
    assert "A friendly assistant for new colleagues" in data["form"]["prompt"]
    assert (await bench.answer(action="approve"))["type"] == "result_review"
    (flow,) = bench.flowise.flows.values()
    assert flow.name == data["form"]["name"]


async def test_the_plan_of_a_starter_is_in_the_language_of_its_sentence(bench: Bench) -> None:
    data = (await bench.start("Baue einen freundlichen Assistenten für neue Kollegen"))["data"]
    assert data["language"] == "de"
    assert f"### {say_in('de', 'plan.heading.outline')}" in data["plan"].splitlines()
    changed = await bench.answer(action="request_changes", design=data["form"])
    assert changed["data"]["language"] == "de"


async def test_a_form_is_built_by_code_where_a_model_is_connected() -> None:
    model = Script()
    settings = ReasoningSettings(_env_file=None, OPENAI_API_KEY="k")  # type: ignore[call-arg]
    reasoner = PhasedReasoner(model, DeterministicReasoner(), settings)
    bench = Bench([], credentials(OPENAI), reasoner=reasoner)
    await bench.start("x", design={"name": "Desk", "prompt": "You help."})
    assert (await bench.answer(action="approve"))["type"] == "result_review"
    assert (model.seen["plan"], model.seen["patch"]) == ([], [])


async def test_a_starter_that_lacks_something_is_built_after_the_form_is_complete(bench: Bench) -> None:
    question = await bench.start("Answer questions from our website")
    assert (question["reason"], question["data"]["starter"]["needs"]) == ("starter", ["sources.0.url"])
    assert "approve" not in actions(question)
    form = question["data"]["form"]
    again = await bench.answer(action="request_changes", design=form)
    assert (again["reason"], "approve" in actions(again)) == ("starter", False)
    form["sources"][0]["url"] = "https://a.example"
    ready = await bench.answer(action="request_changes", design=form)
    assert (ready["reason"], ready["data"]["starter"]) == ("plan_ready", None)
    assert "https://a.example" in str(ready["data"]["contract"]["values"])
    assert (await bench.answer(action="approve"))["type"] == "result_review"


async def test_other_words_choose_another_starter(bench: Bench) -> None:
    first = await bench.start("Answer questions from our website")
    second = await bench.answer(action="request_changes", feedback="Translate what I write into Spanish")
    assert second["reason"] == "starter"
    assert first["data"]["starter"]["id"] != second["data"]["starter"]["id"]


async def test_words_about_a_plan_and_a_change_in_words_are_declined_and_name_other_ways(bench: Bench) -> None:
    await bench.start("x", design={"name": "Desk", "prompt": "You help."})
    unread = await bench.answer(action="request_changes", feedback="Make it friendlier")
    assert (unread["reason"], unread["data"]["form"]["name"]) == ("plan_ready", "Desk")
    # The plan is as it was and says what of the words is not done: it can be approved, or its form changed.
    assert [one["quote"] for one in unread["data"]["not_done"]] == ["Make it friendlier"]
    assert unread["data"]["contract"]["nodes"]
    assert "approve" in actions(unread)
    ready = await bench.answer(action="request_changes", design={"name": "Desk", "prompt": "You help kindly."})
    assert ready["reason"] == "plan_ready"

    bench = Bench([], credentials(OPENAI), reasoner=DeterministicReasoner())
    row = await add_flow(bench)
    declined = await bench.start("Use Claude instead", target=row.id)
    assert (declined["type"], declined["reason"]) == ("plan_approval", "declined")
    with pytest.raises(InvalidAnswerError, match="new flow"):
        await bench.answer(action="request_changes", design={"name": "Desk"})
    await bench.answer(action="cancel")
    assert bench.flowise.flows == {row.id: row}


@pytest.mark.parametrize("operation", ["copy", "update"])
async def test_a_copy_and_a_new_name_need_no_words(bench: Bench, operation: str) -> None:
    row = await add_flow(bench)
    ready = await bench.start("-", operation=operation, target=row.id, new_name="Second desk")
    assert ready["reason"] == "plan_ready"
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review", review
    await bench.answer(action="accept")
    names = sorted(flow.name for flow in bench.flowise.flows.values())
    assert names == (sorted(["Second desk", row.name]) if operation == "copy" else ["Second desk"])
    assert {flow.flow_data for flow in bench.flowise.flows.values()} == {row.flow_data}


async def test_going_on_builds_with_a_placeholder_and_says_so(bench: Bench) -> None:
    ready = await bench.start("Answer questions from our website", skip_clarification=True)
    assert "approve" in actions(ready)
    assert any("[PLACEHOLDER" in one for one in ready["data"]["contract"]["placeholders"])
    assert "[PLACEHOLDER" in ready["data"]["plan"]
    assert (await bench.answer(action="approve"))["type"] == "result_review"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ('In the flow "Support bot", set the temperature to 0.2', True),
        ("Make Support bot answer in French", True),
        ("A bot for our support", False),
    ],
)
async def test_a_flow_that_is_called_by_its_exact_name_is_found(bench: Bench, words: str, found: bool) -> None:
    row = await add_flow(bench, name="Support bot")
    question = await bench.start(words)
    assert question["type"] == ("select_target" if found else "plan_approval")
    if found:
        assert question["reason"] == "existing_flow_named"
        assert question["data"]["candidates"][0]["id"] == row.id
