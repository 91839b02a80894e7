"""Artifacts of a whole session by a form, over REST, on a real Postgres."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from mcp import Client
from pydantic import SecretStr

from flowise_dev_agent.api import create_app
from flowise_dev_agent.api.server import Server, bind, url_of
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.mcp import AgentMcpServer, Host
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.settings import (
    DatabaseSettings,
    FlowiseSettings,
    ReasoningSettings,
    ServerSettings,
    load_settings,
)
from tests.chaos.fake_flowise import FakeFlowise
from tests.support.sessions import ASSISTANT, ASSISTANT_TEXT

KEY = "artifacts"
KINDS = ("plan", "memory", "milestone", "decision")
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
async def http(database_dsn: str) -> AsyncIterator[httpx2.AsyncClient]:
    server = ServerSettings(host="127.0.0.1", port=0, rate_limit_sessions_per_min=0, wait_secs=60, api_key=None)
    with FakeFlowise(api_key=KEY, latency=0) as flowise:
        settings = load_settings(
            server=server,
            database=DatabaseSettings(POSTGRES_DSN=SecretStr(database_dsn)),
            flowise=FlowiseSettings(
                FLOWISE_API_ENDPOINT=f"http://127.0.0.1:{flowise.port}", FLOWISE_API_KEY=SecretStr(KEY)
            ),
            reasoning=ReasoningSettings(engine_choice="deterministic"),
        )
        async with Runtime.open(settings, worker=True) as runtime:
            running = Server(create_app(settings, runtime))
            listener = bind(server)
            serving = asyncio.create_task(running.serve(sockets=[listener]))
            listener.listen()
            async with httpx2.AsyncClient(base_url=url_of(listener), timeout=90) as http:
                yield http
            running.stop()
            await serving


async def answered(http: httpx2.AsyncClient, view: Any, **answer: Any) -> Any:
    body = {"interrupt_id": view["interrupt"]["id"], "answer": answer}
    headers = {"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01", "X-Request-Id": f"my-{answer['action']}"}
    response = await http.post(f"/sessions/{view['thread_id']}/resume", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def accepted(http: httpx2.AsyncClient) -> str:
    view = (await http.post("/sessions", json={"design": ASSISTANT})).json()
    view = await answered(http, view, action="approve")
    view = await answered(http, view, action="accept")
    assert view["outcome"] == "accepted"
    return view["thread_id"]


async def read(http: httpx2.AsyncClient, path: str, **params: Any) -> Any:
    response = await http.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


async def test_an_accepted_session_leaves_artifacts_of_every_kind(http: httpx2.AsyncClient) -> None:
    session = await accepted(http)
    audit_log = (await read(http, "/audit", session=session))["rows"]
    rows_of = {row["action"]: row["seq"] for row in audit_log}

    plans = await read(http, f"/plans/{session}/artifacts")
    assert (plans["ok"], plans["plan_id"], plans["limit"], plans["offset"]) == (True, session, 50, 0)
    assert plans["count"] == len(plans["items"])
    payloads = [item["payload"] for item in reversed(plans["items"])]
    assert payloads[0]["store_mode"] == "replace"
    assert payloads[0]["operation_counts"]["created"] > 3
    assert payloads[0]["mode"] == "deterministic"
    approved = [item for item in plans["items"] if item["flowchart_node_id"] == "hitl_plan_v2"]
    assert approved[0]["payload"]["store_mode"] == "update"
    assert approved[0]["audit_seq"] == rows_of["plan_approval.approve"]
    assert (approved[0]["request_id"], approved[0]["correlation_id"]) == ("my-approve", TRACE_ID)
    assert {task["status"] for stage in payloads[-1]["plan"]["stages"] for task in stage["tasks"]} == {
        "written",
        "passed",
    }

    milestones = (await read(http, f"/milestones/{session}/artifacts"))["items"]
    done = [item["payload"]["milestone"]["milestone_key"] for item in reversed(milestones)]
    assert set(done) >= {"intent", "plan", "patch", "check", "apply", "test", "review", "acceptance"}
    acceptance = next(item for item in milestones if item["payload"]["milestone"]["milestone_key"] == "acceptance")
    assert acceptance["payload"]["action"] == "mark_complete"
    assert acceptance["payload"]["milestone"]["detail"] == "accepted"
    planned = next(item for item in milestones if item["flowchart_node_id"] == "hitl_plan_v2")
    assert (planned["audit_seq"], planned["request_id"]) == (rows_of["plan_approval.approve"], "my-approve")
    assert planned["correlation_id"] == TRACE_ID

    path = f"/flowcharts/{session}/nodes/hitl_plan_v2/decision-artifacts"
    decisions = await read(http, path)
    assert (decisions["flowchart_id"], decisions["flowchart_node_id"]) == (session, "hitl_plan_v2")
    taken = decisions["items"][0]["payload"]
    assert taken["resolved_route_key"] == "define_patch_scope"
    assert taken["matched_connector_ids"] == ["hitl_plan_v2->define_patch_scope"]
    assert [one["matched"] for one in taken["evaluations"]].count(True) == 1
    one = await read(http, f"{path}/{decisions['items'][0]['id']}")
    assert one["item"] == decisions["items"][0]

    every = await read(http, f"/sessions/{session}/artifacts", limit=200)
    memory = next(item for item in every["items"] if item["artifact_type"] == "memory")
    kept = await read(http, f"/memories/{memory['memory_id']}/artifacts")
    assert kept["memory_id"] == memory["memory_id"]
    assert kept["items"][0]["payload"]["action"] == "add"
    assert ASSISTANT_TEXT in kept["items"][0]["payload"]["stored_memory"]["text"]

    # The next session tells which pattern it started from.
    second = (await http.post("/sessions", json={"design": ASSISTANT})).json()["thread_id"]
    (used,) = (await read(http, f"/memories/{memory['memory_id']}/artifacts", flowchart_id=second))["items"]
    assert used["payload"]["action"] == "retrieve"
    assert used["payload"]["retrieved_memories"][0]["memory_id"] == memory["memory_id"]
    assert used["payload"]["llm_guided_retrieve"]["query_text"] == ASSISTANT_TEXT


async def remembered(http: httpx2.AsyncClient, text: str, **more: Any) -> Any:
    response = await http.post("/memories", json={"text": text, **more})
    assert response.status_code == 201, response.text
    return response.json()


async def test_notes_and_patterns_are_remembered_found_and_forgotten(http: httpx2.AsyncClient) -> None:
    await accepted(http)
    first = await remembered(http, "Support answers in German")
    second = await remembered(http, "Invoices are in the archive")
    assert (first["ok"], first["item"]["kind"]) == (True, "note")

    page = await read(http, "/memories")
    assert [(one["kind"], one["text"]) for one in page["items"]] == [
        ("note", "Invoices are in the archive"),
        ("note", "Support answers in German"),
        ("pattern", page["items"][2]["text"]),
    ]
    assert (page["ok"], page["count"], page["limit"], page["offset"]) == (True, 3, 50, 0)
    assert len({one["memory_id"] for one in page["items"]}) == 3
    found = await read(http, "/memories", query_text="support for customers")
    assert [one["kind"] for one in found["items"]] == ["note", "pattern"]
    assert (await read(http, "/memories", limit=1))["count"] == 1
    one = await read(http, "/memories", memory_id=second["memory_id"])
    assert [item["text"] for item in one["items"]] == ["Invoices are in the archive"]

    replaced = await remembered(http, "In French", store_mode="replace", memory_id=first["memory_id"])
    assert replaced["memory_id"] == first["memory_id"]
    assert (await http.delete(f"/memories/{second['memory_id']}")).status_code == 204
    notes = [item["text"] for item in (await read(http, "/memories"))["items"] if item["kind"] == "note"]
    assert notes == ["In French"]
    actions = [row["action"] for row in (await read(http, "/audit"))["rows"]]
    assert [actions.count(name) for name in ("memory.add", "memory.delete")] == [3, 1]


async def test_a_note_that_cannot_be_kept_is_refused_and_a_page_has_fifty_at_most(http: httpx2.AsyncClient) -> None:
    refused: list[tuple[dict[str, Any], int]] = [
        ({"text": "  "}, 422),
        ({"text": "x" * 2_001}, 422),
        ({"text": "x", "store_mode": "replace"}, 422),
        ({"text": "x", "memory_id": 1}, 422),
        ({"text": "x", "store_mode": "replace", "memory_id": 999_999}, 404),
        ({"text": "Our key is sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789"}, 422),
        ({"text": "x", "instance": "elsewhere"}, 422),
    ]
    for body, status in refused:
        response = await http.post("/memories", json=body)
        assert response.status_code == status, response.text
    assert (await read(http, "/memories"))["items"] == []
    for limit in (0, 51):
        assert (await http.get("/memories", params={"limit": limit})).status_code == 422


async def test_notes_are_read_a_page_at_a_time_without_the_patterns(http: httpx2.AsyncClient) -> None:
    await accepted(http)
    for number in range(3):
        await remembered(http, f"Note {number}")
    first = await read(http, "/memories", kind="note", limit=2)
    second = await read(http, "/memories", kind="note", limit=2, offset=2)
    assert [item["text"] for item in first["items"] + second["items"]] == ["Note 2", "Note 1", "Note 0"]
    assert (second["count"], second["offset"]) == (1, 2)
    assert all(item["created_at"] for item in first["items"])
    assert [item["kind"] for item in (await read(http, "/memories", kind="pattern"))["items"]] == ["pattern"]


async def test_a_form_reads_no_notes_and_leave_no_memory_that_says_so(http: httpx2.AsyncClient) -> None:
    await remembered(http, "Customer support is friendly")
    session = (await http.post("/sessions", json={"design": ASSISTANT})).json()["thread_id"]
    assert (await read(http, f"/sessions/{session}/artifacts", kind="memory"))["items"] == []


async def test_the_mcp_tools_read_plans_memories_milestones_and_decisions(http: httpx2.AsyncClient) -> None:
    session = await accepted(http)

    async with AgentClient(str(http.base_url)) as agent_client:
        server = AgentMcpServer(Host(lambda _: agent_client, "person", lambda _: "http://page"))
        async with Client(server) as client:

            async def called(name: str, **arguments: Any) -> Any:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result.content
                return result.structured_content

            plan = await called("get_plan", session_id=session)
            milestones = await called("get_milestone", session_id=session, include_artifacts=True)
            memories = await called("get_memory", query_text=ASSISTANT_TEXT, limit=1)
            memory_id = memories["memories"][0]["memory_id"]
            memory = await called("get_memory", memory_id=memory_id, include_artifacts=True)
            decision = await called("get_decision_artifact", session_id=session, node="hitl_review_v2")
            chosen = decision["items"][0]
            one = await called("get_node_artifact", session_id=session, artifact_id=chosen["id"])
            too_many = await client.call_tool("get_memory", {"limit": 51})
            note = await remembered(http, "Answers are short")
            notes = await called("get_memory", memory_id=note["memory_id"])
            kept = (await called("add_memory", text="Answers are kind"))["memories"][0]["memory_id"]
            again = await called("add_memory", text="Answers are polite", memory_id=kept)
            await called("delete_memory", memory_id=note["memory_id"])
            left = await called("get_memory", query_text="answers")

    assert {task["status"] for task in plan["plan"]["stages"][0]["tasks"]} == {"written"}
    assert plan["artifacts"] is None
    states = {one["milestone_key"]: one["status"] for one in milestones["milestones"]}
    assert (states["plan"], states["acceptance"]) == ("completed", "completed")
    assert milestones["artifacts"]["count"] == len(milestones["artifacts"]["items"])
    assert [one["memory_id"] for one in memory["memories"]] == [memory_id]
    assert memory["artifacts"]["items"][0]["payload"]["action"] == "add"
    assert [(one["kind"], one["text"]) for one in notes["memories"]] == [("note", "Answers are short")]
    assert again["memories"][0]["memory_id"] == kept
    assert [one["text"] for one in left["memories"] if one["kind"] == "note"] == ["Answers are polite"]
    assert chosen["payload"]["resolved_route_path"].startswith("hitl_review_v2->")
    assert one["items"] == [chosen]
    assert too_many.is_error


async def test_pages_filters_events_and_unknown_ids_of_artifacts(http: httpx2.AsyncClient) -> None:
    session = (await http.post("/sessions", json={"design": ASSISTANT})).json()["thread_id"]
    whole = await read(http, f"/milestones/{session}/artifacts")
    part = await read(http, f"/milestones/{session}/artifacts", limit=1, offset=1)
    of_node = await read(http, f"/milestones/{session}/artifacts", flowchart_node_id="hydrate_context")
    nowhere = await http.get(f"/plans/{uuid4()}/artifacts")
    elsewhere = await http.get(f"/plans/{session}/artifacts/{whole['items'][0]['id']}")

    assert (part["count"], part["items"]) == (whole["count"], whole["items"][1:2])
    assert {item["flowchart_node_id"] for item in of_node["items"]} == {"hydrate_context"}
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "session_not_found")
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (404, "artifact_not_found")

    # Each stored artifact has an event that refers to it; the others are read off the log, one for each decision.
    events = await read(http, f"/sessions/{session}/events", type="node_artifact:persisted", limit=200)
    artifacts = (await read(http, f"/sessions/{session}/artifacts", limit=200))["items"]
    kinds = {kind: {item["id"] for item in artifacts if item["artifact_type"] == kind} for kind in KINDS}
    assert {event["data"]["artifact_id"] for event in events["events"]} == kinds["plan"] | kinds["memory"]
    decided = await read(http, f"/sessions/{session}/events", type="decision", limit=200)
    assert len(kinds["decision"]) == len(decided["events"]) > 0
    assert artifacts == sorted(artifacts, key=lambda item: item["created_at"], reverse=True)
    assert {item["id"] for item in whole["items"]} == kinds["milestone"]
    data = events["events"][0]["data"]
    one = await read(http, data["reference"])
    assert one["item"]["id"] == data["artifact_id"]
    assert (data["flowchart_id"], data["flowchart_run_id"]) == (session, one["item"]["flowchart_run_id"])
