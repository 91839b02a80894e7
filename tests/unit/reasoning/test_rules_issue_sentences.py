"""The sentences that people had complained about: each right, asked about or declined by name, never half done."""

from collections.abc import Mapping
from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, Intent, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

FROM_NOW_ON = say("prompt_from_now_on", "en")

CHAIN = {"chatOpenAI_0": "chatOpenAI", "bufferMemory_0": "bufferMemory", "conversationChain_0": "conversationChain"}
PROMPT = "conversationChain_0.systemMessagePrompt"


async def planned(
    text: str, nodes: NodeStore, *, changes: bool = False, answers: tuple[tuple[str, str], ...] = (), **flow: Any
) -> tuple[Intent, PlanContract]:
    rules, target = DeterministicReasoner(), "Shop bot" if changes else None
    first = ClassifyRequest(requirement=text, target=target, clarifications=answers)
    intent = (await rules.classify(first)).value
    there: Mapping[str, Any] = {
        "existing": CHAIN,
        "occupied": frozenset({"conversationChain_0.model", "conversationChain_0.memory"}),
        "texts": {PROMPT: "You are the support of Contoso."},
        "flow_summary": "a flow",
    }
    request = PlanRequest(
        requirement=text,
        clarifications=answers,
        intent=intent,
        nodes=nodes,
        target=target,
        credential_types={"openAIApi": 1, "anthropicApi": 1},
        **{**(there if changes else {}), **flow},
    )
    return intent, (await rules.plan(request)).value


def values(plan: PlanContract) -> dict[str, Any]:
    return {value.param: value.value for value in plan.values}


async def test_an_approval_that_may_be_for_one_branch_or_for_all_is_declined(catalogue: NodeStore) -> None:
    text = (
        "Sorts messages into billing and technical, a billing agent and a technical agent answer, and asks a person to "
        "approve before any refund"
    )
    _, plan = await planned(text, catalogue)
    assert "«" in (plan.declined or "")
    assert plan.nodes == []


@pytest.mark.parametrize("name", ["Shop bot 2", "Shop bot 3"])
async def test_a_copy_has_its_name_and_adds_what_is_different(name: str, catalogue: NodeStore) -> None:
    text = f"Copy it as {name} and make the copy answer in French"
    _, plan = await planned(text, catalogue, changes=True)
    assert (plan.operation, plan.flow_name, plan.declined) == ("copy", name, None)
    assert [(value.mode, value.value) for value in plan.values] == [("append", f"{FROM_NOW_ON}\n- Answer in French")]
    _, plan = await planned(f"Copy it as {name}", catalogue, changes=True)
    assert (plan.flow_name, plan.values, plan.declined) == (name, [], None)


async def test_a_model_family_that_is_named_is_the_one_that_is_taken(catalogue: NodeStore) -> None:
    _, plan = await planned("A support bot with Claude Sonnet", catalogue)
    assert "sonnet" in values(plan)["modelName"]


async def test_using_another_model_in_a_flow_that_is_named_is_a_change() -> None:
    intent = (
        await DeterministicReasoner().classify(ClassifyRequest(requirement="Use Claude in Billing bot 003"))
    ).value
    assert intent.operation == "update"


async def test_a_schedule_and_a_message_elsewhere_are_declined_by_name(catalogue: NodeStore) -> None:
    _, plan = await planned("A bot that posts the news to Slack every morning at 8", catalogue)
    assert "posts the news to Slack" in (plan.declined or "")
    assert "to Slack" in (plan.declined or "")


async def test_a_document_that_is_not_there_yet_is_a_placeholder(catalogue: NodeStore) -> None:
    _, plan = await planned("A bot that answers from a PDF", catalogue)
    assert plan.placeholders == ["pdfFile_0.pdfFile: [PLACEHOLDER: Pdf File: Pdf File]"]


@pytest.mark.parametrize(
    ("wish", "line"),
    [
        ("tell the agent to answer in French", "Answer in French"),
        ("Make the answers shorter and friendlier; change nothing else.", "Make the answers shorter and friendlier"),
    ],
)
async def test_a_way_to_behave_is_added_to_a_careful_prompt(wish: str, line: str, catalogue: NodeStore) -> None:
    _, plan = await planned(wish, catalogue, changes=True)
    assert [(value.mode, value.value) for value in plan.values] == [("append", f"{FROM_NOW_ON}\n- {line}")]


async def test_of_two_models_the_person_chooses_and_the_other_is_not_missed(catalogue: NodeStore) -> None:
    text = "A support chatbot with GPT-4o and Claude"
    intent, _ = await planned(text, catalogue)
    assert intent.questions == ["Several models are named: GPT-4o, Claude. Which one should answer?"]
    intent, plan = await planned(text, catalogue, answers=((intent.questions[0], "Claude please"),))
    assert (intent.questions, plan.declined) == ([], None)
    assert "chatAnthropic" in {node.node_name for node in plan.nodes}
    assert "please" not in str(values(plan))


async def test_an_address_that_is_missing_is_asked_for(catalogue: NodeStore) -> None:
    intent, plan = await planned("An agent that calls our API to look up orders", catalogue)
    assert "https://" in intent.questions[0]
    assert plan.declined


async def test_the_model_that_is_named_is_meant(catalogue: NodeStore) -> None:
    flow: dict[str, Any] = {
        "existing": {**CHAIN, "chatOpenAI_1": "chatOpenAI"},
        "labels": {"chatOpenAI_1": "Order desk"},
    }
    _, plan = await planned("Set the temperature in the order desk to 0.3", catalogue, changes=True, **flow)
    assert [(value.node_id, value.value) for value in plan.values] == [("chatOpenAI_1", 0.3)]


async def test_an_ordinal_is_asked_about_and_the_answer_used(catalogue: NodeStore) -> None:
    flow: dict[str, Any] = {"existing": {**CHAIN, "chatAnthropic_0": "chatAnthropic"}}
    text = "Set the temperature of the second model to 0.3"
    _, plan = await planned(text, catalogue, changes=True, **flow)
    question = plan.declined or ""
    assert question == "This could mean: chatOpenAI_0, chatAnthropic_0. Which one?"
    _, plan = await planned(text, catalogue, changes=True, answers=((question, "chatAnthropic_0"),), **flow)
    assert [(value.node_id, value.value) for value in plan.values] == [("chatAnthropic_0", 0.3)]
