"""Reads artifacts of steps, by session, node or pattern. `events` stores them."""

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

    async def _rows(self, condition: LiteralString, params: Mapping[str, Any]) -> list[ArtifactRow]:
        return await self._database.rows(
            ArtifactRow, f"SELECT {_COLUMNS} FROM node_artifacts WHERE {condition}", params
        )
