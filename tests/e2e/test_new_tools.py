"""A custom tool that a plan makes on a real Flowise: the flow calls it, and its answer holds what the code returned."""

from typing import Any

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService, answer, http_of, start
from tests.e2e.scripted import AGENT_WIRES, builds, model_environment, script

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


async def test_a_flow_answers_with_what_its_new_tool_computed(
    shared_service: SharedService, standin: ModelStandIn, flowise_client: FlowiseClient
) -> None:
    script(standin, CHATFLOW)
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
