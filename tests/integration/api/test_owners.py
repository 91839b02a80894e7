"""Two owners in one database: neither finds, by any table, route, tool or run, what belongs to the other."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any, Final, cast
from uuid import UUID, uuid4

import httpx2
import pytest
from fastapi import FastAPI
from langgraph.checkpoint.base import empty_checkpoint
from psycopg import sql
from psycopg.errors import InsufficientPrivilege
from pydantic import SecretStr

from flowise_dev_agent.access.shares import ShareSigner
from flowise_dev_agent.api import create_app
from flowise_dev_agent.caller import acting_for, serving
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.errors import InvalidInputError, LeaseLostError, SessionNotFoundError
from flowise_dev_agent.persistence import (
    Attachments,
    Blobs,
    Database,
    Events,
    FencedSaver,
    NewEvent,
    Queue,
    Runs,
    Sessions,
    Versions,
    WriteIntents,
)
from flowise_dev_agent.persistence.sessions import NewSession
from flowise_dev_agent.schemas.flow_writes import FlowSettings
from flowise_dev_agent.settings import ServerSettings, load_settings
from flowise_dev_agent.webhooks.service import WebhookConfig
from tests.fixtures.database import superuser
from tests.runtime_world import running_engine

SHARED_KEY: Final = "the-shared-key"
OURS, THEIRS = "sales", "legal"
#: A word in everything that is ours.
MARK: Final = "marigold"
FLOW: Final = "0a1b2c3d-0000-4000-8000-00000000f10e"
#: What owners share, and why; every other table must be bound to an owner.
SHARED: Final = {
    **dict.fromkeys(("schema_migrations", "schema_parts", "checkpoint_migrations"), "versions of the schema"),
    **dict.fromkeys(("instance_nodes", "node_catalogues", "repaired_nodes"), "what a Flowise server offers"),
    **dict.fromkeys(("instance_templates", "template_contents"), "what a Flowise server offers"),
    **dict.fromkeys(("instance_flows", "deleted_flows", "flow_watches"), "what a Flowise server has"),
    **dict.fromkeys(("watched_versions", "watched_texts"), "what a Flowise server had"),
    "probe": "whether the database takes writes",
}
#: Bound to the service alone: a key or cookie opens before it is known for whom, and all owners use the same
#: connections.
OF_SERVICE: Final = {"api_keys", "owners", "sign_ins", "connections", "model_capabilities"}
#: A run sees with its claim when connections were changed, and nothing else of them.
CHANGES: Final = {"connections": "of_all true"}
POLICY: Final = "of_owner (owner = NULLIF(current_setting('app.owner'::text, true), ''::text))"


async def tables(database: Database) -> list[Any]:
    """Every table but the queue's, which has ids of runs and deliveries and nothing else."""
    async with superuser(database) as connection:
        found = await connection.execute(
            "SELECT relname AS name, relrowsecurity AND relforcerowsecurity AS bound,"
            " has_table_privilege('fda_app', oid, 'SELECT') AS readable,"
            " ARRAY(SELECT polname || ' ' || pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = class.oid"
            "   AND polroles && ARRAY['fda_app'::regrole::oid, 0]) AS policies"
            " FROM pg_class AS class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
            " AND relname NOT LIKE 'procrastinate%' ORDER BY relname"
        )
        return await found.fetchall()


async def test_every_table_is_bound_to_an_owner_or_known_to_be_shared(database: Database) -> None:
    found = {table["name"]: table for table in await tables(database)}
    assert set(SHARED) <= set(found)
    for name, table in found.items():
        if name in SHARED:
            continue
        assert table["bound"], f"{name}: enable and force row-level security, or say in SHARED why owners share it"
        if name in OF_SERVICE:
            seen = [CHANGES[name]] if name in CHANGES else []
            assert (table["readable"], table["policies"]) == (False, seen), name
        else:
            assert table["policies"] == [POLICY], name


async def test_the_roles_bypass_nothing_and_no_statement_runs_without_one(database: Database) -> None:
    async with superuser(database) as connection:
        roles = await connection.execute(
            "SELECT rolname FROM pg_roles WHERE rolname IN ('fda_app', 'fda_system')"
            " AND NOT (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolcanlogin)"
        )
        assert len(await roles.fetchall()) == 2
    who = "SELECT current_user AS role, current_setting('is_superuser') AS super"
    expected = {"role": "fda_app", "super": "off"}
    assert await database.fetch_one(who) == expected
    async with database.connection() as connection:
        async with connection.transaction():
            assert await (await connection.execute(who)).fetchone() == expected
        async with connection.pipeline():
            for _ in range(2):
                async with connection.transaction():
                    assert await (await connection.execute(who)).fetchone() == expected
                # Not read yet: the connection counts as busy.
                found = [await connection.execute(who) for _ in range(2)]
                assert [await one.fetchone() for one in found] == [expected] * 2
        await connection.execute("BEGIN")
        assert await (await connection.execute(who)).fetchone() == expected
        await connection.execute("ROLLBACK")
        cursor = connection.cursor()
        await cursor.executemany("SELECT current_user AS role, %s AS number", [(1,)], returning=True)
        assert await cursor.fetchone() == {"role": "fda_app", "number": 1}
        async with connection.pipeline():
            await cursor.executemany("SELECT current_user AS role, %s AS number", [(2,)], returning=True)
            assert await cursor.fetchone() == {"role": "fda_app", "number": 2}
            assert await (await connection.execute(who)).fetchone() == expected
    async with database.transaction() as connection, connection.transaction():
        assert await (await connection.execute(who)).fetchone() == expected


async def owned(database: Database) -> list[str]:
    """Names of the tables whose rows each belong to an owner."""
    return [table["name"] for table in await tables(database) if POLICY in table["policies"]]


async def fill(database: Database) -> list[str]:
    """Put a row of ours into each table that is bound to an owner, whatever it refers to; their names."""
    special = {"runs.kind": "'start'", "node_artifacts.kind": "'plan'", "op": "'create'", "category": "'rag'"}
    by_type = {
        "uuid": "gen_random_uuid()",
        "jsonb": "'{}'",
        "bytea": "'\\x00'",
        "timestamp with time zone": "now()",
        "ARRAY": "'{}'",
        "boolean": "true",
        "integer": "1",
        "bigint": "1",
    }
    names = await owned(database)
    async with superuser(database) as connection:
        await connection.execute("SET session_replication_role = replica")
        for name in names:
            columns = await connection.execute(
                "SELECT column_name AS name, data_type AS type FROM information_schema.columns"
                " WHERE table_name = %s AND is_nullable = 'NO' AND column_default IS NULL"
                " AND is_generated = 'NEVER' AND is_identity = 'NO' AND column_name <> 'owner'",
                (name,),
            )
            values = {
                row["name"]: special.get(
                    f"{name}.{row['name']}", special.get(row["name"], by_type.get(row["type"], f"'{MARK}'"))
                )
                for row in await columns.fetchall()
            }
            await connection.execute(
                sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                    sql.Identifier(name),
                    sql.SQL(", ").join(map(sql.Identifier, ["owner", *values])),
                    sql.SQL(", ").join(sql.SQL(cast(Any, value)) for value in [f"'{OURS}'", *values.values()]),
                )
            )
    return names


async def test_no_table_shows_gives_or_takes_rows_of_another_owner(database: Database) -> None:
    names = await fill(database)
    assert len(names) >= 23
    for name in map(sql.Identifier, names):
        count = sql.SQL("SELECT count(*) AS n FROM {}").format(name)
        for owner, rows in ((OURS, 1), (THEIRS, 0), ("", 0)):
            with serving(owner):
                assert await database.fetch_one(count) == {"n": rows}, (name, owner)
        with serving(THEIRS):
            async with database.connection() as connection:
                for statement in ("UPDATE {} SET owner = 'legal'", "DELETE FROM {}"):
                    if name.as_string().strip('"').startswith("audit_"):
                        continue  # these only grow
                    assert (await connection.execute(sql.SQL(statement).format(name))).rowcount == 0, (name, statement)
        with serving(OURS):
            async with database.connection() as connection:
                if not name.as_string().strip('"').startswith("audit_"):
                    with pytest.raises(InsufficientPrivilege):
                        await connection.execute(sql.SQL("UPDATE {} SET owner = 'legal'").format(name))


async def test_keys_are_out_of_reach_of_what_acts_for_an_owner(database: Database) -> None:
    for name in OF_SERVICE:
        with pytest.raises(InsufficientPrivilege):
            await database.fetch_one(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))
    async with superuser(database) as connection:
        found = await connection.execute(
            "SELECT attname AS name FROM pg_attribute WHERE attrelid = 'connections'::regclass AND attnum > 0"
            " AND has_column_privilege('fda_app', attrelid, attnum, 'SELECT')"
        )
        assert {row["name"] for row in await found.fetchall()} == {"kind", "changed_at"}


# --- runs ----------------------------------------------------------------------------------------------------------


async def begun(sessions: Sessions, owner: str) -> UUID:
    session_id = uuid4()
    with serving(owner):
        await sessions.start(NewSession(session_id, None, f"{MARK} {owner}", {}, "main", texts=[f"text of {owner}"]))
    return session_id


async def test_a_run_reaches_nothing_of_another_owners_session_by_its_id(database: Database, database_dsn: str) -> None:
    queue = Queue(database_dsn)
    sessions, runs, blobs = Sessions(database, queue), Runs(database, queue), Blobs(database)
    ours, theirs = await begun(sessions, OURS), await begun(sessions, THEIRS)
    with serving(THEIRS):
        secret = await blobs.put(theirs, "text of legal")
        (run,) = await database.fetch_all("SELECT id, job_id FROM runs")
        their_claim = await runs.claim(run["id"], run["job_id"])
        assert their_claim is not None
        config: Any = {"configurable": {"thread_id": str(theirs), "checkpoint_ns": ""}}
        await FencedSaver(database, their_claim.lease).aput(config, empty_checkpoint(), {}, {})
    with serving(OURS):
        (run,) = await database.fetch_all("SELECT id, job_id FROM runs")
    # As a worker: it acts for nobody until the claim says for whom.
    with serving(""):
        claim = await runs.claim(run["id"], run["job_id"])
    assert claim is not None
    assert (claim.session.id, claim.caller.owner) == (ours, OURS)
    with acting_for(claim.caller):
        with pytest.raises(SessionNotFoundError):
            await sessions.get(theirs)
        with pytest.raises(InvalidInputError, match="No stored text"):
            await blobs.get(secret)
        assert await FencedSaver(database, claim.lease).aget_tuple(config) is None
        with pytest.raises(LeaseLostError):
            await FencedSaver(database, their_claim.lease).aput(config, empty_checkpoint(), {}, {})
        with pytest.raises(LeaseLostError):
            await Events(database).append(claim.lease, theirs, [NewEvent("done")])
        assert await Events(database).read(theirs, after=0) == []
        assert await WriteIntents(database).list_for(theirs) == []
        assert await Attachments(database).of_session(theirs) == []
        with pytest.raises(SessionNotFoundError):
            await sessions.delete(theirs)
    with serving(THEIRS):
        assert await FencedSaver(database, their_claim.lease).aget_tuple(config) is not None


# --- the doors -----------------------------------------------------------------------------------------------------


class Doors:
    """The service by the key of each owner."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._transport = StreamingASGITransport(app)
        self._keys: dict[str, str] = {}

    def client(self, owner: str) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {self._keys.get(owner, SHARED_KEY)}"}
        return httpx2.AsyncClient(base_url="http://localhost", headers=headers, transport=self._transport, timeout=30)

    async def open_for(self, owner: str) -> None:
        body = {"name": f"key of {owner}", "owner": owner, "scopes": ["read", "build", "approve"]}
        async with self.client("") as http:
            self._keys[owner] = (await http.post("/keys", json=body)).json()["key"]


@pytest.fixture
async def doors(database_dsn: str) -> AsyncIterator[Doors]:
    server = ServerSettings.model_validate(
        {
            "WEBHOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "WEBHOOK_ALLOW": "127.0.0.1",
            "RATE_LIMIT_SESSIONS_PER_MIN": 0,
            "AGENT_WAIT_SECS": 20,
            "AGENT_API_KEY": SecretStr(SHARED_KEY),
        }
    )
    signer = ShareSigner((bytes(32),))
    async with running_engine(database_dsn, webhooks=WebhookConfig.from_settings(server), signer=signer) as engine:
        app = create_app(load_settings(server=server), engine)
        async with app.router.lifespan_context(app):
            found = Doors(app)
            for owner in (OURS, THEIRS):
                await found.open_for(owner)
            yield found


async def ours_in(http: httpx2.AsyncClient, database: Database) -> dict[str, str]:
    """A waiting session of ours with all that may belong to one; the ids by which routes name it."""
    files = {"file": (f"{MARK}.txt", f"{MARK} in a file".encode(), "text/plain")}
    attachment = (await http.post("/attachments", files=files)).json()
    body = {
        "requirement": f"work:{MARK} ask:{MARK}? end:accepted",
        "session_name": MARK,
        "webhook_url": "https://127.0.0.1:1/hook",
        "attachments": [attachment["id"]],
    }
    view = (await http.post("/sessions", json=body, headers={"Idempotency-Key": "the-same"})).json()
    assert view["status"] == "pending_interrupt", view
    session_id = UUID(view["thread_id"])
    ops = [{"op_type": "AddNode", "node_name": "chatOpenAI", "node_id": "chatOpenAI_0"}]
    pattern = {"requirement": f"a {MARK} chatbot", "name": MARK, "ops": ops}
    (pattern_id,) = (await http.post("/patterns/import", json={"patterns": [pattern]})).json()["imported"]
    note = (await http.post("/memories", json={"text": f"{MARK} is remembered"})).json()
    await http.post("/knowledge/main/refresh")
    unused = (await http.post("/attachments", files=files)).json()
    with serving(OURS):
        await Versions(database, Blobs(database)).record(
            session_id,
            instance_id="main",
            chatflow_id=FLOW,
            name=MARK,
            flow_data=f'{{"nodes": [], "edges": [], "note": "{MARK}"}}',
            settings=FlowSettings(),
            uploads={},
            updated_date="2026-01-01",
            reason="create",
            iteration=1,
        )
        sha256 = (await database.fetch_all("SELECT sha256 FROM flow_versions"))[0]["sha256"]
        (delivery,) = await database.fetch_all("SELECT id FROM webhook_deliveries LIMIT 1")
    assert (await http.put(f"/flows/{FLOW}/versions/v1/bookmark", json={"note": MARK})).status_code < 300
    assert (await http.put(f"/flows/{FLOW}/guard", json={})).status_code < 300
    assert (await http.put(f"/flows/{FLOW}/tests", json={"tests": [{"turns": [MARK]}]})).status_code < 300
    share = (await http.post("/shares", json={"subject": "session", "id": str(session_id)})).json()
    known = {
        "session_id": str(session_id),
        "interrupt_id": view["interrupt"]["id"],
        "attachment_id": unused["id"],
        "pattern_id": str(pattern_id),
        "memory_id": str(note["memory_id"]),
        "delivery_id": str(delivery["id"]),
        "share_id": share["id"],
        "chatflow_id": FLOW,
        "sha256": sha256,
        "label": "v1.0",
        "number": "1",
        "version": "v1",
        "instance_id": "main",
        "chat_id": "chat",
        "name": "chatOpenAI",
    }
    return defaultdict(lambda: str(uuid4()), known)


async def rows_of(database: Database, owner: str) -> str:
    """All rows of an owner, but those that change by themselves: of deliveries and refreshes that are tried."""
    found: list[str] = []
    async with superuser(database) as connection:
        for name in await owned(database):
            if name not in {"webhook_deliveries", "knowledge_refreshes"}:
                query = sql.SQL("SELECT t::text AS row FROM {} AS t WHERE owner = %s ORDER BY 1")
                rows = await connection.execute(query.format(sql.Identifier(name)), (owner,))
                found += [f"{name} {row['row']}" for row in await rows.fetchall()]
    return "\n".join(found)


def bodies(ids: dict[str, str]) -> dict[str, Any]:
    """What is sent to the routes that do not take an empty body."""
    flow = json.dumps({"nodes": [], "edges": []})
    answer = {"interrupt_id": ids["interrupt_id"], "response": "taken over"}
    return {
        "POST /sessions": {"requirement": "end:accepted", "attachments": [ids["attachment_id"]]},
        "POST /sessions/stream": {"requirement": "end:accepted", "thread_id": ids["session_id"]},
        "POST /sessions/{session_id}/resume": answer,
        "POST /sessions/{session_id}/stream": answer,
        "PATCH /sessions/{session_id}/name": {"session_name": "taken over"},
        "PUT /flows/{chatflow_id}/versions/{version}/bookmark": {"note": "taken over"},
        "POST /flows/validate": {"flow_data": flow},
        "POST /sessions/{session_id}/tests/{number}/verdict": {"good": False},
        "PUT /flows/{chatflow_id}/tests": {"tests": [{"turns": ["taken over"]}]},
        "POST /shares": {"subject": "session", "id": ids["session_id"]},
        "POST /process-conversation": {"session_id": ids["session_id"], "message": "approve"},
    }


async def test_no_route_shows_or_changes_what_is_another_owners(doors: Doors, database: Database) -> None:
    async with doors.client(OURS) as http:
        ids = await ours_in(http, database)
        # What we see ourselves, so that the search below could find it; and so that caches have it.
        ours = f"/sessions/{ids['session_id']}"
        for path in (ours, "/sessions", "/patterns", "/audit", "/deliveries", "/shares"):
            shown = await http.get(path)
            assert shown.status_code == 200, path
            assert MARK in shown.text or ids["session_id"] in shown.text, path
    before = await rows_of(database, OURS)
    assert before.count(MARK) > 10
    asked = 0
    async with doors.client(THEIRS) as http:
        for path, methods in doors.app.openapi()["paths"].items():
            for method, operation in methods.items():
                route = f"{method.upper()} {path}"
                asked_for = [p for p in operation.get("parameters", ()) if p["in"] == "query" and p.get("required")]
                params = {p["name"]: ids.get(p["name"], "1") for p in asked_for}
                filters = {
                    "q": MARK,
                    "session": ids["session_id"],
                    "flow": FLOW,
                    "chatflow": FLOW,
                    "person": "key of sales",
                }
                filters_here = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"} & set(filters)
                for chosen in ({}, *({name: filters[name]} for name in sorted(filters_here))):
                    body = bodies(ids).get(route, {}) if method in {"post", "put", "patch"} else None
                    response = await http.request(
                        method.upper(), path.format_map(ids), params={**params, **chosen}, json=body
                    )
                    asked += 1
                    # The counters of /metrics name codes that other tests of the process met.
                    is_problem = response.headers.get("content-type", "") == "application/problem+json"
                    assert not (is_problem and response.json()["code"] == "internal_error"), (route, response.text)
                    assert MARK not in response.text, (route, chosen, response.text)
                    if "{session_id}" in path or route == "POST /shares":
                        assert response.status_code == 404, (route, response.text)
        # The same key for a request of another is a request of its own.
        body = {"requirement": "end:accepted"}
        started = await http.post("/sessions", json=body, headers={"Idempotency-Key": "the-same"})
        assert started.status_code in {200, 202}, started.text
        assert started.json()["thread_id"] != ids["session_id"]
    assert asked > 70
    assert await rows_of(database, OURS) == before


async def test_no_tool_of_mcp_shows_or_changes_what_is_another_owners(doors: Doors, database: Database) -> None:
    async with doors.client(OURS) as http:
        ids = await ours_in(http, database)
    before = await rows_of(database, OURS)
    headers = {"Accept": "application/json, text/event-stream"}
    async with doors.client(THEIRS) as http:

        async def call(method: str, **params: Any) -> str:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            response = await http.post("/mcp", json=body, headers=headers)
            assert response.status_code == 200, response.text
            return response.text

        listed = await call("tools/list")
        tools = json.loads(listed[listed.index("{") :])["result"]["tools"]
        assert len(tools) > 8
        words = {**ids, "action": "approve", "answer": "taken over", "wait_secs": 0, "query": "chat"}
        for tool in tools:
            schema = tool["inputSchema"]
            arguments = {name: words[name] for name in schema["properties"] if name in words}
            if "session_id" in schema.get("required", ()):
                assert '"isError":true' in (said := await call("tools/call", name=tool["name"], arguments=arguments)), (
                    said
                )
            else:
                said = await call("tools/call", name=tool["name"], arguments=arguments)
            assert MARK not in said, tool["name"]
    assert await rows_of(database, OURS) == before


async def test_both_owners_sessions_are_run_by_one_worker_and_only_they_follow_them(
    doors: Doors, database: Database
) -> None:
    views: dict[str, Any] = {}
    for owner in (OURS, THEIRS):
        async with doors.client(owner) as http:
            body = {"requirement": f"ask:{owner} work:x end:accepted"}
            view = (await http.post("/sessions", json=body)).json()
            answer = {"interrupt_id": view["interrupt"]["id"], "answer": {"action": "go_on"}}
            views[owner] = (await http.post(f"/sessions/{view['thread_id']}/resume", json=answer)).json()
            assert views[owner]["status"] == "completed", views[owner]
            assert "event: done" in (await http.get(f"/sessions/{view['thread_id']}/stream")).text
    async with doors.client(OURS) as http:
        (listed,) = (await http.get("/sessions")).json()["sessions"]
        assert listed["thread_id"] == views[OURS]["thread_id"]
        assert {row["actor"] for row in (await http.get("/audit")).json()["rows"]} == {"key of sales"}
        assert (await http.get("/audit/verify")).json()["findings"] == []
        for path in ("stream", "events"):
            assert (await http.get(f"/sessions/{views[THEIRS]['thread_id']}/{path}")).status_code == 404
    async with doors.client("") as http:
        assert (await http.get("/sessions")).json()["sessions"] == []
        shown = (await http.get("/sessions", headers={"X-Owner": THEIRS})).json()["sessions"]
        assert [one["thread_id"] for one in shown] == [views[THEIRS]["thread_id"]]
