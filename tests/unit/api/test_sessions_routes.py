"""The session routes over a service in memory: shapes, waiting, idempotency, lists."""

import asyncio
from uuid import UUID, uuid4

import httpx2
import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError
from tests.unit.api.conftest import MakeApp, client_of
from tests.unit.api.service_double import EngineDouble, view

START = {"requirement": "Build a bot"}


async def test_start_answers_202_with_the_location_while_the_session_works(http: httpx2.AsyncClient) -> None:
    response = await http.post("/sessions", json=START)
    body = response.json()
    assert response.status_code == 202
    assert body["status"] == "in_progress"
    assert body["thread_id"] == body["session_id"]
    assert response.headers["location"] == f"/sessions/{body['thread_id']}"


async def test_start_answers_200_once_the_session_asks(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    session_id = uuid4()
    task = asyncio.create_task(http.post("/sessions?wait=60", json=START | {"thread_id": str(session_id)}))
    await engine.service.until("wait")
    engine.service.settle(session_id)
    response = await task
    assert response.status_code == 200
    assert response.json()["interrupt"]["id"] == "i1"


@pytest.mark.parametrize(
    ("query", "headers", "waited"),
    [
        ("", {}, [0.02]),
        ("?wait=0.01", {}, [0.01]),
        ("?wait=0", {}, []),
        ("", {"Prefer": "respond-async"}, []),
        ("", {"Prefer": 'foo; wait=0, wait="0"'}, []),
        ("?wait=0.01", {"Prefer": "respond-async"}, [0.01]),
    ],
)
async def test_the_query_beats_prefer_beats_the_setting(
    make_app: MakeApp, engine: EngineDouble, query: str, headers: dict[str, str], waited: list[float]
) -> None:
    async with client_of(make_app(wait_secs=0.02)) as http:
        await http.post(f"/sessions{query}", json=START, headers=headers)
    assert [details[0] for name, details in engine.service.calls if name == "wait"] == waited


async def test_p41_a_waiting_call_answers_202_when_the_service_stops(
    http: httpx2.AsyncClient, engine: EngineDouble
) -> None:
    task = asyncio.create_task(http.post("/sessions?wait=60", json=START))
    await engine.service.until("wait")
    engine.feed.end_streams()
    assert (await task).status_code == 202


async def test_resume_passes_the_answer_and_the_idempotency_key(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    session_id = uuid4()
    engine.service.settle(session_id)
    body = {"interrupt_id": "i1", "answer": {"action": "approve"}}
    response = await http.post(f"/sessions/{session_id}/resume", json=body, headers={"Idempotency-Key": "k1"})
    assert response.status_code == 202
    name, (id_, sent, key) = engine.service.calls[0]
    assert (name, id_, sent.answer, key) == ("resume", session_id, {"action": "approve"}, "k1")


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
async def test_an_odd_idempotency_key_is_refused(http: httpx2.AsyncClient, engine: EngineDouble, key: str) -> None:
    response = await http.post("/sessions", json=START, headers={"Idempotency-Key": key.encode()})  # type: ignore[dict-item]
    assert response.status_code == 422
    assert engine.service.calls == []


async def test_p42_a_database_fault_is_503_and_says_when_to_come_back(
    http: httpx2.AsyncClient, engine: EngineDouble
) -> None:
    engine.service.failure = DatabaseUnavailableError("Postgres does not answer.")
    response = await http.get(f"/sessions/{uuid4()}")
    assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")
    assert int(response.headers["retry-after"]) > 0


async def test_cancel_and_delete(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    session_id = uuid4()
    engine.service.settle(session_id)
    assert (await http.post(f"/sessions/{session_id}/cancel")).json()["outcome"] == "cancelled"
    response = await http.delete(f"/sessions/{session_id}")
    assert (response.status_code, response.content) == (204, b"")
    assert (await http.get(f"/sessions/{session_id}")).status_code == 404


@pytest.mark.parametrize(("query", "purge"), [("", False), ("?purge=false", False), ("?purge=true", True)])
async def test_p47_a_delete_purges_when_it_says_so(
    http: httpx2.AsyncClient, engine: EngineDouble, query: str, purge: bool
) -> None:
    session_id = uuid4()
    engine.service.settle(session_id)
    assert (await http.delete(f"/sessions/{session_id}{query}")).status_code == 204
    assert ("delete", (session_id, purge)) in engine.service.calls


async def test_list_passes_filters_and_cursor(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    engine.service.views = {id_: view(id_) for id_ in (UUID(int=n) for n in range(3))}
    response = await http.get(
        "/sessions",
        params={"status": "in_progress", "limit": 2, "cursor": "abc", "text": "shop bot", "instance": "main"},
    )
    assert len(response.json()["sessions"]) == 2
    assert engine.service.calls == [
        ("list", ("in_progress", 2, "abc", {"instance": "main", "chatflow": None, "text": "shop bot"}))
    ]


@pytest.mark.parametrize("query", ["status=queued", "limit=0", "limit=101", "limit=x", f"cursor={'c' * 201}"])
async def test_list_refuses_odd_parameters(http: httpx2.AsyncClient, query: str) -> None:
    assert (await http.get(f"/sessions?{query}")).status_code == 422
