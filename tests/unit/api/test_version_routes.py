"""Versions, differences, rollback, history and servers over HTTP: shapes, limits, problems."""

from typing import Any
from uuid import UUID

import httpx2
import pytest

from flowise_dev_agent.errors import (
    FlowiseUnreachableError,
    SessionConflictError,
    SessionNotFoundError,
    VersionNotFoundError,
    WriteFailedError,
)
from tests.unit.api.service_double import EngineDouble

SESSION, FLOW = UUID(int=1), UUID(int=2)


async def test_versions_of_a_session_are_listed_with_the_current_one(
    http: httpx2.AsyncClient, engine: EngineDouble
) -> None:
    response = await http.get(f"/sessions/{SESSION}/versions")
    assert response.status_code == 200
    assert [(item["label"], item["current"]) for item in response.json()["versions"]] == [
        ("v1.0", False),
        ("v2.0", True),
    ]
    assert engine.versions.calls == [("of_session", SESSION)]


async def test_a_difference_takes_two_labels_or_none(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    named = await http.get(f"/sessions/{SESSION}/diff?from=v1.0&to=v2.0")
    assert (named.status_code, named.json()["text"]) == (200, "temperature")
    await http.get(f"/sessions/{SESSION}/diff")
    assert engine.versions.calls == [("diff", SESSION, "v1.0", "v2.0"), ("diff", SESSION, None, None)]


async def test_a_rollback_names_a_version_or_goes_to_the_first(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    response = await http.post(f"/sessions/{SESSION}/rollback?version=v2.0")
    assert (response.status_code, response.json()["label"]) == (200, "v2.0")
    await http.post(f"/sessions/{SESSION}/rollback")
    assert engine.versions.calls == [("rollback", SESSION, "v2.0"), ("rollback", SESSION, None)]


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (SessionNotFoundError("There is no session."), 404, "session_not_found"),
        (SessionConflictError("The session is at work just now."), 409, "session_conflict"),
        (VersionNotFoundError("There is no version 'v9.0'.", hint="The session has: v1.0."), 404, "version_not_found"),
        (WriteFailedError("It was changed at this very moment."), 502, "write_failed"),
        (FlowiseUnreachableError("Flowise does not answer."), 502, "flowise_unreachable"),
    ],
)
async def test_p11_a_rollback_that_cannot_be_made_says_why(
    http: httpx2.AsyncClient, engine: EngineDouble, failure: Exception, status: int, code: str
) -> None:
    engine.versions.failure = failure
    response = await http.post(f"/sessions/{SESSION}/rollback?version=v9.0")
    assert (response.status_code, response.json()["code"]) == (status, code)


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
