"""`sessions`: what the service holds."""

from uuid import UUID

from rich.table import Table

from flowise_dev_agent.cli.console import out, say
from flowise_dev_agent.client import AgentClient


async def show(client: AgentClient, session_id: UUID | None, *, status: str | None, limit: int) -> None:
    """One session as JSON, or a table of the newest ones."""
    if session_id is not None:
        say((await client.get(session_id)).model_dump_json(indent=2, exclude={"interrupt": {"response_schema"}}))
        return
    page = await client.list(status=status, limit=limit)
    table = Table("Session", "Name", "State", "Asks", "Chatflow", "Started", box=None, pad_edge=False)
    for one in page.sessions:
        table.add_row(
            str(one.thread_id),
            one.session_name or "",
            one.outcome or one.status,
            one.interrupt.type if one.interrupt else "",
            one.chatflow_id or "",
            f"{one.created_at:%Y-%m-%d %H:%M}",
        )
    out.print(table)
    if page.next_cursor:
        say("There are older ones: raise --limit, or see the page.")
