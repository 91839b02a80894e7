"""What people do to flows outside of any run: rollbacks of sessions that rest, and flows brought to another server."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.persistence.events import NewEvent, insert
from flowise_dev_agent.persistence.notices import told_transaction
from flowise_dev_agent.persistence.sanitize import clean_text, jsonb


@dataclass(frozen=True)
class PromotionRecord:
    """A flow on its way to another instance. It becomes a session of its own, which has ended but for its outcome."""

    session_id: UUID
    title: str
    instance_id: str
    request: dict[str, Any]


class OutOfBandWrites:
    """Writes to sessions that no run works on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rolled_back(self, session_id: UUID, *, outcome: str, summary: str, data: dict[str, Any]) -> None:
        """Note a rollback in the session's story; `outcome` becomes that of a session that is completed."""
        async with told_transaction(self._database, session_id, "event") as connection:
            await connection.execute(
                "UPDATE sessions SET updated_at = now(),"
                " outcome = CASE status WHEN 'completed' THEN %s ELSE outcome END WHERE id = %s",
                (outcome, session_id),
            )
            await insert(connection, session_id, None, [NewEvent("write", phase="apply", summary=summary, data=data)])

    async def begin(self, record: PromotionRecord) -> None:
        """Make the session that the versions of a record belong to."""
        async with self._database.connection() as connection:
            await connection.execute(
                "INSERT INTO sessions (id, name, requirement, request, instance_id, status, phase, operation_mode)"
                " VALUES (%s, %s, %s, %s, %s, 'completed', 'apply', 'promote')",
                (
                    record.session_id,
                    clean_text(record.title[:120]),
                    clean_text(record.title),
                    jsonb(record.request),
                    record.instance_id,
                ),
            )

    async def arrived(self, session_id: UUID, *, chatflow_id: str, summary: str, data: dict[str, Any]) -> None:
        """The flow is there."""
        await self._end(session_id, "completed", "accepted", chatflow_id, NewEvent("write", summary=summary, data=data))

    async def failed(self, session_id: UUID, *, problem: dict[str, Any]) -> None:
        """The write did not succeed."""
        event = NewEvent("error", summary=str(problem.get("detail", "")), data=problem)
        await self._end(session_id, "cancelled", "cancelled", None, event)

    async def _end(self, session_id: UUID, status: str, outcome: str, chatflow_id: str | None, event: NewEvent) -> None:
        async with told_transaction(self._database, session_id, "settled") as connection:
            await connection.execute(
                "UPDATE sessions SET status = %s, outcome = %s, chatflow_id = %s, updated_at = now() WHERE id = %s",
                (status, outcome, chatflow_id, session_id),
            )
            done = NewEvent("done", status=status, data={"outcome": outcome})
            await insert(connection, session_id, None, [event, done])
