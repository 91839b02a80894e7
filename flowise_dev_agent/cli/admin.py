"""Commands for operators: `keys`, `shares`, `audit`, `notes`, `refresh`, `document-stores` and `domains`."""

import sys
import time
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from flowise_dev_agent.cli.console import counted, fail, note, print_json, say, show, show_table
from flowise_dev_agent.cli.options import AsJson, Instance, Output, asking
from flowise_dev_agent.cli.startup import Exit, command_settings, run_async
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.sanitize import shortened

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient
    from flowise_dev_agent.schemas.keys import KeyView, MadeKey

commands = typer.Typer(rich_markup_mode=None)

# --- keys ------------------------------------------------------------------------------------------------------------

keys_app = typer.Typer(help="Keys of people and programs. Needs a key with the scope admin.", no_args_is_help=True)
commands.add_typer(keys_app, name="keys")

KeyRef = Annotated[str, typer.Argument(help="Name or id of the key.")]


@asking(keys_app, "list")
async def list_keys(
    client: "AgentClient",
    every: Annotated[bool, typer.Option("--all", help="Also revoked and expired ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the keys with their last use."""
    found = await client.keys()
    rows = (
        (
            str(key.id),
            key.name,
            key.owner,
            ", ".join(key.scopes),
            _day(key.last_used_at),
            _day(key.expires_at),
            "in use" if key.active else "revoked" if key.revoked_at else "expired",
        )
        for key in found.keys
        if key.active or every
    )
    columns = ("Id", "Name", "Owner", "Scopes", "Last use", "Ends", "State")
    show_table(found, as_json, columns, rows, whole=("Id", "Scopes", "State"))


@asking(keys_app, "create")
async def create_key(
    client: "AgentClient",
    name: Annotated[str, typer.Argument(help="Of the person or program; recorded with all that the key does.")],
    scope: Annotated[list[str], typer.Option("--scope", "-s", help="read, build, approve or admin. May be repeated.")],
    days: Annotated[float | None, typer.Option(min=0.001, help="Days until it ends. [default: it does not]")] = None,
    owner: Annotated[
        str, typer.Option(help="The team or person that the key acts for: whose sessions it sees.")
    ] = "default",
    as_json: AsJson = False,
) -> None:
    """Make a key. It is printed once, and kept nowhere.

    read sees everything but the keys; build starts sessions, tests and asks for changes; approve decides what is
    written to Flowise; admin does everything.
    """
    from flowise_dev_agent.caller import ALL_SCOPES
    from flowise_dev_agent.schemas.keys import NewKey

    if unknown := sorted(set(scope) - ALL_SCOPES):
        raise typer.BadParameter(f"There is no scope '{unknown[0]}': use read, build, approve or admin.")
    ends = datetime.now(UTC) + timedelta(days=days) if days is not None else None
    new = NewKey(name=name, owner=owner, scopes=sorted(ALL_SCOPES.intersection(scope)), expires_at=ends)
    _show_key(await client.create_key(new), as_json)


@asking(keys_app, "rotate")
async def rotate_key(
    client: "AgentClient",
    key: KeyRef,
    keep_old: Annotated[int, typer.Option(min=0, max=604_800, help="Seconds for which the old key opens too.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Replace a key by another with the same name, scopes and end. It is printed once."""
    found = await _find(client, key)
    _show_key(await client.rotate_key(found.id, keep_old_secs=keep_old, if_match=found.etag), as_json)


@asking(keys_app, "revoke")
async def revoke_key(client: "AgentClient", key: KeyRef, as_json: AsJson = False) -> None:
    """End a key at once."""
    found = await _find(client, key)
    await client.revoke_key(found.id, if_match=found.etag)
    result = {"id": str(found.id), "name": found.name, "revoked": True}
    show(result, as_json, f"The key '{found.name}' is revoked.")


async def _find(client: "AgentClient", key: str) -> "KeyView":
    found = [item for item in (await client.keys()).keys if item.active and key in {item.name, str(item.id)}]
    if not found:
        raise InvalidInputError(f"No key in use has the name or id '{key}'.", hint="List them: keys list --all.")
    return found[0]


def _show_key(made: "MadeKey", as_json: bool) -> None:
    # The key alone on standard output: `KEY=$(flowise-dev-agent keys create ...)`.
    if not as_json:
        note(f"The key '{made.name}' of {made.owner} ({', '.join(made.scopes)}). It is shown only now.")
    show(made, as_json, made.key)


def _day(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d %H:%M}" if when else "never"


# --- share links -----------------------------------------------------------------------------------------------------

shares_app = typer.Typer(
    help="Links that show a session, or the history of a flow, to people without a key.", no_args_is_help=True
)
commands.add_typer(shares_app, name="shares")


class _Subject(StrEnum):
    SESSION = "session"
    FLOW = "flow"


@asking(shares_app, "list")
async def list_shares(
    client: "AgentClient",
    every: Annotated[bool, typer.Option("--all", help="Also revoked and ended ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the links with their end and the last day on which they were opened."""
    found = await client.shares()
    rows = (
        (
            str(share.id),
            f"{share.subject}: {share.title}",
            f"{share.ends_at:%Y-%m-%d}",
            f"{share.opened_on:%Y-%m-%d}" if share.opened_on else "never",
            "open" if share.active else "revoked" if share.revoked_at else "ended",
        )
        for share in found.shares
        if share.active or every
    )
    columns = ("Id", "Shows", "Ends", "Opened", "State")
    show_table(found, as_json, columns, rows, whole=("Id", "Ends", "Opened", "State"))


@asking(shares_app, "create")
async def create_share(
    client: "AgentClient",
    subject: Annotated[_Subject, typer.Argument(help="What it shows: session or flow.")],
    subject_id: Annotated[UUID, typer.Argument(metavar="ID", help="Id of the session, or of the chatflow.")],
    days: Annotated[int, typer.Option(min=1, max=90, help="Days until it ends.")] = 7,
    as_json: AsJson = False,
) -> None:
    """Make a link: read-only, without names, keys and credentials. It is printed once, and kept nowhere."""
    from flowise_dev_agent.schemas.shares import NewShare

    made = await client.create_share(NewShare(subject=subject.value, id=subject_id, days=days))
    # The link alone on standard output: `LINK=$(flowise-dev-agent shares create ...)`.
    if not as_json:
        note(f"It shows '{made.title}' until {made.ends_at:%Y-%m-%d}. It is shown only now.")
    show(made, as_json, made.link)


@asking(shares_app, "revoke")
async def revoke_share(
    client: "AgentClient",
    share_id: Annotated[UUID, typer.Argument(metavar="ID", help="Id of the link.")],
    as_json: AsJson = False,
) -> None:
    """End a link at once."""
    await client.revoke_share(share_id)
    show({"id": str(share_id), "revoked": True}, as_json, f"The link {share_id} is revoked.")


# --- the audit log ---------------------------------------------------------------------------------------------------

audit_app = typer.Typer(help="Who answered what, and what was written.", no_args_is_help=True)
commands.add_typer(audit_app, name="audit")

AuditSession = Annotated[UUID | None, typer.Option("--session", help="Only this session.")]
AuditFlow = Annotated[str | None, typer.Option("--flow", help="Only this chatflow id.")]
AuditPerson = Annotated[str | None, typer.Option("--person", help="Only this person or program, by name of the key.")]


@asking(audit_app, "list")
async def list_audit(
    client: "AgentClient",
    session: AuditSession = None,
    flow: AuditFlow = None,
    person: AuditPerson = None,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
    as_json: AsJson = False,
) -> None:
    """List answers and writes, newest first."""
    page = await client.audit(limit=limit, session=session, flow=flow, person=person)
    rows = (
        (
            f"{row.ts:%Y-%m-%d %H:%M:%S}",
            row.actor,
            row.door,
            row.action,
            f"{row.chatflow_id or ''} {row.version or ''}".strip(),
            "(erased)" if row.words is None and row.words_sha256 else _one_line(row.words or ""),
        )
        for row in page.rows
    )
    older = ("There are older rows: raise --limit, or use `audit export`.",) if page.next_cursor else ()
    show_table(page, as_json, ("When", "Who", "Door", "What", "Flow", "Words"), rows, *older, whole=("When",))


def _one_line(words: str) -> str:
    return shortened(" ".join(words.split()), 60)


@asking(audit_app, "export")
async def export_audit(
    client: "AgentClient",
    session: AuditSession = None,
    flow: AuditFlow = None,
    person: AuditPerson = None,
    file: Output = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV instead of JSON Lines.")] = False,
) -> None:
    """Write all rows, oldest first, as JSON Lines or CSV."""
    pieces = client.audit_export("csv" if as_csv else "jsonl", session=session, flow=flow, person=person)
    try:
        target = file.open("w", encoding="utf-8", newline="") if file else sys.stdout
        try:
            async for text in pieces:
                target.write(text)
        finally:
            if file:
                target.close()
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written: {error.strerror}.") from None


@asking(audit_app, "verify")
async def verify_audit(client: "AgentClient", session: AuditSession = None, as_json: AsJson = False) -> bool:
    """Check that no row is missing or changed.

    Exit codes: 0 all there, 1 could not be checked, 3 something is missing or changed.
    """
    report = await client.audit_verify(session)
    for finding in report.findings if not as_json else ():
        where = f"row {finding.seq}" if finding.seq is not None else "all rows"
        note(f"{finding.chain}: {where}: {finding.problem.replace('_', ' ')}", "bold red")
    state = counted("findings", len(report.findings)) if report.findings else "nothing is missing or changed"
    show(report, as_json, f"{report.rows} rows of {report.chains} chains: {state}.")
    return not report.findings


@asking(audit_app, "erase")
async def erase_audit(
    client: "AgentClient", session: AuditSession = None, person: AuditPerson = None, as_json: AsJson = False
) -> None:
    """Erase what was said in a session, by a person, or both. The rows stay."""
    gone = await client.erase_audit_words(session_id=session, person=person)
    show(gone, as_json, f"The words of {gone.erased} rows are erased.")


# --- notes -----------------------------------------------------------------------------------------------------------

notes_app = typer.Typer(
    help="What a model that plans reads with each requirement, for example rules of a company.", no_args_is_help=True
)
commands.add_typer(notes_app, name="notes")
_PAGE: Final = 50


@asking(notes_app, "list")
async def list_notes(
    client: "AgentClient",
    words: Annotated[str, typer.Argument(help="Only notes with one of these words.", show_default=False)] = "",
    instance: Instance = None,
    as_json: AsJson = False,
) -> None:
    """List the notes, the newest first; with words those that fit best first."""
    found = [*await client.memories(words, kind="note", instance=instance, limit=_PAGE)]
    while found and len(found) % _PAGE == 0:
        more = await client.memories(words, kind="note", instance=instance, limit=_PAGE, offset=len(found))
        if not more:
            break
        found += more
    lines = [f"{one.memory_id}  {one.instance}  {one.text}" for one in found]
    none = "There are no such notes." if words else "There are no notes."
    show({"notes": [one.model_dump(mode="json") for one in found]}, as_json, *(lines or [none]))


@asking(notes_app, "add")
async def add_note(
    client: "AgentClient",
    text: Annotated[str, typer.Argument(help="Up to 2,000 characters, without secrets.")],
    replace: Annotated[int | None, typer.Option(min=1, metavar="ID", help="Instead of this note.")] = None,
    instance: Instance = None,
    as_json: AsJson = False,
) -> None:
    """Have a note remembered."""
    from flowise_dev_agent.schemas.node_artifacts import NewMemory

    mode = "append" if replace is None else "replace"
    kept = await client.add_memory(NewMemory(text=text, store_mode=mode, memory_id=replace, instance=instance))
    show(kept, as_json, f"Remembered as note {kept.memory_id}.")


@asking(notes_app, "delete")
async def delete_note(
    client: "AgentClient",
    note_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of the note.")],
    as_json: AsJson = False,
) -> None:
    """Forget a note."""
    await client.delete_memory(note_id)
    show({"id": note_id, "deleted": True}, as_json, f"Note {note_id} is forgotten.")


# --- servers and domains ---------------------------------------------------------------------------------------------

_POLL_SECS: Final = 1.0


@commands.command("domains")
def domains(
    refresh: Annotated[str | None, typer.Option(help="Renew what this domain knows.", metavar="NAME")] = None,
    as_json: AsJson = False,
) -> None:
    """List the domains that are in use, or renew what one of them knows."""
    settings = command_settings()
    from flowise_dev_agent.agent.domains.installed import installed_domains

    names, folder = settings.domain_settings.names, settings.domain_settings.folder
    found = {one.name: one for one in installed_domains(names, folder)}
    if refresh is None:
        listed = [{"name": name, "about": one.about} for name, one in found.items()]
        show({"domains": listed}, as_json, *(f"{one['name']}: {one['about']}" for one in listed))
        return
    if refresh not in found:
        raise InvalidInputError(f"There is no domain '{refresh}' in use.", hint=f"In use: {', '.join(found)}.")
    done = run_async(found[refresh].refresh())
    show({"domain": refresh, "refreshed": done}, as_json, f"{refresh}: {done}")


@asking(commands, "refresh")
async def refresh_knowledge(
    client: "AgentClient",
    instance: Annotated[str, typer.Argument(help="Flowise instance, by its name in the service.")] = "default",
    wait: Annotated[float, typer.Option(min=0, max=3_600, help="Seconds to wait for the end.")] = 600,
    as_json: AsJson = False,
) -> Exit:
    """Have the service read a Flowise server again: node types, templates, credentials."""
    from asyncio import sleep

    view = await client.refresh(instance)
    deadline = time.monotonic() + wait
    while view.status in {"queued", "running"} and time.monotonic() < deadline:
        await sleep(_POLL_SECS)
        known = (one.refresh for one in (await client.knowledge()).instances if one.instance == instance)
        view = next(known, None) or view
    if as_json:
        print_json(view)
    elif view.error is not None:
        fail(view.error.detail, view.error.hint)
    else:
        say(f"{instance}: {view.status}, {view.steps_done} of {view.steps} steps.")
    return Exit.FAILED if view.status == "failed" else Exit.DONE


@asking(commands, "document-stores")
async def document_stores(
    client: "AgentClient",
    instance: Annotated[str | None, typer.Argument(help="Flowise instance; the default one.")] = None,
    refresh: Annotated[
        str | None, typer.Option(help="Read the sources of this document store again, by its id.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the document stores of a Flowise server, which flows can answer from."""
    from flowise_dev_agent.knowledge.document_stores import store_lines

    if refresh is not None:
        done = await client.refresh_document_store(refresh, instance)
        show(done, as_json, *store_lines([done.store]))
        return
    found = await client.document_stores(instance)
    show(found, as_json, *(store_lines(found.stores) or ["There are no document stores."]))
