"""A new flow from a form: the same design as from words, part by part."""

from typing import Any

import pytest
from pydantic import ValidationError

from flowise_dev_agent.approval.promises import not_met
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops, errors, validate_flow
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.requests import PatchRequest, PlanRequest
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Intent, Plan
from flowise_dev_agent.schemas.requests import StartSession

DUMMY = "a7acd2ec-afaf-5f55-9aef-0532197ae938"


async def planned(nodes: NodeStore, **fields: Any) -> Plan:
    form = DesignForm(name="Desk", **fields)
    intent = Intent(operation="create", ambiguity=0, title=form.name)
    request = PlanRequest(
        requirement=form.as_text(), intent=intent, nodes=nodes, design=form, credential_types={"openAIApi": 1}
    )
    return (await DeterministicReasoner().plan(request)).value


async def compiled(plan: Plan, nodes: NodeStore) -> GraphIR:
    answer = (await DeterministicReasoner().patch(PatchRequest(requirement="x", plan=plan, nodes=nodes))).value
    assert answer.kind == "ops"
    chosen = dict.fromkeys(plan.credential_requirements, DUMMY)
    result = compile_ops(GraphIR.empty(), answer.ops, nodes.schemas, credentials=chosen)
    found = validate_flow(result.flow_data, schemas=nodes.schemas, credentials=None, kind=plan.flow_kind)
    assert errors(found) == []
    return result.graph


@pytest.mark.parametrize(
    ("fields", "types", "values"),
    [
        (
            {"prompt": "You sell {bread}.", "model": "Claude Sonnet", "temperature": 0.2, "memory": 5},
            {"conversationChain", "chatAnthropic", "bufferWindowMemory"},
            {"k": 5, "temperature": 0.2, "systemMessagePrompt": "You sell (bread)."},
        ),
        (
            {"tools": ["calculator", "Current DateTime"], "memory": "all"},
            {"toolAgent", "chatOpenAI", "bufferMemory", "calculator", "currentDateTime"},
            {},
        ),
        (
            {"sources": [{"kind": "web", "url": "https://a.example"}, {"kind": "text", "text": "We open at 9."}]},
            {"conversationalRetrievalQAChain", "cheerioWebScraper", "plainText", "memoryVectorStore"},
            {"url": "https://a.example", "text": "We open at 9."},
        ),
        (
            {"kind": "task", "prompt": "Read the invoice.", "fields": [{"name": "total", "type": "number"}]},
            {"llmChain", "promptTemplate", "structuredOutputParser", "chatOpenAI"},
            {"template": "Read the invoice.\n\n{text}"},
        ),
        (
            {"refused_words": ["bet", "casino"]},
            {"conversationChain", "inputModerationSimple"},
            {"denyList": "bet\ncasino"},
        ),
    ],
)
async def test_a_form_becomes_a_flow(
    fields: dict[str, Any], types: set[str], values: dict[str, Any], catalogue: NodeStore
) -> None:
    plan = await planned(catalogue, **fields)
    assert plan.declined is None
    assert plan.flow_name == "Desk"
    assert types <= {node.node_name for node in plan.nodes}
    assert values.items() <= {value.param: value.value for value in plan.values}.items()
    assert not_met(plan, GraphIR.empty(), await compiled(plan, catalogue)) == []


@pytest.mark.parametrize(
    ("fields", "named"), [({"model": "HAL 9000"}, "HAL 9000"), ({"tools": ["time machine"]}, "time machine")]
)
async def test_a_part_that_flowise_does_not_have_is_declined(
    fields: dict[str, Any], named: str, catalogue: NodeStore
) -> None:
    assert named in str((await planned(catalogue, **fields)).declined)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"design": {"name": "x", "kind": "steps"}},
        {"design": {"name": "x", "fields": [{"name": "a"}]}},
        {"design": {"name": "x", "sources": [{"kind": "web", "url": "ftp://x"}]}},
        {"design": {"name": "x", "sources": [{"kind": "store"}]}},
        {"design": {"name": "x", "sources": [{"kind": "store", "store": "A"}, {"kind": "store", "store": "B"}]}},
        {"design": {"name": "x"}, "requirement": "something else"},
        {"design": {"name": "x"}, "target": "a flow"},
    ],
)
def test_a_start_says_one_thing_that_can_be_built(sent: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StartSession.model_validate(sent)


def test_a_form_is_kept_as_text_too() -> None:
    request = StartSession(design=DesignForm(name="Desk", prompt="You sell bread.", tools=["calculator"]))
    assert request.requirement == "Desk\nYou sell bread.\nTools: calculator"
    assert StartSession.model_validate(request.model_dump(mode="json")) == request
