"""A custom tool that a plan makes on a real Flowise: the flow calls it, and its answer holds what the code returned."""

import asyncio
from typing import Any

import pytest

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import MakeService, SharedService, answer, http_of, start
from tests.e2e.scripted import AGENT_WIRES, builds, model_environment, script
from tests.e2e.service import QUICK, until_settled
from tests.fixtures.proxy import FaultyProxy

REQUIREMENT = "Build an assistant with GPT-4o and a tool that converts miles to km"
QUESTION = "How far are five miles in km?"
MILES: dict[str, Any] = {
    "name": "miles_to_km",
    "description": "Converts miles to kilometres.",
    "inputs": [{"property": "miles", "type": "number", "description": "Length in miles", "required": True}],
    "code": "return ($miles * 1.609344).toFixed(2);",
    "samples": [{"inputs": [{"name": "miles", "value": 5}], "result": "8.05"}],
}
NAMED = {"node_id": "customTool_0", "param": "selectedTool", "value": "miles_to_km"}
CHATFLOW = builds(
    *AGENT_WIRES,
    "customTool -> toolAgent.tools",
    title="Miles",
    values=[NAMED],
    new_tools=[MILES],
    test_questions=[QUESTION],
)
_MODEL = {"node_id": "agentAgentflow_0", "param": "agentModelConfig.modelName", "value": "gpt-4o"}
AGENTFLOW: dict[str, Any] = {
    **CHATFLOW,
    "plan": {
        **CHATFLOW["plan"],
        "nodes": [
            {"node_id": f"{name}_0", "node_name": name, "purpose": "a step"}
            for name in ("startAgentflow", "agentAgentflow")
        ],
        "connections": [{"source": "startAgentflow_0", "output": "", "target": "agentAgentflow_0", "input": ""}],
        "parts": [{"id": f"p{n}", "state": "covered", "nodes": ["agentAgentflow_0"]} for n in range(1, 9)],
        "values": [
            {"node_id": "startAgentflow_0", "param": "startInputType", "value": "chatInput"},
            {"node_id": "agentAgentflow_0", "param": "agentModel", "value": "chatOpenAI"},
            _MODEL,
            {
                "node_id": "agentAgentflow_0",
                "param": "agentTools",
                "value": [
                    {"agentSelectedTool": "customTool", "agentSelectedToolConfig": {"selectedTool": "miles_to_km"}}
                ],
            },
        ],
    },
    "patch": {
        "ops": [
            {"op_type": "AddNode", "node_name": "startAgentflow", "node_id": "startAgentflow_0"},
            {"op_type": "AddNode", "node_name": "agentAgentflow", "node_id": "agentAgentflow_0", "label": "Converts"},
            {"op_type": "Connect", "source_node_id": "startAgentflow_0", "target_node_id": "agentAgentflow_0"},
            {
                "op_type": "BindCredential",
                "node_id": "agentAgentflow_0",
                "credential_type": "openAIApi",
                "path": "agentModelConfig",
            },
        ]
    },
}


def converses(request: RecordedRequest) -> Reply:
    """A model of the flow that calls the tool, and answers with what it returned."""
    given = [message.text for message in request.messages if message.role == "tool"]
    if given:
        return Reply(f"That are {given[-1]} km.")
    return Reply(tool_calls=(StandInToolCall("miles_to_km", {"miles": 5}),))


def asked_for_it(request: RecordedRequest) -> bool:
    return any(tool.name == "miles_to_km" for tool in request.tools)


async def funcs(client: FlowiseClient) -> list[str | None]:
    return [one.get("func") for one in await client.list_tools() if one.get("name") == "miles_to_km"]


@pytest.mark.parametrize("kind", ["chatflow", "agentflow"])
async def test_a_flow_answers_with_what_its_new_tool_computed(
    shared_service: SharedService, standin: ModelStandIn, flowise_client: FlowiseClient, kind: str
) -> None:
    script(standin, CHATFLOW if kind == "chatflow" else AGENTFLOW)
    standin.script(asked_for_it, converses)
    service = await shared_service(**model_environment(standin))
    before = len(await funcs(flowise_client))
    async with http_of(service) as http:
        planned = await start(http, REQUIREMENT)
        shown = planned["interrupt"]["data"]
        assert [one.partition(":")[0] for one in shown["capability"]["effects"]] == ["tool"], shown["plan"]
        assert MILES["code"] in shown["plan"]
        assert len(await funcs(flowise_client)) == before
        tested = await answer(http, planned, action="approve")
        review = tested["interrupt"]["data"]
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]
        assert ["8.05" in test["answer"] for test in review["tests"]] == [True], review["tests"]
        assert (await funcs(flowise_client))[before:] == [MILES["code"]]
        await answer(http, tested, action="rollback")
    assert len(await funcs(flowise_client)) == before


async def test_p02_kill_9_while_a_tool_is_made_leaves_one_tool(
    make_service: MakeService, standin: ModelStandIn, flowise_client: FlowiseClient, faulty_flowise: FaultyProxy
) -> None:
    script(standin, CHATFLOW)
    standin.script(asked_for_it, converses)
    service = make_service(QUICK, FLOWISE_API_ENDPOINT=faulty_flowise.endpoint, **model_environment(standin))
    await service.start()
    before = len(await funcs(flowise_client))
    call = "POST /api/v1/tools"
    async with http_of(service) as http, AgentClient(service.url) as client:
        planned = await start(http, REQUIREMENT)
        faulty_flowise.fault(call, "hold_answer")
        given = {"interrupt_id": planned["interrupt"]["id"], "answer": {"action": "approve"}}
        assert (await http.post(f"/sessions/{planned['thread_id']}/resume", json=given)).is_success
        assert await asyncio.to_thread(faulty_flowise.holding.wait, 60)
        await service.kill()
        await service.start()
        view = await until_settled(client, planned["thread_id"])
        assert view.interrupt is not None, view.error
    assert (await funcs(flowise_client))[before:] == [MILES["code"]]
    assert sum(line.startswith(call) for line in faulty_flowise.seen) == 1
