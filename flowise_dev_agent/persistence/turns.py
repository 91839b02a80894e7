"""What was said in sessions, read from their answers and from the questions in their event logs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from flowise_dev_agent.persistence.database import Database

#: A run that is tried again has the answer of the run before.
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
        """Those of the sessions, by session and then in the order in which they came."""
        return await self._database.rows(TurnRow, _TURNS, {"sessions": list(session_ids)})

    async def starts(self, session_ids: Sequence[UUID]) -> dict[UUID, tuple[str, str | None]]:
        """What each session was started with, whole, and by whom."""
        rows = await self._database.fetch_all(
            "SELECT id, requirement, (SELECT caller ->> 'name' FROM runs WHERE session_id = sessions.id"
            " AND kind = 'start' LIMIT 1) AS by FROM sessions WHERE id = ANY(%s)",
            (list(session_ids),),
        )
        return {row["id"]: (row["requirement"], row["by"]) for row in rows}
