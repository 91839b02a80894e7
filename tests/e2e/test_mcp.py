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

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import KEY, LOCKED, MakeService, SharedService, http_of, make_flow
from tests.e2e.service import ServiceProcess

REQUIREMENT = "Build a customer support chatbot with GPT-4o and memory"
COLDER = "Set the temperature to 0.2, change nothing else"


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
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    service, person = await shared_service(**LOCKED), Person()
    for wrong in (None, "wrong"):
        with pytest.RaisesGroup(MCPError, flatten_subgroups=True):
            async with over_http(service, wrong):
                pass

    async with over_http(service, KEY, person) as agent:
        found = await agent.call("search_catalogue", query="buffer memory")
        assert "bufferMemory" in [hit["name"] for hit in found.structured_content["nodes"]]

        planned = await agent.session("start_session", requirement=REQUIREMENT)
        question = planned["session"]["interrupt"]
        assert question["type"] == "plan_approval"
        assert "chatOpenAI" in question["data"]["plan"]
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
        assert "chatOpenAI" in person.asked[0]

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


async def test_a_desktop_client_changes_a_chatflow_by_stdio(
    make_service: MakeService, flowise_client: FlowiseClient, tmp_path: Path
) -> None:
    row = await make_flow(flowise_client, deployed=True)
    service, person = make_service(AGENT_API_KEY=KEY), Person()
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
