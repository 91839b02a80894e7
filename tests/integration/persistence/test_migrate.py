"""Migrations: from nothing, twice, and by ten processes at once."""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from typing import LiteralString

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.errors import ConfigurationError, DatabaseUnavailableError
from flowise_dev_agent.persistence import Database, migrate, schema
from flowise_dev_agent.persistence.queue_stats import read_database_health
from flowise_dev_agent.persistence.schema import Fit, check_whole, make_roles

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


@pytest.mark.parametrize(
    ("needs", "fits"),
    [(None, False), ("9980_earlier.sql", False), ("", True), ("0100_webhooks.sql", True)],
    ids=["not said", "unknown here", "nothing", "known here"],
)
async def test_p122_a_newer_database_is_refused_unless_it_says_that_this_code_works_beside_it(
    empty_dsn: str, needs: str | None, fits: bool
) -> None:
    await migrate(empty_dsn)
    with psycopg.connect(empty_dsn) as connection:
        connection.execute("INSERT INTO schema_migrations (name, needs) VALUES ('9990_future.sql', %s)", (needs,))
    async with Database(empty_dsn, min_size=1, max_size=2) as database:
        health = await read_database_health(database, silent=5)
    assert health.fit == Fit(pending=[], newer=[] if fits else ["9990_future.sql"])
    for refuses in (migrate, check_whole):
        with nullcontext() if fits else pytest.raises(ConfigurationError, match=r"newer.*9990_future\.sql"):
            await refuses(empty_dsn)


async def test_a_migration_says_what_older_code_has_to_know(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await migrate(empty_dsn)
    own = vars(schema)["_own_migrations"]()
    later = [*own, ("9990_gone.sql", "-- needs: 0930_settings_of_version.sql\nSELECT 1;")]
    monkeypatch.setattr(schema, "_own_migrations", lambda: later)
    await migrate(empty_dsn)
    assert [row[2] for row in applied(empty_dsn) if row[0] == "9990_gone.sql"] == ["0930_settings_of_version.sql"]


async def test_a_held_migration_lock_ends_in_a_clear_error_instead_of_hanging(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(7046029254386353131)")
        with pytest.raises(DatabaseUnavailableError, match="Another process has been migrating"):
            await migrate(empty_dsn, deadline_secs=0.3)


async def test_an_absent_server_is_reported_as_unavailable() -> None:
    with pytest.raises(DatabaseUnavailableError):
        await migrate("host=127.0.0.1 port=1 dbname=none user=none")


def change(dsn: str, *statements: LiteralString) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def policies(dsn: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT * FROM pg_policies ORDER BY tablename, policyname").fetchall()


async def test_rights_and_policies_that_a_restore_left_out_are_made_again(database_dsn: str) -> None:
    before = policies(database_dsn)
    lost = """DO $$
        DECLARE v_row record;
        BEGIN
            FOR v_row IN SELECT policyname, tablename FROM pg_policies LOOP
                EXECUTE format('DROP POLICY %I ON %I', v_row.policyname, v_row.tablename);
            END LOOP;
            REVOKE ALL ON ALL TABLES IN SCHEMA public FROM fda_app, fda_system;
            REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM fda_app, fda_system;
            REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM fda_app;
        END $$"""
    change(database_dsn, lost)
    with pytest.raises(ConfigurationError) as said:
        await check_whole(database_dsn)
    assert said.value.details["number"] > 200
    await migrate(database_dsn)
    await check_whole(database_dsn)
    assert policies(database_dsn) == before


@pytest.mark.parametrize(
    "lost",
    [
        "DROP INDEX sessions_newest",
        "ALTER TABLE runs DROP CONSTRAINT runs_session_id_owner_fkey",
        "ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY",
        "DROP TABLE shares",
        "TRUNCATE schema_parts",
        "TRUNCATE schema_parts, schema_migrations",
    ],
)
async def test_what_cannot_be_made_again_is_named_each_time(database_dsn: str, lost: LiteralString) -> None:
    await check_whole(database_dsn)
    change(database_dsn, lost)
    for check in (check_whole, migrate, check_whole, migrate):
        with pytest.raises(ConfigurationError, match="restored only half"):
            await check(database_dsn)


async def test_a_database_of_before_the_records_gets_them_and_a_later_migration_may_remove_parts(
    database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(database_dsn, "DROP TABLE schema_parts", "DELETE FROM schema_migrations WHERE name LIKE 'grants/%'")
    await migrate(database_dsn)
    own = vars(schema)["_own_migrations"]()
    later = [*own, ("9999_later.sql", "DROP INDEX sessions_newest; CREATE TABLE later (id int PRIMARY KEY)")]
    monkeypatch.setattr(schema, "_own_migrations", lambda: later)
    await migrate(database_dsn)
    await check_whole(database_dsn)
    change(database_dsn, "DROP TABLE later")
    with pytest.raises(ConfigurationError, match="later_pkey"):
        await check_whole(database_dsn)


async def test_an_older_server_is_named_in_one_sentence(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_OLDEST_SERVER", 990_000)
    for refuses in (migrate, make_roles, check_whole):
        with pytest.raises(ConfigurationError, match=r"This is Postgres \d\S*; the service needs Postgres 99 or newer"):
            await refuses(empty_dsn)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [({"user": "nobody"}, 'role "nobody" does not exist'), ({"dbname": "gone"}, 'database "gone" does not exist')],
    ids=["login", "database"],
)
async def test_the_reason_why_a_database_cannot_be_used_is_told(
    empty_dsn: str, wrong: dict[str, str], reason: str
) -> None:
    with pytest.raises(DatabaseUnavailableError, match=reason) as caught:
        await migrate(make_conninfo(empty_dsn, password="hidden-word", **wrong))
    assert "hidden-word" not in caught.value.message


async def test_a_second_installation_on_a_server_is_refused(empty_dsn: str) -> None:
    await migrate(empty_dsn)
    change(empty_dsn, "CREATE ROLE fda_second LOGIN CREATEROLE")
    try:
        with pytest.raises(ConfigurationError, match="belong to another login"):
            await make_roles(make_conninfo(empty_dsn, user="fda_second"))
    finally:
        change(empty_dsn, "DROP ROLE fda_second")
