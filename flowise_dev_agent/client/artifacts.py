"""Calls about artifacts: what the steps of sessions left, by session, plan, milestone, decision and pattern."""

from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from flowise_dev_agent.client.transport import Http

if TYPE_CHECKING:
    # Loaded by the methods that read them: they bring along all that is known of flows and nodes.
    from flowise_dev_agent.schemas.node_artifacts import ArtifactDetail, ArtifactPage


class Which(TypedDict, total=False):
    """Only those of a node of the graph and of a run; a page of at most `limit` (50) after `offset`."""

    node: str | None
    run: UUID | None
    limit: int
    offset: int


class ArtifactCalls(Http):
    """What a client can read of them; a page is newest first."""

    async def artifacts(self, session_id: UUID, *, kind: str | None = None, **which: Unpack[Which]) -> "ArtifactPage":
        """What the steps of a session left."""
        return await self._page(f"/sessions/{session_id}/artifacts", which, kind=kind)

    async def artifact(self, session_id: UUID, artifact_id: UUID) -> "ArtifactDetail":
        """One of them."""
        return await self._one(f"/sessions/{session_id}/artifacts/{artifact_id}")

    async def plan_artifacts(self, session_id: UUID, **which: Unpack[Which]) -> "ArtifactPage":
        """How the plan of a session came about."""
        return await self._page(f"/plans/{session_id}/artifacts", which)

    async def plan_artifact(self, session_id: UUID, artifact_id: UUID) -> "ArtifactDetail":
        """One of them."""
        return await self._one(f"/plans/{session_id}/artifacts/{artifact_id}")

    async def milestone_artifacts(self, session_id: UUID, **which: Unpack[Which]) -> "ArtifactPage":
        """The phases, iterations and the acceptance of a session."""
        return await self._page(f"/milestones/{session_id}/artifacts", which)

    async def milestone_artifact(self, session_id: UUID, artifact_id: UUID) -> "ArtifactDetail":
        """One of them."""
        return await self._one(f"/milestones/{session_id}/artifacts/{artifact_id}")

    async def decision_artifacts(
        self, session_id: UUID, node: str, *, run: UUID | None = None, limit: int = 50, offset: int = 0
    ) -> "ArtifactPage":
        """Where a session went on from a node of the graph, and why."""
        return await self._page(
            f"/flowcharts/{session_id}/nodes/{node}/decision-artifacts", {"run": run, "limit": limit, "offset": offset}
        )

    async def decision_artifact(self, session_id: UUID, node: str, artifact_id: UUID) -> "ArtifactDetail":
        """One of them."""
        return await self._one(f"/flowcharts/{session_id}/nodes/{node}/decision-artifacts/{artifact_id}")

    async def memory_artifacts(
        self, memory_id: int, *, session_id: UUID | None = None, **which: Unpack[Which]
    ) -> "ArtifactPage":
        """When a pattern was kept and used."""
        return await self._page(f"/memories/{memory_id}/artifacts", which, flowchart_id=session_id)

    async def memory_artifact(self, memory_id: int, artifact_id: UUID) -> "ArtifactDetail":
        """One of them."""
        return await self._one(f"/memories/{memory_id}/artifacts/{artifact_id}")

    async def _page(self, path: str, which: Which, **more: object) -> "ArtifactPage":
        from flowise_dev_agent.schemas.node_artifacts import ArtifactPage

        more |= {"flowchart_run_id": which.get("run"), "flowchart_node_id": which.get("node")}
        params = {name: str(value) for name, value in more.items() if value is not None}
        page = {"limit": which.get("limit", 50), "offset": which.get("offset", 0)}
        return await self._get(ArtifactPage, path, **params, **page)

    async def _one(self, path: str) -> "ArtifactDetail":
        from flowise_dev_agent.schemas.node_artifacts import ArtifactDetail

        return await self._get(ArtifactDetail, path)
