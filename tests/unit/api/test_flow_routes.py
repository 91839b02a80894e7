"""The routes for flows, knowledge, deliveries, names and settings: their shapes and what they refuse."""

from uuid import UUID, uuid4

import httpx2
import pytest

from tests.unit.api.conftest import MakeApp, client_of
from tests.unit.api.service_double import EngineDouble

FLOW = str(UUID(int=2))


async def test_a_session_is_renamed(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    session_id = uuid4()
    engine.service.settle(session_id)
    response = await http.patch(f"/sessions/{session_id}/name", json={"session_name": "Orders"})
    assert (response.status_code, response.json()["session_name"]) == (200, "Orders")


@pytest.mark.parametrize(
    "body", [{}, {"session_name": " "}, {"session_name": "x" * 121}, {"session_name": "a", "b": 1}]
)
async def test_p64_a_name_that_is_none_is_refused(http: httpx2.AsyncClient, body: dict[str, str]) -> None:
    assert (await http.patch(f"/sessions/{uuid4()}/name", json=body)).status_code == 422


async def test_deliveries_of_all_sessions_by_status(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    response = await http.get("/deliveries?status=failed&limit=7")
    assert response.json() == {"deliveries": [], "next_cursor": None}
    assert engine.service.calls == [("all_deliveries", ("failed", 7, None))]
    assert (await http.get("/deliveries?status=lost")).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/flows/not-an-id/graph", None),
        ("GET", "/flows/not-an-id/summary", None),
        ("GET", "/knowledge/search", None),
        ("GET", "/knowledge/search?query=x&limit=51", None),
        ("GET", f"/flows/{FLOW}/compare?before=../x", None),
        ("GET", f"/flows/{FLOW}/compare", None),
        ("GET", f"/sessions/{FLOW}/versions/latest/graph", None),
        ("POST", f"/flows/{FLOW}/chat", {"question": " "}),
        ("POST", f"/flows/{FLOW}/chat", {"question": "x" * 4_001}),
        ("POST", f"/flows/{FLOW}/chat", {"question": "hi", "chat_id": "visitor-1"}),
        ("POST", f"/flows/{FLOW}/chat", {"question": "hi", "overrideConfig": {}}),
        ("POST", f"/flows/{FLOW}/chat", {}),
        ("POST", f"/flows/{FLOW}/chat", {"question": "hi", "form": {"name": "Ada"}}),
        ("POST", f"/flows/{FLOW}/chat", {"human": {"node_id": "humanInputAgentflow_0", "decision": "proceed"}}),
        ("DELETE", f"/flows/{FLOW}/chat/visitor-1", None),
        ("GET", "/flows?limit=1000", None),
    ],
)
async def test_p68_odd_requests_are_refused(
    http: httpx2.AsyncClient, method: str, path: str, body: dict[str, object] | None
) -> None:
    response = await http.request(method, path, json=body)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


async def test_the_settings_show_no_key_and_no_secret(make_app: MakeApp) -> None:
    app = make_app(api_key="s3cret", webhook_secret="whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0")
    async with client_of(app, headers={"Authorization": "Bearer s3cret"}) as http:
        response = await http.get("/settings")
    assert response.status_code == 200
    found = response.json()
    assert (found["auth"], found["webhooks_signed"], found["engine"]) == (True, True, "deterministic")
    assert found["limits"]["max_iterations"] == 3
    assert found["instances"] == [{"id": "default", "default": True}]
    assert "s3cret" not in response.text
    assert "whsec" not in response.text
