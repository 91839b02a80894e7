"""Tools for flows that are in use: their states, test sets, guards and certificates, and versions put back."""

from typing import Annotated

from mcp.server.mcpserver import ElicitationResult, Resolve
from mcp_types import CallToolResult
from pydantic import Field

from flowise_dev_agent.mcp.consent import Confirmation, check_confirmed, restore_confirmation
from flowise_dev_agent.mcp.host import ChatflowId, Instance, SessionId, ToolContext, client_of
from flowise_dev_agent.mcp.results import succeeded
from flowise_dev_agent.schemas.certificates import SignedCertificate
from flowise_dev_agent.schemas.fleet import FleetPage, FleetState
from flowise_dev_agent.schemas.flow_tests import MOST_IN_SET, GivenTest, PutTestSet, TestSetView
from flowise_dev_agent.schemas.flow_writes import FlowWriteResult
from flowise_dev_agent.schemas.guards import GuardSettings, GuardView

_WRITE_SECS = 60.0


async def list_fleet(
    ctx: ToolContext,
    state: Annotated[FleetState | None, Field(description="Only chatflows in this state.")] = None,
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Field(max_length=200, description="next_cursor of the page before.")] = None,
) -> Annotated[CallToolResult, FleetPage]:
    """List the chatflows of a Flowise server with their states: what needs care, and what was deleted in Flowise."""
    page = await client_of(ctx).fleet(instance=instance, state=state, limit=limit, cursor=cursor)
    lines = [f"- {one.id} {one.name}: {', '.join(one.states)}" for one in page.flows]
    more = f"More with cursor {page.next_cursor}" if page.next_cursor else ""
    return succeeded([*(lines or ["No chatflow is in this state."]), more], page)


async def get_test_set(
    ctx: ToolContext, chatflow_id: ChatflowId, instance: Instance = None
) -> Annotated[CallToolResult, TestSetView]:
    """Get the tests of a chatflow that people marked, accepted or gave; each later change has to pass them."""
    found = await client_of(ctx).test_set(str(chatflow_id), instance=instance)
    return succeeded(_test_lines(found), found)


async def put_test_set(
    ctx: ToolContext,
    chatflow_id: ChatflowId,
    tests: Annotated[list[GivenTest], Field(max_length=MOST_IN_SET, description="All tests; others are dropped.")],
    instance: Instance = None,
) -> Annotated[CallToolResult, TestSetView]:
    """Replace the tests of a chatflow. Ask the person first: theirs are replaced, too."""
    found = await client_of(ctx).put_test_set(str(chatflow_id), PutTestSet(tests=tests), instance=instance)
    return succeeded(_test_lines(found), found)


def _test_lines(found: TestSetView) -> list[str]:
    lines = [f"- {test.id}: {' / '.join(test.turns)}" for test in found.tests]
    return lines or ["The chatflow has no tests."]


async def get_guard(
    ctx: ToolContext, chatflow_id: ChatflowId, instance: Instance = None
) -> Annotated[CallToolResult, GuardView]:
    """Get the state of a guarded chatflow: its results, and an alarm with what fails and what changed."""
    found = await client_of(ctx).guard(str(chatflow_id), instance=instance)
    return succeeded([f"The chatflow is guarded; it is {found.state}."], found)


async def put_guard(
    ctx: ToolContext,
    chatflow_id: ChatflowId,
    every_hours: Annotated[float, Field(ge=1, le=744)] = 24,
    usd_per_month: Annotated[float, Field(ge=0, le=10_000, description="No run begins when it is used up.")] = 5,
    instance: Instance = None,
) -> Annotated[CallToolResult, GuardView]:
    """Have the tests of a chatflow held on a schedule and after changes; what changes the world is simulated."""
    settings = GuardSettings(every_hours=every_hours, usd_per_month=usd_per_month)
    found = await client_of(ctx).put_guard(str(chatflow_id), settings, instance=instance)
    return succeeded([f"The chatflow is guarded; it is {found.state}."], found)


async def get_certificate(ctx: ToolContext, session_id: SessionId) -> Annotated[CallToolResult, SignedCertificate]:
    """Get the signed certificate of a version that a session had accepted, with its tests and who accepted it."""
    found = await client_of(ctx).certificate(session_id)
    return succeeded([f"Signed with the key {found.signature.key_id}."], found)


async def restore_chatflow_version(
    ctx: ToolContext,
    chatflow_id: ChatflowId,
    version: Annotated[str, Field(pattern=r"^v[1-9][0-9]{0,8}$", description="Such as v4.")],
    confirmed: Annotated[ElicitationResult[Confirmation], Resolve(restore_confirmation)],
) -> Annotated[CallToolResult, FlowWriteResult]:
    """Write a version of a chatflow back, also one that somebody saved in Flowise; a deleted chatflow gets a new id.

    What it holds now is kept as a version first. A person confirms it, as they do a rollback.
    """
    check_confirmed(confirmed)
    done = await client_of(ctx).restore_version(str(chatflow_id), version, wait=_WRITE_SECS)
    return succeeded([f"{version}: the write of the chatflow {done.chatflow_id} is {done.status}."], done)
