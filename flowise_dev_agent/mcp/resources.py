"""Resources that clients may attach to a conversation: plan, difference and summary of a session, summary of a flow."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.mcp.artifact_tools import latest_plan, plan_lines
from flowise_dev_agent.mcp.host import ToolContext, client_of
from flowise_dev_agent.mcp.results import shortened_text

_SCHEME: Final = "flowise-dev-agent"


async def plan(session_id: str, ctx: ToolContext) -> str:
    """The plan of a session with the state of its tasks: the plan that waits for approval, else the approved one."""
    client = client_of(ctx)
    view = await client.get(_id(session_id))
    tasks = plan_lines(await latest_plan(client, view.thread_id))
    if view.interrupt and view.interrupt.type == "plan_approval":
        return shortened_text([view.interrupt.data.plan, "", "(It waits for approval.)", "", *tasks])
    return shortened_text([view.plan.text, "", *tasks] if view.plan else tasks)


async def difference(session_id: str, ctx: ToolContext) -> str:
    """The changes of a session to its flow: nodes, settings and connections."""
    change = await client_of(ctx).change(_id(session_id))
    if change is None:
        return "Nothing has changed yet."
    return shortened_text([f"# {change.diff.summary}", "", change.diff.text])


async def summary(session_id: str, ctx: ToolContext) -> str:
    """A session on one page: requirement, change, questions with answers, writes, tests, cost."""
    return shortened_text([(await client_of(ctx).summary(_id(session_id))).summary])


async def chatflow(chatflow_id: str, ctx: ToolContext) -> str:
    """A flow of the default instance in words, without credentials and secrets."""
    found = await client_of(ctx).flow_summary(str(_id(chatflow_id)))
    return shortened_text([f"# {found.flow.name} ({found.flow.type})", "", found.summary])


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInputError("The address of a session or chatflow ends with its id, a UUID.") from None


#: Address, title and function.
RESOURCES: Final[tuple[tuple[str, str, Callable[..., Any]], ...]] = (
    (f"{_SCHEME}://sessions/{{session_id}}/plan", "Plan of a session", plan),
    (f"{_SCHEME}://sessions/{{session_id}}/difference", "Difference that a session makes", difference),
    (f"{_SCHEME}://sessions/{{session_id}}/summary", "Summary of a session", summary),
    (f"{_SCHEME}://chatflows/{{chatflow_id}}", "Chatflow in words", chatflow),
)
