"""The tools that read versions of chatflows and what differs between them."""

from typing import Annotated
from uuid import UUID

from mcp_types import CallToolResult
from pydantic import Field

from flowise_dev_agent.mcp.host import ToolContext, client_of
from flowise_dev_agent.mcp.results import succeeded
from flowise_dev_agent.runtime.flows.version_history import VersionDiff, VersionList

SessionId = Annotated[UUID, Field(description="The session's id.")]
Label = Annotated[str | None, Field(max_length=20, description="A label such as v1.0 (see list_versions).")]


async def list_versions(ctx: ToolContext, session_id: SessionId) -> Annotated[CallToolResult, VersionList]:
    """List what a session's chatflow held before and after each of its writes, oldest first. A person puts one of them
    back on the page."""
    found = await client_of(ctx).versions(session_id)
    lines = [f"- {one.label}: {one.reason}{' (current)' if one.current else ''}" for one in found.versions]
    return succeeded(lines or ["The session has written nothing yet."], found)


async def compare_versions(
    ctx: ToolContext, session_id: SessionId, before: Label = None, after: Label = None
) -> Annotated[CallToolResult, VersionDiff]:
    """Show what differs between two versions of a session's chatflow; the first and the last when none are named."""
    found = await client_of(ctx).version_diff(session_id, before=before, after=after)
    return succeeded([f"From {found.from_label} to {found.to_label}:", found.text], found)
