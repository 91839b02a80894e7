"""Commands for operators: `keys`, `shares`, `audit`, `notes`, `refresh` and `domains`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from flowise_dev_agent.cli.options import AsJson, Instance, Url
from flowise_dev_agent.cli.startup import Exit, command_settings, run_async, with_client

commands = typer.Typer(rich_markup_mode=None)


def _admin():  # noqa: ANN202 - imported at the first use, so that `--help` need not wait
    from flowise_dev_agent.cli import admin

    return admin


keys_app = typer.Typer(help="Keys of people and programs. Needs a key with the scope admin.", no_args_is_help=True)
commands.add_typer(keys_app, name="keys")

KeyRef = Annotated[str, typer.Argument(help="Name or id of the key.")]


@keys_app.command("list")
def keys_list_command(
    every: Annotated[bool, typer.Option("--all", help="Also revoked and expired ones.")] = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the keys with their last use."""
    with_client(url, lambda client: _admin().list_keys(client, every=every, as_json=as_json))


@keys_app.command("create")
def keys_create_command(
    name: Annotated[str, typer.Argument(help="Of the person or program; recorded with all that the key does.")],
    scope: Annotated[list[str], typer.Option("--scope", "-s", help="read, build, approve or admin. May be repeated.")],
    days: Annotated[float | None, typer.Option(min=0.001, help="Days until it ends. [default: it does not]")] = None,
    owner: Annotated[
        str, typer.Option(help="The team or person that the key acts for: whose sessions it sees.")
    ] = "default",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Make a key. It is printed once, and kept nowhere.

    read sees everything but the keys; build starts sessions, tests and asks for changes; approve decides what is
    written to Flowise; admin does everything.
    """
    from flowise_dev_agent.caller import ALL_SCOPES

    if unknown := sorted(set(scope) - ALL_SCOPES):
        raise typer.BadParameter(f"There is no scope '{unknown[0]}': use read, build, approve or admin.")
    wanted = ALL_SCOPES.intersection(scope)
    with_client(url, lambda client: _admin().create_key(client, name, wanted, owner=owner, days=days, as_json=as_json))


@keys_app.command("rotate")
def keys_rotate_command(
    key: KeyRef,
    keep_old: Annotated[int, typer.Option(min=0, max=604_800, help="Seconds for which the old key opens too.")] = 0,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Replace a key by another with the same name, scopes and end. It is printed once."""
    with_client(url, lambda client: _admin().rotate_key(client, key, keep_old_secs=keep_old, as_json=as_json))


@keys_app.command("revoke")
def keys_revoke_command(key: KeyRef, as_json: AsJson = False, url: Url = None) -> None:
    """End a key at once."""
    with_client(url, lambda client: _admin().revoke_key(client, key, as_json=as_json))


shares_app = typer.Typer(
    help="Links that show a session, or the history of a flow, to people without a key.", no_args_is_help=True
)
commands.add_typer(shares_app, name="shares")


class _Subject(StrEnum):
    SESSION = "session"
    FLOW = "flow"


@shares_app.command("list")
def shares_list_command(
    every: Annotated[bool, typer.Option("--all", help="Also revoked and ended ones.")] = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the links with their end and the last day on which they were opened."""
    with_client(url, lambda client: _admin().list_shares(client, every=every, as_json=as_json))


@shares_app.command("create")
def shares_create_command(
    subject: Annotated[_Subject, typer.Argument(help="What it shows: session or flow.")],
    subject_id: Annotated[UUID, typer.Argument(metavar="ID", help="Id of the session, or of the chatflow.")],
    days: Annotated[int, typer.Option(min=1, max=90, help="Days until it ends.")] = 7,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Make a link: read-only, without names, keys and credentials. It is printed once, and kept nowhere."""
    with_client(
        url,
        lambda client: _admin().create_share(client, subject.value, subject_id, days=days, as_json=as_json),
    )


@shares_app.command("revoke")
def shares_revoke_command(
    share_id: Annotated[UUID, typer.Argument(metavar="ID", help="Id of the link.")],
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """End a link at once."""
    with_client(url, lambda client: _admin().revoke_share(client, share_id, as_json=as_json))


audit_app = typer.Typer(help="Who answered what, and what was written.", no_args_is_help=True)
commands.add_typer(audit_app, name="audit")

AuditSession = Annotated[UUID | None, typer.Option("--session", help="Only this session.")]
AuditFlow = Annotated[str | None, typer.Option("--flow", help="Only this chatflow id.")]
AuditPerson = Annotated[str | None, typer.Option("--person", help="Only this person or program, by name of the key.")]


@audit_app.command("list")
def audit_list_command(
    session: AuditSession = None,
    flow: AuditFlow = None,
    person: AuditPerson = None,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List answers and writes, newest first."""
    which = {"session": session, "flow": flow, "person": person}
    with_client(url, lambda client: _admin().list_rows(client, which, limit=limit, as_json=as_json))


@audit_app.command("export")
def audit_export_command(
    session: AuditSession = None,
    flow: AuditFlow = None,
    person: AuditPerson = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. [default: standard output]")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV instead of JSON Lines.")] = False,
    url: Url = None,
) -> None:
    """Write all rows, oldest first, as JSON Lines or CSV."""
    which = {"session": session, "flow": flow, "person": person}
    format_ = "csv" if as_csv else "jsonl"
    with_client(url, lambda client: _admin().export_rows(client, which, file=file, format_=format_))


@audit_app.command("verify")
def audit_verify_command(session: AuditSession = None, as_json: AsJson = False, url: Url = None) -> None:
    """Check that no row is missing or changed.

    Exit codes: 0 all there, 1 could not be checked, 3 something is missing or changed.
    """
    if not with_client(url, lambda client: _admin().verify(client, session, as_json=as_json)):
        raise typer.Exit(Exit.NO)


@audit_app.command("erase")
def audit_erase_command(
    session: AuditSession = None, person: AuditPerson = None, as_json: AsJson = False, url: Url = None
) -> None:
    """Erase what was said in a session, by a person, or both. The rows stay."""
    with_client(url, lambda client: _admin().erase(client, session_id=session, person=person, as_json=as_json))


notes_app = typer.Typer(
    help="What a model that plans reads with each requirement, for example rules of a company.", no_args_is_help=True
)
commands.add_typer(notes_app, name="notes")


@notes_app.command("list")
def notes_list_command(
    words: Annotated[str, typer.Argument(help="Only notes with one of these words.", show_default=False)] = "",
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the notes, the newest first; with words those that fit best first."""
    with_client(url, lambda client: _admin().list_notes(client, words, instance, as_json=as_json))


@notes_app.command("add")
def notes_add_command(
    text: Annotated[str, typer.Argument(help="Up to 2,000 characters, without secrets.")],
    replace: Annotated[int | None, typer.Option(min=1, metavar="ID", help="Instead of this note.")] = None,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Have a note remembered."""
    with_client(url, lambda client: _admin().add_note(client, text, replace, instance, as_json=as_json))


@notes_app.command("delete")
def notes_delete_command(
    note_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of the note.")],
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Forget a note."""
    with_client(url, lambda client: _admin().delete_note(client, note_id, as_json=as_json))


@commands.command("domains")
def domains(
    refresh: Annotated[str | None, typer.Option(help="Renew what this domain knows.", metavar="NAME")] = None,
    as_json: AsJson = False,
) -> None:
    """List the domains that are in use, or renew what one of them knows."""
    settings = command_settings()
    from flowise_dev_agent.agent.domains.installed import installed_domains
    from flowise_dev_agent.cli.console import print_json, say
    from flowise_dev_agent.errors import InvalidInputError

    found = {
        one.name: one for one in installed_domains(settings.domain_settings.names, settings.domain_settings.folder)
    }
    if refresh is None:
        known = {name: one.about for name, one in found.items()}
        if as_json:
            print_json({"domains": [{"name": name, "about": about} for name, about in known.items()]})
            return
        for name, about in known.items():
            say(f"{name}: {about}")
        return
    if refresh not in found:
        raise InvalidInputError(f"There is no domain '{refresh}' in use.", hint=f"In use: {', '.join(found)}.")
    done = run_async(found[refresh].refresh())
    if as_json:
        print_json({"domain": refresh, "refreshed": done})
    else:
        say(f"{refresh}: {done}")


@commands.command("refresh")
def refresh_command(
    instance: Annotated[str, typer.Argument(help="Flowise instance, by its name in the service.")] = "default",
    wait: Annotated[float, typer.Option(min=0, max=3_600, help="Seconds to wait for the end.")] = 600,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Have the service read a Flowise server again: node types, templates, credentials."""
    raise typer.Exit(with_client(url, lambda client: _admin().refresh(client, instance, wait=wait, as_json=as_json)))


@commands.command("document-stores")
def document_stores_command(
    instance: Annotated[str | None, typer.Argument(help="Flowise instance; the default one.")] = None,
    refresh: Annotated[
        str | None, typer.Option(help="Read the sources of this document store again, by its id.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the document stores of a Flowise server, which flows can answer from."""
    with_client(url, lambda client: _admin().document_stores(client, instance, refresh, as_json=as_json))
