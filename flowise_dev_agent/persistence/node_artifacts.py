"""Reads artifacts of steps, by session, node or pattern, and what others are made of. `events` stores both."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from flowise_dev_agent.errors import ArtifactNotFoundError
from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.texts import text

_COLUMNS: Final[LiteralString] = (
    "id, session_id, run_id, kind, node, memory_id, payload, request_id, correlation_id, audit_seq, created_at"
)
_STEPS: Final = """
    SELECT * FROM (
        SELECT seq, ts, run_id, type, node, data, (SELECT caller FROM runs WHERE runs.id = run_id) AS caller,
            (SELECT max(answer.seq) FROM audit_log AS answer WHERE answer.chain = session_id AND answer.ts <= step.ts
                AND (action LIKE 'plan_approval.%%' OR action LIKE 'result_review.%%')) AS audit_seq
        FROM session_events AS step
        WHERE session_id = %(session_id)s AND type IN ('decision', 'node_end', 'done')
        ORDER BY seq DESC LIMIT 5000
    ) AS newest ORDER BY seq
"""
_CONDITIONS: Final[Mapping[str, LiteralString]] = {
    "session_id": "session_id = %(session_id)s",
    "run_id": "run_id = %(run_id)s",
    "kind": "kind = %(kind)s",
    "node": "node = %(node)s",
    "memory_id": "memory_id = %(memory_id)s",
}


@dataclass(frozen=True)
class ArtifactRow:
    """A stored artifact."""

    id: UUID
    session_id: UUID
    run_id: UUID | None
    kind: str
    node: str
    memory_id: int | None
    payload: dict[str, Any]
    request_id: str | None
    correlation_id: str | None
    audit_seq: int | None
    created_at: datetime


@dataclass(frozen=True)
class LoggedStep:
    """An event that says how a session went on. `audit_seq` is the row of the last answer before it."""

    seq: int
    ts: datetime
    run_id: UUID | None
    type: str
    node: str | None
    data: dict[str, Any]
    caller: dict[str, Any] | None
    audit_seq: int | None


@dataclass(frozen=True, kw_only=True)
class ArtifactFilter:
    """Filter of artifacts; None matches all."""

    session_id: UUID | None = None
    run_id: UUID | None = None
    kind: str | None = None
    node: str | None = None
    memory_id: int | None = None

    def where(self) -> tuple[LiteralString, dict[str, Any]]:
        """The SQL condition and the values of its parameters."""
        params = {name: value for name, value in vars(self).items() if value is not None}
        conditions: list[LiteralString] = ["true", *(_CONDITIONS[name] for name in params)]
        return " AND ".join(conditions), params


class NodeArtifacts:
    """Repository of artifacts, read only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, which: ArtifactFilter, *, limit: int, offset: int) -> tuple[list[ArtifactRow], int]:
        """A page of artifacts, newest first, and the number of all."""
        condition, params = which.where()
        counted = await self._database.fetch_one(f"SELECT count(*) AS n FROM node_artifacts WHERE {condition}", params)
        rows = await self._rows(
            f"{condition} ORDER BY created_at DESC, id LIMIT %(limit)s OFFSET %(offset)s",
            params | {"limit": limit, "offset": offset},
        )
        return rows, int(counted["n"]) if counted else 0

    async def get(self, artifact_id: UUID, which: ArtifactFilter) -> ArtifactRow:
        """An artifact that matches the filter. Raises ArtifactNotFoundError."""
        condition, params = which.where()
        rows = await self._rows(f"id = %(id)s AND {condition}", params | {"id": artifact_id})
        if not rows:
            raise ArtifactNotFoundError(
                text("error.no_artifact", artifact=str(artifact_id)),
                hint=text("error.no_artifact_hint"),
            )
        return rows[0]

    async def of_session(self, session_id: UUID) -> list[ArtifactRow]:
        """The newest stored artifacts of plans and memories of a session, newest first, at most a thousand."""
        return await self._rows(
            "session_id = %(session_id)s AND kind IN ('plan', 'memory') ORDER BY created_at DESC, id LIMIT 1000",
            {"session_id": session_id},
        )

    async def steps(self, session_id: UUID) -> list[LoggedStep]:
        """The decisions, ends of steps and the end of a session, in order: the newest 5 000."""
        return await self._database.rows(LoggedStep, _STEPS, {"session_id": session_id})

    async def _rows(self, condition: LiteralString, params: Mapping[str, Any]) -> list[ArtifactRow]:
        return await self._database.rows(
            ArtifactRow, f"SELECT {_COLUMNS} FROM node_artifacts WHERE {condition}", params
        )
