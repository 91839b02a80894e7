"""A part that a plan calls covered has its numbers, addresses, quoted texts and models in the plan."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Finding, GraphIR, compile_ops
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.passes.coverage import with_uncovered_parts, without_missing_resources
from flowise_dev_agent.schemas.plan import Part, Plan, PlannedNode, PlannedValue
from tests.support.requests import plan_request
from tests.unit.planning.test_llm_reasoner import ScriptedEngine, last_text, reasoner

MODEL = {"node_id": "chatOpenAI_0", "node_name": "chatOpenAI", "purpose": "answers"}


def covered(*quotes: str, state: str = "covered") -> list[Part]:
    return [Part.model_validate({"id": f"p{n}", "quote": one, "state": state}) for n, one in enumerate(quotes, start=1)]


def plan(*quotes: str, parts: list[Part] | None = None, **values: Any) -> Plan:
    return Plan(
        goal="x",
        operation="create",
        flow_name="x",
        nodes=[PlannedNode.model_validate(MODEL)],
        values=[PlannedValue(node_id="chatOpenAI_0", param=name, value=value) for name, value in values.items()],
        parts=parts or covered(*quotes),
    )


def uncovered(given: Plan, catalogue: NodeStore, **request: Any) -> list[str]:
    after, problems = with_uncovered_parts(given, plan_request(catalogue, **request))
    found = [part.id for part in after.parts if part.state == "not_understood"]
    assert len(found) == len(problems)
    return found


@pytest.mark.parametrize(
    ("quote", "values"),
    [
        ("with a temperature of 0.3", {"temperature": 0.7}),
        ("Temperatur 0,3", {}),
        ("use gpt-4.1-mini", {"modelName": "gpt-4o-mini"}),
        ("use llama3.1 for it", {"modelName": "llama3"}),
        ("with Claude Sonnet 4.5", {"modelName": "claude-3-5-sonnet"}),
        ("send it to ops@example.org", {"prompt": "Send it."}),
        ("look at https://status.example.org/all", {"url": "https://status.example.org"}),
        ('call it "Bluebird"', {"prompt": "You are Redbird."}),
        ("sage „Guten Tag, lieber Gast“ zur Begrüßung", {"prompt": "Sage Hallo."}),
        ("at most 40 words", {"prompt": "Be brief."}),
    ],
)
def test_p83_what_a_part_names_and_the_plan_lacks_is_found(
    quote: str, values: dict[str, Any], catalogue: NodeStore
) -> None:
    assert uncovered(plan(quote, **values), catalogue) == ["p1"]


@pytest.mark.parametrize(
    ("quote", "values"),
    [
        ("with a temperature of 0.3", {"temperature": 0.3}),
        ("Temperatur 0,3", {"temperature": "0.3"}),
        ("keep it for 2 hours", {"sessionTTL": 7200}),
        ("at 5 pm", {"time": "17:00"}),
        ("20 % of the time", {"share": 0.2}),
        ("pieces of 1.000 characters", {"chunkSize": 1000}),
        ("3 short sentences", {"prompt": "Answer in three short sentences."}),
        ("3 kurze Sätze", {"prompt": "Antworte in drei kurzen Sätzen."}),
        ("two of the 3 topics", {"rows": [{"a": 1}, {"a": 2}, {"a": 3}]}),
        ("until 24.12.", {"prompt": "We are open until 24/12."}),
        ("Claude Sonnet 4.5", {"modelName": "claude-sonnet-4-5"}),
        ("model gpt\u20114o", {"modelName": "gpt-4o"}),
        ("say “Hello, dear guest.”", {"prompt": "Say 'Hello, dear guest' first."}),
        ("make it 6:45 rather than 7:00", {"time": "06:45"}),
        ("switch from gpt-4 turbo-4 to gpt-4o", {"modelName": "gpt-4o"}),
        ("1. answer the question", {}),
        ("be there 24/7", {}),
        ("be kind to everybody", {}),
        ("Text im Chat", {}),
        pytest.param("my key is sk-" + "a1B2c3" * 6, {}, id="a pasted key"),
        (
            "ask https://api.shop.example/orders/{number}/state",
            {"url": "https://api.shop.example/orders/{{ question }}/state"},
        ),
    ],
)
def test_p83_what_the_plan_has_in_another_form_is_covered(
    quote: str, values: dict[str, Any], catalogue: NodeStore
) -> None:
    assert uncovered(plan(quote, **values), catalogue) == []


def test_p83_saying_it_in_goal_steps_or_purpose_does_not_cover_it(catalogue: NodeStore) -> None:
    words = "at most 40 words"
    told = plan(words).model_copy(update={"goal": words, "steps": [words]})
    assert uncovered(told, catalogue) == ["p1"]


def test_p83_the_purpose_counts_where_a_prompt_is_written_from_it(catalogue: NodeStore) -> None:
    step = PlannedNode(node_id="llmAgentflow_0", node_name="llmAgentflow", purpose="Answers in at most 40 words.")
    assert uncovered(plan("at most 40 words").model_copy(update={"nodes": [step]}), catalogue) == []


def test_p83_what_the_flow_has_already_is_covered(catalogue: NodeStore) -> None:
    ops = [AddNode(node_name="chatOpenAI", node_id="chatOpenAI_1", params={"modelName": "gpt-4.1-mini"})]
    base = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    assert uncovered(plan("keep gpt-4.1-mini"), catalogue, flow=GraphView(base)) == []


def test_p83_parts_that_are_not_called_covered_are_left_alone(catalogue: NodeStore) -> None:
    assumed = plan(parts=covered("at most 40 words", state="assumed"))
    assert uncovered(assumed, catalogue) == []


def test_p83_the_answer_to_a_question_about_a_flow_covers_it(catalogue: NodeStore) -> None:
    answered = plan("is the limit 40 words?").model_copy(update={"answer": "No, there is none."})
    assert uncovered(answered, catalogue) == []


def test_p83_a_later_number_takes_the_place_of_an_earlier_one(catalogue: NodeStore) -> None:
    parts = [
        Part(id="p1", quote="within 30 days", state="covered"),
        Part(id="p2", quote="sorry, it is 14 days", state="covered", source="feedback:1"),
    ]
    assert uncovered(plan(parts=parts, prompt="within 14 days"), catalogue) == []
    assert uncovered(plan(parts=parts, prompt="within 30 days"), catalogue) == ["p2"]


LACKING = Finding(
    code="NOT_ON_THE_SERVER", severity="warning", message="No such store.", where="chatOpenAI_0", field="rows[0].store"
)


@pytest.mark.parametrize(
    ("covers", "state"),
    [
        ({"values": ["chatOpenAI_0.rows"]}, "not_possible"),
        ({"nodes": ["chatOpenAI_0"]}, "not_possible"),
        ({"nodes": ["chatOpenAI_0"], "values": ["chatOpenAI_0.modelName"]}, "covered"),
        ({"nodes": ["bufferMemory_0"]}, "covered"),
    ],
    ids=["by its field", "by its node", "by another field", "by another node"],
)
def test_p83_a_part_that_needs_what_the_server_lacks_is_not_possible(covers: dict[str, Any], state: str) -> None:
    part = Part(id="p1", quote="answer from our manuals", state="covered", **covers)
    (after,) = without_missing_resources(plan(parts=[part]).model_copy(update={"findings": [LACKING]})).parts
    assert (after.state, after.reason) == (state, "No such store." if state == "not_possible" else "")


async def test_p83_a_part_that_is_not_covered_goes_back_once_and_is_shown_as_not_done(catalogue: NodeStore) -> None:
    part = Part(id="p1", quote="at most 40 words")
    account = {"id": "p1", "state": "covered", "nodes": ["chatOpenAI_0"]}
    engine = ScriptedEngine({"goal": "x", "flow_name": "x", "nodes": [MODEL], "parts": [account]})
    result = await reasoner(engine, 3).plan(plan_request(catalogue, parts=(part,)))
    assert result.tries == 2
    assert "p1 is covered, but '40' is in no value" in last_text(engine)
    assert [(one.id, one.reason) for one in result.value.not_done] == [("p1", "The plan does not contain '40'.")]
