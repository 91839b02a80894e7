"""Notices: readers of the process have them at once, others together, and live text only while they read."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.database import Connection, listening_connection
from flowise_dev_agent.persistence.notices import EVENTS_CHANNEL, LIVE_CHANNEL, MAX_LIVE_BYTES, Notices


class Counted(Database):
    """Counts how often a connection is taken."""

    taken = 0

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        self.taken += 1
        async with super().connection() as connection:
            yield connection


class Readers:
    """A feed that keeps what it is told."""

    def __init__(self, *session_ids: UUID) -> None:
        self.session_ids = session_ids
        self.notices: list[str] = []
        self.texts: list[str] = []

    def reads(self, session_id: UUID) -> bool:
        return session_id in self.session_ids

    def notice(self, session_id: UUID, what: str) -> None:
        self.notices.append(f"{session_id} {what}")

    def live(self, event: Mapping[str, Any]) -> None:
        self.texts.append(event["text"])


async def hear(listener: Connection, notices: Notices, count: int = 1) -> None:
    """Hand on what comes next."""
    async for notice in listener.notifies(timeout=30, stop_after=count):
        notices.received(notice.channel, notice.payload)


async def test_notices_of_many_sessions_are_known_here_at_once_and_to_others_by_one_statement(
    database_dsn: str,
) -> None:
    sessions = [uuid4() for _ in range(40)]
    async with Counted(database_dsn) as database, await listening_connection(database_dsn) as listener:
        await listener.execute(f"LISTEN {EVENTS_CHANNEL}")
        database.notices.feed = here = Readers()
        there = Notices(database.connection)
        there.feed = others = Readers()
        for session_id in sessions:
            await database.notices.tell(session_id, "event")
        expected = [f"{session_id} event" for session_id in sessions]
        assert (here.notices, database.taken) == (expected, 0)
        await database.notices.tell(sessions[0], "settled")
        await hear(listener, there, 41)
        assert others.notices == here.notices == [*expected, f"{sessions[0]} settled"]
        assert database.taken == 1
        # Its own ones say nothing new.
        await database.notices.tell(sessions[0], "event")
        await hear(listener, database.notices)
        assert len(here.notices) == 42


async def test_live_text_is_sent_only_while_somebody_reads_in_another_process(database_dsn: str) -> None:
    session_id = uuid4()
    async with Counted(database_dsn) as database, await listening_connection(database_dsn) as listener:
        await listener.execute(f"LISTEN {EVENTS_CHANNEL}")
        await listener.execute(f"LISTEN {LIVE_CHANNEL}")
        there = Notices(database.connection)
        there.feed = others = Readers(session_id)
        await database.notices.send_live(session_id, iter([{"text": "to nobody"}]))
        database.notices.feed = here = Readers(session_id)
        await database.notices.send_live(session_id, [{"text": "to here"}])
        assert database.taken == 0
        await there.announce([session_id])
        await hear(listener, database.notices)
        await database.notices.send_live(session_id, [{"text": "to both"}, {"text": "x" * MAX_LIVE_BYTES}])
        await hear(listener, there)
    assert [text[:7] for text in here.texts] == ["to here", "to both", "xxxxxxx"]
    assert others.texts == ["to both"]


async def test_p42_a_notice_that_cannot_be_sent_is_no_error(database_dsn: str) -> None:
    database = Database(database_dsn)
    async with database:
        pass
    await database.notices.tell(uuid4(), "settled")
