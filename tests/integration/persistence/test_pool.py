"""How long callers wait for a connection."""

import asyncio

import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.database import patient


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
