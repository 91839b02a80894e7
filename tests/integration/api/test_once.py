"""`Idempotency-Key` on the routes that change something, on a real Postgres: done once, answered as often as asked."""

import asyncio
from typing import Any, LiteralString, cast
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.api import once
from flowise_dev_agent.api.app import create_app
from flowise_dev_agent.api.routes import knowledge
from flowise_dev_agent.caller import serving
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import Database, DoneRequest, DoneRequests, Queue, Retention, Sessions
from flowise_dev_agent.persistence.done_requests import FINISH, RELEASE
from flowise_dev_agent.schemas.credentials import CreatedCredential
from flowise_dev_agent.settings import RetentionSettings, Settings
from tests.fixtures.database import stored_text, superuser
from tests.integration.api.test_keys import SHARED, Keys

#: They change nothing, or nothing more when they are repeated.
HARMLESS = {"validate_flow", "list_options", "sign_out", "preview_flow", "read_flows_of_a_file"}
OPS = [{"op_type": "AddNode", "node_name": "chatOpenAI", "node_id": "chatOpenAI_0"}]
PATTERNS = {"patterns": [{"requirement": "a chatbot for support", "name": "Support", "ops": OPS}]}


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


@pytest.mark.parametrize("comes_back", [True, False])
async def test_what_was_done_is_answered_when_the_database_fails_just_then(
    http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    failures, finish = [DatabaseUnavailableError("The database does not answer.")] * 2, DoneRequests.finish

    async def failing(self: DoneRequests, *place: Any, **answer: Any) -> None:
        if failures:
            raise failures.pop() if comes_back else failures[0]
        await finish(self, *place, **answer)

    monkeypatch.setattr(DoneRequests, "finish", failing)
    monkeypatch.setattr(once, "_PAUSE_SECS", 0.01)
    monkeypatch.setattr(once, "_KEEP_SECS", 10 if comes_back else 0.1)
    first, second = [await http.post("/patterns/import", json=PATTERNS, headers=under("a")) for _ in range(2)]
    assert (first.status_code, len(first.json()["imported"])) == (200, 1)
    if comes_back:
        assert second.json() == first.json()
    else:
        # It is not done again at once.
        assert second.json()["code"] == "request_in_progress"


async def test_a_failed_request_says_why_when_the_database_fails_just_then(
    http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: Any) -> None:
        raise DatabaseUnavailableError("The database does not answer.")

    monkeypatch.setattr(DoneRequests, "release", failing)
    failed = await http.post(f"/sessions/{uuid4()}/retry", headers=under("a"))
    assert failed.status_code == 404


async def test_what_is_kept_of_a_secret_in_a_request_is_salted(
    http: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def created(*_: Any) -> CreatedCredential:
        return CreatedCredential(id="c1", name="n", type="openAIApi", instance="default")

    monkeypatch.setattr(knowledge, "create_credential", created)
    body = {"name": "n", "type": "openAIApi", "fields": {"openAIApiKey": "hunter2"}}
    replayed: list[str | None] = []
    for key in ("a", "b", "a"):
        made = await http.post("/credentials", json=body, headers=under(key))
        assert made.status_code == 201, made.text
        replayed.append(made.headers.get("idempotent-replayed"))
    assert replayed == [None, None, "true"]
    other = {**body, "fields": {"openAIApiKey": "hunter3"}}
    refused = await http.post("/credentials", json=other, headers=under("a"))
    assert refused.json()["code"] == "idempotency_key_reused"
    async with superuser(database) as connection:
        rows = await (await connection.execute("SELECT fingerprint FROM done_requests")).fetchall()
    assert len({fingerprint for row in rows for fingerprint in row.values()}) == 2


@pytest.mark.parametrize("statement", [FINISH, RELEASE], ids=["finish", "release"])
async def test_an_answer_is_found_by_an_index(database: Database, statement: LiteralString) -> None:
    with serving("default"):
        async with database.connection() as connection:
            await connection.execute(
                "INSERT INTO done_requests (key, fingerprint, claim) SELECT 'k' || n, 'f', gen_random_uuid()"
                " FROM generate_series(1, 1000) AS n"
            )
            values = {"key": "k1", "claim": uuid4(), "status": 200, "body": b"", "location": None}
            rows = await (await connection.execute(f"EXPLAIN {statement}", values)).fetchall()
    assert any("Index Scan using done_requests_pkey" in line for row in rows for line in row.values())


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
        await requests.finish("a", first, status=200, body=b"late", location=None)
        await requests.finish("a", second, status=200, body=b"{}", location=f"/x/{uuid4()}")
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
