"""A part that a plan calls covered has its addresses and quoted texts in the plan."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Finding, GraphIR, compile_ops
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.passes.coverage import with_uncovered_parts, without_missing_resources
from flowise_dev_agent.schemas.plan import Criterion, Part, Plan, PlannedNode, PlannedValue, TestCase
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
        ("send it to ops@example.org", {"prompt": "Send it."}),
        ("look at https://status.example.org/all", {"url": "https://status.example.org"}),
        ('call it "Bluebird"', {"prompt": "You are Redbird."}),
        ("sage „Guten Tag, lieber Gast“ zur Begrüßung", {"prompt": "Sage Hallo."}),
    ],
)
def test_p83_what_a_part_names_and_the_plan_lacks_is_found(
    quote: str, values: dict[str, Any], catalogue: NodeStore
) -> None:
    assert uncovered(plan(quote, **values), catalogue) == ["p1"]


@pytest.mark.parametrize(
    ("quote", "values"),
    [
        # User and password go into a credential, and the values of a query are the tool's.
        (
            "the stock is in postgresql://USER:PASSWORD@db.example.org:5432/shop",
            {"url": "postgresql://db.example.org:5432/shop"},
        ),
        (
            "GET https://api.example.org/prices?format=a5&day=1",
            {"url": "https://api.example.org/prices", "q": "format day"},
        ),
        # Words and numbers are the model's to read: six messages are three exchanges of a window.
        ("remember the last 14 messages", {"k": 7}),
        ("Claude Sonnet 4.5, at most 40 words, as in v2", {"prompt": "Be brief."}),
        ("say “Hello, dear guest.”", {"prompt": "Say 'Hello, dear guest' first."}),
        ("be kind to everybody", {}),
        # Empty quotes: " and company = " is no quotation.
        ('state with score = "" and company = ""', {}),
        pytest.param("my key is sk-" + "a1B2c3" * 6, {}, id="a pasted key"),
        (
            "ask https://api.shop.example/orders/{number}/state",
            {"url": "https://api.shop.example/orders/{{ question }}/state"},
        ),
        (
            "ask https://core.example/policies/{policy number}",
            {"url": "https://core.example/policies/{{ $flow.state.policy }}"},
        ),
        ('reply "Write to maren@roast.example by noon."', {"prompt": "Reply: Write to maren@roast.example by noon."}),
        pytest.param('say "use sk-' + "a1B2c3" * 6 + ' here"', {"prompt": "Say: use [secret] here"}, id="a quoted key"),
        ('say "no spraying: wind {value} km/h"', {"prompt": "No spraying: wind {{ $flow.state.wind }} km/h"}),
    ],
)
def test_p83_what_the_plan_has_in_another_form_is_covered(
    quote: str, values: dict[str, Any], catalogue: NodeStore
) -> None:
    assert uncovered(plan(quote, **values), catalogue) == []


def test_p83_saying_it_in_goal_steps_or_purpose_does_not_cover_it(catalogue: NodeStore) -> None:
    words = "write to ops@example.org"
    told = plan(words).model_copy(update={"goal": words, "steps": [words]})
    assert uncovered(told, catalogue) == ["p1"]


def test_p83_the_reason_of_a_part_covers_it(catalogue: NodeStore) -> None:
    (part,) = covered("our database is at https://db.example.org:8443")
    assert uncovered(plan(parts=[part]), catalogue) == ["p1"]
    told = part.model_copy(update={"reason": "https://db.example.org:8443 belongs into the credential."})
    assert uncovered(plan(parts=[told]), catalogue) == []


def test_p83_the_purpose_counts_where_a_prompt_is_written_from_it(catalogue: NodeStore) -> None:
    step = PlannedNode(node_id="llmAgentflow_0", node_name="llmAgentflow", purpose='Greets with "Good day".')
    assert uncovered(plan('greet with "Good day"').model_copy(update={"nodes": [step]}), catalogue) == []


def test_p83_what_the_flow_has_already_is_covered(catalogue: NodeStore) -> None:
    ops = [AddNode(node_name="chatOpenAI", node_id="chatOpenAI_1", params={"basepath": "https://a.example.org"})]
    base = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    assert uncovered(plan("keep https://a.example.org"), catalogue, flow=GraphView(base)) == []


def test_p83_parts_that_are_not_called_covered_are_left_alone(catalogue: NodeStore) -> None:
    assumed = plan(parts=covered("write to ops@example.org", state="assumed"))
    assert uncovered(assumed, catalogue) == []


def test_p83_the_answer_to_a_question_about_a_flow_covers_it(catalogue: NodeStore) -> None:
    answered = plan("does it write to ops@example.org?").model_copy(update={"answer": "No, there is none."})
    assert uncovered(answered, catalogue) == []


def test_p83_a_later_address_takes_the_place_of_an_earlier_one(catalogue: NodeStore) -> None:
    parts = [
        Part(id="p1", quote="write to a@example.org", state="covered"),
        Part(id="p2", quote="sorry, it is b@example.org", state="covered", source="feedback:1"),
    ]
    assert uncovered(plan(parts=parts, prompt="Write to b@example.org."), catalogue) == []
    assert uncovered(plan(parts=parts, prompt="Write to a@example.org."), catalogue) == ["p2"]


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
    said = after.texts["reason"].code if after.texts else ""
    assert (after.state, said) == (state, "finding.NOT_ON_THE_SERVER" if state == "not_possible" else "")


def test_p83_a_quoted_example_of_a_fault_is_covered_by_a_reason_or_criterion(catalogue: NodeStore) -> None:
    (part,) = covered('my last prompt gave me "Sure! I would classify this as..."')
    assert uncovered(plan(parts=[part]), catalogue) == ["p1"]
    explained = part.model_copy(update={"reason": "The prompt allows one word only."})
    assert uncovered(plan(parts=[explained]), catalogue) == []
    criterion = Criterion(id="c1", text="The answer is one word.", part="p1")
    assert uncovered(plan(parts=[part]).model_copy(update={"criteria": [criterion]}), catalogue) == []
    address = part.model_copy(update={"quote": "write to ops@example.org", "reason": "It is written to."})
    assert uncovered(plan(parts=[address]), catalogue) == ["p1"]


async def test_p83_a_part_that_is_not_covered_goes_back_once_and_is_shown_as_not_done(catalogue: NodeStore) -> None:
    part = Part(id="p1", quote="write to ops@example.org")
    account = {"id": "p1", "state": "covered", "nodes": ["chatOpenAI_0"]}
    engine = ScriptedEngine({"goal": "x", "flow_name": "x", "nodes": [MODEL], "parts": [account]})
    result = await reasoner(engine, 3).plan(plan_request(catalogue, parts=(part,)))
    assert result.tries == 2
    assert "p1 is covered, but 'ops@example.org' is in no value" in last_text(engine)
    assert [(one.id, one.reason) for one in result.value.not_done] == [
        ("p1", "The plan does not contain 'ops@example.org'.")
    ]


def test_p83_a_quoted_sample_of_what_people_ask_is_covered_by_a_test_that_asks_it(catalogue: NodeStore) -> None:
    wanted = plan('they type "the recipe for 34 loaves"')
    assert uncovered(wanted, catalogue) == ["p1"]
    asked = TestCase(id="t1", turns=["Give me the recipe for 34 loaves, please."])
    assert uncovered(wanted.model_copy(update={"tests": [asked]}), catalogue) == []
