"""Sentences that once gave "works" for something else: each ends right with a model, or says what is not shown."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow
from scripts.bench.verdict_cases import Case, Rule, ScriptedModel
from tests.e2e.people import SharedService, answer, http_of, make_flow, nodes_of, start
from tests.e2e.scripted import SUPPORT, model_environment, script
from tests.e2e.test_verdicts_over_http import answers_for, headline, judgement, reviewed, states

SORTING = (
    "Sorts messages into billing and technical, a billing agent and a technical agent answer, and asks a person to "
    "approve before any refund"
)
BILLING, TECHNICAL, REFUND = "Invoices and payments", "Problems with the product", "Refunds"


def _agent(label: str, text: str) -> dict[str, Any]:
    return {"label": label, "agentMessages": [{"role": "system", "content": text}]}


_HUMAN = {
    "label": "Approve",
    "humanInputDescriptionType": "fixed",
    "humanInputDescription": "Approve this refund?",
    "humanInputEnableFeedback": False,
}
SORTED = Case.model_validate(
    {
        "id": "sorts-messages",
        "author": "project",
        "requirement": SORTING,
        "criteria": [
            {"text": "Billing messages are answered by the billing agent.", "tests": ["t1"]},
            {"text": "Technical messages are answered by the technical agent.", "tests": ["t2"]},
            {"text": "A refund is only made after a person has approved it.", "tests": ["t3"]},
            {"text": "Nobody is asked about other messages.", "tests": ["t1", "t2"]},
        ],
        "tests": [
            {"turns": ["Where is my invoice?"], "expect": {"branch": ["agentAgentflow_0"]}},
            {"turns": ["The app crashes."], "expect": {"branch": ["agentAgentflow_1"]}},
            {"turns": ["I want my money back."], "human": "proceed", "expect": {"branch": ["humanInputAgentflow_0"]}},
        ],
        "model": [
            {"asked": "invoice", "scenario": BILLING},
            {"asked": "crashes", "scenario": TECHNICAL},
            {"asked": "money back", "scenario": REFUND},
            {"sees": ["You answer about invoices"], "say": "Your invoice is in your account."},
            {"sees": ["You answer technical questions"], "say": "Please install version 2."},
            {"sees": ["You answer customers"], "say": "We will look into it."},
        ],
        "right": {
            "nodes": {
                "startAgentflow_0": {"startInputType": "chatInput"},
                "conditionAgentAgentflow_0": {
                    "label": "Sort",
                    "conditionAgentInstructions": "Decide what the message is about.",
                    "conditionAgentInput": "{{ question }}",
                    "conditionAgentScenarios": [{"scenario": one} for one in (BILLING, TECHNICAL, REFUND)],
                },
                "agentAgentflow_0": _agent("Billing", "You answer about invoices."),
                "agentAgentflow_1": _agent("Technical", "You answer technical questions."),
                "humanInputAgentflow_0": _HUMAN,
                "directReplyAgentflow_0": {"directReplyMessage": "Your money is on its way."},
                "directReplyAgentflow_1": {"directReplyMessage": "We cannot refund this."},
            },
            "edges": [
                "startAgentflow_0 -> conditionAgentAgentflow_0",
                "conditionAgentAgentflow_0/0 -> agentAgentflow_0",
                "conditionAgentAgentflow_0/1 -> agentAgentflow_1",
                "conditionAgentAgentflow_0/2 -> humanInputAgentflow_0",
                "humanInputAgentflow_0/0 -> directReplyAgentflow_0",
                "humanInputAgentflow_0/1 -> directReplyAgentflow_1",
            ],
        },
        "broken": {
            "what": "One agent for everything, and a person is asked about every message.",
            "nodes": {
                "conditionAgentAgentflow_0": None,
                "agentAgentflow_1": None,
                "agentAgentflow_0": _agent("Answer", "You answer customers."),
            },
            "more": ["startAgentflow_0 -> agentAgentflow_0", "agentAgentflow_0 -> humanInputAgentflow_0"],
        },
    }
)


async def test_sorting_with_approval_works_with_two_agents_and_a_person_on_refunds_only(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    service = await shared_service(**model_environment(standin))
    judge = judgement(
        ("c1", 1, "Your invoice is in your account.", "agentAgentflow_0"),
        ("c2", 2, "Please install version 2.", "agentAgentflow_1"),
        ("c3", 3, "Approve this refund?", None),
        ("c4", 1, "Your invoice is in your account.", None),
    )
    async with http_of(service) as http:
        view = await reviewed(http, standin, SORTED, judge)
    assert (headline(view), set(states(view))) == ("works", {"shown"}), view["interrupt"]["message"]
    decided = [trial["human"] for trial in view["interrupt"]["data"]["tests"]]
    assert decided == [[], [], ["proceed"], ["reject"]]
    names = [one["data"]["name"] for one in nodes_of(await flowise_client.get_chatflow(view["chatflow_id"])).values()]
    assert (names.count("agentAgentflow"), names.count("conditionAgentAgentflow")) == (2, 1)


@pytest.mark.nightly
async def test_one_agent_and_approval_for_everything_does_not_work(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    del flowise_client  # deletes what the test leaves on the server
    service = await shared_service(**model_environment(standin))
    tests = [test.model_copy(update={"expect": test.expect.__class__()}) for test in SORTED.tests]
    said = ("c2", "failed", "One agent answers everything."), ("c4", "failed", "A person is asked about an invoice.")
    votes = [{"id": id_, "state": state, "reason": reason} for id_, state, reason in said]
    judge = {
        "done": False,
        "category": "INCOMPLETE",
        "reason": "There is one agent.",
        "fix": "Sort.",
        "criteria": votes,
    }
    async with http_of(service) as http:
        view = await reviewed(http, standin, SORTED.model_copy(update={"tests": tests}), judge, "broken")
    assert headline(view) == "fails"
    assert states(view) == ["not_shown", "failed", "not_shown", "failed"]
    assert view["interrupt"]["message"].startswith("The flow needs a look.\nThere is one agent.")


# --- flows that exist ------------------------------------------------------------------------------------------------


def _change(row: Chatflow, operation: str, name: str, values: list[dict[str, Any]], **plan: Any) -> dict[str, Any]:
    """The answers of a model that plans these values, and an op writer that has nothing to add."""
    nodes = nodes_of(row)
    planned = {
        "goal": "As the person wants it.",
        "flow_name": name,
        "nodes": [
            {"node_id": id_, "node_name": nodes[id_]["data"]["name"], "purpose": "as before", "existing": True}
            for id_ in {value["node_id"]: None for value in values}
            if id_ in nodes
        ],
        "steps": ["Change it."],
        "values": values,
        "tests": [{"id": "t1", "turns": ["Where is my parcel?"]}],
        "parts": [{"id": f"p{n}", "state": "covered", "nodes": [values[0]["node_id"]]} for n in range(1, 20)],
        **plan,
    }
    return {"classify": {**SUPPORT["classify"], "operation": operation}, "plan": planned, "patch": {"ops": []}}


async def _accepted(
    http: httpx2.AsyncClient, requirement: str, **request: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The session at its review, and after it was accepted."""
    view = await start(http, requirement, **request)
    assert view["interrupt"], view["error"]
    view = await answer(http, view, action="approve")
    assert view["interrupt"], view["error"]
    assert view["interrupt"]["type"] == "result_review", view["interrupt"]
    return view, await answer(http, view, action="accept")


@pytest.mark.nightly
async def test_a_copy_has_the_name_and_the_language_that_were_asked_for(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    row = await make_flow(flowise_client, "Conversation Chain")
    values = [{"node_id": "conversationChain_0", "param": "systemMessagePrompt", "value": "Answer in French."}]
    criteria = [{"id": "c1", "text": "The answers are in French.", "tests": ["t1"]}]
    test = {"id": "t1", "turns": ["Where is my parcel?"], "expect": {"language": "fr"}}
    standin.reset()
    answers = _change(row, "copy", "Shop bot 2", values, criteria=criteria, tests=[test])
    script(standin, {**answers, "judge": judgement(("c1", 1, "Votre colis arrive demain", None))})
    standin.script("Answer in French.", "Votre colis arrive demain.")
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        requirement = "Copy it as Shop bot 2 and answer in French"
        view, done = await _accepted(http, requirement, target=row.id, operation="copy")
    assert headline(view) == "works", view["interrupt"]["message"]
    copy = await flowise_client.get_chatflow(done["chatflow_id"])
    assert (copy.name, copy.id != row.id) == ("Shop bot 2", True)
    assert nodes_of(copy)["conversationChain_0"]["data"]["inputs"]["systemMessagePrompt"] == "Answer in French."
    assert await flowise_client.get_chatflow(row.id) == row


@pytest.mark.nightly
async def test_another_language_than_asked_for_does_not_work(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    row = await make_flow(flowise_client, "Conversation Chain")
    values = [{"node_id": "conversationChain_0", "param": "systemMessagePrompt", "value": "You are a copy of it."}]
    criteria = [{"id": "c1", "text": "The answers are in French.", "tests": ["t1"]}]
    vote = {"id": "c1", "state": "not_shown", "reason": "The answer is in English."}
    standin.reset()
    answers = _change(row, "copy", "Shop bot 2", values, criteria=criteria)
    script(standin, {**answers, "judge": {"done": True, "criteria": [vote]}})
    standin.script("You are a copy of it.", "Your parcel arrives tomorrow.")
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        view, _ = await _accepted(http, "Copy it as Shop bot 2 and answer in French", target=row.id, operation="copy")
    assert headline(view) == "runs"
    (criterion,) = view["interrupt"]["data"]["verdict"]["criteria"]
    assert (criterion["state"], criterion["reason"]) == ("not_shown", "The answer is in English.")


@pytest.mark.nightly
async def test_claude_in_a_flow_that_exists_changes_that_flow_and_keeps_the_model_of_the_plan(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    row = await make_flow(flowise_client, "Conversation Chain", name="Billing bot 003")
    flows = {found.id async for found in flowise_client.iter_chatflows()}
    (model,) = [id_ for id_, node in nodes_of(row).items() if node["data"]["name"] == "chatOpenAI"]
    values = [{"node_id": "chatAnthropic_0", "param": "modelName", "value": "claude-sonnet-4-6"}]
    criteria = [{"id": "c1", "text": "It answers with Claude Sonnet.", "tests": ["t1"]}]
    new = {"node_id": "chatAnthropic_0", "node_name": "chatAnthropic", "purpose": "the model"}
    answers = _change(
        row,
        "update",
        "Billing bot 003",
        values,
        nodes=[new],
        removals=[model],
        criteria=criteria,
        credential_requirements=["anthropicApi"],
    )
    # An op writer that takes a cheaper model than the plan.
    haiku = {"modelName": "claude-haiku-4-5"}
    ops: list[Mapping[str, Any]] = [
        {"op_type": "RemoveNode", "node_id": model},
        {"op_type": "AddNode", "node_name": "chatAnthropic", "node_id": "chatAnthropic_0", "params": haiku},
        {
            "op_type": "Connect",
            "source_node_id": "chatAnthropic_0",
            "target_node_id": "conversationChain_0",
            "target_anchor": "model",
        },
        {"op_type": "BindCredential", "node_id": "chatAnthropic_0", "credential_type": "anthropicApi"},
    ]
    standin.reset()
    judge = judgement(("c1", 1, "It is on its way", None))
    script(standin, {**answers, "classify": {**answers["classify"], "target_hint": "Billing bot 003"}})
    script(standin, {"patch": {"ops": ops}, "judge": judge})
    standin.script(lambda request: request.model.startswith("claude-sonnet"), "It is on its way.")
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        view, done = await _accepted(http, "Use Claude Sonnet in Billing bot 003", target=row.id)
    assert headline(view) == "works", view["interrupt"]["message"]
    assert done["chatflow_id"] == row.id
    assert {found.id async for found in flowise_client.iter_chatflows()} == flows
    changed = nodes_of(await flowise_client.get_chatflow(row.id))
    assert model not in changed
    assert changed["chatAnthropic_0"]["data"]["inputs"]["modelName"] == "claude-sonnet-4-6"


# --- what cannot be asked --------------------------------------------------------------------------------------------

EVERY_MORNING = Case.model_validate(
    {
        "id": "every-morning",
        "author": "project",
        "requirement": "Writes the quote of the day and posts it to Slack every morning at 8",
        "criteria": [{"text": "A quote is posted to Slack every morning at 8.", "tests": ["t1"]}],
        "tests": [{"turns": [], "input": "schedule"}],
        "model": [{"say": "Begin anywhere."}],
        "right": {
            "nodes": {
                "startAgentflow_0": {
                    "startInputType": "scheduleInput",
                    "scheduleType": "visualPicker",
                    "scheduleFrequency": "daily",
                    "scheduleOnTime": "08:00",
                    "scheduleTimezone": "UTC",
                    "scheduleInputMode": "text",
                    "scheduleDefaultInput": "Write the quote of the day.",
                },
                "llmAgentflow_0": {
                    "label": "Write",
                    "llmMessages": [{"role": "system", "content": "Write the quote of the day."}],
                },
                "httpAgentflow_0": {
                    "label": "Post to Slack",
                    "method": "POST",
                    "url": "https://hooks.slack.example/services/quote",
                    "bodyType": "json",
                    "body": json.dumps({"text": "{{ llmAgentflow_0 }}"}),
                },
            },
            "edges": ["startAgentflow_0 -> llmAgentflow_0", "llmAgentflow_0 -> httpAgentflow_0"],
        },
        "broken": {"what": "nothing"},
    }
)


@pytest.mark.nightly
async def test_a_schedule_is_made_and_tested_by_a_message_with_its_post_simulated(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    service = await shared_service(**model_environment(standin))
    standin.reset()
    script(standin, answers_for(EVERY_MORNING, "right", judgement(("c1", 1, "Begin anywhere", None))))
    standin.script(lambda request: request.kind == "chat", ScriptedModel([Rule(say="Begin anywhere.")]))
    async with http_of(service) as http:
        view = await start(http, EVERY_MORNING.requirement, operation="create")
        assert view["interrupt"], view["error"]
        view = await answer(http, view, action="approve")
        assert view["interrupt"], view["error"]
    assert (headline(view), states(view)) == ("works", ["shown"]), view["interrupt"]["message"]
    assert "POST https://hooks.slack.example/services/quote" in view["interrupt"]["message"]
    row = await flowise_client.get_chatflow(view["chatflow_id"])
    inputs = nodes_of(row)["startAgentflow_0"]["data"]["inputs"]
    assert (inputs["scheduleFrequency"], inputs["scheduleOnTime"]) == ("daily", "08:00")
    assert "hooks.slack.example" in row.flow_data
