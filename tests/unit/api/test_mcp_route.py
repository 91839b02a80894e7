"""`/mcp` in the app: the key, hosts and origins, the body limit, the rate limit, clients of both eras."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from flowise_dev_agent.api.server import Server, bind, url_of
from flowise_dev_agent.settings import ServerSettings
from tests.fixtures.metrics import value_of
from tests.unit.api.conftest import MakeApp
from tests.unit.api.service_double import EngineDouble

URL = "http://localhost:8000/mcp"
KEY = {"Authorization": "Bearer s3cret"}
ERAS = ("legacy", "auto")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def running(app: FastAPI, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost:8000", **options) as http,
    ):
        yield http


def mcp_client(http: httpx2.AsyncClient, mode: str = "auto") -> Client:
    return Client(streamable_http_client(URL, http_client=http), mode=mode, read_timeout_seconds=20)


@pytest.mark.parametrize("mode", ERAS)
async def test_an_agent_of_either_era_works_without_a_session(
    make_app: MakeApp, engine: EngineDouble, mode: str
) -> None:
    seen: list[httpx2.Response] = []

    async def record(response: httpx2.Response) -> None:
        seen.append(response)

    engine.service.ended.set()
    async with running(make_app(), event_hooks={"response": [record]}) as http, mcp_client(http, mode) as client:
        assert "start_session" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("start_session", {"requirement": "An order bot"})
    report = result.structured_content
    assert report["page"] == f"http://localhost:8000/#/s/{report['session']['session_id']}"
    assert {response.request.method for response in seen} == {"POST"}
    assert all("mcp-session-id" not in response.headers for response in seen)


async def test_the_address_of_the_page_is_the_public_one(make_app: MakeApp, engine: EngineDouble) -> None:
    engine.service.ended.set()
    app = make_app(public_base_url="https://agent.example")
    async with running(app) as http, mcp_client(http) as client:
        result = await client.call_tool("start_session", {"requirement": "An order bot"})
    assert result.structured_content["page"].startswith("https://agent.example/#/s/")


@pytest.mark.parametrize("mode", ERAS)
async def test_p50_a_waiting_agent_is_answered_when_the_service_stops(
    make_app: MakeApp, engine: EngineDouble, mode: str
) -> None:
    settings = ServerSettings(host="127.0.0.1", port=0, api_key=None)
    listener = bind(settings)
    listener.listen()
    running_server = Server(make_app())
    serving = asyncio.create_task(running_server.serve(sockets=[listener]))
    async with httpx2.AsyncClient(timeout=60) as http:
        transport = streamable_http_client(f"{url_of(listener)}/mcp", http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
            # It checks an answer by the tool's schema, which it would ask a service for that is gone by then.
            await client.list_tools()
            waiting = asyncio.create_task(client.call_tool("start_session", {"requirement": "x", "wait_secs": 300}))
            await engine.service.until("events")
            running_server.stop()
            result = await waiting
    await serving
    assert result.structured_content["session"]["status"] == "in_progress"


@pytest.mark.parametrize("mode", ERAS)
async def test_p66_an_agent_with_the_key_is_let_in(make_app: MakeApp, mode: str) -> None:
    async with running(make_app(api_key="s3cret"), headers=KEY) as http, mcp_client(http, mode) as client:
        assert not (await client.call_tool("list_sessions", {})).is_error


async def test_p66_without_the_key_there_is_a_problem_and_nothing_else(make_app: MakeApp, engine: EngineDouble) -> None:
    async with running(make_app(api_key="s3cret")) as http:
        response = await http.post("/mcp", json=PING, headers=ACCEPT)
    assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
    assert engine.service.calls == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_no_stream_to_open_and_no_session_to_end(make_app: MakeApp, method: str) -> None:
    async with running(make_app()) as http:
        response = await http.request(method, "/mcp", headers=ACCEPT)
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("declared", [True, False])
async def test_p28_a_body_has_a_limit(make_app: MakeApp, declared: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * 60_000

    body: Any = b" " * 300_000 if declared else pieces()
    async with running(make_app()) as http:
        response = await http.post("/mcp", content=body, headers=ACCEPT | {"Content-Type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


async def test_p62_odd_bodies_are_refused(make_app: MakeApp) -> None:
    async with running(make_app()) as http:
        for version in ("2025-06-18", "2026-07-28", "1999-01-01"):
            headers = ACCEPT | {"Content-Type": "application/json", "MCP-Protocol-Version": version}
            for body in (b"", b"{", b"[]", b"[" * 10_000):
                response = await http.post("/mcp", content=body, headers=headers)
                assert response.status_code == 400, (version, body[:5])
                assert "Traceback" not in response.text


async def test_p65_starts_by_rest_and_mcp_share_one_count(make_app: MakeApp, engine: EngineDouble) -> None:
    engine.service.ended.set()
    start = ("start_session", {"requirement": "x"})
    async with running(make_app(rate_limit_sessions_per_min=2)) as http, mcp_client(http) as client:
        assert (await http.post("/sessions", json={"requirement": "x"})).status_code == 202
        assert not (await client.call_tool(*start)).is_error
        refused = await client.call_tool(*start)
        problem = json.loads(refused.content[0].text)
        assert (refused.is_error, problem["code"]) == (True, "rate_limited")
        assert 0 < problem["details"]["retry_after_secs"] <= 60
        assert (await http.post("/sessions", json={"requirement": "x"})).status_code == 429
        assert not (await client.call_tool("list_sessions", {})).is_error
    assert [name for name, _ in engine.service.calls].count("start") == 2


async def test_metrics_know_the_route(make_app: MakeApp) -> None:
    def count() -> float:
        return value_of("fda_http_request_duration_seconds_count", method="POST", route="/mcp", status=200)

    before = count()
    async with running(make_app()) as http:
        await http.post("/mcp", json=PING, headers=ACCEPT)
    assert count() == before + 1
