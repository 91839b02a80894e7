"""Versions, differences, rollback, history and servers over HTTP: shapes, limits, problems."""

from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.unit.api.service_double import EngineDouble

SESSION, FLOW = UUID(int=1), UUID(int=2)


async def test_the_history_of_a_flow_is_newest_first_and_bounded(
    http: httpx2.AsyncClient, engine: EngineDouble
) -> None:
    response = await http.get(f"/flows/{FLOW}/history?limit=7")
    assert response.json()["versions"][0]["chatflow_id"] == str(FLOW)
    assert engine.versions.calls == [("of_chatflow", str(FLOW), 7)]
    assert (await http.get(f"/flows/{FLOW}/history?limit=201")).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/sessions/not-an-id/versions", None),
        ("GET", f"/sessions/{SESSION}/diff?from={'v' * 21}", None),
        ("POST", f"/sessions/{SESSION}/rollback?version={'v' * 21}", None),
        ("GET", f"/flows/{'x' * 10_000}/history", None),
    ],
)
async def test_p68_odd_requests_are_refused_before_anything_is_asked(
    http: httpx2.AsyncClient, engine: EngineDouble, method: str, path: str, body: dict[str, Any] | None
) -> None:
    response = await http.request(method, path, json=body)
    assert response.status_code == 422
    assert engine.versions.calls == []


async def test_p69_servers_that_cannot_be_reached_are_listed_without_their_keys(http: httpx2.AsyncClient) -> None:
    response = await http.get("/instances")
    assert [(item["id"], item["default"], item["state"]) for item in response.json()["instances"]] == [
        ("dev", True, "unavailable"),
        ("prod", False, "unavailable"),
    ]
    assert "s3cret" not in response.text
