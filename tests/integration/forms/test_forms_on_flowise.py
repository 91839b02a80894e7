"""Flows made from forms are accepted by a real Flowise and answer there."""

import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate, HumanAnswer, Prediction
from flowise_dev_agent.forms.offer import Offer
from flowise_dev_agent.forms.ops import to_ops
from flowise_dev_agent.forms.plan import plan_of
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Plan
from tests.fixtures.receiver import running_receiver

#: Makes a flow of a form's steps; asks it in one session.
Ask = Callable[..., Awaitable[Prediction]]
Steps = Callable[..., Awaitable[tuple[Plan, Ask]]]


@pytest.mark.parametrize(
    ("form", "answers"),
    [
        ({"prompt": "You help students.", "model": "Claude Sonnet", "memory": 3}, [""]),
        ({"tools": ["calculator", "currentDateTime"]}, ["168", "20"]),
        ({"sources": [{"kind": "text", "text": "The lion sleeps tonight. The zebra is awake."}]}, ["lion"]),
        (
            {"tools": ["calculator"], "sources": [{"kind": "text", "text": "The lion sleeps.", "about": "zoo"}]},
            ["lion"],
        ),
        ({"kind": "task", "prompt": "Summarise the message."}, [""]),
        ({"kind": "task", "fields": [{"name": "sender"}, {"name": "product"}]}, ["sender"]),
        ({"refused_words": ["bet", "casino"]}, ["", "", "violates"]),
    ],
)
async def test_flow_of_a_form_answers_its_own_test_questions(
    form: dict[str, Any],
    answers: list[str],
    catalogue: NodeStore,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
) -> None:
    design = DesignForm.model_validate({"name": "Desk", **form})
    plan, id_ = await made(design, catalogue, flowise, flowise_client)
    found = [
        (await flowise_client.predict(id_, question, session_id=str(uuid.uuid4()))).answer
        for question in plan.test_questions
    ]
    assert all(found)
    for answer, expected in zip(found, answers, strict=False):
        assert expected in answer


async def made(
    form: DesignForm, catalogue: NodeStore, flowise: FlowiseAccess, client: FlowiseClient
) -> tuple[Plan, str]:
    """A flow on the Flowise as its form says: its plan and its id."""
    plan = plan_of(form, Offer(catalogue, dict.fromkeys(flowise.credentials, 1)))
    assert plan.declined is None
    chosen = {type_: flowise.credentials[type_] for type_ in plan.credential_requirements}
    ops = to_ops(plan, catalogue, existing={})
    flow_data = compile_ops(GraphIR.empty(), ops, catalogue.schemas, credentials=chosen).flow_data
    flow = await client.create_chatflow(ChatflowCreate(name=plan.flow_name, flow_data=flow_data, type=plan.flow_kind))
    return plan, flow.id


# --- Steps of a form ----------------------------------------------------------------------------------------------


@pytest.fixture
def steps(catalogue: NodeStore, flowise: FlowiseAccess, flowise_client: FlowiseClient) -> Steps:
    async def build(*steps: dict[str, Any], **more: Any) -> tuple[Plan, Ask]:
        form = DesignForm.model_validate({"name": "Steps", "kind": "steps", "steps": steps, **more})
        plan, id_ = await made(form, catalogue, flowise, flowise_client)
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
