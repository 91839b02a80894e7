"""Texts of a plan made by code: whose words they use, and in which language."""

import pytest

from flowise_dev_agent.forms.offer import Offer
from flowise_dev_agent.forms.plan import plan_of
from flowise_dev_agent.forms.starters import LANGUAGES, Language, choose, starters
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.texts import catalogue as texts


def texts_of(plan: Plan) -> list[str]:
    nodes = [node.purpose for node in plan.nodes]
    return [*nodes, *plan.steps, *plan.success_criteria, *(turn for test in plan.tests for turn in test.turns)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("starter", [one.id for one in starters()])
def test_a_starter_is_planned_in_the_persons_words_and_language(
    starter: str, language: Language, catalogue: NodeStore
) -> None:
    words = f"{next(one.title[language] for one in starters() if one.id == starter)}: Xanadu {{1}}"
    chosen = choose(words, catalogue, language=language)
    assert (chosen.starter, chosen.language) == (starter, language)
    # What only the person has is of no matter here.
    form = chosen.form.model_dump(mode="json")
    for one in [*form["sources"], *form["steps"]]:
        one |= {"url": "https://a.example"} if one["kind"] in ("call", "web") else {}
        one |= {"text": "Open at nine."} if one["kind"] == "text" else {}
        one |= {"store": "Museum"} if one["kind"] == "store" else {}
    plan = plan_of(DesignForm.model_validate(form), Offer(catalogue), words=words, language=language)
    assert plan.declined is None
    assert plan.goal == words
    assert any(words in criterion for criterion in plan.success_criteria)
    prompts = [one for one in (form["prompt"], *(step["prompt"] for step in form["steps"])) if one]
    assert all(one[:30] not in text for one in prompts for text in texts_of(plan))
    assert max(map(len, texts_of(plan))) < 250
    if language != "en":
        english = plan_of(chosen.form.model_validate(form), Offer(catalogue), words=words)
        own = {form["schedule"]["text"]} if form["schedule"] else set[str]()
        assert {*texts_of(plan)} & {*texts_of(english)} == own


@pytest.mark.parametrize(
    ("prompt", "words", "goal"),
    [
        ("For the museum: “Ask us”", "Ask us", "Ask us"),
        ("For the museum: “Ask (us)”", "Ask {us}", "Ask {us}"),
        ("You help visitors.\nBe brief.", "Ask us", "You help visitors."),
        ("You help visitors.", "", "You help visitors."),
    ],
)
def test_the_goal_is_the_persons_sentence_as_long_as_a_prompt_quotes_it(
    prompt: str, words: str, goal: str, catalogue: NodeStore
) -> None:
    form = DesignForm.model_validate({"name": "Desk", "prompt": prompt})
    assert plan_of(form, Offer(catalogue), words=words).goal == goal


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_visitor_of_each_branch_of_the_sorter_writes_a_message(language: Language, catalogue: NodeStore) -> None:
    title = next(one.title[language] for one in starters() if one.id == "sort")
    form = choose(title, catalogue, language=language).form
    plan = plan_of(form, Offer(catalogue), language=language)
    assert len(plan.tests) == len(form.steps[0].branches)
    assert not any(branch in test.turns[0] for branch in form.steps[0].branches for test in plan.tests)


def test_a_declined_plan_says_why_in_the_persons_language(catalogue: NodeStore) -> None:
    plan = plan_of(DesignForm(name="Desk", tools=["Teapot"]), Offer(catalogue), language="de")
    assert "declined" in plan.texts
    german = texts("de")["declined.no_tool"].replace("{{tool}}", "Teapot")
    assert german in plan_markdown(plan, language="de")
    assert german in plan_markdown(Plan.model_validate(plan.model_dump(mode="json")), language="de")
