"""What the rules build is taken by a real Flowise and answers there."""

import uuid

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner


@pytest.mark.parametrize(
    ("requirement", "answers"),
    [
        ("A helpdesk assistant for students with Claude that remembers the last 3 messages", [""]),
        ("An OpenAI agent with a calculator and the current date", ["168", "20"]),
        ('Answers from this text: """The lion sleeps tonight. The zebra is awake.""" and show the sources', ["lion"]),
        ("Agent that answers from our handbook (pasted text) with a retriever tool", ["[PLACEHOLDER"]),
        ("A chain which summarises customer emails, no memory", [""]),
        ("Return JSON with the sender and the product of a complaint", ["sender"]),
        ("A chatbot that refuses messages with the words 'bet' or 'casino'", ["", "violates"]),
        ("A cooking chatbot with conversation summary memory", [""]),
        (
            "Build an agentflow that sorts messages into refunds and sums; for sums: an agent computes it with a "
            "calculator; for refunds: a general assistant answers",
            ["stand-in", "stand-in"],
        ),
        (
            "Flow voor de garage: sorteer berichten in afspraak, klacht of iets anders. Afspraak: vraag de dag. "
            "Klacht: bied excuses aan. Anders: antwoord kort.",
            ["", "", ""],
        ),
        ("1. summarise the notes the user pastes 2. list the action items 3. write a short mail about them", [""]),
    ],
)
async def test_flow_of_the_rules_answers_its_own_test_questions(
    requirement: str,
    answers: list[str],
    catalogue: NodeStore,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
) -> None:
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=requirement))).value
    available = dict.fromkeys(flowise.credentials, 1)
    planned = PlanRequest(requirement=requirement, intent=intent, nodes=catalogue, credential_types=available)
    plan = (await rules.plan(planned)).value
    ops = (await rules.patch(PatchRequest(requirement=requirement, plan=plan, nodes=catalogue))).value.ops
    chosen = {type_: flowise.credentials[type_] for type_ in plan.credential_requirements}
    flow_data = compile_ops(GraphIR.empty(), ops, catalogue.schemas, credentials=chosen).flow_data
    flow = await flowise_client.create_chatflow(
        ChatflowCreate(name=plan.flow_name, flow_data=flow_data, type=plan.flow_kind)
    )
    found = [
        (await flowise_client.predict(flow.id, question, session_id=str(uuid.uuid4()))).answer
        for question in plan.test_questions
    ]
    assert all(found)
    assert len(found) >= len(answers)
    for answer, expected in zip(found, answers, strict=False):
        assert expected in answer
