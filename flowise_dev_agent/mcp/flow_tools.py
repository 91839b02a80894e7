"""Tools for flows: find, read, export, check and test them; list, compare and restore versions."""

import asyncio
import time
from typing import Annotated, Any, Final
from uuid import UUID

from mcp.server.mcpserver import ElicitationResult, Resolve
from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.mcp.consent import Confirmation, check_confirmed, rollback_confirmation
from flowise_dev_agent.mcp.host import ChatflowId, Instance, SessionId, ToolContext, WaitSecs, client_of
from flowise_dev_agent.mcp.results import succeeded
from flowise_dev_agent.schemas.change import Difference
from flowise_dev_agent.schemas.flow_tests import FlowTestView, GivenTest, TestFlow, ValidatedFlow, ValidateFlow
from flowise_dev_agent.schemas.flow_writes import MAX_FLOW_CHARS, FlowDocument
from flowise_dev_agent.schemas.flows import FlowPage, FlowSummary
from flowise_dev_agent.schemas.question_text import test_lines
from flowise_dev_agent.schemas.versions import NumberedVersions, RolledBack, TakenBack, VersionDiff, VersionList
from flowise_dev_agent.texts import counted

_POLL_SECS: Final = 1.0
#: Maximum size of an exported flow; more would fill a model's context.
_EXPORT_CHARS: Final = 400_000

Label = Annotated[str | None, Field(max_length=20, description="A label such as v1.0 (see list_versions).")]
Created = Annotated[
    TakenBack | None, Field(description="For a chatflow that the session made: delete or undeploy it, and no version.")
]
Version = Annotated[str, Field(pattern=r"^(live|v\d{1,6})$", description="Such as v4 (see list_chatflow_versions).")]


async def list_chatflows(
    ctx: ToolContext,
    query: Annotated[str, Field(max_length=200, description="Each word must begin a word of the flow.")] = "",
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> Annotated[CallToolResult, FlowPage]:
    """Find chatflows and agentflows of a Flowise server by name, id, tags, node types and prompts.

    Without a query it lists the most recently changed ones. Drafts of sessions are left out.
    """
    page = await client_of(ctx).find_flows(query, instance=instance, limit=limit)
    lines = [
        f"- {row.id} {row.name} ({row.type}, {counted('nodes', row.nodes)}, changed {row.updated})"
        for row in page.flows
    ]
    return succeeded([f"{len(page.flows)} of {page.total} matching chatflows:", *lines], page)


async def read_chatflow(
    ctx: ToolContext,
    chatflow_id: ChatflowId,
    instance: Instance = None,
) -> Annotated[CallToolResult, FlowSummary]:
    """Describe a chatflow: its nodes with their settings, and how they are connected.

    Never shows credentials or secrets.
    """
    found = await client_of(ctx).flow_summary(str(chatflow_id), instance=instance)
    return succeeded([f"{found.flow.name} ({found.flow.type}) {found.flow.url or ''}", found.summary], found)


async def check_flow(
    ctx: ToolContext,
    chatflow_id: Annotated[
        UUID | None, Field(description="Id of a chatflow on the server; or give flow_data instead.")
    ] = None,
    # Not None by default: for a union the SDK would parse a text as JSON.
    flow_data: Annotated[
        str, Field(max_length=MAX_FLOW_CHARS, description="`flowData` as text, of a flow made elsewhere.")
    ] = "",
    instance: Instance = None,
) -> Annotated[CallToolResult, ValidatedFlow]:
    """Check a flow against what a Flowise server has, and write nothing: errors would keep it from being written."""
    client = client_of(ctx)
    if (chatflow_id is None) == (not flow_data):
        raise InvalidInputError("Give either `chatflow_id` or `flow_data`.")
    given: dict[str, Any] = {"flow_data": flow_data}
    if chatflow_id is not None:
        found = await client.export_flow(str(chatflow_id), instance=instance)
        given = {"flow_data": found.flow_data, "kind": found.type}
    checked = await client.validate_flow(ValidateFlow(**given), instance=instance)
    said = checked.validation
    lines = [f"- {finding.severity}: {finding.text}" for finding in (*said.errors, *said.warnings)]
    return succeeded(["Valid." if said.valid else "Not valid.", *lines], checked)


async def test_flow(
    ctx: ToolContext,
    chatflow_id: ChatflowId,
    tests: Annotated[
        list[GivenTest] | None,
        Field(max_length=10, description="Conversations with what is expected; one plain question when left out."),
    ] = None,
    trials: Annotated[int, Field(ge=1, le=10, description="How often each conversation has to pass.")] = 1,
    instance: Instance = None,
    wait_secs: WaitSecs = 120,
) -> Annotated[CallToolResult, FlowTestView]:
    """Ask a chatflow test questions, in conversations that are removed afterwards; nothing is written to it.

    What would change the world is simulated in a copy; what only reads is really asked.
    """
    test = TestFlow(tests=tests or [], trials=trials)
    client = client_of(ctx)
    view = await client.test_flow(test, str(chatflow_id), instance=instance)
    began = time.monotonic()
    while not view.is_over and (waited := time.monotonic() - began) < wait_secs:
        await ctx.report_progress(waited, wait_secs, f"The test is {view.status}.")
        await asyncio.sleep(min(_POLL_SECS, wait_secs - waited))
        view = await client.flow_test(view.id)
    error = f"{view.error.code}: {view.error.detail}" if view.error else ""
    result = {True: "All passed.", False: "Not all passed.", None: f"Test {view.id}: {view.status}."}[view.passed]
    return succeeded([result, error, *test_lines(view.trials)], view)


class ChatflowDifference(BaseModel):
    """Difference between two versions of a chatflow."""

    before: str
    after: str
    difference: Difference


async def export_chatflow(
    ctx: ToolContext, chatflow_id: ChatflowId, instance: Instance = None
) -> Annotated[CallToolResult, FlowDocument]:
    """Get the complete chatflow, to be kept in a file, with all settings of its nodes and the ids of its credentials.

    read_chatflow describes a chatflow without these.
    """
    found = await client_of(ctx).export_flow(str(chatflow_id), instance=instance)
    if len(found.flow_data) > _EXPORT_CHARS:
        raise InvalidInputError(
            f"The flow has {len(found.flow_data)} characters, too many for a tool's answer.",
            hint=f"Use `flowise-dev-agent export {chatflow_id}` or GET /flows/{chatflow_id}/export.",
        )
    return succeeded([f"{found.name} ({found.type}), {len(found.flow_data)} characters, sha256 {found.sha256}"], found)


async def list_versions(ctx: ToolContext, session_id: SessionId) -> Annotated[CallToolResult, VersionList]:
    """List the versions of a session's chatflow before and after each of its writes, oldest first.

    rollback restores one of them.
    """
    found = await client_of(ctx).versions(session_id)
    lines = [f"- {one.label}: {one.reason}{' (current)' if one.current else ''}" for one in found.versions]
    return succeeded(lines or ["The session has written nothing yet."], found)


async def compare_versions(
    ctx: ToolContext, session_id: SessionId, before: Label = None, after: Label = None
) -> Annotated[CallToolResult, VersionDiff]:
    """Show the differences between two versions of a session's chatflow; by default the first and the last one."""
    found = await client_of(ctx).version_diff(session_id, before=before, after=after)
    return succeeded([f"From {found.from_label} to {found.to_label}:", found.text], found)


async def list_chatflow_versions(
    ctx: ToolContext,
    chatflow_id: ChatflowId,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    before: Annotated[int | None, Field(ge=1, le=2**31 - 1, description="next_before of the page before.")] = None,
) -> Annotated[CallToolResult, NumberedVersions]:
    """List the versions of a chatflow over all sessions: v1, v2, ..., newest first.

    Each has the requirement that led to it, and the session and label that rollback takes.
    """
    found = await client_of(ctx).flow_versions(str(chatflow_id), limit=limit, before=before)
    lines = [
        f"- {one.name}{' (current)' if one.current else ''}: {one.title}"
        + (f" (session {one.session_id}, {one.label})" if one.session_id else "")
        for one in found.versions
    ]
    more = f"More with before {found.next_before}" if found.next_before else ""
    return succeeded([*(lines or ["No version is kept of this chatflow."]), more], found)


async def compare_chatflow_versions(
    ctx: ToolContext, chatflow_id: ChatflowId, before: Version, after: Version = "live"
) -> Annotated[CallToolResult, ChatflowDifference]:
    """Show the differences between two versions of a chatflow, or between one and the current chatflow (live)."""
    found = await client_of(ctx).compare_flow(str(chatflow_id), before, after)
    shown = ChatflowDifference(before=before, after=after, difference=found.diff)
    renamed = f"Renamed from '{found.before_name}' to '{found.after_name}'."
    names = [renamed] if found.before_name != found.after_name else []
    return succeeded([f"From {before} to {after}:", *names, found.diff.text or "Nothing differs."], shown)


async def rollback(
    ctx: ToolContext,
    session_id: SessionId,
    confirmed: Annotated[ElicitationResult[Confirmation], Resolve(rollback_confirmation)],
    version: Label = None,
    created: Created = None,
) -> Annotated[CallToolResult, RolledBack]:
    """Restore a version of a session in its chatflow, by default the first one; also long after the session.

    The current state of the chatflow is kept as a version first. A chatflow that the session made has no earlier one:
    created deletes or undeploys it, unless it was changed since. The decision is a person's: unless the operator of the
    service has allowed agents to decide (MCP_APPROVAL=agent), they confirm it in their client.
    """
    check_confirmed(confirmed)
    done = await client_of(ctx).rollback(session_id, version=version, created=created)
    if done.created:
        said = "is deleted" if done.created == "delete" else "is undeployed"
    else:
        said = "holds it already" if done.already_there else "holds it now"
    return succeeded([f"{done.label}: the chatflow {done.chatflow_id} {said}."], done)
