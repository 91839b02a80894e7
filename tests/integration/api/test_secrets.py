"""Marked secrets that arrive in every place where people put text are in no answer and no table afterwards."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.api import create_app
from flowise_dev_agent.settings import ServerSettings, load_settings
from tests.fixtures.database import stored_text
from tests.runtime_world import World, running_engine
from tests.unit.test_redaction import KNOWN

RANDOM = "Zx9Kq2LmP4vT7wRb1NcY5sHd8JfG"


@pytest.fixture
async def http(database_dsn: str) -> AsyncIterator[httpx2.AsyncClient]:
    server = ServerSettings(rate_limit_sessions_per_min=0, wait_secs=20, api_key=None)
    async with running_engine(database_dsn) as engine:
        app = create_app(load_settings(server=server), engine)
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=30) as client:
            yield client


async def everything_shown(http: httpx2.AsyncClient) -> str:
    shown: list[str] = []
    for session in (await http.get("/sessions")).json()["sessions"]:
        path = f"/sessions/{session['thread_id']}"
        views = ("", "/events", "/summary", "/decisions", "/versions", "/change", "/deliveries")
        shown += [(await http.get(path + view)).text for view in views]
    return "\n".join([(await http.get("/sessions")).text, *shown])


def places(text: str) -> list[dict[str, Any]]:
    """Bodies of a start with the text in each place that takes words."""
    return [
        {"requirement": f"ask:q {text}"},
        {"requirement": "ask:q", "session_name": text[:120]},
        {"requirement": "ask:q", "test_questions": ["hello", text]},
    ]


async def test_p102_a_text_with_a_known_secret_is_refused_and_stored_nowhere(
    http: httpx2.AsyncClient, world: World
) -> None:
    view = (await http.post("/sessions", json={"requirement": "ask:q"})).json()
    resume = f"/sessions/{view['thread_id']}/resume"
    for secret in KNOWN.values():
        bodies = [
            *(("/sessions", body) for body in places(secret)),
            (resume, {"response": f"use {secret}"}),
            (resume, {"interrupt_id": view["interrupt"]["id"], "answer": {"answers": [{"deep": [secret]}]}}),
        ]
        for path, body in bodies:
            response = await http.post(path, json=body)
            assert (response.status_code, response.json()["code"]) == (422, "secret_in_text"), body
            assert "POST /credentials" in response.json()["hint"]
            assert secret not in response.text
        rename = await http.patch(f"/sessions/{view['thread_id']}/name", json={"session_name": secret[:120]})
        assert rename.status_code == 422, secret
    assert len((await http.get("/sessions")).json()["sessions"]) == 1
    assert (await http.get(f"/sessions/{view['thread_id']}")).json()["interrupt"] == view["interrupt"]
    for text in (await stored_text(world.dsn), await everything_shown(http)):
        kept = [kind for kind, secret in KNOWN.items() if secret in text or json.dumps(secret)[1:-1] in text]
        assert kept == []


async def test_p102_a_random_text_is_masked_before_it_is_stored(http: httpx2.AsyncClient, world: World) -> None:
    for body in places(RANDOM):
        view = (await http.post("/sessions", json=body)).json()
        assert view["status"] == "pending_interrupt"
        answer = {"interrupt_id": view["interrupt"]["id"], "answer": {"answers": [RANDOM]}}
        assert (await http.post(f"/sessions/{view['thread_id']}/resume", json=answer)).status_code == 200
    stored, shown = await stored_text(world.dsn), await everything_shown(http)
    assert RANDOM not in stored
    assert RANDOM not in shown
    assert "[secret]" in shown
