"""Notices to the readers of sessions: by memory to those of this process, over Postgres to those of others."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from secrets import token_hex
from typing import Any, Final, Literal, Protocol
from uuid import UUID

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.timings import end_tasks

#: Notices "<session id> <what> <process>".
EVENTS_CHANNEL: Final = "fda_events"
#: Whole events without a number, never stored.
LIVE_CHANNEL: Final = "fda_live"
#: Postgres accepts notices below 8000 bytes.
MAX_LIVE_BYTES: Final = 7_500
_SEND: Final = "SELECT pg_notify(%s, notice) FROM unnest(%s::text[]) AS notice"
#: Notices of events wait so long for more of them.
_GATHER_SECS: Final = 0.1
#: How long a session counts as read in another process; readers repeat it with each poll.
_READ_SECS: Final = 100.0

#: `settled` when the final status is committed, `read` when a stream begins or goes on.
What = Literal["event", "settled", "deleted", "read"]


class LocalFeed(Protocol):
    """Readers of this process."""

    def notice(self, session_id: UUID, what: str) -> None:
        """Take a notice."""
        ...

    def live(self, event: Mapping[str, Any]) -> None:
        """Take a live event; dropped unless its session is read."""
        ...

    def reads(self, session_id: UUID) -> bool:
        """True if the session is read."""
        ...


class Notices:
    """Sender of notices of one process.

    Send them after the commit, on their own: inside a transaction NOTIFY takes a lock on the whole database.
    """

    def __init__(self, connect: Callable[[], AbstractAsyncContextManager[AsyncConnection[DictRow]]]) -> None:
        self._connect = connect
        self._process = token_hex(4)
        self._turn = asyncio.Lock()
        self._waiting: dict[str, None] = {}
        self._later: asyncio.Task[None] | None = None
        self.feed: LocalFeed | None = None
        #: Sessions that other processes read, with the time until which that is known, the oldest first.
        self._elsewhere: dict[UUID, float] = {}

    async def tell(self, session_id: UUID, what: What) -> None:
        """Notify all readers of the session: of this process now; returns once others are told, or will be soon.

        A failure raises nothing: the commit is done, and readers also poll.
        """
        if self.feed is not None:
            self.feed.notice(session_id, what)
        self._waiting[f"{session_id} {what} {self._process}"] = None
        if what != "event":
            await self._send_waiting()
        elif self._later is None:
            self._later = asyncio.create_task(self._send_later(), name="notices")

    async def announce(self, session_ids: Iterable[UUID]) -> None:
        """Tell other processes that this one reads these sessions, and wants their live events."""
        self._waiting |= dict.fromkeys(f"{session_id} read {self._process}" for session_id in session_ids)
        await self._send_waiting()

    async def send_live(self, session_id: UUID, events: Iterable[Mapping[str, Any]]) -> None:
        """Send events to current readers: neither stored nor numbered, and not to others if they are too big."""
        here = self.feed is not None and self.feed.reads(session_id)
        elsewhere = self._elsewhere.get(session_id, 0.0) > time.monotonic()
        if not here and not elsewhere:
            return
        made = list(events)
        if self.feed is not None:
            for event in made:
                self.feed.live(event)
        texts = [json.dumps({**event, "process": self._process}, ensure_ascii=False) for event in made if elsewhere]
        if payloads := [text for text in texts if len(text.encode()) <= MAX_LIVE_BYTES]:
            async with self._connect() as connection:
                await AsyncCursor(connection).execute(_SEND, (LIVE_CHANNEL, payloads))

    def received(self, channel: str, payload: str) -> None:
        """Take what Postgres delivers. Raises ValueError and KeyError for what is no notice."""
        if self.feed is None:
            return
        if channel == LIVE_CHANNEL:
            event = json.loads(payload)
            if event.get("process") != self._process:
                self.feed.live(event)
            return
        session, what, process = [*payload.split(" "), "", ""][:3]
        if process == self._process:
            return
        if what != "read":
            self.feed.notice(UUID(session), what)
            return
        now = time.monotonic()
        self._elsewhere.pop(UUID(session), None)
        self._elsewhere[UUID(session)] = now + _READ_SECS
        for known, until in list(self._elsewhere.items()):
            if until > now:
                break
            del self._elsewhere[known]

    async def close(self) -> None:
        """Drop what was not sent."""
        if self._later is not None:
            await end_tasks([self._later])

    async def _send_later(self) -> None:
        await asyncio.sleep(_GATHER_SECS)
        self._later = None
        await self._send_waiting()

    async def _send_waiting(self) -> None:
        async with self._turn:
            if not self._waiting:
                return  # sent together with an earlier one
            notices, self._waiting = list(self._waiting), {}
            with suppress(DatabaseUnavailableError):
                async with self._connect() as connection:
                    # The owner does not matter here.
                    await AsyncCursor(connection).execute(_SEND, (EVENTS_CHANNEL, notices))
