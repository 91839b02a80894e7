"""Migrations: from nothing, twice, and by ten processes at once."""

import asyncio
import uuid
from collections.abc import Iterator

import psycopg
import pytest

from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import migrate

EXPECTED = {
    "sessions",
    "runs",
    "session_events",
    "blobs",
    "write_intents",
    "schema_migrations",
    "checkpoints",
    "checkpoint_blobs",
    "checkpoint_writes",
    "procrastinate_jobs",
    "procrastinate_workers",
}


@pytest.fixture
def empty_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"fda_{uuid.uuid4().hex[:12]}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


def tables(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        return {row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


def applied(dsn: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT * FROM schema_migrations ORDER BY name").fetchall()


async def test_an_empty_database_gets_all_tables_and_a_second_run_changes_nothing(empty_dsn: str) -> None:
    await migrate(empty_dsn)
    assert tables(empty_dsn) >= EXPECTED
    before = applied(empty_dsn)
    await migrate(empty_dsn)
    assert applied(empty_dsn) == before


async def test_ten_migrations_at_once_on_an_empty_database_all_succeed(empty_dsn: str) -> None:
    async with asyncio.timeout(60):
        await asyncio.gather(*(migrate(empty_dsn) for _ in range(10)))
    assert tables(empty_dsn) >= EXPECTED
    with psycopg.connect(empty_dsn) as connection:
        invalid = connection.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone()
    assert invalid == (0,)


async def test_a_held_migration_lock_ends_in_a_clear_error_instead_of_hanging(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(7046029254386353131)")
        with pytest.raises(DatabaseUnavailableError, match="Another process has been migrating"):
            await migrate(empty_dsn, deadline_secs=0.3)


async def test_an_absent_server_is_reported_as_unavailable() -> None:
    with pytest.raises(DatabaseUnavailableError):
        await migrate("host=127.0.0.1 port=1 dbname=none user=none")
