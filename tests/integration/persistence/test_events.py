"""The event log under concurrent writers; blobs; the border at which psycopg's errors become ours."""

import asyncio
import uuid

import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError, InvalidInputError, LeaseLostError
from flowise_dev_agent.persistence import Blobs, Database, Events, Lease, NewEvent
from tests.fixtures.database import superuser
from tests.integration.persistence.test_saver import add_run


async def test_p44_concurrent_writers_leave_no_gap_and_a_tailing_reader_misses_nothing(
    database: Database, database_dsn: str
) -> None:
    session_id, lease = await add_run(database)
    total = 8 * 40

    async def write(events: Events, writer: int) -> None:
        for number in range(40):
            batch = [NewEvent("write", summary=f"{writer}.{number}") for _ in range(1)]
            await events.append(lease, session_id, batch)

    async def tail(events: Events) -> list[int]:
        seen: list[int] = []
        while len(seen) < total:
            seen += [event.seq or 0 for event in await events.read(session_id, after=len(seen), limit=1000)]
            await asyncio.sleep(0)
        return seen

    async with asyncio.timeout(60), Database(database_dsn, min_size=1, max_size=4) as other:
        writers = [write(Events(pool), number) for number, pool in enumerate([database, other] * 4)]
        seen, *_ = await asyncio.gather(tail(Events(database)), *writers)
    assert seen == list(range(1, total + 1))


async def test_a_batch_keeps_its_order_and_sets_the_session_running_in_its_phase(database: Database) -> None:
    session_id, lease = await add_run(database)
    events = Events(database)
    batch = [NewEvent("node_start", node=f"n{number}", phase="plan") for number in range(5)]
    await events.append(lease, session_id, [*batch, NewEvent("cost")])
    assert [event.node for event in await events.read(session_id, after=0)] == ["n0", "n1", "n2", "n3", "n4", None]
    row = await database.fetch_one("SELECT status, phase FROM sessions WHERE id = %s", (session_id,))
    assert row == {"status": "running", "phase": "plan"}


async def test_events_of_a_deleted_session_are_refused(database: Database) -> None:
    with pytest.raises(LeaseLostError):
        await Events(database).append(Lease(uuid.uuid4(), 1), uuid.uuid4(), [NewEvent("write")])


async def test_a_blob_is_stored_byte_for_byte_under_its_hash_and_goes_with_its_session(database: Database) -> None:
    session_id, _ = await add_run(database)
    blobs = Blobs(database)
    text = '{"a": "\x00 ü 🙂"}' * 1000
    sha256 = await blobs.put(session_id, text)
    assert await blobs.put(session_id, text) == sha256
    assert await blobs.get(sha256) == text
    async with database.connection() as connection:
        await connection.execute("DELETE FROM sessions WHERE id = %s", (session_id,))
    with pytest.raises(InvalidInputError, match="No stored text"):
        await blobs.get(sha256)


async def terminate(database: Database, pid: int | None = None) -> None:
    """Cut this connection or all to the database; returns once the backends are gone."""
    async with superuser(database) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND COALESCE(pid = %s, true)",
            (pid,),
        )


async def test_p42_a_cut_connection_is_unavailable_and_the_next_call_works(database: Database) -> None:
    async def cut() -> None:
        async with database.connection() as connection:
            await terminate(database, connection.info.backend_pid)
            await connection.execute("SELECT 1")

    with pytest.raises(DatabaseUnavailableError):
        await cut()
    assert await database.fetch_one("SELECT 1 AS one") == {"one": 1}


async def test_p42_idle_connections_that_were_cut_are_replaced_unnoticed(database: Database, database_dsn: str) -> None:
    async with Database(database_dsn, min_size=3, max_size=3) as pool:
        await terminate(database)
        results = await asyncio.gather(*(pool.fetch_one("SELECT 1 AS one") for _ in range(9)))
    assert results == [{"one": 1}] * 9


async def test_an_absent_server_is_unavailable_within_the_connect_timeout() -> None:
    async with asyncio.timeout(5):
        with pytest.raises(DatabaseUnavailableError):
            await Database("host=127.0.0.1 port=1", connect_timeout=1).open()
