"""`shares`: make, list and revoke links that show a session, or the history of a flow, to people without a key."""

from uuid import UUID

from rich.table import Column, Table

from flowise_dev_agent.cli.console import err, out, print_json, say
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.contracts.shares import NewShare, ShareSubject


async def list_shares(client: AgentClient, *, every: bool, as_json: bool) -> None:
    """Those that open, or all."""
    found = await client.shares()
    if as_json:
        print_json(found, indent=2)
        return
    table = Table(
        Column("Id", no_wrap=True),
        "Shows",
        Column("Ends", no_wrap=True),
        Column("Opened", no_wrap=True),
        Column("State", no_wrap=True),
        box=None,
        pad_edge=False,
    )
    for share in found.shares:
        if share.active or every:
            state = "open" if share.active else "revoked" if share.revoked_at else "ended"
            opened = f"{share.opened_on:%Y-%m-%d}" if share.opened_on else "never"
            table.add_row(str(share.id), f"{share.subject}: {share.title}", f"{share.ends_at:%Y-%m-%d}", opened, state)
    out.print(table)


async def create_share(client: AgentClient, subject: ShareSubject, id_: UUID, *, days: int, as_json: bool) -> None:
    """Make a link and show it, once."""
    made = await client.create_share(NewShare(subject=subject, id=id_, days=days))
    if as_json:
        print_json(made, indent=2)
        return
    # The link alone on standard output: `LINK=$(flowise-dev-agent shares create ...)`.
    err.print(f"It shows '{made.title}' until {made.ends_at:%Y-%m-%d}. It is shown only now.", markup=False)
    say(made.link)


async def revoke_share(client: AgentClient, share_id: UUID, *, as_json: bool) -> None:
    """End a link."""
    await client.revoke_share(share_id)
    if as_json:
        print_json({"id": str(share_id), "revoked": True})
    else:
        say(f"The link {share_id} is revoked.")
