"""Calls about artifacts: records of sessions' steps, by session, plan, milestone, decision and pattern."""

from typing import TypedDict, Unpack
from uuid import UUID

from flowise_dev_agent.client.transport import Http
from flowise_dev_agent.schemas.node_artifacts import ArtifactDetail, ArtifactPage


class Which(TypedDict, total=False):
    """Filter of artifacts by graph node and run; a page of at most `limit` (50) after `offset`."""

    node: str | None
    run: UUID | None
    limit: int
    offset: int


class ArtifactCalls(Http):
    """Calls about artifacts; pages are newest first."""

    async def artifacts(self, session_id: UUID, *, kind: str | None = None, **which: Unpack[Which]) -> ArtifactPage:
        """List the artifacts of a session's steps."""
        return await self._page(f"/sessions/{session_id}/artifacts", which, kind=kind)

    async def artifact(self, session_id: UUID, artifact_id: UUID) -> ArtifactDetail:
        """Read an artifact of a session."""
        return await self._one(f"/sessions/{session_id}/artifacts/{artifact_id}")

    async def plan_artifacts(self, session_id: UUID, **which: Unpack[Which]) -> ArtifactPage:
        """List the artifacts of a session's plan."""
        return await self._page(f"/plans/{session_id}/artifacts", which)

    async def plan_artifact(self, session_id: UUID, artifact_id: UUID) -> ArtifactDetail:
        """Read an artifact of a plan."""
        return await self._one(f"/plans/{session_id}/artifacts/{artifact_id}")

    async def milestone_artifacts(self, session_id: UUID, **which: Unpack[Which]) -> ArtifactPage:
        """List the artifacts of a session's phases, iterations and acceptance."""
        return await self._page(f"/milestones/{session_id}/artifacts", which)

    async def milestone_artifact(self, session_id: UUID, artifact_id: UUID) -> ArtifactDetail:
        """Read an artifact of a milestone."""
        return await self._one(f"/milestones/{session_id}/artifacts/{artifact_id}")

    async def decision_artifacts(
        self, session_id: UUID, node: str, *, run: UUID | None = None, limit: int = 50, offset: int = 0
    ) -> ArtifactPage:
        """List a session's routing decisions at a node of the graph, with reasons."""
        return await self._page(
            f"/flowcharts/{session_id}/nodes/{node}/decision-artifacts", {"run": run, "limit": limit, "offset": offset}
        )

    async def decision_artifact(self, session_id: UUID, node: str, artifact_id: UUID) -> ArtifactDetail:
        """Read a routing decision."""
        return await self._one(f"/flowcharts/{session_id}/nodes/{node}/decision-artifacts/{artifact_id}")

    async def memory_artifacts(
        self, memory_id: int, *, session_id: UUID | None = None, **which: Unpack[Which]
    ) -> ArtifactPage:
        """List the artifacts of storing and using a pattern."""
        return await self._page(f"/memories/{memory_id}/artifacts", which, flowchart_id=session_id)

    async def memory_artifact(self, memory_id: int, artifact_id: UUID) -> ArtifactDetail:
        """Read an artifact of a pattern."""
        return await self._one(f"/memories/{memory_id}/artifacts/{artifact_id}")

    async def _page(self, path: str, which: Which, **more: object) -> ArtifactPage:
        more |= {"flowchart_run_id": which.get("run"), "flowchart_node_id": which.get("node")}
        params = {name: str(value) for name, value in more.items() if value is not None}
        page = {"limit": which.get("limit", 50), "offset": which.get("offset", 0)}
        return await self._get(ArtifactPage, path, **params, **page)

    async def _one(self, path: str) -> ArtifactDetail:
        return await self._get(ArtifactDetail, path)
