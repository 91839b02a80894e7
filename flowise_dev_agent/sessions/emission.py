"""Events of a run on their way to the event log: stored in order, model text in small bundles.

The graph hands over events without waiting; one task writes them, several at a time when it falls behind.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Final, Protocol, get_args
from uuid import UUID, uuid4

from flowise_dev_agent.caller import current_request
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.observability.metrics import (
    FALLBACKS,
    FLOWISE_CALLS,
    MODEL_CALLS,
    MODEL_TOKENS,
    MODEL_USD,
    TOOL_SECONDS,
)
from flowise_dev_agent.persistence import Events, Lease, NewEvent, StoredEvent
from flowise_dev_agent.persistence.events import MAX_DATA_BYTES, NewArtifact
from flowise_dev_agent.schemas.base import JsonObject, TextCode
from flowise_dev_agent.schemas.event_data import (
    CostData,
    EventData,
    FallbackData,
    LiveType,
    NodeArtifactData,
    TokenData,
    ToolResultData,
)
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.schemas.node_artifacts import MAX_ARTIFACT_BYTES, NodeArtifact
from flowise_dev_agent.texts import Text
from flowise_dev_agent.timings import end_tasks


@dataclass
class CallCount:
    """Number of Flowise requests that are not stored yet."""

    made: int = 0


_of_run: ContextVar[CallCount | None] = ContextVar("flowise_calls", default=None)


@contextmanager
def counting(count: CallCount) -> Generator[None]:
    """Count the Flowise calls of the block, and of tasks started in it, into `count`."""
    token = _of_run.set(count)
    try:
        yield
    finally:
        _of_run.reset(token)


def count_call(route: str) -> None:
    """Count a call of a Flowise client (`on_call` hook). Calls outside of a run (health checks) do not count."""
    FLOWISE_CALLS.labels(route).inc()
    if (count := _of_run.get()) is not None:
        count.made += 1


logger = logging.getLogger(__name__)

_LIVE_TYPES: Final = frozenset(get_args(LiveType))
#: Event types that nodes emit; the run itself makes the others.
_NODE_TYPES: Final = frozenset(
    {"decision", "retry", "fallback", "write", "test", "cost", "artifact", "drift", "node_artifact:persisted"}
)
_BATCH: Final = 50
_TOKEN_DELAY_SECS: Final = 0.05
_TOKEN_CHUNK_CHARS: Final = 900  # below 4 KB even at 4 bytes a character
_RETRY_SECS: Final = 0.5
#: Seconds between two writes: a burst becomes one write, a single event is written at once.
_GATHER_SECS: Final = 0.2


class Emit(Protocol):
    """Callback that takes an event without waiting."""

    def __call__(self, event: NodeEvent, /) -> None: ...


@dataclass
class _Text:
    node: str | None
    phase: str | None
    parts: list[str]
    chars: int = 0


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
        self._written_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._task = asyncio.create_task(self._run(), name=f"events-{session_id}")

    def put(self, event: NewEvent) -> None:
        """Queue `event` behind all earlier ones."""
        self._stored.append(event)
        self._wake()

    def emit(self, event: NodeEvent, /) -> None:
        """Queue an event of a node."""
        if isinstance(event.data, TokenData):
            self._add_text(event.node, event.phase, event.data.text)
        elif event.data.event_type in _LIVE_TYPES:
            self._send_text()
            _count(event)
            self._put_live(event)
        elif event.artifact is not None:
            self.put(_with_artifact(event, event.artifact))
        elif event.data.event_type in _NODE_TYPES:
            _count(event)
            self.put(new_event(event.data, node=event.node, phase=event.phase, summary=event.summary))
        else:
            logger.warning("%s wrote an event of type %r; it is dropped.", event.node, event.data.event_type)

    async def flush(self) -> None:
        """Wait until everything is stored. Raises the error that prevents it."""
        self._send_text()
        self._hurry.set()
        await self._idle.wait()
        self._hurry.clear()
        if self._error is not None:
            raise self._error

    async def finish(self) -> tuple[list[NewEvent], int]:
        """Stop storing. Returns the events and the number of calls that the end of the run has to store.

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
        if self._text is not None and (self._text.node != node or self._text.chars + len(text) > _TOKEN_CHUNK_CHARS):
            self._send_text()
        if self._text is None:
            self._text = _Text(node, phase, [])
            self._timer = asyncio.get_running_loop().call_later(_TOKEN_DELAY_SECS, self._send_text)
        self._text.parts.append(text)
        self._text.chars += len(text)

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
            self._put_live(NodeEvent(pending.node, pending.phase, "", TokenData(text=chunk)))

    def _put_live(self, event: NodeEvent) -> None:
        self._live.append(
            StoredEvent(
                session_id=self._session_id,
                seq=None,
                ts=datetime.now(UTC),
                run_id=self._lease.run_id,
                type=event.data.event_type,
                node=event.node,
                phase=event.phase,
                status=None,
                duration_ms=None,
                summary=event.summary,
                data=_stored(event.data),
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
        pause = self._written_at + _GATHER_SECS - asyncio.get_running_loop().time()
        if pause > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()

    async def _write_some(self) -> None:
        # The end of the run stores the last events. Live events that wait need their step's start stored before them.
        batch = [] if self._finishing and not self._live else list(islice(self._stored, _BATCH))
        try:
            if batch:
                made = self._calls.made
                await self._events.append(self._lease, self._session_id, batch, flowise_calls=made)
                self._calls.made -= made
                for _ in batch:
                    self._stored.popleft()
                self._written_at = asyncio.get_running_loop().time()
            while self._live:
                batch = [self._live.popleft() for _ in range(min(len(self._live), _BATCH))]
                await self._events.send_live(self._session_id, batch)
        except DatabaseUnavailableError:
            self._live.clear()  # nobody could have received it
            await asyncio.sleep(_RETRY_SECS)


def new_event(
    data: EventData,
    *,
    node: str | None = None,
    phase: str | None = None,
    status: str | None = None,
    duration_ms: int | None = None,
    summary: str = "",
) -> NewEvent:
    """Make an event; its type follows from `data`."""
    if isinstance(summary, Text):
        data = data.model_copy(update={"texts": {**data.texts, "summary": TextCode.of(summary)}})
    return NewEvent(
        data.event_type,
        node=node,
        phase=phase,
        status=status,
        duration_ms=duration_ms,
        summary=summary,
        data=_stored(data),
    )


def _stored(data: EventData) -> JsonObject:
    """Event data as JSON without default values; reading adds them again."""
    return data.fitted_json(MAX_DATA_BYTES, exclude_defaults=True)


def _with_artifact(event: NodeEvent, artifact: NodeArtifact) -> NewEvent:
    """Make the event that announces an artifact and carries it to be stored. Reading adds where it stands."""
    id_, kind, request = uuid4(), artifact.payload.artifact_type, current_request()
    data = NodeArtifactData(
        artifact_id=id_,
        artifact_type=kind,
        request_id=request.id,
        correlation_id=request.trace_id,
    )
    stored = new_event(data, node=event.node, phase=event.phase, summary=event.summary)
    new = NewArtifact(
        id=id_,
        kind=kind,
        payload=artifact.payload.fitted_json(MAX_ARTIFACT_BYTES, exclude_defaults=True),
        memory_id=artifact.memory_id,
        answered=artifact.answered,
        request_id=request.id,
        correlation_id=request.trace_id,
    )
    return replace(stored, artifact=new)


def _count(event: NodeEvent) -> None:
    phase = str(event.phase)
    match event.data:
        case CostData() as cost:
            MODEL_CALLS.labels(phase).inc(cost.model_calls)
            MODEL_TOKENS.labels(phase, "input").inc(cost.input_tokens)
            MODEL_TOKENS.labels(phase, "output").inc(cost.output_tokens)
            MODEL_TOKENS.labels(phase, "cached").inc(cost.cached_tokens)
            MODEL_USD.labels(phase).inc(cost.usd)
        case FallbackData():
            FALLBACKS.labels(phase).inc()
        case ToolResultData() as tool:
            TOOL_SECONDS.labels(tool.name, _tool_end(tool)).observe(tool.duration_ms / 1000)
        case _:
            pass


def _tool_end(tool: ToolResultData) -> str:
    if tool.repeated:
        return "repeated"
    return "ok" if tool.ok else "failed"
