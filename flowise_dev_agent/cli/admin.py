"""Commands of administrators and for what the service keeps: keys, audit, knowledge, notes, share links."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from rich.table import Column, Table
from rich.text import Text

from flowise_dev_agent.caller import Scope
from flowise_dev_agent.cli.console import err, fail, out, print_json, say
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.keys import KeyView, MadeKey, NewKey
from flowise_dev_agent.schemas.node_artifacts import Memory, NewMemory
from flowise_dev_agent.schemas.shares import NewShare, ShareSubject


async def list_keys(client: AgentClient, *, every: bool, as_json: bool) -> None:
    """List the valid keys, or all."""
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


_WORDS = 60


async def list_rows(client: AgentClient, which: dict[str, Any], *, limit: int, as_json: bool) -> None:
    """The newest rows."""
    page = await client.audit(limit=limit, **which)
    if as_json:
        print_json(page, indent=2)
        return
    table = Table(Column("When", no_wrap=True), "Who", "Door", "What", "Flow", "Words", box=None, pad_edge=False)
    for row in page.rows:
        words = "(erased)" if row.words is None and row.words_sha256 else " ".join((row.words or "").split())
        flow = f"{row.chatflow_id or ''} {row.version or ''}".strip()
        table.add_row(
            f"{row.ts:%Y-%m-%d %H:%M:%S}",
            Text(row.actor),
            row.door,
            row.action,
            Text(flow),
            Text(shortened(words, _WORDS)),
        )
    out.print(table)
    if page.next_cursor:
        say("There are older rows: raise --limit, or use `audit export`.")


async def export_rows(client: AgentClient, which: dict[str, Any], *, file: Path | None, format_: str) -> None:
    """All rows, to a file or to standard output."""
    try:
        target = file.open("w", encoding="utf-8", newline="") if file else sys.stdout
        try:
            async for text in client.audit_export(format_, **which):
                target.write(text)
        finally:
            if file:
                target.close()
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written: {error.strerror}.") from None


async def verify(client: AgentClient, session_id: UUID | None, *, as_json: bool) -> bool:
    """Check the audit log; True when nothing is missing or changed."""
    report = await client.audit_verify(session_id)
    if as_json:
        print_json(report, indent=2)
        return not report.findings
    for finding in report.findings:
        where = f"row {finding.seq}" if finding.seq is not None else "all rows"
        err.print(f"{finding.chain}: {where}: {finding.problem.replace('_', ' ')}", style="bold red", markup=False)
    state = f"{len(report.findings)} findings" if report.findings else "nothing is missing or changed"
    say(f"{report.rows} rows of {report.chains} chains: {state}.")
    return not report.findings


async def erase(client: AgentClient, *, session_id: UUID | None, person: str | None, as_json: bool) -> None:
    """Erase words."""
    gone = await client.erase_audit_words(session_id=session_id, person=person)
    if as_json:
        print_json(gone)
    else:
        say(f"The words of {gone.erased} rows are erased.")


_POLL_SECS: Final = 1.0


async def refresh(client: AgentClient, instance: str, *, wait: float, as_json: bool) -> Exit:
    """Start a refresh, or join one that runs, and wait up to `wait` seconds for its end."""
    view = await client.refresh(instance)
    deadline = time.monotonic() + wait
    while view.status in {"queued", "running"} and time.monotonic() < deadline:
        await asyncio.sleep(_POLL_SECS)
        known = (one.refresh for one in (await client.knowledge()).instances if one.instance == instance)
        view = next(known, None) or view
    if as_json:
        print_json(view)
    elif view.error is not None:
        fail(view.error.detail, view.error.hint)
    else:
        say(f"{instance}: {view.status}, {view.steps_done} of {view.steps} steps.")
    return Exit.FAILED if view.status == "failed" else Exit.DONE


async def document_stores(client: AgentClient, instance: str | None, refreshed: str | None, *, as_json: bool) -> None:
    """Print the document stores of a server; with `refreshed` that one, after its sources were read again."""
    from flowise_dev_agent.knowledge.document_stores import store_lines

    if refreshed is not None:
        done = await client.refresh_document_store(refreshed, instance)
        if as_json:
            print_json(done)
        else:
            for line in store_lines([done.store]):
                say(line)
        return
    found = await client.document_stores(instance)
    if as_json:
        print_json(found)
        return
    for line in store_lines(found.stores) or ["There are no document stores."]:
        say(line)


_PAGE: Final = 50


async def list_notes(client: AgentClient, words: str, instance: str | None, *, as_json: bool) -> None:
    """All of them, or those that fit words."""
    found = [note async for note in _every(client, words, instance)]
    if as_json:
        print_json({"notes": [note.model_dump(mode="json") for note in found]})
        return
    for note in found:
        say(f"{note.memory_id}  {note.instance}  {note.text}")
    if not found:
        say("There are no such notes." if words else "There are no notes.")


async def _every(client: AgentClient, words: str, instance: str | None) -> AsyncIterator[Memory]:
    offset = 0
    while True:
        page = await client.memories(words, kind="note", instance=instance, limit=_PAGE, offset=offset)
        for note in page:
            yield note
        if len(page) < _PAGE:
            return
        offset += _PAGE


async def add_note(
    client: AgentClient, text: str, replaces: int | None, instance: str | None, *, as_json: bool
) -> None:
    """Keep one, or put it in the place of `replaces`."""
    mode = "append" if replaces is None else "replace"
    kept = await client.add_memory(NewMemory(text=text, store_mode=mode, memory_id=replaces, instance=instance))
    if as_json:
        print_json(kept)
    else:
        say(f"Remembered as note {kept.memory_id}.")


async def delete_note(client: AgentClient, note_id: int, *, as_json: bool) -> None:
    """Forget one."""
    await client.delete_memory(note_id)
    if as_json:
        print_json({"id": note_id, "deleted": True})
    else:
        say(f"Note {note_id} is forgotten.")


async def list_shares(client: AgentClient, *, every: bool, as_json: bool) -> None:
    """List the open share links, or all."""
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
