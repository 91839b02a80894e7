"""The event log: a gapless sequence per session.

The statement that inserts also raises the counter in the sessions row. So rows become visible in the order of their
numbers, and a reader that follows them misses nothing.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from flowise_dev_agent.errors import LeaseLostError
from flowise_dev_agent.persistence.database import Connection, Database, Lease, jsonb
from flowise_dev_agent.persistence.notices import What
from flowise_dev_agent.redaction import masked, redacted
from flowise_dev_agent.sanitize import bounded, clean_json, shortened


@asynccontextmanager
async def transaction_with_notice(database: Database, session_id: UUID, what: What) -> AsyncGenerator[Connection]:
    """A transaction whose commit is followed by a notice."""
    async with database.transaction() as connection:
        yield connection
    await database.notices.tell(session_id, what)


MAX_SUMMARY_CHARS: Final = 200
MAX_DATA_BYTES: Final = 4_000

#: The parameter `events` as rows, in order: an item of a FROM clause.
ITEMS: Final = """
    ROWS FROM (jsonb_to_recordset(%(events)s) AS (
        ts timestamptz, type text, node text, phase text, status text, duration_ms integer, summary text, data jsonb,
        artifact jsonb
    )) WITH ORDINALITY AS item (ts, type, node, phase, status, duration_ms, summary, data, artifact, number)
"""
#: Continues a list of CTEs: stores the events under the numbers that follow `head.base`, in the session `head.id`, with
#: their artifacts. An artifact that follows from an answer refers to the answer's row in the audit log, the session's
#: last.
INSERT_ITEMS: Final = f"""
    , kept AS (
        INSERT INTO node_artifacts (id, session_id, run_id, kind, node, memory_id, payload, request_id, correlation_id,
            audit_seq, created_at)
        SELECT made.id, head.id, %(run)s, made.kind, item.node, made.memory_id, made.payload, made.request_id,
            made.correlation_id,
            CASE WHEN made.answered THEN (SELECT max(seq) FROM audit_log WHERE chain = head.id
                AND (action LIKE 'plan_approval.%%' OR action LIKE 'result_review.%%')) END, item.ts
        FROM head, {ITEMS}, jsonb_to_record(item.artifact) AS made (id uuid, kind text, memory_id bigint, payload jsonb,
            request_id text, correlation_id text, answered boolean)
        WHERE item.artifact IS NOT NULL
    )
    INSERT INTO session_events
        (session_id, seq, ts, run_id, type, node, phase, status, duration_ms, summary, data)
    SELECT head.id, head.base + item.number, item.ts, %(run)s, item.type, item.node, item.phase, item.status,
           item.duration_ms, item.summary, item.data
    FROM head, {ITEMS}
"""
# The owner is checked in RETURNING, that is after the sessions row is locked: the lock order of the schema.
_APPEND_FENCED: Final = f"""
    WITH head AS (
        UPDATE sessions SET event_seq = event_seq + %(count)s, status = 'running', phase = COALESCE(%(phase)s, phase),
            flowise_calls = flowise_calls + %(flowise_calls)s
        WHERE id = %(session)s
        RETURNING id, event_seq - %(count)s AS base, assert_owner(%(run)s, %(epoch)s) AS owned
    ) {INSERT_ITEMS}
"""
_APPEND: Final = f"""
    WITH head AS (
        UPDATE sessions SET event_seq = event_seq + %(count)s WHERE id = %(session)s
        RETURNING id, event_seq - %(count)s AS base
    ) {INSERT_ITEMS}
"""
_COLUMNS: Final = "session_id, seq, ts, run_id, type, node, phase, status, duration_ms, summary, data"
#: With the request that started the event's run.
_READ: Final = (
    f"SELECT {_COLUMNS}, (SELECT caller ->> 'request_id' FROM runs WHERE runs.id = run_id) AS request_id"
    " FROM session_events"
)


@dataclass(frozen=True, kw_only=True)
class NewArtifact:
    """An artifact to be stored with an event. `answered`: it follows from the session's last answer."""

    id: UUID
    kind: str
    payload: Mapping[str, Any]
    memory_id: int | None = None
    answered: bool = False
    request_id: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True)
class NewEvent:
    """An event to be stored. `summary` and `data` are cut to the log's limits, with secrets masked."""

    type: str
    node: str | None = None
    phase: str | None = None
    status: str | None = None
    duration_ms: int | None = None
    summary: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    ts: datetime = field(default_factory=lambda: datetime.now(UTC))
    artifact: NewArtifact | None = None


@dataclass(frozen=True)
class StoredEvent:
    """One row of the log; `seq` is None for a live event that was never stored."""

    session_id: UUID
    seq: int | None
    ts: datetime
    run_id: UUID | None
    type: str
    node: str | None
    phase: str | None
    status: str | None
    duration_ms: int | None
    summary: str
    data: dict[str, Any]
    request_id: str | None = None


@dataclass(frozen=True)
class LastStep:
    """Last step of a session that determines its picture.

    `question` is the type of the last question, or `flow` the hash of the last compiled flow; `written`: that flow was
    written since.
    """

    question: str | None = None
    flow: str | None = None
    written: bool = False


class Events:
    """Appends to and reads from the event log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self, lease: Lease, session_id: UUID, events: Sequence[NewEvent], *, flowise_calls: int = 0
    ) -> None:
        """Store `events` in order, add the calls made since the last ones, and notify the readers.

        Raises LeaseLostError, DatabaseUnavailableError.
        """
        async with self._database.connection() as connection:
            params = event_params(session_id, lease.run_id, events) | {
                "epoch": lease.epoch,
                "phase": last_phase(events),
                "flowise_calls": flowise_calls,
            }
            cursor = await connection.execute(_APPEND_FENCED, params)
            if cursor.rowcount == 0:
                raise LeaseLostError("The session was deleted in the meantime.")
        await self._database.notices.tell(session_id, "event")

    async def send_live(self, session_id: UUID, events: Sequence[StoredEvent]) -> None:
        """Send events to current readers, see `Notices.send_live`."""
        await self._database.notices.send_live(session_id, map(_live_payload, events))

    async def read(
        self, session_id: UUID, *, after: int, limit: int = 500, types: Sequence[str] | None = None
    ) -> list[StoredEvent]:
        """Stored events with a number above `after`, in order, optionally only of some types."""
        return await self._database.rows(
            StoredEvent,
            f"{_READ} WHERE session_id = %(session)s AND seq > %(after)s"
            " AND (%(types)s::text[] IS NULL OR type = ANY(%(types)s)) ORDER BY seq LIMIT %(limit)s",
            {
                "session": session_id,
                "after": after,
                "types": None if types is None else list(types),
                "limit": limit,
            },
        )

    async def last_step(self, session_id: UUID) -> LastStep:
        """The session's `LastStep`; its fields are None if there is none."""
        row = await self._database.fetch_one(
            "SELECT CASE type WHEN 'interrupt' THEN data ->> 'type' END AS question,"
            " CASE type WHEN 'artifact' THEN data ->> 'flow' END AS flow,"
            " EXISTS (SELECT 1 FROM session_events AS write WHERE write.session_id = made.session_id"
            "   AND write.seq > made.seq AND write.type = 'write' AND write.data ->> 'flow' = made.data ->> 'flow')"
            "   AS written"
            " FROM session_events AS made WHERE session_id = %s"
            " AND (type = 'interrupt' OR (type = 'artifact' AND data ->> 'flow' IS NOT NULL))"
            " ORDER BY seq DESC LIMIT 1",
            (session_id,),
        )
        return LastStep() if row is None else LastStep(**row)

    async def heads(self, session_ids: Sequence[UUID]) -> dict[UUID, tuple[int, str]]:
        """Last number and row status of each session that exists."""
        rows = await self._database.fetch_all(
            "SELECT id, event_seq, status FROM sessions WHERE id = ANY(%s)", (list(session_ids),)
        )
        return {row["id"]: (row["event_seq"], row["status"]) for row in rows}


def _live_payload(event: StoredEvent) -> Any:
    return clean_json(
        {
            "session_id": event.session_id,
            "ts": event.ts.isoformat(),
            "run_id": event.run_id,
            "type": event.type,
            "node": event.node,
            "phase": event.phase,
            "status": event.status,
            "summary": shortened(masked(event.summary), MAX_SUMMARY_CHARS),
            "data": bounded(redacted(event.data), MAX_DATA_BYTES),
        }
    )


async def insert(connection: Connection, session_id: UUID, run_id: UUID | None, events: Sequence[NewEvent]) -> None:
    """Store events inside the caller's transaction, which has checked its right to do so.

    Notify the readers afterwards.
    """
    await connection.execute(_APPEND, event_params(session_id, run_id, events))


def last_phase(events: Sequence[NewEvent]) -> str | None:
    """The session's phase according to the events."""
    return next((event.phase for event in reversed(events) if event.phase), None)


def event_params(session_id: UUID, run_id: UUID | None, events: Sequence[NewEvent]) -> dict[str, Any]:
    """The parameters `session`, `run`, `count` and `events` of statements that store events."""
    rows = [
        {
            "ts": event.ts.isoformat(),
            "type": event.type,
            "node": event.node,
            "phase": event.phase,
            "status": event.status,
            "duration_ms": event.duration_ms,
            "summary": shortened(masked(event.summary), MAX_SUMMARY_CHARS),
            "data": bounded(redacted(event.data), MAX_DATA_BYTES),
            "artifact": event.artifact and {**vars(event.artifact), "payload": redacted(event.artifact.payload)},
        }
        for event in events
    ]
    return {"session": session_id, "run": run_id, "count": len(rows), "events": jsonb(rows)}
