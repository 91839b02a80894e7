"""Connections that the server has ended are found out before they are used."""

import asyncio

import psycopg
import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.database import patient


async def test_p42_connections_that_the_server_has_ended_are_replaced_before_use(
    database: Database, database_dsn: str
) -> None:
    for _ in range(3):
        async with database.connection() as one, database.connection() as other:
            pids = [connection.info.backend_pid for connection in (one, other)]
        with psycopg.connect(database_dsn, autocommit=True, connect_timeout=5) as admin:
            for pid in pids:
                # Returns once the backend is gone.
                assert admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,)).fetchone() == (True,)
        assert await database.fetch_one("SELECT 1 AS one") == {"one": 1}


async def test_work_that_nobody_waits_for_waits_for_a_busy_pool(database_dsn: str) -> None:
    async with Database(database_dsn, min_size=1, max_size=1, connect_timeout=0.2) as database:
        async with database.connection() as busy:
            with pytest.raises(DatabaseUnavailableError):
                await database.fetch_one("SELECT 1")
            with patient(20):
                waiting = asyncio.create_task(database.fetch_one("SELECT 1 AS one"))
            # Longer than the pool's own patience.
            await busy.execute("SELECT pg_sleep(0.5)")
            assert not waiting.done()
        assert await waiting == {"one": 1}
