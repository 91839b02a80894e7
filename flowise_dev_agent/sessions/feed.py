"""Fan-out of the event log to all readers in this process: by memory from its own runs, by LISTEN from others.

Each followed session has a hub: one shared read of the log fills a ring, and each reader is a cursor over that ring. A
reader that falls behind the ring, or begins in the past, reads the log itself until it has caught up. Notices get lost
when connections break, so a poll checks all hubs and all waiters. It is one read for all of them, since separate reads
would take too many database connections.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, Container, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from contextvars import Context
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

import psycopg

from flowise_dev_agent.caller import SERVICE, acting_for, current_caller
from flowise_dev_agent.errors import DatabaseUnavailableError, SessionNotFoundError
from flowise_dev_agent.persistence import Events, StoredEvent
from flowise_dev_agent.persistence.database import across_owners, listening_connection
from flowise_dev_agent.persistence.notices import EVENTS_CHANNEL, LIVE_CHANNEL, Notices
from flowise_dev_agent.texts import text
from flowise_dev_agent.timings import end_tasks

logger = logging.getLogger(__name__)

_RING: Final = 512
_BATCH: Final = 500
_RECONNECT_SECS: Final = (0.1, 2.0)
_FINAL_ROW_STATUSES: Final = frozenset({"completed", "cancelled"})
_WORKING_ROW_STATUSES: Final = frozenset({"queued", "running"})


class _Hub:
    """State shared by all readers of one session."""

    def __init__(self, session_id: UUID) -> None:
        self.session_id = session_id
        #: A reader that may see the session; the shared read acts for it.
        self.caller = SERVICE
        self.readers = 0
        self.ring: deque[StoredEvent] = deque(maxlen=_RING)
        #: Number of items ever put into the ring; item i is at `ring[i - (count - len(ring))]`.
        self.count = 0
        #: Last sequence number in the ring; None until the first reader has read the state of the log.
        self.last_seq: int | None = None
        self.dirty = False
        self.deleted = False
        self.reading: asyncio.Task[None] | None = None
        #: Live events that arrived while the log was read; the stored events before them go first.
        self.held: deque[StoredEvent] = deque(maxlen=_RING)
        self._wake = asyncio.Event()

    @property
    def oldest(self) -> int:
        return self.count - len(self.ring)

    def put(self, event: StoredEvent) -> None:
        self.ring.append(event)
        self.count += 1

    def put_live(self, event: StoredEvent) -> None:
        if self.reading is None or self.reading.done():
            self.put(event)
            self.wake()
        else:
            self.held.append(event)

    def put_held(self) -> None:
        while self.held:
            self.put(self.held.popleft())

    def wake(self) -> None:
        self._wake.set()
        self._wake = asyncio.Event()

    def changed(self) -> asyncio.Event:
        """Event that is set at the next change after this call. Call it before reading the state."""
        return self._wake


class Feed:
    """Streams and waits for all sessions of this process. Use as an async context manager.

    `dsn` must reach Postgres directly (LISTEN does not pass a transaction pooler).
    """

    def __init__(self, events: Events, notices: Notices, dsn: str, *, poll_secs: float = 5.0) -> None:
        self._events = events
        self._notices = notices
        self._dsn = dsn
        self._poll_secs = poll_secs
        self._hubs: dict[UUID, _Hub] = {}
        self._settled: dict[UUID, set[asyncio.Event]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False
        self._listening = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._notices.feed = self
        self._tasks = [
            asyncio.create_task(self._listen(), name="feed-listen"),
            asyncio.create_task(self._poll(), name="feed-poll"),
        ]
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.end_streams()
        tasks = [*self._tasks, *(hub.reading for hub in self._hubs.values() if hub.reading)]
        await end_tasks(tasks)

    @property
    def listening(self) -> bool:
        """False while the LISTEN connection is being made; readers then rely on polling."""
        return self._listening.is_set()

    @property
    def readers(self) -> int:
        """Number of open streams."""
        return sum(hub.readers for hub in self._hubs.values())

    def end_streams(self) -> None:
        """End all streams and waits now; at shutdown they would hold the server open."""
        self._closed = True
        for hub in self._hubs.values():
            hub.wake()
        self._wake_waiters()

    # --- readers -----------------------------------------------------------------------------------------------------

    async def stream(self, session_id: UUID, *, after_seq: int = 0) -> AsyncGenerator[StoredEvent]:
        """Stored events after `after_seq` in order and without gaps, then live events.

        Ends after `done`, when the session is deleted, and when the feed is closed. While the database is away it stays
        silent. Raises SessionNotFoundError.
        """
        with self._hub(session_id) as hub:
            seq = after_seq
            over = await self._begin(hub)
            await self._notices.announce([session_id])
            position = -1  # behind any ring: begin with the log
            while not self._closed:
                changed = hub.changed()
                if position < hub.oldest:
                    position = hub.count
                    async with aclosing(self._replay(hub, seq)) as replay:
                        async for event in replay:
                            seq = event.seq or seq
                            yield event
                            if event.type == "done":
                                return
                    if over:  # also when retention has taken events away
                        return
                    continue
                if position < hub.count:
                    event = hub.ring[position - hub.oldest]
                    position += 1
                    if event.seq is not None:
                        if event.seq <= seq:
                            continue
                        seq = event.seq
                    yield event
                    if event.type == "done":
                        return
                    continue
                if hub.deleted:
                    return
                await changed.wait()

    @contextmanager
    def watch_idle(self, session_id: UUID) -> Generator[asyncio.Event]:
        """Watch a session: the event is set when it may be idle. Read the row, clear the event, wait again."""
        event = asyncio.Event()
        waiters = self._settled.setdefault(session_id, set())
        waiters.add(event)
        if self._closed:
            event.set()
        try:
            yield event
        finally:
            waiters.discard(event)
            if not waiters:
                self._settled.pop(session_id, None)

    @property
    def closed(self) -> bool:
        """True once streams and waits must end."""
        return self._closed

    async def _begin(self, hub: _Hub) -> bool:
        """Set the position where the hub starts reading; True if the log is already complete."""
        heads = await self._events.heads([hub.session_id])
        if hub.session_id not in heads:
            raise SessionNotFoundError(text("error.no_session", session=str(hub.session_id)))
        head, status = heads[hub.session_id]
        hub.caller = current_caller()
        if hub.last_seq is None:
            hub.last_seq = head
        return status in _FINAL_ROW_STATUSES

    async def _replay(self, hub: _Hub, after: int) -> AsyncGenerator[StoredEvent]:
        """Stored events after a sequence number, up to the current end of the log."""
        while not self._closed:
            changed = hub.changed()
            try:
                batch = await self._events.read(hub.session_id, after=after, limit=_BATCH)
            except DatabaseUnavailableError:
                await changed.wait()
                continue
            for event in batch:
                yield event
                after = event.seq or after
            if len(batch) < _BATCH:
                return

    @contextmanager
    def _hub(self, session_id: UUID) -> Generator[_Hub]:
        hub = self._hubs.setdefault(session_id, _Hub(session_id))
        hub.readers += 1
        try:
            yield hub
        finally:
            hub.readers -= 1
            if hub.readers == 0 and self._hubs.get(session_id) is hub:
                del self._hubs[session_id]
                if hub.reading is not None:
                    hub.reading.cancel()

    # --- the shared read ---------------------------------------------------------------------------------------------

    def _mark(self, hub: _Hub) -> None:
        hub.dirty = True
        if hub.reading is None or hub.reading.done():
            # Not in the context of the run whose event it may be.
            task = asyncio.create_task(self._read(hub), name=f"feed-read-{hub.session_id}", context=Context())
            hub.reading = task

    async def _read(self, hub: _Hub) -> None:
        while hub.dirty and hub.last_seq is not None:
            hub.dirty = False
            try:
                with acting_for(hub.caller):
                    batch = await self._events.read(hub.session_id, after=hub.last_seq, limit=_BATCH)
            except DatabaseUnavailableError:
                break  # the poll or the reconnect marks the hub again
            for event in batch:
                hub.put(event)
                hub.last_seq = event.seq
            hub.dirty = hub.dirty or len(batch) == _BATCH
            hub.wake()
        hub.put_held()
        hub.wake()

    # --- notices -----------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        delay, longest = _RECONNECT_SECS
        while True:
            try:
                connection = await listening_connection(self._dsn)
                async with connection:
                    await connection.execute(f"LISTEN {EVENTS_CHANNEL}")
                    await connection.execute(f"LISTEN {LIVE_CHANNEL}")
                    delay = _RECONNECT_SECS[0]
                    self._listening.set()
                    self._mark_all()
                    async for notice in connection.notifies():
                        try:
                            self._notices.received(notice.channel, notice.payload)
                        except (ValueError, KeyError):  # not one of ours
                            logger.warning("A notice on %s could not be read.", notice.channel)
            except psycopg.Error as error:
                logger.warning("The event feed lost its connection (%s); connecting again.", type(error).__name__)
            self._listening.clear()
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - only spreads reconnects
            delay = min(delay * 2, longest)

    def live(self, event: Mapping[str, Any]) -> None:
        """Give a live event to the readers of its session. Raises ValueError and KeyError for anything else."""
        if (hub := self._hubs.get(UUID(event["session_id"]))) is not None:
            hub.put_live(_live_event(event))

    def reads(self, session_id: UUID) -> bool:
        """True if this process reads the session."""
        return session_id in self._hubs

    def notice(self, session_id: UUID, what: str) -> None:
        """Wake the readers of a session, see `Notices`."""
        if (hub := self._hubs.get(session_id)) is not None:
            hub.deleted = hub.deleted or what == "deleted"
            self._mark(hub)
        if what != "event":
            for event in self._settled.get(session_id, ()):
                event.set()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._poll_secs)
            if not self._hubs and not self._settled:
                continue
            try:
                with across_owners():
                    heads = await self._events.heads([*self._hubs, *self._settled])
            except DatabaseUnavailableError:
                continue
            await self._notices.announce(self._hubs)
            self._wake_waiters({id_ for id_, (_, status) in heads.items() if status in _WORKING_ROW_STATUSES})
            for hub in list(self._hubs.values()):
                if hub.session_id not in heads:
                    hub.deleted = True
                    hub.wake()
                elif hub.last_seq is not None and heads[hub.session_id][0] > hub.last_seq:
                    self._mark(hub)
                else:
                    hub.wake()  # a reader that waits in `_replay` for the database tries again

    def _mark_all(self) -> None:
        for hub in self._hubs.values():
            self._mark(hub)
        self._wake_waiters()

    def _wake_waiters(self, working: Container[UUID] = ()) -> None:
        """Wake all waiters, except for sessions that are known to be working."""
        for session_id, waiters in self._settled.items():
            if session_id not in working:
                for event in waiters:
                    event.set()


async def set_within(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, at most for the given time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _live_event(payload: Mapping[str, Any]) -> StoredEvent:
    return StoredEvent(
        session_id=UUID(payload["session_id"]),
        seq=None,
        ts=datetime.fromisoformat(payload["ts"]),
        run_id=UUID(payload["run_id"]) if payload["run_id"] else None,
        type=payload["type"],
        node=payload["node"],
        phase=payload["phase"],
        status=payload["status"],
        duration_ms=None,
        summary=payload["summary"],
        data=payload["data"],
    )
