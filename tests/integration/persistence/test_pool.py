"""How long callers wait for a connection."""

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import Database, Queue
from flowise_dev_agent.persistence.database import listening_connection, patient


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


async def test_a_connection_that_waits_for_notices_sleeps(database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    intervals: list[float] = []
    wait = AsyncConnection.wait

    async def noted(self: Any, gen: Any, interval: float = 0.1, **more: Any) -> Any:
        intervals.append(interval)
        return await wait(self, gen, interval, **more)

    monkeypatch.setattr(AsyncConnection, "wait", noted)
    async with await listening_connection(database_dsn) as connection, Queue(database_dsn) as queue:
        await connection.execute("LISTEN something")
        await connection.execute("NOTIFY something")
        async for notice in connection.notifies(timeout=30, stop_after=1):
            assert notice.channel == "something"
        await queue.app.connector.execute_query_async("SELECT 1")
    assert intervals
    assert min(intervals) >= 60
