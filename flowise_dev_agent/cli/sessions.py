"""`sessions`: what the service holds."""

from uuid import UUID

from rich.table import Column, Table
from rich.text import Text

from flowise_dev_agent.cli.console import out, say
from flowise_dev_agent.client import AgentClient


async def show(client: AgentClient, session_id: UUID | None, *, status: str | None, limit: int) -> None:
    """One session as JSON, or a table of the newest ones."""
    if session_id is not None:
        say((await client.get(session_id)).model_dump_json(indent=2, exclude={"interrupt": {"response_schema"}}))
        return
    page = await client.list(status=status, limit=limit)
    # The id is what a person copies: it stays whole on a narrow terminal, the name gives way.
    table = Table(Column("Session", no_wrap=True), "State", "Asks", "Name", box=None, pad_edge=False)
    for one in page.sessions:
        asks = one.interrupt.type if one.interrupt else ""
        table.add_row(str(one.thread_id), one.outcome or one.status, asks, Text(one.session_name or ""))
    out.print(table)
    if page.next_cursor:
        say("There are older ones: raise --limit, or see the page.")
