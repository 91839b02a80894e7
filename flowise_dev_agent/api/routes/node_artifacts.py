"""Artifacts of plans, memories, milestones and decisions, under the paths of the specification and under sessions."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Query

from flowise_dev_agent.api.deps import MAX_SEQ, SessionId, part_of
from flowise_dev_agent.api.responses import declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.persistence import ArtifactFilter
from flowise_dev_agent.schemas.node_artifacts import ArtifactDetail, ArtifactKind, ArtifactPage
from flowise_dev_agent.sessions.node_artifacts import ArtifactService

router = Routes(tags=["artifacts"])


Artifacts = Annotated[ArtifactService, part_of("artifacts")]
ArtifactId = Annotated[UUID, Path(description="The artifact's id.")]
MemoryId = Annotated[int, Path(ge=1, le=MAX_SEQ, description="The pattern's id.")]
FlowchartNodeId = Annotated[str, Path(max_length=64, description="The name of the graph's node, such as `plan_v2`.")]


@dataclass(frozen=True)
class ListWindow:
    """The requested part of a list."""

    limit: int
    offset: int
    run_id: UUID | None


def _part(
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    flowchart_run_id: Annotated[UUID | None, Query(description="Only of this run.")] = None,
) -> ListWindow:
    return ListWindow(limit, offset, flowchart_run_id)


PartOfList = Annotated[ListWindow, Depends(_part)]
OfNode = Annotated[str | None, Query(max_length=64, description="Only of this node of the graph.")]


@router.get("/plans/{plan_id}/artifacts", responses=declared("session_not_found"))
async def list_plan_artifacts(
    artifacts: Artifacts,
    plan_id: SessionId,
    part: PartOfList,
    flowchart_node_id: OfNode = None,
) -> ArtifactPage:
    """The history of a session's plan: each time that it was stored, newest first."""
    which = ArtifactFilter(session_id=plan_id, kind="plan", run_id=part.run_id, node=flowchart_node_id)
    return await artifacts.page(which, limit=part.limit, offset=part.offset, plan_id=plan_id)


@router.get("/plans/{plan_id}/artifacts/{artifact_id}", responses=declared("session_not_found", "artifact_not_found"))
async def get_plan_artifact(artifacts: Artifacts, plan_id: SessionId, artifact_id: ArtifactId) -> ArtifactDetail:
    """An artifact of a session's plan."""
    return await artifacts.get(artifact_id, ArtifactFilter(session_id=plan_id, kind="plan"), plan_id=plan_id)


@router.get("/memories/{memory_id}/artifacts", responses=declared("session_not_found"))
async def list_memory_artifacts(
    artifacts: Artifacts,
    memory_id: MemoryId,
    part: PartOfList,
    flowchart_id: Annotated[UUID | None, Query(description="Only of this session.")] = None,
    flowchart_node_id: OfNode = None,
) -> ArtifactPage:
    """When a pattern was kept and when sessions started from it, newest first."""
    which = ArtifactFilter(
        memory_id=memory_id,
        kind="memory",
        session_id=flowchart_id,
        run_id=part.run_id,
        node=flowchart_node_id,
    )
    return await artifacts.page(which, limit=part.limit, offset=part.offset, memory_id=memory_id)


@router.get(
    "/memories/{memory_id}/artifacts/{artifact_id}", responses=declared("session_not_found", "artifact_not_found")
)
async def get_memory_artifact(artifacts: Artifacts, memory_id: MemoryId, artifact_id: ArtifactId) -> ArtifactDetail:
    """An artifact of a memory."""
    return await artifacts.get(artifact_id, ArtifactFilter(memory_id=memory_id, kind="memory"), memory_id=memory_id)


@router.get("/milestones/{milestone_id}/artifacts", responses=declared("session_not_found"))
async def list_milestone_artifacts(
    artifacts: Artifacts,
    milestone_id: SessionId,
    part: PartOfList,
    flowchart_node_id: OfNode = None,
) -> ArtifactPage:
    """The phases, iterations and the acceptance of a session, newest first."""
    which = ArtifactFilter(session_id=milestone_id, kind="milestone", run_id=part.run_id, node=flowchart_node_id)
    return await artifacts.page(which, limit=part.limit, offset=part.offset, milestone_id=milestone_id)


@router.get(
    "/milestones/{milestone_id}/artifacts/{artifact_id}", responses=declared("session_not_found", "artifact_not_found")
)
async def get_milestone_artifact(
    artifacts: Artifacts, milestone_id: SessionId, artifact_id: ArtifactId
) -> ArtifactDetail:
    """An artifact of a session's milestones."""
    which = ArtifactFilter(session_id=milestone_id, kind="milestone")
    return await artifacts.get(artifact_id, which, milestone_id=milestone_id)


@router.get(
    "/flowcharts/{flowchart_id}/nodes/{flowchart_node_id}/decision-artifacts", responses=declared("session_not_found")
)
async def list_decision_artifacts(
    artifacts: Artifacts,
    flowchart_id: SessionId,
    flowchart_node_id: FlowchartNodeId,
    part: PartOfList,
) -> ArtifactPage:
    """The routing decisions of a session at a node of the graph, with reasons, newest first."""
    which = ArtifactFilter(session_id=flowchart_id, kind="decision", node=flowchart_node_id, run_id=part.run_id)
    scope = {"flowchart_id": flowchart_id, "flowchart_node_id": flowchart_node_id}
    return await artifacts.page(which, limit=part.limit, offset=part.offset, **scope)


@router.get(
    "/flowcharts/{flowchart_id}/nodes/{flowchart_node_id}/decision-artifacts/{artifact_id}",
    responses=declared("session_not_found", "artifact_not_found"),
)
async def get_decision_artifact(
    artifacts: Artifacts, flowchart_id: SessionId, flowchart_node_id: FlowchartNodeId, artifact_id: ArtifactId
) -> ArtifactDetail:
    """A routing decision of a session."""
    which = ArtifactFilter(session_id=flowchart_id, kind="decision", node=flowchart_node_id)
    scope = {"flowchart_id": flowchart_id, "flowchart_node_id": flowchart_node_id}
    return await artifacts.get(artifact_id, which, **scope)


@router.get("/sessions/{session_id}/artifacts", responses=declared("session_not_found"))
async def list_session_artifacts(
    artifacts: Artifacts,
    session_id: SessionId,
    part: PartOfList,
    kind: Annotated[ArtifactKind | None, Query(description="Only of this kind.")] = None,
    flowchart_node_id: OfNode = None,
) -> ArtifactPage:
    """All artifacts of a session, newest first."""
    which = ArtifactFilter(session_id=session_id, kind=kind, run_id=part.run_id, node=flowchart_node_id)
    return await artifacts.page(which, limit=part.limit, offset=part.offset, flowchart_id=session_id)


@router.get(
    "/sessions/{session_id}/artifacts/{artifact_id}", responses=declared("session_not_found", "artifact_not_found")
)
async def get_session_artifact(artifacts: Artifacts, session_id: SessionId, artifact_id: ArtifactId) -> ArtifactDetail:
    """One artifact of a session."""
    return await artifacts.get(artifact_id, ArtifactFilter(session_id=session_id), flowchart_id=session_id)
