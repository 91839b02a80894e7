"""From a run to the event log: stored events in order, model text in small bundles.

The graph hands over events without waiting; one task writes them, several at a time when it falls behind.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, Protocol
from uuid import UUID

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.observability.metrics import FALLBACKS, MODEL_CALLS, MODEL_TOKENS, MODEL_USD
from flowise_dev_agent.persistence import Events, Lease, NewEvent, StoredEvent
from flowise_dev_agent.runtime.runs.call_count import CallCount
from flowise_dev_agent.runtime.runs.tasks import end_tasks

logger = logging.getLogger(__name__)

STORED_TYPES: Final = frozenset({"decision", "retry", "fallback", "write", "test", "cost", "artifact", "drift"})
LIVE_TYPES: Final = frozenset({"token", "tool_call", "tool_result"})

_BATCH: Final = 50
_TOKEN_DELAY_SECS: Final = 0.05
_TOKEN_CHUNK_CHARS: Final = 900  # below 4 KB even at 4 bytes a character
_RETRY_SECS: Final = 0.5
#: Before a write, so that the end of a step and the start of the next, or a burst, become one.
_GATHER_SECS: Final = 0.05


class Emit(Protocol):
    """Takes one event `{"type", "node", "phase", "summary", "data"}` at once; the text of a token is `data["text"]`."""

    def __call__(self, item: Mapping[str, Any], /) -> None: ...


@dataclass
class _Text:
    node: str | None
    phase: str | None
    parts: list[str]


class EventWriter:
    """Writes the events of one run under its lease.

    `flush` waits until everything put so far is stored; it raises what made that impossible, LeaseLostError when the
    lease is gone. While the database is away the writer waits for it. What `calls` has counted is stored with the next
    event.
    """

    def __init__(self, events: Events, lease: Lease, session_id: UUID, calls: CallCount | None = None) -> None:
        self._calls = calls or CallCount()
        self._events = events
        self._lease = lease
        self._session_id = session_id
        self._stored: deque[NewEvent] = deque()
        self._live: deque[StoredEvent] = deque()
        self._text: _Text | None = None
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._hurry = asyncio.Event()
        self._finishing = False
        self._error: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task = asyncio.create_task(self._run(), name=f"events-{session_id}")

    def put(self, event: NewEvent) -> None:
        """Store `event` after all those before it."""
        self._stored.append(event)
        self._wake()

    def emit(self, item: Mapping[str, Any], /) -> None:
        """Take an event in the form that nodes write; an unknown type is dropped with a warning."""
        type_ = str(item.get("type"))
        node, phase = item.get("node"), item.get("phase")
        data: Mapping[str, Any] = item.get("data") or {}
        if type_ == "token":
            self._add_text(node, phase, str(data.get("text", "")))
        elif type_ in LIVE_TYPES:
            self._send_text()
            self._put_live(type_, node, phase, str(item.get("summary") or ""), dict(data))
        elif type_ in STORED_TYPES:
            _count(type_, str(phase), data)
            self.put(NewEvent(type_, node=node, phase=phase, summary=str(item.get("summary") or ""), data=data))
        else:
            logger.warning("A node wrote an event of unknown type %r.", type_)

    async def flush(self) -> None:
        """Wait until everything is stored, or cannot be."""
        self._send_text()
        self._hurry.set()
        await self._idle.wait()
        self._hurry.clear()
        if self._error is not None:
            raise self._error

    async def finish(self) -> tuple[list[NewEvent], int]:
        """Store no more; the events and the number of calls that are not stored yet, for the end of the run to store.

        Raises LeaseLostError.
        """
        self._finishing = True
        self._wake()
        await self.flush()
        return list(self._stored), self._calls.made

    async def close(self) -> None:
        """Stop at once; what is not stored yet is dropped."""
        if self._timer is not None:
            self._timer.cancel()
        await end_tasks([self._task])

    def _wake(self) -> None:
        self._idle.clear()
        self._work.set()

    def _add_text(self, node: str | None, phase: str | None, text: str) -> None:
        if self._text is not None and (self._text.node != node or _size(self._text) + len(text) > _TOKEN_CHUNK_CHARS):
            self._send_text()
        if self._text is None:
            self._text = _Text(node, phase, [])
            self._timer = asyncio.get_running_loop().call_later(_TOKEN_DELAY_SECS, self._send_text)
        self._text.parts.append(text)

    def _send_text(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._text = self._text, None
        if pending is None:
            return
        text = "".join(pending.parts)
        for start in range(0, len(text), _TOKEN_CHUNK_CHARS):
            chunk = text[start : start + _TOKEN_CHUNK_CHARS]
            self._put_live("token", pending.node, pending.phase, "", {"text": chunk})

    def _put_live(self, type_: str, node: str | None, phase: str | None, summary: str, data: dict[str, Any]) -> None:
        self._live.append(
            StoredEvent(
                session_id=self._session_id,
                seq=None,
                ts=datetime.now(UTC),
                run_id=self._lease.run_id,
                type=type_,
                node=node,
                phase=phase,
                status=None,
                duration_ms=None,
                summary=summary,
                data=data,
            )
        )
        self._wake()

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            if self._stored:
                await self._gather()
            try:
                await self._write_some()
            except Exception as error:  # noqa: BLE001 - whatever it is, the run has to learn of it
                self._error = error
                self._stored.clear()
                self._live.clear()
            if self._live or (self._stored and not self._finishing):
                self._work.set()
            else:
                self._idle.set()

    async def _gather(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_SECS):
                await self._hurry.wait()

    async def _write_some(self) -> None:
        batch = [] if self._finishing else list(islice(self._stored, _BATCH))
        try:
            if batch:
                made = self._calls.made
                await self._events.append(self._lease, self._session_id, batch, flowise_calls=made)
                self._calls.made -= made
                for _ in batch:
                    self._stored.popleft()
            while self._live:
                await self._events.send_live(self._live.popleft())
        except DatabaseUnavailableError:
            self._live.clear()  # nobody could have received it
            await asyncio.sleep(_RETRY_SECS)


def _count(type_: str, phase: str, data: Mapping[str, Any]) -> None:
    if type_ == "cost":
        MODEL_CALLS.labels(phase).inc(data.get("model_calls", 0))
        for direction in ("input", "output", "cached"):
            MODEL_TOKENS.labels(phase, direction).inc(data.get(f"{direction}_tokens", 0))
        MODEL_USD.labels(phase).inc(data.get("usd", 0))
    elif type_ == "fallback":
        FALLBACKS.labels(phase).inc()


def _size(text: _Text) -> int:
    return sum(len(part) for part in text.parts)
