"""Tools that read artifacts of sessions: plans, memories, milestones and decisions."""

from typing import Annotated
from uuid import UUID

from mcp_types import CallToolResult
from pydantic import Field

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.mcp.host import SessionId, ToolContext, client_of
from flowise_dev_agent.mcp.results import succeeded
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.node_artifacts import (
    ArtifactKind,
    ArtifactPage,
    ArtifactView,
    MemoryReport,
    MilestonePayload,
    MilestoneReport,
    MilestoneState,
    NewMemory,
    StoredPlan,
    StoredPlanPayload,
    StoredPlanReport,
)
from flowise_dev_agent.schemas.requests import Line, Note

WithArtifacts = Annotated[bool, Field(description="Also the artifacts that it follows from, newest first.")]
Limit = Annotated[int, Field(ge=1, le=50, description="Of the artifacts, or of the memories.")]
Offset = Annotated[int, Field(ge=0, le=100_000)]


async def get_plan(
    ctx: ToolContext, session_id: SessionId, include_artifacts: WithArtifacts = False, limit: Limit = 10
) -> Annotated[CallToolResult, StoredPlanReport]:
    """Get the plan of a session as stages with tasks, and how far each is."""
    page = await client_of(ctx).artifacts(session_id, kind="plan", limit=limit)
    plan = _newest(page)
    found = StoredPlanReport(session_id=session_id, plan=plan, artifacts=page if include_artifacts else None)
    return succeeded(plan_lines(plan), found)


async def latest_plan(client: AgentClient, session_id: UUID) -> StoredPlan | None:
    """Read the current plan of a session."""
    return _newest(await client.artifacts(session_id, kind="plan", limit=1))


def plan_lines(plan: StoredPlan | None) -> list[str]:
    """Lines of a plan: its title and its tasks."""
    if plan is None:
        return ["The session has no plan yet."]
    tasks = [task for stage in plan.stages for task in stage.tasks]
    return [plan.title, *(f"- {task.task_id}: {task.status}: {task.title}" for task in tasks)]


def _newest(page: ArtifactPage) -> StoredPlan | None:
    return next((item.payload.plan for item in page.items if isinstance(item.payload, StoredPlanPayload)), None)


async def get_memory(
    ctx: ToolContext,
    memory_id: Annotated[int | None, Field(ge=1, description="The id of a pattern or note.")] = None,
    query_text: Annotated[str, Field(max_length=2_000, description="Words of a requirement.")] = "",
    include_artifacts: WithArtifacts = False,
    limit: Limit = 10,
) -> Annotated[CallToolResult, MemoryReport]:
    """Find what the service remembers: notes of people, and accepted chatflows that new ones may start from.

    Searches by id or by words; without both it lists the newest notes and the most successful chatflows.
    """
    client = client_of(ctx)
    memories = await client.memories(query_text, memory_id=memory_id, limit=limit)
    page = await client.memory_artifacts(memory_id, limit=limit) if include_artifacts and memory_id else None
    lines = [f"- {one.memory_id} {one.name or one.kind}: {shortened(one.text, 200)}" for one in memories]
    return succeeded(lines or ["Nothing is remembered."], MemoryReport(memories=[*memories], artifacts=page))


async def add_memory(
    ctx: ToolContext,
    text: Annotated[Note, Field(description="What holds for later requirements, such as a rule or where things are.")],
    memory_id: Annotated[int | None, Field(ge=1, description="The note that this one takes the place of.")] = None,
    instance: Annotated[Line | None, Field(description="Flowise instance; the default one when left out.")] = None,
) -> Annotated[CallToolResult, MemoryReport]:
    """Store a note of the person, which planning models read with each later requirement.

    Only on the person's request.
    """
    note = NewMemory(
        text=text, store_mode="append" if memory_id is None else "replace", memory_id=memory_id, instance=instance
    )
    kept = await client_of(ctx).add_memory(note)
    return succeeded([f"Remembered as note {kept.memory_id}."], MemoryReport(memories=[kept]))


async def delete_memory(
    ctx: ToolContext, memory_id: Annotated[int, Field(ge=1, description="The id of a note.")]
) -> Annotated[CallToolResult, MemoryReport]:
    """Forget a note. Patterns stay; a person removes them on the page."""
    await client_of(ctx).delete_memory(memory_id)
    return succeeded([f"Note {memory_id} is forgotten."], MemoryReport(memories=[]))


async def get_milestone(
    ctx: ToolContext, session_id: SessionId, include_artifacts: WithArtifacts = False, limit: Limit = 50
) -> Annotated[CallToolResult, MilestoneReport]:
    """Get the milestones of a session: phases, iterations, the acceptance."""
    page = await client_of(ctx).artifacts(session_id, kind="milestone", limit=limit)
    states: dict[str, MilestoneState] = {}
    for item in reversed(page.items):
        if isinstance(item.payload, MilestonePayload):
            states[item.payload.milestone.milestone_key] = item.payload.milestone
    lines = [f"- {name}: {state.status} {state.detail}".rstrip() for name, state in states.items()]
    found = MilestoneReport(
        session_id=session_id, milestones=[*states.values()], artifacts=page if include_artifacts else None
    )
    return succeeded(lines or ["No milestone yet."], found)


async def get_decision_artifact(
    ctx: ToolContext,
    session_id: SessionId,
    node: Annotated[str, Field(max_length=64, description="Name of a node of the graph, such as plan_v2.")],
    artifact_id: Annotated[UUID | None, Field(description="One of them; all when left out.")] = None,
    limit: Limit = 10,
    offset: Offset = 0,
) -> Annotated[CallToolResult, ArtifactPage]:
    """Show where a session went on from a node of its graph: each condition, whether it held, and why."""
    page = await _read(ctx, session_id, artifact_id, "decision", node, limit, offset)
    return succeeded(_lines(page), page)


async def get_node_artifact(
    ctx: ToolContext,
    session_id: SessionId,
    artifact_id: Annotated[UUID | None, Field(description="One of them; all when left out.")] = None,
    kind: Annotated[ArtifactKind | None, Field(description="Only of this kind.")] = None,
    node: Annotated[str | None, Field(max_length=64, description="Only of this node of the graph.")] = None,
    limit: Limit = 10,
    offset: Offset = 0,
) -> Annotated[CallToolResult, ArtifactPage]:
    """List the artifacts that the steps of a session left, newest first, or show one."""
    page = await _read(ctx, session_id, artifact_id, kind, node, limit, offset)
    return succeeded(_lines(page), page)


async def _read(
    ctx: ToolContext,
    session_id: UUID,
    artifact_id: UUID | None,
    kind: ArtifactKind | None,
    node: str | None,
    limit: int,
    offset: int,
) -> ArtifactPage:
    client = client_of(ctx)
    if artifact_id is None:
        return await client.artifacts(session_id, kind=kind, node=node, limit=limit, offset=offset)
    item = (await client.artifact(session_id, artifact_id)).item
    return ArtifactPage(flowchart_id=session_id, count=1, limit=1, offset=0, items=[item])


def _lines(page: ArtifactPage) -> list[str]:
    return [f"{len(page.items)} of {page.count} artifacts:", *map(_line, page.items)]


def _line(item: ArtifactView) -> str:
    payload = item.payload
    match payload.artifact_type:
        case "decision":
            said = f"{payload.resolved_route_path}"
        case "milestone":
            said = f"{payload.milestone.milestone_key} {payload.milestone.status} {payload.milestone.detail}"
        case "plan" | "memory":
            said = "; ".join(payload.action_results)
    return f"- {item.id} {item.created_at:%H:%M:%S} {item.artifact_type} of {item.flowchart_node_id}: {said}".rstrip()
