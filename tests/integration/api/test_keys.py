"""Keys of people and programs on a real Postgres: made, used, rotated, revoked, and what each may do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
from pydantic import SecretStr

from flowise_dev_agent.api import create_app
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.database import across_owners
from flowise_dev_agent.settings import ServerSettings, load_settings
from tests.fixtures.database import superuser
from tests.runtime_world import running_engine

SHARED = "the-shared-key"


@asynccontextmanager
async def service(dsn: str) -> AsyncIterator["Keys"]:
    server = ServerSettings(rate_limit_sessions_per_min=0, wait_secs=20, api_key=SecretStr(SHARED))
    async with running_engine(dsn) as engine:
        app = create_app(load_settings(server=server), engine)
        async with app.router.lifespan_context(app):
            yield Keys(app)


class Keys:
    """Clients of a service by key."""

    def __init__(self, app: Any) -> None:
        self._transport = StreamingASGITransport(app)

    def client(self, key: str) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx2.AsyncClient(base_url="http://localhost", headers=headers, transport=self._transport, timeout=30)

    async def make(self, name: str, *scopes: str, **more: Any) -> dict[str, Any]:
        response = await self.client(SHARED).post("/keys", json={"name": name, "scopes": scopes, **more})
        assert response.status_code == 201, response.text
        return response.json()

    async def who(self, key: str) -> int | str:
        response = await self.client(key).get("/keys/current")
        return response.json()["name"] if response.status_code == 200 else response.status_code


async def test_a_key_opens_under_its_name_until_it_is_revoked(keys: Keys, database: Database) -> None:
    made = await keys.make("Ada", "build")
    assert made["key"].startswith("fda_")
    assert await keys.who(made["key"]) == "Ada"
    (listed,) = (await keys.client(SHARED).get("/keys")).json()["keys"]
    assert listed["last_used_at"] is not None
    assert {name: listed[name] for name in ("name", "scopes", "created_by", "active")} == {
        "name": "Ada",
        "scopes": ["build"],
        "created_by": "AGENT_API_KEY",
        "active": True,
    }
    assert (await keys.client(SHARED).delete(f"/keys/{made['id']}")).status_code == 204
    assert await keys.who(made["key"]) == 401
    (listed,) = (await keys.client(SHARED).get("/keys")).json()["keys"]
    assert (listed["active"], listed["revoked_at"] is None) == (False, False)
    with across_owners():
        rows = await database.fetch_all("SELECT api_keys::text AS row FROM api_keys")
    assert made["key"] not in rows[0]["row"]


async def test_a_key_ends_when_it_expires(keys: Keys, database: Database) -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    made = await keys.make("guest", "read", expires_at=soon)
    assert await keys.who(made["key"]) == "guest"
    async with superuser(database) as connection:
        await connection.execute("UPDATE api_keys SET expires_at = now() - interval '1 s'")
    assert await keys.who(made["key"]) == 401
    past = {"name": "late", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}
    response = await keys.client(SHARED).post("/keys", json=past)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_input")


async def test_a_rotated_key_keeps_its_scopes_and_the_old_one_opens_as_long_as_said(keys: Keys) -> None:
    first = await keys.make("ci", "build", "approve")
    admin = keys.client(SHARED)
    second = (await admin.post(f"/keys/{first['id']}/rotate", json={"keep_old_secs": 60})).json()
    assert (second["id"], second["scopes"]) == (first["id"], ["approve", "build"])
    assert [await keys.who(made["key"]) for made in (first, second)] == ["ci", "ci"]
    third = (await admin.post(f"/keys/{first['id']}/rotate", json={})).json()
    assert [await keys.who(made["key"]) for made in (first, second, third)] == [401, 401, "ci"]
    await admin.delete(f"/keys/{first['id']}")
    assert (await admin.post(f"/keys/{first['id']}/rotate", json={})).json()["code"] == "key_conflict"
    assert await keys.who(third["key"]) == 401


async def test_names_of_keys_in_use_are_unique_and_unknown_keys_are_404(keys: Keys) -> None:
    made = await keys.make("Ada", "read")
    admin = keys.client(SHARED)
    twice = await admin.post("/keys", json={"name": "Ada", "scopes": ["admin"]})
    assert (twice.status_code, twice.json()["code"]) == (409, "key_conflict")
    await admin.delete(f"/keys/{made['id']}")
    await keys.make("Ada", "read")
    for response in (await admin.delete(f"/keys/{uuid4()}"), await admin.post(f"/keys/{uuid4()}/rotate", json={})):
        assert (response.status_code, response.json()["code"]) == (404, "key_not_found")


async def test_a_key_needs_a_plain_name_known_scopes_and_an_end_with_a_zone(keys: Keys) -> None:
    names = ("", " x", "a\nb", "x" * 65)
    wrong = [{"scopes": []}, {"scopes": ["root"]}, {"expires_at": "2030-01-01T00:00:00"}, *({"name": n} for n in names)]
    for part in wrong:
        response = await keys.client(SHARED).post("/keys", json={"name": "x", "scopes": ["read"], **part})
        assert (response.status_code, response.json()["code"]) == (422, "invalid_request"), part


async def test_last_use_is_written_at_most_once_a_minute(keys: Keys, database: Database) -> None:
    made = await keys.make("busy", "read")

    async def version() -> Any:
        with across_owners():
            return await database.fetch_one("SELECT xmin::text AS xmin, last_used_at FROM api_keys")

    await keys.who(made["key"])
    first = await version()
    await asyncio.gather(*(keys.who(made["key"]) for _ in range(20)))
    assert await version() == first
    async with superuser(database) as connection:
        await connection.execute("UPDATE api_keys SET last_used_at = now() - interval '61 s'")
    aged = await version()
    await keys.who(made["key"])
    assert (await version())["last_used_at"] > aged["last_used_at"]


async def test_who_may_only_build_asks_and_who_may_approve_decides(keys: Keys) -> None:
    builder = keys.client((await keys.make("builder", "build"))["key"])
    approver = keys.client((await keys.make("approver", "approve"))["key"])
    reader = keys.client((await keys.make("reader", "read"))["key"])
    view = (await builder.post("/sessions", json={"requirement": "ask:q work:a end:accepted"})).json()
    path = f"/sessions/{view['thread_id']}/resume"
    question = view["interrupt"]["id"]
    decides, harmless = ({"interrupt_id": question, "answer": {"action": name}} for name in ("approve", "go_on"))
    refused = [
        await reader.post(path, json=harmless),
        await builder.post(path, json=decides),
        await approver.post("/sessions", json={"requirement": "work:a"}),
        await builder.post("/keys", json={"name": "more", "scopes": ["admin"]}),
        await approver.post("/keys", json={"name": "more", "scopes": ["admin"]}),
    ]
    assert {(response.status_code, response.json()["code"]) for response in refused} == {(403, "scope_missing")}
    assert (await reader.get(f"/sessions/{view['thread_id']}")).json()["status"] == "pending_interrupt"
    assert (await approver.post(path, json=decides)).json()["outcome"] == "accepted"


async def test_tools_of_mcp_have_the_scopes_of_the_key(keys: Keys) -> None:
    reader = keys.client((await keys.make("reader", "read"))["key"])

    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        response = await reader.post("/mcp", json=body, headers=headers)
        return httpx2.Response(200, content=response.text.partition("data: ")[2] or response.text).json()["result"]

    refused = await call("start_session", requirement="work:a")
    assert refused["isError"]
    assert '"code": "scope_missing"' in refused["content"][0]["text"]
    assert not (await call("list_sessions")).get("isError")


async def test_a_key_acts_for_its_owner_and_an_admin_for_any(keys: Keys) -> None:
    async def acts_for(key: str, **headers: str) -> str:
        response = await keys.client(key).get("/keys/current", headers=headers)
        return response.json()["owner"] if response.status_code == 200 else response.json()["code"]

    ada = await keys.make("Ada", "build", "approve", owner="sales")
    assert ada["owner"] == "sales"
    assert [await acts_for(key) for key in (ada["key"], SHARED)] == ["sales", "default"]
    assert await acts_for(SHARED, **{"X-Owner": "sales"}) == "sales"
    assert await acts_for(ada["key"], **{"X-Owner": "sales"}) == "sales"
    assert await acts_for(ada["key"], **{"X-Owner": "default"}) == "scope_missing"
    assert [await acts_for(SHARED, **{"X-Owner": name}) for name in ("nobody", "Sales", "x" * 64)] == [
        "owner_not_found"
    ] * 3


async def test_patterns_belong_to_an_owner(keys: Keys) -> None:
    ada = await keys.make("Ada", "build", owner="sales")
    ops = [{"op_type": "AddNode", "node_name": "chatOpenAI", "node_id": "chatOpenAI_0"}]
    pattern = {"requirement": "a chatbot for support", "name": "Support", "ops": ops}
    brought = await keys.client(ada["key"]).post("/patterns/import", json={"patterns": [pattern]})
    assert brought.status_code == 200, brought.text
    shown = [len((await keys.client(key).get("/patterns")).json()["patterns"]) for key in (ada["key"], SHARED)]
    assert shown == [1, 0]


async def test_owners_are_listed_with_the_keys_that_open_for_each(keys: Keys) -> None:
    for name in ("Ada", "Bo"):
        made = await keys.make(name, "admin", owner="sales")
    admin = keys.client(SHARED)
    await admin.delete(f"/keys/{made['id']}")
    listed = (await admin.get("/owners")).json()["owners"]
    assert [(one["id"], one["kind"], one["keys"]) for one in listed] == [("default", "team", 0), ("sales", "team", 1)]
    builder = keys.client((await keys.make("builder", "build", "approve"))["key"])
    assert (await builder.get("/owners")).json()["code"] == "scope_missing"
