"""Artifacts for clients, in the envelope of the specification."""

from typing import Any
from uuid import UUID

from flowise_dev_agent.caller import current_request
from flowise_dev_agent.contracts.node_artifacts import ArtifactDetail, ArtifactPage, ArtifactView, read_payload
from flowise_dev_agent.persistence import ArtifactFilter, ArtifactRow, NodeArtifacts, Sessions


class ArtifactService:
    """The one door for REST, MCP and the client. Raises SessionNotFoundError for an unknown session."""

    def __init__(self, artifacts: NodeArtifacts, sessions: Sessions) -> None:
        self._artifacts = artifacts
        self._sessions = sessions

    async def page(self, which: ArtifactFilter, *, limit: int, offset: int, **scope: Any) -> ArtifactPage:
        """Artifacts, newest first. `scope` are the ids that the caller asked by."""
        await self._check(which.session_id)
        rows, count = await self._artifacts.page(which, limit=limit, offset=offset)
        items = [_view(row) for row in rows]
        return ArtifactPage(**scope, **ids_of_request(), count=count, limit=limit, offset=offset, items=items)

    async def get(self, artifact_id: UUID, which: ArtifactFilter, **scope: Any) -> ArtifactDetail:
        """One artifact. Raises ArtifactNotFoundError."""
        await self._check(which.session_id)
        return ArtifactDetail(**scope, **ids_of_request(), item=_view(await self._artifacts.get(artifact_id, which)))

    async def _check(self, session_id: UUID | None) -> None:
        if session_id is not None:
            await self._sessions.get(session_id)


def ids_of_request() -> dict[str, Any]:
    """The ids that each envelope carries."""
    request = current_request()
    return {"request_id": request.id, "correlation_id": request.trace_id}


def _view(row: ArtifactRow) -> ArtifactView:
    payload = read_payload({**row.payload, "artifact_type": row.kind})
    return ArtifactView(
        id=row.id,
        artifact_type=payload.artifact_type,
        flowchart_id=row.session_id,
        flowchart_run_id=row.run_id,
        flowchart_node_id=row.node,
        memory_id=row.memory_id,
        payload=payload,
        request_id=row.request_id,
        correlation_id=row.correlation_id,
        audit_seq=row.audit_seq,
        created_at=row.created_at,
    )
