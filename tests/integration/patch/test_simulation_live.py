"""Simulated flows on a real Flowise: they answer, and nothing outside is called."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.patch import GraphIR, PatchOp, Schemas, SetParam, compile_ops
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.testing.simulation import Simulation, simulated
from flowise_dev_agent.testing.trials import ConversationRunner, TrialConversation, TrialRun
from tests.fixtures.editor_flows import MODEL, add, bound, connect
from tests.fixtures.outside import Outside

Bind = Mapping[str, str]


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with Outside() as server:
        yield server


@pytest.fixture(autouse=True)
def nobody_called(outside: Outside) -> Iterator[None]:
    outside.called.clear()
    yield
    assert outside.called == []


def http_flow(bind: Bind, address: str, body: str = '{"q": "{{ question }}"}') -> list[PatchOp]:
    return [
        add("startAgentflow"),
        add("httpAgentflow", method="POST", url=f"{address}/orders", bodyType="json"),
        SetParam(node_id="httpAgentflow_0", param_name="body", value=body),
        add("directReplyAgentflow", directReplyMessage="Order {{ httpAgentflow_0.output.http.data.order.id }} is in."),
        connect("startAgentflow_0", "httpAgentflow_0"),
        connect("httpAgentflow_0", "directReplyAgentflow_0"),
    ]


def agent_flow(bind: Bind, address: str) -> list[PatchOp]:
    tools: Any = [
        {
            "agentSelectedTool": "requestsPost",
            "agentSelectedToolConfig": {
                "agentSelectedTool": "requestsPost",
                "requestsPostUrl": f"{address}/orders",
                "requestsPostName": "place_order",
                "requestsPostDescription": "Place an order",
            },
        },
        {"agentSelectedTool": "calculator", "agentSelectedToolConfig": {"agentSelectedTool": "calculator"}},
    ]
    return [
        add("startAgentflow"),
        add("agentAgentflow", agentModel="chatOpenAI", agentModelConfig=MODEL),
        SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=tools),
        bound(bind, "agentAgentflow_0", "agentModelConfig"),
        connect("startAgentflow_0", "agentAgentflow_0"),
    ]


def chat_flow(bind: Bind, address: str) -> list[PatchOp]:
    return [
        add("chatOpenAI", **MODEL),
        bound(bind, "chatOpenAI_0"),
        add("bufferMemory"),
        add("toolAgent"),
        add(
            "requestsPost",
            requestsPostUrl=f"{address}/orders",
            requestsPostName="place_order",
            requestsPostDescription="Place an order",
        ),
        connect("chatOpenAI_0", "toolAgent_0", "model"),
        connect("bufferMemory_0", "toolAgent_0", "memory"),
        connect("requestsPost_0", "toolAgent_0", "tools"),
    ]


class World:
    def __init__(self, client: FlowiseClient, access: FlowiseAccess, schemas: Schemas) -> None:
        self._client, self._access, self._schemas = client, access, schemas

    async def ask(
        self, ops: list[PatchOp], kind: str, answers: Mapping[str, Any] | None = None, *, fails: bool = False
    ) -> tuple[TrialRun, Simulation]:
        text = compile_ops(GraphIR.empty(), ops, self._schemas).flow_data
        case = TestCase(id="t1", turns=['Say "hello"'], answers=dict(answers) if answers else None)
        simulation = simulated(GraphIR.from_flow_data(text), self._schemas, [case])
        flow = await self._client.create_chatflow(
            ChatflowCreate(name="simulated", flow_data=simulation.flow_data, type=kind)
        )
        run = await ConversationRunner(
            self._client,
            TrialConversation(flow.id, text, case, 1, f"sim-{flow.id}-t1{'error0' * fails}-1", simulation=simulation),
        ).run()
        return run, simulation

    @property
    def bind(self) -> Bind:
        return self._access.credentials


@pytest.fixture
def world(flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas) -> World:
    return World(flowise_client, flowise, schemas)


async def test_an_http_step_answers_with_a_sample(world: World, outside: Outside) -> None:
    ops = http_flow(world.bind, outside.endpoint, '{"q": "plain"}')
    run, _ = await world.ask(ops, "AGENTFLOW", {"httpAgentflow_0": {"order": {"id": "A-7"}}})
    assert run.trial.error == ""
    assert run.trial.answer == "Order A-7 is in."
    assert run.trial.simulated == [f"POST {outside.endpoint}/orders"]
    told = run.trace.steps[1]
    assert told.name == "httpAgentflow"
    assert told.simulated
    assert isinstance(told.input, dict)
    assert told.input["body"] == '{"q": "plain"}'


async def test_a_request_at_the_end_answers_nothing_as_the_real_step_does(world: World, outside: Outside) -> None:
    ops = http_flow(world.bind, outside.endpoint, '{"q": "plain"}')
    ends = [op for op in ops if "directReplyAgentflow_0" not in (getattr(op, "node_id", ""), *_ends(op))]
    run, _ = await world.ask(ends, "AGENTFLOW")
    assert (run.trial.answer, run.trial.category) == ("", "LOGIC")
    assert run.trial.simulated == [f"POST {outside.endpoint}/orders"]


def _ends(op: PatchOp) -> tuple[str, str]:
    return getattr(op, "source_node_id", ""), getattr(op, "target_node_id", "")


async def test_another_flow_that_fails_is_an_answer_as_the_real_one_is(world: World) -> None:
    """`tests/integration/knowledge/test_agentflow_chapter.py` shows what the real step does."""
    other: Any = {"executeFlowSelectedFlow": "0b5e7a52-8f0b-4d3e-9a37-0d6a4c1f2b90", "executeFlowInput": "hi"}
    ops = [
        add("startAgentflow"),
        add("executeFlowAgentflow", **other),
        add("directReplyAgentflow", directReplyMessage="It said {{ executeFlowAgentflow_0 }}"),
        connect("startAgentflow_0", "executeFlowAgentflow_0"),
        connect("executeFlowAgentflow_0", "directReplyAgentflow_0"),
    ]
    run, _ = await world.ask(ops, "AGENTFLOW", fails=True)
    assert "It said" in run.trial.answer
    assert '"statusCode": 500' in run.trial.answer


async def test_a_body_that_breaks_fails_as_the_real_step_does(world: World, outside: Outside) -> None:
    run, _ = await world.ask(http_flow(world.bind, outside.endpoint), "AGENTFLOW")
    assert "Invalid JSON format in body" in run.trial.error


@pytest.mark.parametrize(("build", "kind"), [(agent_flow, "AGENTFLOW"), (chat_flow, "CHATFLOW")])
async def test_a_tool_of_an_agent_answers_with_a_sample(
    world: World, outside: Outside, standin: ModelStandIn, build: Any, kind: str
) -> None:
    def reply(request: Any) -> Reply:
        given = [message.text for message in request.messages if message.role == "tool"]
        if given:
            return Reply(f"The tool said {given[-1]}")
        return Reply(tool_calls=(StandInToolCall("place_order", {"RequestBody": {"body": "two"}}),))

    rule = standin.script("hello", reply)
    try:
        run, _ = await world.ask(build(world.bind, outside.endpoint), kind)
    finally:
        standin.reset()
    assert rule.calls >= 2
    assert run.trial.error == ""
    assert "1001" in run.trial.answer
    assert run.trial.used_tools == ["place_order"]
    assert len(run.trial.simulated) == 1
    assert json.loads(run.trace.used_tools[0].model_dump_json())["input"] == {"body": "two"}


async def test_an_address_that_a_test_answers_is_not_called_and_its_branches_are_shown(
    world: World, outside: Outside
) -> None:
    rows: Any = [
        {"type": "number", "value1": "{{ httpAgentflow_0.output.http.data.items[0].qty }}", "operation": "larger"}
        | {"value2": "10"}
    ]
    ops: list[PatchOp] = [
        add("startAgentflow"),
        add("httpAgentflow", method="GET", url=f"{outside.endpoint}/stock"),
        add("conditionAgentflow"),
        SetParam(node_id="conditionAgentflow_0", param_name="conditions", value=rows),
        add("directReplyAgentflow", directReplyMessage="Enough: {{ httpAgentflow_0.output.http.data.items[0].name }}."),
        add("directReplyAgentflow", 1, directReplyMessage="Order more."),
        connect("startAgentflow_0", "httpAgentflow_0"),
        connect("httpAgentflow_0", "conditionAgentflow_0"),
        connect("conditionAgentflow_0", "directReplyAgentflow_0", output="0"),
        connect("conditionAgentflow_0", "directReplyAgentflow_1", output="1"),
    ]
    for qty, said in ((12, "Enough: Lamp."), (3, "Order more.")):
        answers = {"httpAgentflow_0": json.dumps({"items": [{"name": "Lamp", "qty": qty}]})}
        run, _ = await world.ask(ops, "AGENTFLOW", answers)
        assert (run.trial.error, run.trial.answer) == ("", said)
        assert not any(key.startswith("simulated_") for key in run.trace.state)


async def test_an_address_that_is_still_to_be_filled_in_is_simulated(world: World, outside: Outside) -> None:
    del outside
    ops = http_flow(world.bind, "[PLACEHOLDER: the address of your shop]", '{"q": "plain"}')
    run, _ = await world.ask(ops, "AGENTFLOW", {"httpAgentflow_0": {"order": {"id": "A-7"}}})
    assert (run.trial.error, run.trial.answer) == ("", "Order A-7 is in.")


async def test_a_scheduled_flow_runs_in_its_copy(world: World) -> None:
    ops: list[PatchOp] = [
        add("startAgentflow", startInputType="scheduleInput", scheduleType="cronExpression"),
        SetParam(node_id="startAgentflow_0", param_name="scheduleCronExpression", value="30 6 * * 1-5"),
        SetParam(node_id="startAgentflow_0", param_name="scheduleInputMode", value="none"),
        add("directReplyAgentflow", directReplyMessage="Nothing is low."),
        connect("startAgentflow_0", "directReplyAgentflow_0"),
    ]
    run, _ = await world.ask(ops, "AGENTFLOW")
    assert (run.trial.error, run.trial.answer) == ("", "Nothing is low.")


async def test_what_only_reads_stays(world: World, outside: Outside, schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        add("startAgentflow"),
        add("httpAgentflow", method="GET", url=f"{outside.endpoint}/list"),
        connect("startAgentflow_0", "httpAgentflow_0"),
    ]
    text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    assert simulated(GraphIR.from_flow_data(text), schemas).flow_data == text
