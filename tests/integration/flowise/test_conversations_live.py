"""Tests of flows on a real Flowise: a person's decisions, forms, webhooks, memory, documents, and their traces."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.patch import AddNode, BindCredential, Connect, GraphIR, PatchOp, Schemas, compile_ops
from flowise_dev_agent.schemas.plan import Expectation, TestCase
from flowise_dev_agent.testing.cases import cases_for, why_not_testable
from flowise_dev_agent.testing.checks import checked
from flowise_dev_agent.testing.flow_tests import hold_tests
from flowise_dev_agent.testing.simulation import NOTHING_SIMULATED, simulated
from flowise_dev_agent.testing.trials import ConversationRunner, TrialConversation, TrialRun, undriven
from flowise_dev_agent.testing.ways import more_ways, told_ways
from tests.fixtures.golden_flows import chat, rag, tool_agent

MODEL = {"llmModel": "chatOpenAI", "llmModelConfig": {"modelName": "gpt-4o-mini", "streaming": False}}


class Flow:
    """A flow on the server, and the conversations with it."""

    def __init__(self, client: FlowiseClient, flow_id: str, flow_data: str) -> None:
        self._client = client
        self._id = flow_id
        self.flow_data = flow_data
        self.graph = GraphIR.from_flow_data(flow_data)

    def cases(self, *cases: TestCase) -> tuple[TestCase, ...]:
        return cases_for(cases, self.graph)

    async def hold(self, case: TestCase) -> TrialRun:
        session = f"fda-test-{uuid4()}"
        why = why_not_testable(case, self.graph)
        run = await ConversationRunner(
            self._client, TrialConversation(self._id, self.flow_data, case, 1, session, why)
        ).run()
        return TrialRun(
            case, checked(run.trial, run.trace, case, self.flow_data, stand_in=False), run.trace, run.decisions
        )


async def made(client: FlowiseClient, schemas: Schemas, bind: Mapping[str, str], ops: Sequence[PatchOp]) -> Flow:
    data = compile_ops(GraphIR.empty(), list(ops), schemas, credentials=dict(bind)).flow_data
    kind = GraphIR.from_flow_data(data).kind
    row = await client.create_chatflow(ChatflowCreate(name="conversation", type=kind, flow_data=data))
    return Flow(client, row.id, data)


def step(name: str, number: int = 0, **params: Any) -> AddNode:
    return AddNode(node_name=name, node_id=f"{name}_{number}", params=params)


def to(source: str, target: str, branch: str | None = None) -> Connect:
    return Connect(source_node_id=source, source_anchor=branch, target_node_id=target)


def approval(refused: str, **start: Any) -> list[PatchOp]:
    """A draft that a person lets go or not."""
    started: Any = {"startInputType": "chatInput", **start}
    model: Any = MODEL
    return [
        step("startAgentflow", **started),
        step("llmAgentflow", llmMessages=[{"role": "system", "content": "Write a draft."}], **model),
        BindCredential(node_id="llmAgentflow_0", credential_type="openAIApi", path="llmModelConfig"),
        step(
            "humanInputAgentflow",
            humanInputDescriptionType="fixed",
            humanInputDescription="Send this?",
            humanInputEnableFeedback=True,
        ),
        step("directReplyAgentflow", directReplyMessage="Sent: {{ llmAgentflow_0 }}"),
        step("directReplyAgentflow", 1, directReplyMessage=refused),
        to("startAgentflow_0", "llmAgentflow_0"),
        to("llmAgentflow_0", "humanInputAgentflow_0"),
        to("humanInputAgentflow_0", "directReplyAgentflow_0", "0"),
        to("humanInputAgentflow_0", "directReplyAgentflow_1", "1"),
    ]


@pytest.mark.parametrize("outcome", ["proceed", "reject"])
async def test_a_person_lets_go_or_refuses_and_the_flow_ends(
    outcome: Literal["proceed", "reject"], flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    flow = await made(flowise_client, schemas, flowise.credentials, approval("Not sent: {{ humanInputAgentflow_0 }}"))
    case = TestCase(id="t1", turns=["Write a note"], human=[outcome], human_feedback=["warmer"])
    run = await flow.hold(case)
    assert (run.trial.passed, run.trial.human) == (True, [outcome])
    assert run.trial.answer.startswith("Sent: " if outcome == "proceed" else "Not sent: warmer")
    last = "directReplyAgentflow_0" if outcome == "proceed" else "directReplyAgentflow_1"
    assert [item.node_id for item in run.trace.steps] == [
        *("startAgentflow_0", "llmAgentflow_0", "humanInputAgentflow_0"),
        last,
    ]
    assert run.trace.tokens["total"] > 0


async def test_p98_a_variable_that_shows_only_after_a_refusal_is_found(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    ops = approval("Not sent: {{ llmAgentflow_0.output }}")
    flow = await made(flowise_client, schemas, flowise.credentials, ops)
    cases = flow.cases(TestCase(id="t1", turns=["Write a note"]))
    runs = [await flow.hold(case) for case in cases]
    assert [run.trial.passed for run in runs] == [True]
    (case,) = undriven(cases, runs)
    refused = await flow.hold(case)
    assert (refused.trial.passed, refused.trial.category) == (False, "LOGIC")
    assert "{{ llmAgentflow_0.output }}" in refused.trial.error


async def test_a_form_is_sent_with_its_fields(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    rows = [{"type": "string", "label": "Name", "name": "name"}, {"type": "number", "label": "Age", "name": "age"}]
    ops: list[PatchOp] = [
        step("startAgentflow", startInputType="formInput", formTitle="Who", formInputTypes=rows),
        step("directReplyAgentflow", directReplyMessage="{{ $form.name }} is {{ $form.age }}"),
        to("startAgentflow_0", "directReplyAgentflow_0"),
    ]
    flow = await made(flowise_client, schemas, flowise.credentials, ops)
    (given,) = flow.cases(TestCase(id="t1", turns=["fill it in"], payload={"name": "Eva", "age": 41}))
    assert (await flow.hold(given)).trial.answer == "Eva is 41"
    (sample,) = flow.cases(TestCase(id="t1", turns=["Ada, 36"]))
    assert (await flow.hold(sample)).trial.answer == "Ada, 36 is 36"


async def test_a_webhook_is_called_and_a_person_decides_behind_it(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    start = {
        "startInputType": "webhookTrigger",
        "webhookInputMode": "text",
        "webhookDefaultInput": "Order {{ $webhook.body.order.id }}",
    }
    flow = await made(flowise_client, schemas, flowise.credentials, approval("Not sent", **start))
    (case,) = flow.cases(TestCase(id="t1", turns=["42"]))
    first = await flow.hold(case)
    assert first.trial.passed
    assert "Order 42" in first.trace.steps[0].model_dump_json()
    assert first.trial.answer.startswith("Sent: ")
    (other,) = undriven((case,), [first])
    assert (await flow.hold(other)).trial.answer == "Not sent"


async def test_a_conversation_shows_whether_the_flow_remembers(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    flow = await made(flowise_client, schemas, flowise.credentials, chat(flowise.credentials))
    run = await flow.hold(TestCase(id="t1", turns=["My name is Eva", "What did I just tell you?"]))
    assert "My name is Eva" in run.trial.answer
    assert len(run.trace.turns) == 2


async def test_documents_and_tools_that_were_used_are_in_the_trace(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    documents = await made(flowise_client, schemas, flowise.credentials, rag(flowise.credentials))
    expect = Expectation(sources=["returned within 30 days"], contains=["30 days"])
    found = await documents.hold(TestCase(id="t1", turns=["When can products be returned?"], expect=expect))
    assert found.trial.passed, found.trial.error
    assert "30 days" in found.trace.sources[0].text
    tools = await made(flowise_client, schemas, flowise.credentials, tool_agent(flowise.credentials))
    used = await tools.hold(
        TestCase(id="t1", turns=["What is 12 times 14?"], expect=Expectation(tools=["calculator_0"]))
    )
    assert used.trial.passed, used.trial.error
    assert [(tool.tool, tool.output) for tool in used.trace.used_tools] == [("calculator", "168")]
    unused = await tools.hold(TestCase(id="t1", turns=["Hello"], expect=Expectation(tools=["calculator"])))
    assert unused.trial.error == "The tool 'calculator' was not used."


async def test_a_branch_that_no_question_takes_is_taken_by_its_own_words(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    ops: list[PatchOp] = [
        step("startAgentflow", startInputType="chatInput"),
        step(
            "conditionAgentAgentflow",
            conditionAgentModel="chatOpenAI",
            conditionAgentModelConfig={"modelName": "gpt-4o-mini", "streaming": False},
            conditionAgentInstructions="Sort the message.",
            conditionAgentInput="{{ question }}",
            conditionAgentScenarios=[{"scenario": "billing question"}, {"scenario": "technical problem"}],
        ),
        BindCredential(
            node_id="conditionAgentAgentflow_0", credential_type="openAIApi", path="conditionAgentModelConfig"
        ),
        step("directReplyAgentflow", directReplyMessage="Billing"),
        step("directReplyAgentflow", 1, directReplyMessage="Technical"),
        to("startAgentflow_0", "conditionAgentAgentflow_0"),
        to("conditionAgentAgentflow_0", "directReplyAgentflow_0", "0"),
        to("conditionAgentAgentflow_0", "directReplyAgentflow_1", "1"),
    ]
    flow = await made(flowise_client, schemas, flowise.credentials, ops)
    cases = flow.cases(TestCase(id="t1", turns=["I have a billing question"]))
    first = await flow.hold(cases[0])
    assert first.trial.answer == "Billing"
    (added,) = more_ways([first], flow.graph, NOTHING_SIMULATED)
    assert (await flow.hold(added)).trial.answer == "Technical"


async def test_a_step_that_fails_is_named_with_its_error(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    ops: list[PatchOp] = [
        step("startAgentflow", startInputType="chatInput"),
        step("customFunctionAgentflow", customFunctionJavascriptFunction="throw new Error('boom')"),
        to("startAgentflow_0", "customFunctionAgentflow_0"),
    ]
    flow = await made(flowise_client, schemas, flowise.credentials, ops)
    run = await flow.hold(TestCase(id="t1", turns=["Hi"]))
    assert not run.trial.passed
    failed = run.trace.steps[-1]
    assert (failed.node_id, failed.status) == ("customFunctionAgentflow_0", "ERROR")
    assert "boom" in failed.error


async def test_a_flow_with_a_schedule_is_left_alone(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas
) -> None:
    node = {"id": "startAgentflow_0", "data": {"name": "startAgentflow", "inputs": {"startInputType": "scheduleInput"}}}
    flow = Flow(flowise_client, "no-flow", json.dumps({"nodes": [node], "edges": []}))
    (case,) = flow.cases(TestCase(id="t1", turns=["Hi"]))
    run = await flow.hold(case)
    assert (run.trial.passed, run.trial.category) == (False, None)
    assert "schedule" in run.trial.error


async def test_a_loop_is_brought_to_its_limit_whatever_its_model_says(
    flowise_client: FlowiseClient, schemas: Schemas
) -> None:
    row = {"type": "string", "value1": "{{ customFunctionAgentflow_0 }}", "operation": "contains", "value2": "again"}
    loop = {"loopBackToNode": "customFunctionAgentflow_0", "maxLoopCount": 3}
    ops: list[PatchOp] = [
        step("startAgentflow", startInputType="chatInput"),
        step("customFunctionAgentflow", customFunctionJavascriptFunction="return 'fine'"),
        step("conditionAgentflow", conditions=[row]),
        step("loopAgentflow", fallbackMessage="Best: {{ customFunctionAgentflow_0 }}", **loop),
        step("directReplyAgentflow", directReplyMessage="Good."),
        to("startAgentflow_0", "customFunctionAgentflow_0"),
        to("customFunctionAgentflow_0", "conditionAgentflow_0"),
        to("conditionAgentflow_0", "loopAgentflow_0", "0"),
        to("conditionAgentflow_0", "directReplyAgentflow_0", "1"),
    ]
    flow = compile_ops(GraphIR.empty(), ops, schemas).graph
    simulation = simulated(flow, schemas, limits=True)
    asked = ChatflowCreate(name="limit", type="AGENTFLOW", flow_data=simulation.flow_data)
    copied = await flowise_client.create_chatflow(asked)
    cases = cases_for([TestCase(id="t1", turns=["Write"])], flow)
    given: Any = {"trials": 1, "session": "fda-test-limit", "simulation": simulation, "ways": True}
    runs = await hold_tests(flowise_client, copied.id, flow.to_flow_data(), cases, **given)
    assert [(run.trial.answer, run.trial.probe) for run in runs] == [("Good.", None), ("Best: fine", "limit")]
    assert [run.trial.simulated for run in runs] == [[], []]
    # The steps that the copy adds are not told.
    ran = [[one.node_id for one in run.trace.steps] for run in runs]
    round_ = ["customFunctionAgentflow_0", "loopAgentflow_0"]
    assert ran[0] == ["startAgentflow_0", "customFunctionAgentflow_0", "conditionAgentflow_0", "directReplyAgentflow_0"]
    assert ran[1] == ["startAgentflow_0", *round_ * 3]
    assert [one.code for one in told_ways(runs, flow, simulation)] == ["way.limit.says"]
