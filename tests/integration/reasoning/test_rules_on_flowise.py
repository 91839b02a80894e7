"""What the rules build is taken by a real Flowise and answers there."""

import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from flowise_dev_agent.contracts.designs import DesignForm
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate, HumanAnswer, Prediction
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, Intent, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.fixtures.receiver import running_receiver

#: Makes a flow of a form's steps; asks it in one session.
Ask = Callable[..., Awaitable[Prediction]]
Steps = Callable[..., Awaitable[tuple[PlanContract, Ask]]]


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
    ],
)
async def test_flow_of_the_rules_answers_its_own_test_questions(
    requirement: str,
    answers: list[str],
    catalogue: NodeStore,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=requirement))).value
    plan, id_ = await made(requirement, intent, catalogue, flowise, flowise_client)
    found = [
        (await flowise_client.predict(id_, question, session_id=str(uuid.uuid4()))).answer
        for question in plan.test_questions
    ]
    assert all(found)
    assert len(found) >= len(answers)
    for answer, expected in zip(found, answers, strict=False):
        assert expected in answer


async def made(
    requirement: str,
    intent: Intent,
    catalogue: NodeStore,
    flowise: FlowiseAccess,
    client: FlowiseClient,
    design: DesignForm | None = None,
) -> tuple[PlanContract, str]:
    """A flow on the Flowise as the rules plan and build it: its plan and its id."""
    rules = DeterministicReasoner()
    available = dict.fromkeys(flowise.credentials, 1)
    planned = PlanRequest(
        requirement=requirement, intent=intent, nodes=catalogue, credential_types=available, design=design
    )
    plan = (await rules.plan(planned)).value
    assert plan.declined is None
    ops = (await rules.patch(PatchRequest(requirement=requirement, plan=plan, nodes=catalogue))).value.ops
    chosen = {type_: flowise.credentials[type_] for type_ in plan.credential_requirements}
    flow_data = compile_ops(GraphIR.empty(), ops, catalogue.schemas, credentials=chosen).flow_data
    flow = await client.create_chatflow(ChatflowCreate(name=plan.flow_name, flow_data=flow_data, type=plan.flow_kind))
    return plan, flow.id


# --- Steps of a form ----------------------------------------------------------------------------------------------


@pytest.fixture
def steps(catalogue: NodeStore, flowise: FlowiseAccess, flowise_client: FlowiseClient) -> Steps:
    async def build(*steps: dict[str, Any], **more: Any) -> tuple[PlanContract, Ask]:
        form = DesignForm.model_validate({"name": "Steps", "kind": "steps", "steps": steps, **more})
        intent = Intent(operation="create", ambiguity=0, title=form.name)
        plan, id_ = await made(form.as_text(), intent, catalogue, flowise, flowise_client, form)
        session = str(uuid.uuid4())

        async def ask(question: str | None = None, **given: Any) -> Prediction:
            return await flowise_client.predict(id_, question, session_id=session, **given)

        return plan, ask

    return build


async def test_messages_are_sorted_and_each_branch_answers_its_test_question(steps: Steps) -> None:
    plan, ask = await steps(
        {"kind": "sort", "title": "Topic", "branches": ["refund", "calculation"]},
        {"kind": "reply", "branch": "refund", "message": "We look at: {message}"},
        {"kind": "answer", "branch": "calculation", "prompt": "You compute.", "tools": ["calculator"]},
    )
    first, second = [(await ask(question)).answer for question in plan.test_questions]
    assert first == f"We look at: {plan.test_questions[0]}"
    assert "stand-in" in second


async def test_a_form_is_sent_to_an_address_with_quotes_and_line_breaks(steps: Steps, standin: ModelStandIn) -> None:
    draft, mail = 'Dear "Ada",\nthank you.', 'It\'s "late"\\'
    standin.script("You answer mails", Reply(draft))
    with running_receiver() as receiver:
        _, ask = await steps(
            {"kind": "answer", "title": "Draft", "prompt": "You answer mails: {mail}"},
            {"kind": "call", "title": "Log", "method": "POST", "url": receiver.url(),
             "body": '{"to": ["{mail}"], "text": "Re: {Draft}!", "count": 2}'},
            {"kind": "reply", "message": "Sent: {Draft}"},
            start="form", inputs=[{"name": "mail"}],
        )  # fmt: skip
        answer = await ask(form={"mail": mail})
        (sent,) = receiver.received
    assert json.loads(sent.body) == {"to": [mail], "text": f"Re: {draft}!", "count": 2}
    assert answer.answer == f"Sent: {draft}"
    assert mail in standin.requests[0].prompt


async def test_what_a_person_rejects_is_written_again_and_what_they_approve_is_sent(
    steps: Steps, standin: ModelStandIn
) -> None:
    _, ask = await steps(
        {"kind": "answer", "title": "Draft", "prompt": "You write a toast."},
        {"kind": "approve", "question": "Good?"},
        {"kind": "repeat", "branch": "rejected", "back_to": "Draft"},
    )
    standin.script("You write a toast", lambda _: Reply(f"Toast {len(standin.requests)}"))
    waits = await ask("For Ada")
    for number in (2, 3):
        assert waits.action is not None
        at = waits.action["data"]["nodeId"]
        waits = await ask(human=HumanAnswer(type="reject", start_node_id=at, feedback=f"shorter {number}"))
        assert f"shorter {number}" in standin.requests[-1].prompt
    assert waits.action is not None
    sent = await ask(human=HumanAnswer(type="proceed", start_node_id=waits.action["data"]["nodeId"]))
    assert (sent.answer, sent.action, len(standin.requests)) == ("Toast 3", None, 3)


async def test_a_flow_goes_back_as_often_as_it_may_and_then_gives_its_latest_answer(
    steps: Steps, standin: ModelStandIn
) -> None:
    _, ask = await steps(
        {"kind": "answer", "title": "Draft", "prompt": "You write a toast."},
        {"kind": "sort", "title": "Check", "branches": ["fine", "too long"]},
        {"kind": "reply", "branch": "fine"},
        {"kind": "repeat", "branch": "too long", "back_to": "Draft", "times": 2},
    )
    standin.script("You write a toast", lambda _: Reply(f"Toast {len(standin.requests)}"))
    standin.script("scenario", Reply(json.dumps({"output": "too long"})))
    answer = (await ask("For Ada")).answer
    toasts = [request for request in standin.requests if "You write a toast" in request.prompt]
    assert len(toasts) == 3
    assert answer == f"Toast {len(standin.requests) - 1}"


async def test_each_entry_is_worked_on_and_the_results_are_handed_on(steps: Steps, standin: ModelStandIn) -> None:
    _, ask = await steps(
        {"kind": "each", "title": "Tips", "prompt": "Give one travel tip."},
        {"kind": "answer", "prompt": "You join tips."},
    )
    items = {"items": ["Rome", "Oslo"]}
    standin.script("List every entry", lambda request: Reply(tool_calls=(StandInToolCall(request.forced_tool, items),)))
    standin.script("one travel tip", lambda request: Reply(f"see {request.messages[-1].text}"))
    standin.script("You join tips", lambda request: Reply(request.messages[0].text))
    assert (await ask("Rome and Oslo")).answer.endswith("see Rome\nsee Oslo")
