"""Reads of sessions: rows, lists, sums, and turns."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from flowise_dev_agent.caller import Caller, from_stored
from flowise_dev_agent.errors import InvalidInputError, SessionNotFoundError
from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.schemas.session import PublicStatus
from flowise_dev_agent.texts import text

SESSION_COLUMNS: Final = (
    "id, name, requirement, request, instance_id, endpoint, status, outcome, phase, operation_mode, iteration,"
    " chatflow_id, answer, interrupt, interrupt_id, error,"
    " totals || jsonb_build_object('flowise_calls', flowise_calls) AS totals, degraded, result, plan,"
    " event_seq, fingerprint, created_at, updated_at, xmin::text AS version"
)
#: Lists contain beginnings of texts: a page of 200 sessions stays small.
_LISTED: Final = (
    SESSION_COLUMNS.replace("requirement,", "left(requirement, 300) AS requirement,")
    .replace("interrupt, interrupt_id", "interrupt - '{data,response_schema}'::text[] AS interrupt, interrupt_id")
    .replace("result, plan,", "NULL AS result, NULL AS plan,")
    .replace("totals ||", "totals - 'phase_metrics' ||")
    .replace("xmin::text AS version", "NULL AS version")
    + ", (SELECT caller ->> 'name' FROM runs WHERE session_id = sessions.id AND kind = 'start' LIMIT 1) AS started_by"
)

_NEWEST_OF_FLOWS: Final[LiteralString] = """
    SELECT newest.* FROM unnest(%s::text[]) AS flow (id) CROSS JOIN LATERAL (
        SELECT chatflow_id, id, name, status, outcome, updated_at FROM sessions
        WHERE chatflow_id = flow.id AND instance_id = %s ORDER BY created_at DESC LIMIT 1
    ) AS newest
"""
_NEWEST: Final = "ORDER BY created_at DESC, id DESC"
_WORD: Final = re.compile(r"\w+")
_MAX_WORDS: Final = 20
#: Sessions with a word: up to here they are read by their ids, more are met soon when the newest are looked through.
_FEW: Final = 500


@dataclass(frozen=True)
class SessionFilter:
    """Filter of sessions; None and an empty text match all. `statuses` are row statuses.

    Each word of `text` must begin a word of the name or requirement, in any case. `ids` are the sessions with these
    words, if known and few.
    """

    statuses: Sequence[str] | None = None
    instance_id: str | None = None
    chatflow_id: str | None = None
    text: str | None = None
    ids: Sequence[UUID] | None = None

    @property
    def words(self) -> str | None:
        """The text as a `to_tsquery` expression."""
        return " & ".join(f"{word}:*" for word in _WORD.findall(self.text)[:_MAX_WORDS]) if self.text else None

    def where(self) -> tuple[LiteralString, dict[str, Any]]:
        """The SQL condition without the words, and the values of its parameters."""
        conditions: list[LiteralString] = ["true"]
        params: dict[str, Any] = {}
        if self.statuses is not None:
            conditions.append("status = ANY(%(statuses)s)")
            params["statuses"] = list(self.statuses)
        if self.instance_id is not None:
            conditions.append("instance_id = %(instance_id)s")
            params["instance_id"] = self.instance_id
        if self.chatflow_id is not None:
            conditions.append("chatflow_id = %(chatflow_id)s")
            params["chatflow_id"] = self.chatflow_id
        return " AND ".join(conditions), params


@dataclass(frozen=True)
class Sums:
    """Total cost of sessions."""

    sessions: int
    input_tokens: int
    output_tokens: int
    usd: float


@dataclass(frozen=True)
class SessionRow:
    """One session as stored; see CHECK constraints of the table for `status`."""

    id: UUID
    name: str | None
    requirement: str
    request: dict[str, Any]
    instance_id: str
    status: str
    outcome: str | None
    phase: str | None
    operation_mode: str | None
    iteration: int
    chatflow_id: str | None
    interrupt: dict[str, Any] | None
    interrupt_id: str | None
    error: dict[str, Any] | None
    totals: dict[str, Any]
    degraded: list[dict[str, Any]]
    event_seq: int
    fingerprint: str | None
    created_at: datetime
    updated_at: datetime
    answer: str | None = None
    result: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    #: The transaction that wrote the row; None in a list.
    version: str | None = None
    #: Of its Flowise server when it began; None of a session of an earlier version.
    endpoint: str | None = None
    #: Of a row of a list.
    started_by: str | None = None
    #: Whether files go with it; known where a run begins.
    has_files: bool = True


@dataclass(frozen=True)
class FlowSessionRow:
    """A session on a flow, in short."""

    chatflow_id: str
    id: UUID
    name: str | None
    status: str
    outcome: str | None
    updated_at: datetime


@dataclass(frozen=True)
class EarlierAnswer:
    """An earlier answer by its fingerprint, and the number of the last event before it."""

    fingerprint: str
    after_seq: int


def page_query(
    which: SessionFilter, *, limit: int, before: tuple[datetime, UUID] | None = None
) -> tuple[LiteralString, dict[str, Any]]:
    """The statement of `Sessions.page` and its parameters."""
    condition, params = which.where()
    params["limit"] = limit
    if before is not None:
        condition += " AND (created_at, id) < (%(created_at)s, %(id)s)"
        params |= {"created_at": before[0], "id": before[1]}
    source: LiteralString = "sessions"
    if which.ids is not None:
        condition += " AND id = ANY(%(ids)s)"
        params["ids"] = list(which.ids)
    elif which.words is not None:
        # OFFSET keeps the two apart: words that many sessions have are met soon when the newest are looked through, but
        # how many have them is not known to the planner, which would sort all that do.
        source = f"(SELECT * FROM sessions WHERE {condition} {_NEWEST} OFFSET 0) AS sessions"
        condition = "words @@ to_tsquery('simple', %(words)s)"
        params["words"] = which.words
    return f"SELECT {_LISTED} FROM {source} WHERE {condition} {_NEWEST} LIMIT %(limit)s", params


def sums_query(which: SessionFilter) -> tuple[LiteralString, dict[str, Any]]:
    """The statement of `Sessions.sums` and its parameters."""
    if which.words is not None:
        return (
            "SELECT * FROM sums_with_words("
            "to_tsquery('simple', %(words)s), %(statuses)s, %(instance_id)s, %(chatflow_id)s)"
        ), {
            "words": which.words,
            "statuses": None if which.statuses is None else list(which.statuses),
            "instance_id": which.instance_id,
            "chatflow_id": which.chatflow_id,
        }
    condition, params = which.where()
    return (
        "SELECT count(*) AS sessions, COALESCE(sum(input_tokens), 0)::bigint AS input_tokens,"
        " COALESCE(sum(output_tokens), 0)::bigint AS output_tokens, COALESCE(sum(usd), 0)::float8 AS usd"
        f" FROM sessions WHERE {condition}"
    ), params


#: What the newest sessions like one that ended well have cost; `seconds` are those in which the service worked.
AVERAGE_COST: Final[LiteralString] = """
    SELECT count(*) AS sessions, avg(seconds) AS seconds,
           CASE WHEN bool_or(unpriced) THEN NULL ELSE avg(usd) END AS usd
    FROM (
        SELECT usd::float8 AS usd, COALESCE((totals ->> 'unpriced_calls')::integer, 0) > 0 AS unpriced,
               (SELECT sum(value::float8) / 1000 FROM jsonb_each_text(totals -> 'phase_durations_ms')) AS seconds
        FROM sessions
        WHERE planned_with = %(planned_with)s AND status = 'completed' AND outcome IN ('accepted', 'answered')
          AND (%(mode)s::text IS NULL OR operation_mode = %(mode)s)
        ORDER BY created_at DESC LIMIT 50
    ) AS recent
"""


class SessionReads:
    """Reads sessions. Unknown ids raise SessionNotFoundError, an absent server DatabaseUnavailableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, session_id: UUID) -> SessionRow:
        """The session's row."""
        row = await self._one("id = %s", (session_id,))
        if row is None:
            raise not_found(session_id)
        return row

    async def by_idempotency_key(self, key: str) -> SessionRow | None:
        """The session that was started with this key."""
        return await self._one("idempotency_key = %s", (key,))

    async def looked_up(self, which: SessionFilter) -> SessionFilter:
        """The filter with the ids of the sessions that have its words, if they are few."""
        if which.words is None:
            return which
        row = await self._database.fetch_one(
            "SELECT sessions_with_words(to_tsquery('simple', %s), %s) AS ids", (which.words, _FEW)
        )
        return replace(which, ids=row and row["ids"])

    async def page(
        self, which: SessionFilter, *, limit: int, before: tuple[datetime, UUID] | None = None
    ) -> list[SessionRow]:
        """Newest first, by one index scan. Requirements are cut to 300 characters, interrupts lack their data."""
        query, params = page_query(which, limit=limit, before=before)
        # Unprepared: the index to use depends on the filter, and a generic plan would choose a wrong one.
        return await self._database.rows(SessionRow, query, params, prepare=False)

    async def sums(self, which: SessionFilter) -> Sums:
        """Number and cost of all sessions that match the filter."""
        query, params = sums_query(which)
        found = await self._database.row(Sums, query, params, prepare=False)
        assert found is not None  # noqa: S101 - an aggregate has one row
        return found

    async def newest_of_flows(self, instance_id: str, chatflow_ids: Sequence[str]) -> dict[str, FlowSessionRow]:
        """The newest session by chatflow."""
        rows = await self._database.rows(FlowSessionRow, _NEWEST_OF_FLOWS, (list(chatflow_ids), instance_id))
        return {row.chatflow_id: row for row in rows}

    async def change(self, session_id: UUID) -> dict[str, Any] | None:
        """The session's change to its flow, by reference; None if there is none yet."""
        row = await self._database.fetch_one("SELECT change FROM sessions WHERE id = %s", (session_id,))
        if row is None:
            raise not_found(session_id)
        return row["change"]

    async def earlier_answer(self, session_id: UUID, key: str) -> EarlierAnswer | None:
        """The answer given to this session under an idempotency key."""
        query = "SELECT fingerprint, after_seq FROM runs WHERE session_id = %s AND idempotency_key = %s"
        return await self._database.row(EarlierAnswer, query, (session_id, key))

    async def started_by(self, session_id: UUID) -> Caller | None:
        """The caller that started the session; None for old sessions without this record."""
        row = await self._database.fetch_one(
            "SELECT caller FROM runs WHERE session_id = %s AND kind = 'start' AND caller IS NOT NULL", (session_id,)
        )
        return from_stored(row["caller"])[0] if row else None

    async def _one(self, condition: LiteralString, params: tuple[Any, ...]) -> SessionRow | None:
        return await self._database.row(SessionRow, f"SELECT {SESSION_COLUMNS} FROM sessions WHERE {condition}", params)


def not_found(session_id: UUID) -> SessionNotFoundError:
    """The error for a session that does not exist or belongs to another owner."""
    return SessionNotFoundError(text("error.no_session", session=str(session_id)), hint=text("error.no_session_hint"))


#: A retried run has the answer of the run before.
_TURNS: Final = """
    SELECT session_id, at, answer, asked, summary, by FROM (
        SELECT session_id, ts AS at, NULL::jsonb AS answer, data AS asked, summary, NULL AS by, seq, 0 AS part
        FROM session_events WHERE session_id = ANY(%(sessions)s) AND type = 'interrupt'
        UNION ALL
        SELECT run.session_id, run.created_at, run.answer, asked.data, '', run.caller ->> 'name', asked.seq, 1
        FROM runs AS run LEFT JOIN LATERAL (
            SELECT data, seq FROM session_events AS event
            WHERE event.session_id = run.session_id AND type = 'interrupt'
            AND data ->> 'interrupt_id' = run.interrupt_id ORDER BY seq DESC LIMIT 1
        ) AS asked ON true
        WHERE run.session_id = ANY(%(sessions)s) AND run.kind = 'resume'
    ) AS turn ORDER BY session_id, at, seq, part
"""


@dataclass(frozen=True)
class TurnRow:
    """A question (`answer` is None) or an answer to one. `asked` is the data of the event `interrupt`."""

    session_id: UUID
    at: datetime
    answer: dict[str, Any] | None
    asked: dict[str, Any] | None
    summary: str
    by: str | None


class Turns:
    """Reads questions and answers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, session_ids: Sequence[UUID]) -> list[TurnRow]:
        """Turns of the sessions, by session and then in order."""
        return await self._database.rows(TurnRow, _TURNS, {"sessions": list(session_ids)})

    async def starts(self, session_ids: Sequence[UUID]) -> dict[UUID, tuple[str, str | None]]:
        """Requirement and starter of each session."""
        rows = await self._database.fetch_all(
            "SELECT id, requirement, (SELECT caller ->> 'name' FROM runs WHERE session_id = sessions.id"
            " AND kind = 'start' LIMIT 1) AS by FROM sessions WHERE id = ANY(%s)",
            (list(session_ids),),
        )
        return {row["id"]: (row["requirement"], row["by"]) for row in rows}


_PUBLIC: Final[Mapping[str, PublicStatus]] = {
    "queued": "in_progress",
    "running": "in_progress",
    "waiting": "pending_interrupt",
    "completed": "completed",
    "failed": "error",
    "cancelled": "cancelled",
}


def public_status(row_status: str) -> PublicStatus:
    """The public status of a row status."""
    return _PUBLIC[row_status]


def public_statuses() -> dict[PublicStatus, list[str]]:
    """Every public status with its row statuses."""
    return {public: [row for row, shown in _PUBLIC.items() if shown == public] for public in _PUBLIC.values()}


def row_statuses(status: str) -> list[str]:
    """The row statuses of a public status. Raises InvalidInputError for an unknown one."""
    found = [row for row, public in _PUBLIC.items() if public == status]
    if not found:
        raise InvalidInputError(
            text("error.no_status", status=status),
            hint=text("error.one_of", names=[*dict.fromkeys(_PUBLIC.values())]),
        )
    return found
