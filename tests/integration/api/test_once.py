"""`Idempotency-Key` on the routes that change something, on a real Postgres: done once, answered as often as asked."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.api.app import create_app
from flowise_dev_agent.caller import serving
from flowise_dev_agent.persistence import Database, DoneRequest, DoneRequests, Queue, Retention, Sessions
from flowise_dev_agent.settings import RetentionSettings, Settings
from tests.fixtures.database import stored_text, superuser
from tests.integration.api.test_keys import SHARED, Keys, service

#: They change nothing, or nothing more when they are repeated.
HARMLESS = {"validate_flow", "list_options", "sign_out"}
OPS = [{"op_type": "AddNode", "node_name": "chatOpenAI", "node_id": "chatOpenAI_0"}]
PATTERNS = {"patterns": [{"requirement": "a chatbot for support", "name": "Support", "ops": OPS}]}


@pytest.fixture
async def keys(database_dsn: str) -> AsyncIterator[Keys]:
    async with service(database_dsn) as running:
        yield running


@pytest.fixture
def http(keys: Keys) -> httpx2.AsyncClient:
    return keys.client(SHARED)


def under(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


def test_every_post_that_changes_something_takes_the_key_and_may_answer_a_conflict() -> None:
    document = create_app(Settings()).openapi()
    posts = {item["post"]["operationId"]: item["post"] for item in document["paths"].values() if "post" in item}
    takes = {
        name
        for name, operation in posts.items()
        if any(one["name"] == "idempotency-key" for one in operation.get("parameters", []))
    }
    assert set(posts) - takes == HARMLESS
    assert [name for name in takes if "409" not in posts[name]["responses"]] == []


async def test_a_repeated_request_is_done_once_and_answered_again(http: httpx2.AsyncClient) -> None:
    first, second = [await http.post("/patterns/import", json=PATTERNS, headers=under("a")) for _ in range(2)]
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert first.json()["imported"]
    assert [one.headers.get("idempotent-replayed") for one in (first, second)] == [None, "true"]
    again = await http.post("/patterns/import", json=PATTERNS, headers=under("b"))
    assert again.json() != first.json()


async def test_another_body_or_route_under_the_key_is_refused_and_the_order_of_names_is_not_another_body(
    http: httpx2.AsyncClient,
) -> None:
    made = await http.post("/keys", json={"name": "Ada", "scopes": ["read"]}, headers=under("a"))
    assert made.status_code == 201
    for path, body in (("/keys", {"name": "Bob", "scopes": ["read"]}), ("/patterns/import", PATTERNS)):
        other = await http.post(path, json=body, headers=under("a"))
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    same = await http.post("/keys", json={"scopes": ["read"], "name": "Ada"}, headers=under("a"))
    assert same.json()["code"] == "answer_not_kept"


async def test_an_answer_with_a_secret_is_stored_nowhere(http: httpx2.AsyncClient, database_dsn: str) -> None:
    body = {"name": "Ada", "scopes": ["read"]}
    made = (await http.post("/keys", json=body, headers=under("a"))).json()
    rotated = await http.post(f"/keys/{made['id']}/rotate", json={}, headers=under("b"))
    assert rotated.status_code == 200
    repeated = [
        await http.post("/keys", json=body, headers=under("a")),
        await http.post(f"/keys/{made['id']}/rotate", json={}, headers=under("b")),
    ]
    assert [(one.status_code, one.json()["code"]) for one in repeated] == [(409, "answer_not_kept")] * 2
    stored = await stored_text(database_dsn)
    assert made["key"] not in stored
    assert rotated.json()["key"] not in stored
    who = await http.get("/keys/current", headers={"Authorization": f"Bearer {rotated.json()['key']}"})
    assert who.json()["name"] == "Ada"


async def test_a_request_that_failed_may_be_sent_again(http: httpx2.AsyncClient) -> None:
    view = (await http.post("/sessions", json={"requirement": "ask:q"})).json()
    path = f"/sessions/{view['thread_id']}"
    failed = await http.post(f"{path}/retry", headers=under("a"))
    assert failed.status_code == 409
    assert (await http.post(f"{path}/retry", headers=under("a"))).json()["code"] == failed.json()["code"]
    cancelled = [await http.post(f"{path}/cancel", headers=under("b")) for _ in range(2)]
    assert [one.status_code for one in cancelled] == [200, 200]
    assert cancelled[1].headers["idempotent-replayed"] == "true"


async def test_a_file_sent_again_is_stored_once_whatever_its_boundary(http: httpx2.AsyncClient) -> None:
    file = {"file": ("faq.txt", b"Opening hours: 9 to 5", "text/plain")}
    first, second = [await http.post("/attachments", files=file, headers=under("a")) for _ in range(2)]
    assert (first.status_code, first.json()["id"]) == (201, second.json()["id"])
    other = {"file": ("faq.txt", b"Opening hours: 9 to 6", "text/plain")}
    assert (await http.post("/attachments", files=other, headers=under("a"))).json()["code"] == "idempotency_key_reused"


async def test_of_many_at_the_same_time_one_is_done(http: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(
        *(http.post("/patterns/import", json=PATTERNS, headers=under("a")) for _ in range(10))
    )
    done = {tuple(one.json()["imported"]) for one in answers if one.status_code == 200}
    assert len(done) == 1
    assert {one.json()["code"] for one in answers if one.status_code != 200} <= {"request_in_progress"}
    assert len((await http.get("/patterns")).json()["patterns"]) == 1


async def test_a_repeated_request_needs_the_scope_and_owners_do_not_share_keys(keys: Keys) -> None:
    await keys.client(SHARED).post("/patterns/import", json=PATTERNS, headers=under("a"))
    reader = keys.client((await keys.make("reader", "read"))["key"])
    refused = await reader.post("/patterns/import", json=PATTERNS, headers=under("a"))
    assert refused.json()["code"] == "scope_missing"
    sales = keys.client((await keys.make("Ada", "build", owner="sales"))["key"])
    other = await sales.post("/patterns/import", json=PATTERNS, headers=under("a"))
    assert (other.status_code, other.headers.get("idempotent-replayed")) == (200, None)


@pytest.mark.parametrize("key", ["", "with space", "x" * 256])
async def test_a_key_that_cannot_be_stored_is_refused(http: httpx2.AsyncClient, key: str) -> None:
    response = await http.post("/patterns/import", json=PATTERNS, headers=under(key))
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


async def test_a_lost_request_is_taken_over_and_an_old_answer_is_forgotten(
    database: Database, database_dsn: str
) -> None:
    async def age(interval: str) -> None:
        async with superuser(database) as connection:
            await connection.execute("UPDATE done_requests SET created_at = now() - %s::interval", (interval,))

    requests = DoneRequests(database)

    async def claimed() -> Any:
        return await requests.claim("a", "ab" * 32)

    with serving("default"):
        first = await claimed()
        assert (await claimed()).status is None
        await age("16 min")
        second = await claimed()
        assert second not in (None, first)
        # The lost one comes back: its answer is not that of the second.
        await requests.finish(first, status=200, body=b"late", location=None)
        await requests.finish(second, status=200, body=b"{}", location=f"/x/{uuid4()}")
        assert (await claimed()).body == b"{}"
        await age("16 min")
        assert (await claimed()).body == b"{}"
        await age("25 h")
        assert (await claimed()) not in (first, second)
    await age("25 h")
    kept = Retention(database, Sessions(database, Queue(database_dsn)), RetentionSettings())
    assert (await kept.pass_once())["requests"] == 1


async def test_a_key_whose_requests_fail_all_the_time_is_not_waited_for_without_end() -> None:
    asked: list[str] = []

    class Empty:
        async def fetch_one(self, query: str, _: Any) -> None:
            asked.append(query)

    found = await DoneRequests(cast("Database", Empty())).claim("a", "ab" * 32)
    assert isinstance(found, DoneRequest)
    assert found.status is None
    assert len(asked) == 10
