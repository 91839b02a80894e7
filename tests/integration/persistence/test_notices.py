"""Notices: all arrive, and those that come while one is on its way go together."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import uuid4

from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.database import Connection, listening_connection
from flowise_dev_agent.persistence.events import EVENTS_CHANNEL, Notices


class Counted(Database):
    """Counts how often a connection is taken."""

    taken = 0

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        self.taken += 1
        async with super().connection() as connection:
            yield connection


async def test_notices_of_many_sessions_arrive_and_share_statements(database_dsn: str) -> None:
    sessions = [uuid4() for _ in range(40)]
    async with Counted(database_dsn) as database, await listening_connection(database_dsn) as listener:
        await listener.execute(f"LISTEN {EVENTS_CHANNEL}")
        notices = Notices(database)
        await asyncio.gather(*(notices.tell(session_id, "event") for session_id in sessions))
        await notices.tell(sessions[0], "settled")
        heard = [notice.payload async for notice in listener.notifies(timeout=30, stop_after=41)]
    assert sorted(heard[:-1]) == sorted(f"{session_id} event" for session_id in sessions)
    assert heard[-1] == f"{sessions[0]} settled"
    assert database.taken == 3


async def test_p42_a_notice_that_cannot_be_sent_is_no_error(database_dsn: str) -> None:
    database = Database(database_dsn)
    async with database:
        pass
    await Notices(database).tell(uuid4(), "event")
