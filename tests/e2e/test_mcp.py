"""Agents that build and change chatflows over MCP, with the SDK's own client, on a real Flowise; a person confirms."""

import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import KEY, LOCKED, MakeService, SharedService, http_of, make_flow, nodes_of, ok
from tests.e2e.scripted import COLDER, REQUIREMENT, SUPPORT, change, model_environment, script
from tests.e2e.service import ServiceProcess


class Person:
    """Confirms what their client asks them; `asked` is what they were shown."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, _: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"confirm": True})


class Agent:
    """Calls tools and remembers what it was told meanwhile."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.told: list[str] = []

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        async def on_progress(_: float, __: float | None, message: str | None) -> None:
            self.told.append(message or "")

        return await self._client.call_tool(tool, arguments, progress_callback=on_progress)

    async def session(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The report of a call that succeeds, with the session at rest."""
        result = await self.call(tool, wait_secs=90, **arguments)
        assert not result.is_error, result.content
        report = result.structured_content
        assert report["session"]["status"] != "in_progress", report
        return report

    async def answer(self, report: dict[str, Any], **answer: Any) -> dict[str, Any]:
        """Answer the report's question; the report after it."""
        session = report["session"]
        given = {"session_id": session["session_id"], "interrupt_id": session["interrupt"]["id"], "answer": answer}
        return await self.session("answer_question", **given)

    async def read(self, address: str) -> str:
        """The text of a resource."""
        (content,) = (await self._client.read_resource(f"flowise-dev-agent://{address}")).contents
        return content.text

    async def prompt(self, name: str, **arguments: str) -> str:
        """What a client gets for a prompt: its text, or the problem."""
        try:
            return repr((await self._client.get_prompt(name, arguments)).messages)
        except MCPError as error:
            return repr(error.error)

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The code of the error of a call that fails."""
        result = await self.call(tool, **arguments)
        assert result.is_error, result
        return json.loads(result.content[0].text)["code"]


@asynccontextmanager
async def over_http(service: ServiceProcess, key: str | None, person: Person | None = None, mode: str = "auto"):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(
            streamable_http_client(f"{service.url}/mcp", http_client=http), mode=mode, elicitation_callback=person
        ) as client,
    ):
        yield Agent(client)


@asynccontextmanager
async def over_stdio(url: str, key: str, folder: Path, person: Person | None = None, mode: str = "auto"):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "flowise_dev_agent", "mcp", "--url", url],
        env={"AGENT_API_KEY": key, "PYTHONPATH": os.environ.get("PYTHONPATH", str(Path(__file__).parents[2]))},
        # In a folder without .env, which the settings would read.
        cwd=folder,
    )
    async with Client(server, mode=mode, elicitation_callback=person) as client:
        yield Agent(client)


async def test_an_agent_creates_a_chatflow_and_a_person_confirms(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    script(standin, {**SUPPORT, "plan": [SUPPORT["plan"], {**SUPPORT["plan"], "flow_name": "Parcel Helper"}]})
    service, person = await shared_service(**LOCKED, **model_environment(standin)), Person()
    for wrong in (None, "wrong"):
        with pytest.RaisesGroup(MCPError, flatten_subgroups=True):
            async with over_http(service, wrong):
                pass

    async with over_http(service, KEY, person, "2026-07-28") as agent:
        found = await agent.call("search_catalogue", query="buffer memory")
        assert "bufferMemory" in [hit["name"] for hit in found.structured_content["nodes"]]

        planned = await agent.session("start_session", requirement=REQUIREMENT)
        question = planned["session"]["interrupt"]
        assert question["type"] == "plan_approval"
        assert "Conversation Chain" in question["data"]["plan"]
        assert question["response_schema"]["oneOf"]
        assert planned["page"] == f"{service.url}/#/s/{planned['session']['session_id']}"
        assert agent.told

        # A client that cannot ask a person gets nowhere with an approval, and is told where the person decides.
        approval = {
            "session_id": planned["session"]["session_id"],
            "interrupt_id": question["id"],
            "answer": {"action": "approve"},
        }
        async with over_http(service, KEY, mode="legacy") as alone:
            assert await alone.refused("answer_question", **approval) == "needs_person"
            revised = await alone.answer(planned, action="request_changes", feedback="Call it Parcel Helper")
        assert revised["session"]["interrupt"]["id"] != question["id"]
        assert person.asked == []

        assert await agent.refused("answer_question", **approval) == "session_conflict"
        tested = await agent.answer(revised, action="approve")
        review = tested["session"]["interrupt"]
        assert review["type"] == "result_review"
        assert all(test["passed"] for test in review["data"]["tests"])
        assert "chatOpenAI" in tested["change"]["text"]
        done = await agent.answer(tested, action="accept")
        assert (done["session"]["status"], done["session"]["outcome"]) == ("completed", "accepted")
        assert [part in text for part, text in zip(("approve", "accept"), person.asked, strict=True)] == [True, True]
        assert "Conversation Chain" in person.asked[0]

        assert await agent.refused("cancel_session", session_id=done["session"]["session_id"]) == "session_conflict"
        assert await agent.refused("get_session", session_id=str(uuid4())) == "session_not_found"
        listed = await agent.call("list_sessions", status="completed")
        assert listed.structured_content["sessions"][0]["session_id"] == done["session"]["session_id"]

        chatflow_id = done["session"]["chatflow_id"]
        flows = await agent.call("list_chatflows", query=chatflow_id[:8])
        assert chatflow_id in [flow["id"] for flow in flows.structured_content["flows"]]
        read = await agent.call("read_chatflow", chatflow_id=chatflow_id)
        assert "chatOpenAI_0 -> conversationChain_0.model" in read.structured_content["summary"]
    prediction = await flowise_client.predict(chatflow_id, "Where is my parcel?", session_id="mcp")
    assert "Where is my parcel?" in prediction.answer
    assert KEY not in service.log()


@pytest.mark.nightly
async def test_a_desktop_client_changes_a_chatflow_by_stdio(
    make_service: MakeService, flowise_client: FlowiseClient, standin: ModelStandIn, tmp_path: Path
) -> None:
    script(standin, change("chatOpenAI_0", "temperature", 0.2))
    row = await make_flow(flowise_client, deployed=True)
    service, person = make_service(AGENT_API_KEY=KEY, **model_environment(standin)), Person()
    async with over_stdio(service.url, KEY, tmp_path, person, mode="legacy") as agent:
        # The client may be started before the service is.
        assert await agent.refused("list_sessions") == "service_unreachable"
        await service.start()
        read = await agent.call("read_chatflow", chatflow_id=row.id)
        assert row.name in read.structured_content["flow"]["name"]
        hits = await agent.call("search_catalogue", query="calculator", limit=3)
        assert "calculator" in [hit["name"] for hit in hits.structured_content["nodes"]]

        planned = await agent.session("start_session", requirement=COLDER, target=row.name, operation="update")
        assert planned["session"]["interrupt"]["data"]["target"]["id"] == row.id
        tested = await agent.answer(planned, action="approve")
        assert "temperature" in tested["change"]["text"]
        assert await flowise_client.get_chatflow(row.id) == row
        done = await agent.answer(tested, action="accept")
        assert (done["session"]["outcome"], done["session"]["chatflow_id"]) == ("accepted", row.id)
        assert planned["page"] == f"{service.url}/#/s/{done['session']['session_id']}"
        assert agent.told
        assert len(person.asked) == 2
        assert await agent.refused("read_chatflow", chatflow_id=str(uuid4())) == "flowise_not_found"
    live = await flowise_client.get_chatflow(row.id)
    (model,) = [node for node in json.loads(live.flow_data)["nodes"] if node["data"]["name"].startswith("chatOpenAI")]
    assert str(model["data"]["inputs"]["temperature"]) == "0.2"

    async with over_stdio(service.url, "wrong", tmp_path) as stranger:
        assert await stranger.refused("list_sessions") == "unauthorized"
    async with http_of(service, KEY) as http:
        hits = (await http.get("/knowledge/search?query=buffer memory&limit=2")).json()
        assert "bufferMemory" in [hit["name"] for hit in hits["nodes"]]
        assert (await http.get("/knowledge/search?query=x&instance=none")).json()["code"] == "invalid_input"


@pytest.mark.nightly
async def test_an_agent_reads_versions_compares_exports_tests_and_puts_one_back(
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    row = await make_flow(flowise_client, deployed=True)
    service, person = await shared_service(**LOCKED), Person()
    model = next(name for name in nodes_of(row) if name.startswith("chatOpenAI"))
    op = {"op_type": "SetParam", "node_id": model, "param_name": "temperature", "value": "0.1"}
    async with http_of(service, KEY) as http:
        applied = await ok(await http.post(f"/flows/{row.id}/apply?wait=60", json={"ops": [op]}))
    session_id = applied["session_id"]

    async with over_http(service, KEY, person) as agent:
        versions = await agent.call("list_versions", session_id=session_id)
        assert [one["label"] for one in versions.structured_content["versions"]] == ["v1.0", "v2.0"]
        compared = await agent.call("compare_versions", session_id=session_id)
        assert "temperature" in compared.structured_content["text"]
        numbered = (await agent.call("list_chatflow_versions", chatflow_id=row.id)).structured_content["versions"]
        assert [(one["name"], one["session_id"]) for one in numbered] == [("v2", session_id), ("v1", session_id)]
        first = {"chatflow_id": row.id, "before": "v1"}
        differs = (await agent.call("compare_chatflow_versions", **first)).structured_content["difference"]
        assert "temperature" in differs["text"]

        checked = await agent.call("check_flow", chatflow_id=row.id)
        assert checked.structured_content["validation"]["valid"]
        exported = await agent.call("export_chatflow", chatflow_id=row.id)
        assert exported.structured_content["sha256"] == applied["sha256"]
        sent = await agent.call("check_flow", flow_data=exported.structured_content["flow_data"])
        assert sent.structured_content["validation"]["valid"], sent.content
        tested = await agent.call("test_flow", chatflow_id=row.id, wait_secs=60)
        assert tested.structured_content["passed"], tested.content
        assert [said for said in agent.told if said.startswith("The test is ")]

        put_back = await agent.call("rollback", session_id=session_id)
        assert (put_back.structured_content["label"], put_back.is_error) == ("v1.0", False)
        assert len(person.asked) == 1
        assert (await flowise_client.get_chatflow(row.id)).flow_data == row.flow_data
        assert not (await agent.call("compare_chatflow_versions", **first)).structured_content["difference"]["changed"]
        shown = await agent.read(f"sessions/{session_id}/difference")
        assert "temperature" in shown
        assert row.name in await agent.read(f"chatflows/{row.id}")


@pytest.mark.nightly
async def test_an_agent_asks_for_several_node_types_with_schemas_and_examples(
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    service = await shared_service(**LOCKED)
    nodes = [{"node_type": "chatOpenAI"}, {"node_type": "Agent Flows", "subtype": "conditionAgentflow"}]
    async with over_http(service, KEY) as agent:
        asked = {"nodes": nodes, "include_examples": True, "include_schemas": True}
        model, condition = (await agent.call("get_node_details", **asked)).structured_content["nodes"]
        assert (model["subtype"], model["node_type"], model["name"]) == ("chatOpenAI", "Chat Models", "OpenAI")
        params = {one["name"]: one for one in model["parameters"]}
        assert params["modelName"]["required"]
        assert params["modelName"]["lists_options"]
        assert params["temperature"]["enum_values"] is None
        assert params["reasoningEffort"]["enum_values"] == ["low", "medium", "high", "xhigh"]
        assert not params["reasoningEffort"]["required"]
        assert "cache" in [one["name"] for one in model["connections"]]
        assert model["input_params_schema"]["properties"]["temperature"]["type"] == "number"
        assert condition["input_params_schema"]["properties"]["conditions"]["type"] == "array"
        for shown, name in ((model, "chatOpenAI"), (condition, "conditionAgentflow")):
            for example in shown["examples"]:
                assert example["ops"][0]["op_type"] == "AddNode"
                assert example["ops"][0]["node_name"] == name
        assert model["examples"]
        assert condition["examples"]
        plain = (await agent.call("get_node_details", nodes=nodes)).structured_content["nodes"]
        assert all(one["examples"] is None and one["input_params_schema"] is None for one in plain)
        assert await agent.refused("get_node_details", nodes=[{"node_type": "chatOpenAl"}]) == "node_type_not_found"
