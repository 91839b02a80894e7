"""Versions of chatflows: what a flow held before and after each write of a session. The texts are blobs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from psycopg.rows import class_row

from flowise_dev_agent.persistence.blobs import Blobs
from flowise_dev_agent.persistence.database import Database

_COLUMNS: Final = (
    "session_id, instance_id, chatflow_id, number, name, reason, iteration, sha256, updated_date, created_at"
)


@dataclass(frozen=True)
class FlowVersion:
    """One state of a chatflow. `reason` says when it was seen: `before_<write>` or `<write>`."""

    session_id: UUID
    instance_id: str
    chatflow_id: str
    number: int
    name: str
    reason: str
    iteration: int
    sha256: str
    updated_date: str
    created_at: datetime

    @property
    def label(self) -> str:
        """`v1.0`, `v2.0`, ... counted within the session."""
        return f"v{self.number}.0"


class Versions:
    """Repository of versions. Labels count within a session."""

    def __init__(self, database: Database, blobs: Blobs) -> None:
        self._database = database
        self._blobs = blobs

    async def record(
        self,
        session_id: UUID,
        *,
        instance_id: str,
        chatflow_id: str,
        name: str,
        flow_data: str,
        updated_date: str,
        reason: str,
        iteration: int,
    ) -> None:
        """Keep this state, unless it is what the session's last version of this chatflow holds. Safe to repeat."""
        sha256 = await self._blobs.put(session_id, flow_data)
        async with self._database.transaction() as connection:
            # One writer at a time: the number is the next one of the session.
            await connection.execute("SELECT 1 FROM sessions WHERE id = %s FOR NO KEY UPDATE", (session_id,))
            await connection.execute(
                "INSERT INTO flow_versions (session_id, instance_id, chatflow_id, number, name, reason, iteration,"
                " sha256, updated_date)"
                " SELECT %(session)s, %(instance)s, %(chatflow)s,"
                " COALESCE((SELECT max(number) FROM flow_versions WHERE session_id = %(session)s), 0) + 1,"
                " %(name)s, %(reason)s, %(iteration)s, %(sha)s, %(updated)s"
                " WHERE EXISTS (SELECT 1 FROM sessions WHERE id = %(session)s) AND %(sha)s IS DISTINCT FROM"
                " (SELECT sha256 FROM flow_versions WHERE session_id = %(session)s AND chatflow_id = %(chatflow)s"
                " ORDER BY number DESC LIMIT 1)",
                {
                    "session": session_id,
                    "instance": instance_id,
                    "chatflow": chatflow_id,
                    "name": name,
                    "reason": reason,
                    "iteration": iteration,
                    "sha": sha256,
                    "updated": updated_date,
                },
            )

    async def of_session(self, session_id: UUID) -> list[FlowVersion]:
        """The session's versions, oldest first."""
        async with (
            self._database.connection() as connection,
            connection.cursor(row_factory=class_row(FlowVersion)) as cursor,
        ):
            await cursor.execute(
                f"SELECT {_COLUMNS} FROM flow_versions WHERE session_id = %s ORDER BY number", (session_id,)
            )
            return await cursor.fetchall()

    async def of_chatflow(self, chatflow_id: str, *, limit: int = 100) -> list[FlowVersion]:
        """Versions of a chatflow across sessions and instances, newest first."""
        async with (
            self._database.connection() as connection,
            connection.cursor(row_factory=class_row(FlowVersion)) as cursor,
        ):
            await cursor.execute(
                f"SELECT {_COLUMNS} FROM flow_versions WHERE chatflow_id = %s ORDER BY id DESC LIMIT %s",
                (chatflow_id, limit),
            )
            return await cursor.fetchall()

    async def text(self, version: FlowVersion) -> str:
        """The flowData of a version, byte for byte."""
        return await self._blobs.get(version.sha256)
