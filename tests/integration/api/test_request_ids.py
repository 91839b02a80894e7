"""The id of a request in what follows from it: events, the audit log, the log of the worker, webhooks, tools of MCP."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.api import create_app
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.observability.logs import ContextFilter
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.settings import ServerSettings, load_settings
from flowise_dev_agent.webhooks.service import WebhookConfig
from tests.runtime_world import running_engine

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOK = {"webhook_url": "https://127.0.0.1:1/hook"}


@pytest.fixture
async def http(database_dsn: str) -> AsyncIterator[httpx2.AsyncClient]:
    server = ServerSettings.model_validate(
        {
            "WEBHOOK_SECRET": SECRET,
            "WEBHOOK_ALLOW": "127.0.0.1",
            "RATE_LIMIT_SESSIONS_PER_MIN": 0,
            "AGENT_WAIT_SECS": 20,
            "AGENT_API_KEY": None,
        }
    )
    async with running_engine(database_dsn, webhooks=WebhookConfig.from_settings(server)) as engine:
        app = create_app(load_settings(server=server), engine)
        async with app.router.lifespan_context(app):
            transport = StreamingASGITransport(app)
            async with httpx2.AsyncClient(base_url="http://localhost", transport=transport, timeout=30) as client:
                yield client


async def test_the_id_of_each_request_goes_with_what_follows_from_it(
    http: httpx2.AsyncClient, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(ContextFilter())
    first = {"X-Request-Id": "first", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    view = (await http.post("/sessions", json={"requirement": "ask:q fail", **HOOK}, headers=first)).json()
    path = f"/sessions/{view['thread_id']}"
    answer = {"interrupt_id": view["interrupt"]["id"], "answer": {"action": "go_on"}}
    failed = (await http.post(f"{path}/resume", json=answer, headers={"X-Request-Id": "second"})).json()
    assert failed["status"] == "error"

    events = (await http.get(f"{path}/events")).json()["events"]
    by_request = {
        name: {event["type"] for event in events if event["request_id"] == name} for name in ("first", "second")
    }
    assert "interrupt" in by_request["first"]
    assert "error" in by_request["second"]
    assert {event["request_id"] for event in events} == {"first", "second"}

    rows = (await http.get("/audit", params={"session": view["thread_id"]})).json()["rows"]
    assert [(row["action"], row["request_id"]) for row in rows] == [
        ("clarification.go_on", "second"),
        ("start", "first"),
    ]

    (stopped,) = [record for record in caplog.records if "The run stopped" in record.getMessage()]
    assert " request=second" in stopped.context  # type: ignore[attr-defined]

    sent = await database.fetch_all("SELECT body FROM webhook_deliveries ORDER BY created_at")
    payloads: list[dict[str, Any]] = [json.loads(row["body"]) for row in sent]
    assert [(one["type"], one["data"]["request_id"]) for one in payloads] == [
        ("session.waiting", "first"),
        ("session.failed", "second"),
    ]
    assert payloads[0]["data"]["traceparent"].split("-")[1] == TRACE


async def test_a_tool_of_mcp_works_under_the_id_of_its_request(http: httpx2.AsyncClient) -> None:
    headers = {"Accept": "application/json, text/event-stream", "X-Request-Id": "from-the-agent"}
    params = {"name": "start_session", "arguments": {"requirement": "end:accepted"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    assert (await http.post("/mcp", json=body, headers=headers)).headers["x-request-id"] == "from-the-agent"
    (row,) = (await http.get("/audit")).json()["rows"]
    assert (row["request_id"], row["door"]) == ("from-the-agent", "mcp")
