"""As what the service connects and acts: a login without rights of its own, and owners that share connections."""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from psycopg import AsyncCursor, sql
from psycopg.conninfo import make_conninfo

from flowise_dev_agent.caller import serving
from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.persistence import Database, migrate
from flowise_dev_agent.persistence.database import across_owners
from tests.fixtures.pooler import TransactionPooler
from tests.runtime_world import running_engine, script


@pytest.fixture
def login(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a login that may do nothing yet."""
    name = f"fda_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


async def test_a_login_that_is_a_member_of_both_roles_needs_no_other_rights(login: str, database_dsn: str) -> None:
    dsn = make_conninfo(database_dsn, user=login)
    with pytest.raises(ConfigurationError, match="may not make or change"):
        await migrate(dsn)
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("GRANT fda_app, fda_system TO {}").format(sql.Identifier(login)))
        # For the tables of the test's own agent.
        connection.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(sql.Identifier(login)))
    async with running_engine(dsn) as engine:
        view = await engine.service.start(script("work:a", "end:accepted"))
        assert (await engine.service.wait(view.thread_id, 20)).status == "completed"


async def test_a_login_without_superuser_rights_migrates_its_own_database(
    postgres_server: PostgresServer, login: str
) -> None:
    name = f"fda_{uuid.uuid4().hex[:12]}"
    dsn = make_conninfo(postgres_server.create_database(name), user=login)
    try:
        with psycopg.connect(postgres_server.dsn(), autocommit=True) as connection:
            # The roles are there already, so it has to be told that it may hand them on.
            for statement in ("ALTER DATABASE {0} OWNER TO {1}", "GRANT fda_app, fda_system TO {1} WITH ADMIN OPTION"):
                connection.execute(sql.SQL(statement).format(sql.Identifier(name), sql.Identifier(login)))
        async with running_engine(dsn) as engine:
            view = await engine.service.start(script("ask:q", "end:accepted"))
            await engine.service.wait(view.thread_id, 20)
            await engine.service.delete(view.thread_id)
        with psycopg.connect(dsn) as connection:
            # A statement that says for nobody sees all rows as a member of fda_system, which migrations need.
            assert connection.execute("SELECT action FROM audit_log ORDER BY id").fetchall() == [
                ("start",),
                ("delete",),
            ]
    finally:
        postgres_server.drop_database(name)


@pytest.mark.parametrize("way", ["direct", "pooler", "unknown_pooler"])
async def test_owners_that_share_connections_see_their_own_rows_only(
    transaction_pooler: TransactionPooler, database: Database, database_dsn: str, way: str
) -> None:
    insert = "INSERT INTO sessions (id, requirement, request, instance_id) VALUES (gen_random_uuid(), %s, '{}', 'i')"
    dsn = database_dsn if way == "direct" else transaction_pooler.dsn
    shared = Database(dsn, min_size=4, max_size=4, pooler=way == "pooler")
    if way == "unknown_pooler":  # one that takes what others refuse
        assert isinstance(shared.pool.kwargs, dict)
        shared.pool.kwargs |= {"prepare_threshold": None, "options": None}
    async with shared:

        async def act(owner: str) -> set[str]:
            with serving(owner):
                async with shared.transaction() as connection:
                    await connection.execute(insert, (owner,))
                async with shared.connection() as connection:
                    await connection.execute(insert, (owner,))
                    with suppress(psycopg.errors.UndefinedTable):
                        await connection.execute("SELECT nothing FROM nowhere")
                with pytest.raises(psycopg.errors.UndefinedTable):
                    async with shared.transaction() as connection:
                        await connection.execute("SELECT nothing FROM nowhere")
                with across_owners():
                    assert await shared.fetch_one("SELECT current_user AS role") == {"role": "fda_system"}
                rows = await shared.fetch_all("SELECT requirement, owner FROM sessions")
            return {row[column] for row in rows for column in ("requirement", "owner")}

        owners = [f"team-{number % 5}" for number in range(40)]
        assert await asyncio.gather(*map(act, owners)) == [{owner} for owner in owners]
        # Nothing is left behind in a connection.
        with serving(""):
            assert await shared.fetch_all("SELECT id FROM sessions") == []


async def test_only_a_connection_of_its_own_keeps_for_whom_it_acts(
    transaction_pooler: TransactionPooler, database: Database
) -> None:
    owner = "SELECT COALESCE(current_setting('app.owner', true), '') AS owner"
    async with Database(transaction_pooler.dsn, min_size=1, max_size=1, pooler=True) as pooled:
        for shared, kept in ((pooled, ""), (database, "team")):
            async with shared.connection() as connection:
                with serving("team"):
                    await connection.execute("SELECT 1")
                assert await (await AsyncCursor(connection).execute(owner)).fetchone() == {"owner": kept}
