"""What retention and deletion remove and what they leave."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import sql

from flowise_dev_agent.errors import DatabaseUnavailableError, InvalidInputError, SessionNotFoundError
from flowise_dev_agent.persistence import (
    ArtifactFilter,
    Blobs,
    Database,
    Events,
    NewEvent,
    NodeArtifacts,
    Queue,
    Retention,
    Sessions,
    WriteIntents,
)
from flowise_dev_agent.persistence.events import NewArtifact
from flowise_dev_agent.settings import RetentionSettings
from tests.fixtures.database import superuser
from tests.integration.persistence.test_saver import add_run

KEEP: dict[str, Any] = {"RETENTION_THREADS_DAYS": 0, "RETENTION_EVENTS_DAYS": 0, "RETENTION_ARTIFACTS_DAYS": 0}


@pytest.fixture
def sessions(database: Database, database_dsn: str) -> Sessions:
    return Sessions(database, Queue(database_dsn))


async def session_with_everything(
    database: Database, *, status: str = "completed", age_days: float = 10, checkpoints: int = 3
) -> tuple[uuid.UUID, dict[str, str]]:
    """A session with events, blobs, a write and a thread; the hashes of its texts."""
    session_id, lease = await add_run(database)
    await Events(database).append(lease, session_id, [NewEvent("write"), NewEvent("done")])
    blobs = Blobs(database)
    texts = {name: await blobs.put(session_id, f"{name} of {session_id}") for name in ("before", "written", "draft")}
    intents = WriteIntents(database)
    key = uuid.uuid4()
    await intents.open(
        lease,
        key=key,
        session_id=session_id,
        op="update",
        iteration=1,
        target_id="flow-1",
        payload_sha256=texts["written"],
        base_sha256=texts["before"],
        tag="t",
    )
    await intents.finish(lease, key, status="done", result={"chatflow_id": "flow-1"})
    async with database.connection() as connection:
        for number in range(checkpoints):
            await connection.execute(
                "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)"
                """ VALUES (%s, '', %s, '{"v": 4, "channel_values": {}, "channel_versions": {}}', '{}')""",
                (str(session_id), f"1f000000-{number:04d}"),
            )
        await connection.execute("UPDATE runs SET status = 'done' WHERE session_id = %s", (session_id,))
        await connection.execute(
            "UPDATE sessions SET status = %s, interrupt_id = CASE WHEN %s = 'waiting' THEN 'i' END,"
            " updated_at = now() - make_interval(secs => %s) WHERE id = %s",
            (status, status, age_days * 86_400, session_id),
        )
    return session_id, texts


async def traces(database: Database, session_id: uuid.UUID) -> dict[str, int]:
    """Rows of every table in the database that mention the session or one of its runs, but for the audit log, which
    outlives them."""
    async with superuser(database) as connection:

        async def rows(query: Any, *params: Any) -> list[Any]:
            return await (await connection.execute(query, params)).fetchall()

        runs = await rows("SELECT id FROM runs WHERE session_id = %s", session_id)
        ids = [str(session_id), *(str(row["id"]) for row in runs)]
        found: dict[str, int] = {}
        for table in await rows("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"):
            if not table["name"].startswith("audit_"):
                query = sql.SQL("SELECT count(*) AS n FROM {} AS t WHERE t::text LIKE ANY(%s)")
                (row,) = await rows(query.format(sql.Identifier(table["name"])), [f"%{one}%" for one in ids])
                if row["n"]:
                    found[table["name"]] = row["n"]
        return found


def retention(database: Database, sessions: Sessions, **days: Any) -> Retention:
    return Retention(database, sessions, RetentionSettings(**{**KEEP, **days}))


async def test_p47_delete_leaves_no_row_in_any_table_but_the_flows_of_a_live_chatflow(
    database: Database, sessions: Sessions
) -> None:
    session_id, texts = await session_with_everything(database)
    assert set(await traces(database, session_id)) >= {"sessions", "runs", "session_events", "blobs", "checkpoints"}
    await sessions.delete(session_id)
    assert await traces(database, session_id) == {"kept_flows": 2}
    blobs = Blobs(database)
    assert await blobs.get(texts["before"]) == f"before of {session_id}"
    assert await blobs.get(texts["written"]) == f"written of {session_id}"
    with pytest.raises(InvalidInputError):
        await blobs.get(texts["draft"])
    with pytest.raises(SessionNotFoundError):
        await sessions.delete(session_id)
    await sessions.delete(session_id, purge=True)
    assert await traces(database, session_id) == {}
    with pytest.raises(SessionNotFoundError):
        await sessions.delete(session_id, purge=True)


async def test_p47_a_delete_that_fails_at_its_last_step_has_removed_nothing(
    database: Database, sessions: Sessions
) -> None:
    session_id, _ = await session_with_everything(database)
    before = await traces(database, session_id)
    async with superuser(database) as connection:
        await connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P01'; END $$"
        )
        await connection.execute("CREATE TRIGGER refuse BEFORE DELETE ON checkpoints EXECUTE FUNCTION refuse()")
    with pytest.raises(DatabaseUnavailableError):
        await sessions.delete(session_id)
    assert await traces(database, session_id) == before


async def test_p47_a_purge_leaves_nothing_but_the_ledger(database: Database, sessions: Sessions) -> None:
    session_id, _ = await session_with_everything(database)
    await sessions.delete(session_id, purge=True)
    assert await traces(database, session_id) == {}


async def test_p47_a_flow_that_its_session_took_away_again_is_not_kept(database: Database, sessions: Sessions) -> None:
    session_id, _ = await session_with_everything(database)
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO write_intents (key, session_id, status, op, iteration, target_id)"
            " VALUES (gen_random_uuid(), %s, 'done', 'delete', 1, 'flow-1')",
            (session_id,),
        )
    await sessions.delete(session_id)
    assert await traces(database, session_id) == {}


async def test_retention_removes_by_age_only_what_has_ended(database: Database, sessions: Sessions) -> None:
    old, texts = await session_with_everything(database, age_days=10)
    young, _ = await session_with_everything(database, age_days=1)
    failed, _ = await session_with_everything(database, status="failed", age_days=10)
    waiting, _ = await session_with_everything(database, status="waiting", age_days=1000)
    untouched = {name: await traces(database, name) for name in (young, waiting)}
    ages = {name.replace("KEEP", ""): 5 for name in KEEP}
    removed = await retention(database, sessions, **ages).pass_once()
    assert removed == {
        "sessions": 0,
        "threads": 1,
        "events": 2,
        "artifacts": 1,
        "node_artifacts": 0,
        "requests": 0,
        "attachments": 0,
        "pruned": 2,
        "watched": 0,
    }
    left = await traces(database, old)
    assert not {"checkpoints", "session_events"} & set(left)
    assert left["blobs"] == 2
    assert await Blobs(database).get(texts["before"])
    # A failed one can be retried: it keeps its log, its texts and its last checkpoint.
    assert (await traces(database, failed))["checkpoints"] == 1
    assert (await traces(database, failed))["session_events"] == 2
    assert await traces(database, waiting) == untouched[waiting]
    assert await traces(database, young) == untouched[young] | {"checkpoints": 1}
    again = await retention(database, sessions, **ages).pass_once()
    assert set(again.values()) == {0}


@pytest.mark.parametrize(
    ("setting", "tables"),
    [
        ("RETENTION_THREADS_DAYS", {"checkpoints"}),
        ("RETENTION_EVENTS_DAYS", {"session_events"}),
        ("RETENTION_ARTIFACTS_DAYS", {"blobs"}),
        ("RETENTION_SESSIONS_DAYS", {"sessions", "runs", "checkpoints", "session_events", "blobs", "write_intents"}),
    ],
)
async def test_each_age_removes_what_it_is_named_for_and_nothing_else(
    database: Database, sessions: Sessions, setting: str, tables: set[str]
) -> None:
    session_id, _ = await session_with_everything(database, age_days=10, checkpoints=1)
    before = await traces(database, session_id)
    await retention(database, sessions, **{setting: 10.1}).pass_once()
    assert await traces(database, session_id) == before
    await retention(database, sessions, **{setting: 9.9}).pass_once()
    after = await traces(database, session_id)
    assert {name for name, rows in before.items() if after.get(name, 0) < rows} == tables


async def test_retention_removes_whole_sessions_only_when_told_to(database: Database, sessions: Sessions) -> None:
    gone = [(await session_with_everything(database, status=status))[0] for status in ("completed", "failed")]
    waiting, _ = await session_with_everything(database, status="waiting", age_days=1000)
    assert (await retention(database, sessions).pass_once())["sessions"] == 0
    assert (await retention(database, sessions, RETENTION_SESSIONS_DAYS=5).pass_once())["sessions"] == 2
    for session_id in gone:
        assert await traces(database, session_id) == {"kept_flows": 2}
    assert "sessions" in await traces(database, waiting)


async def test_retention_removes_threads_without_a_session(database: Database, sessions: Sessions) -> None:
    session_id, _ = await session_with_everything(database, status="waiting")
    async with database.connection() as connection:
        await connection.execute("DELETE FROM sessions WHERE id = %s", (session_id,))
    assert (await retention(database, sessions).pass_once())["threads"] == 1
    assert await traces(database, session_id) == {}


async def test_a_statement_and_an_idle_transaction_are_ended_by_the_server(database: Database) -> None:
    limits = await database.fetch_one(
        "SELECT current_setting('statement_timeout') AS statement,"
        " current_setting('idle_in_transaction_session_timeout') AS idle"
    )
    assert limits == {"statement": "30s", "idle": "10s"}
    async with database.connection() as connection:
        await connection.execute("SET statement_timeout = '50ms'")
    with pytest.raises(DatabaseUnavailableError):
        await database.fetch_one("SELECT pg_sleep(5)")
    assert await database.fetch_one("SELECT 1 AS one") == {"one": 1}


async def artifacts(database: Database, *, ages: list[float], kind: str = "memory", node: str = "plan_v2") -> uuid.UUID:
    """A session with an artifact of each age in seconds."""
    session_id, lease = await add_run(database)
    now = datetime.now(UTC)
    made = [
        NewEvent(
            "node_artifact:persisted",
            node=node,
            ts=now - timedelta(seconds=age),
            artifact=NewArtifact(id=uuid.uuid4(), kind=kind, payload={"age": age}),
        )
        for age in ages
    ]
    await Events(database).append(lease, session_id, made)
    return session_id


async def ages_left(database: Database, session_id: uuid.UUID) -> list[float]:
    rows, _ = await NodeArtifacts(database).page(ArtifactFilter(session_id=session_id), limit=100, offset=0)
    return [row.payload["age"] for row in rows]


@pytest.mark.parametrize(
    ("mode", "left"),
    [
        ("forever", [10, 20, 30, 900, 1000]),
        ("ttl", [10, 20, 30]),
        ("max_count", [10, 20, 30, 900]),
        ("ttl_max_count", [10, 20, 30]),
    ],
)
async def test_artifacts_of_steps_go_by_the_mode_of_their_kind(
    database: Database, sessions: Sessions, mode: str, left: list[float]
) -> None:
    session_id = await artifacts(database, ages=[10, 20, 30, 900, 1000])
    other_kind = await artifacts(database, ages=[1000], kind="plan")
    settings = {"RETENTION_MODE_MEMORY": mode, "RETENTION_TTL_SECONDS": 600, "RETENTION_MAX_COUNT": 4}
    removed = await retention(database, sessions, **settings).pass_once()
    assert await ages_left(database, session_id) == left
    assert removed["node_artifacts"] == 5 - len(left)
    assert await ages_left(database, other_kind) == [1000]


async def test_the_number_of_artifacts_counts_by_session_kind_and_node(database: Database, sessions: Sessions) -> None:
    kept = [await artifacts(database, ages=[10, 20], node=node) for node in ("plan_v2", "evaluate")]
    settings = {"RETENTION_MODE_MEMORY": "ttl_max_count", "RETENTION_TTL_SECONDS": 600, "RETENTION_MAX_COUNT": 1}
    await retention(database, sessions, **settings).pass_once()
    assert [await ages_left(database, session_id) for session_id in kept] == [[10], [10]]


async def test_artifacts_go_with_their_session_and_the_ledger_stays(database: Database, sessions: Sessions) -> None:
    session_id = await artifacts(database, ages=[10])
    async with database.connection() as connection:
        await connection.execute("UPDATE runs SET status = 'done' WHERE session_id = %s", (session_id,))
        await connection.execute("UPDATE sessions SET status = 'completed' WHERE id = %s", (session_id,))
    await sessions.delete(session_id)
    assert await ages_left(database, session_id) == []


async def test_old_sessions_are_found_by_an_index(database: Database) -> None:
    # The statements of a pass begin with one of these; the table is too small for an index otherwise.
    for statuses in ("'completed', 'failed', 'cancelled'", "'completed', 'cancelled'"):
        async with database.transaction() as connection:
            await connection.execute("SET LOCAL enable_seqscan = off")
            query = sql.SQL("EXPLAIN SELECT id FROM sessions WHERE status IN ({}) AND updated_at < now()")
            rows = await (await connection.execute(query.format(sql.SQL(statuses)))).fetchall()
        assert "sessions_ended" in str(rows)


async def test_nothing_of_a_session_is_kept_for_ever_by_default() -> None:
    assert (RetentionSettings().sessions_days, RetentionSettings().events_days) == (400, 90)
