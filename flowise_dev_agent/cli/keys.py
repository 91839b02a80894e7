"""`keys`: make, list, rotate and revoke the keys of people and programs."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from rich.table import Column, Table

from flowise_dev_agent.caller import Scope
from flowise_dev_agent.cli.console import err, out, print_json, say
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.contracts.keys import KeyView, MadeKey, NewKey
from flowise_dev_agent.errors import InvalidInputError


async def list_keys(client: AgentClient, *, every: bool, as_json: bool) -> None:
    """Those in use, or all."""
    found = await client.keys()
    if as_json:
        print_json(found, indent=2)
        return
    table = Table(
        Column("Id", no_wrap=True),
        "Name",
        "Owner",
        Column("Scopes", no_wrap=True),
        "Last use",
        "Ends",
        Column("State", no_wrap=True),
        box=None,
        pad_edge=False,
    )
    for key in found.keys:
        if key.active or every:
            state = "in use" if key.active else "revoked" if key.revoked_at else "expired"
            used, ends = _day(key.last_used_at, "never"), _day(key.expires_at, "never")
            table.add_row(str(key.id), key.name, key.owner, ", ".join(key.scopes), used, ends, state)
    out.print(table)


async def create_key(
    client: AgentClient, name: str, scopes: Collection[Scope], *, owner: str, days: float | None, as_json: bool
) -> None:
    """Make a key and show it, once."""
    ends = datetime.now(UTC) + timedelta(days=days) if days is not None else None
    _show(
        await client.create_key(NewKey(name=name, owner=owner, scopes=sorted(scopes), expires_at=ends)), as_json=as_json
    )


async def rotate_key(client: AgentClient, key: str, *, keep_old_secs: int, as_json: bool) -> None:
    """Replace a key, named or by id."""
    found = await _find(client, key)
    _show(await client.rotate_key(found.id, keep_old_secs=keep_old_secs, if_match=found.etag), as_json=as_json)


async def revoke_key(client: AgentClient, key: str, *, as_json: bool) -> None:
    """End a key, named or by id."""
    found = await _find(client, key)
    await client.revoke_key(found.id, if_match=found.etag)
    if as_json:
        print_json({"id": str(found.id), "name": found.name, "revoked": True})
    else:
        say(f"The key '{found.name}' is revoked.")


async def _find(client: AgentClient, key: str) -> KeyView:
    found = [item for item in (await client.keys()).keys if item.active and key in {item.name, str(item.id)}]
    if not found:
        raise InvalidInputError(f"No key in use has the name or id '{key}'.", hint="List them: keys list --all.")
    return found[0]


def _show(made: MadeKey, *, as_json: bool) -> None:
    if as_json:
        print_json(made, indent=2)
        return
    # The key alone on standard output: `KEY=$(flowise-dev-agent keys create ...)`.
    err.print(f"The key '{made.name}' of {made.owner} ({', '.join(made.scopes)}). It is shown only now.", markup=False)
    say(made.key)


def _day(when: datetime | None, otherwise: str) -> str:
    return f"{when:%Y-%m-%d %H:%M}" if when else otherwise
