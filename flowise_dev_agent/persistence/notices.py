"""Notifies the readers of sessions, in every process, of something new."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal
from uuid import UUID

from psycopg import AsyncCursor

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence.database import Connection, Database

#: Notices "<session id> event" and "<session id> settled"; the second when the status that a client waits for is there.
EVENTS_CHANNEL: Final = "fda_events"
_TELL: Final = "SELECT pg_notify(%s, notice) FROM unnest(%s::text[]) AS notice"

What = Literal["event", "settled", "deleted"]


class Notices:
    """Sends notices; those that arrive while one is being sent go together.

    Send them after the commit, on their own: inside a transaction NOTIFY takes a lock on the whole database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turn = asyncio.Lock()
        self._waiting: dict[str, None] = {}

    async def tell(self, session_id: UUID, what: What) -> None:
        """Tell all readers to look at the session; returns when the notice is sent.

        A notice that cannot be sent raises nothing: the commit is done, and readers also poll.
        """
        self._waiting[f"{session_id} {what}"] = None
        async with self._turn:
            if not self._waiting:
                return  # sent together with an earlier one
            notices, self._waiting = list(self._waiting), {}
            with suppress(DatabaseUnavailableError):
                async with self._database.connection() as connection:
                    # For whom does not matter.
                    await AsyncCursor(connection).execute(_TELL, (EVENTS_CHANNEL, notices))


@asynccontextmanager
async def told_transaction(database: Database, session_id: UUID, what: What) -> AsyncGenerator[Connection]:
    """A transaction whose commit is followed by a notice."""
    async with database.transaction() as connection:
        yield connection
    await Notices(database).tell(session_id, what)
