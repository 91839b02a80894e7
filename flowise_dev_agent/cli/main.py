"""The commands and their options; the modules beside this one hold what they do.

Each command imports what it runs: the parts of the service take seconds to load, and its clients need none of them.
"""

import sys
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from flowise_dev_agent import __version__
from flowise_dev_agent.cli.startup import (
    command_settings,
    load_modules,
    needs_devkit,
    require_database,
    run_async,
    run_service,
    with_client,
    with_concurrency,
    with_database,
)
from flowise_dev_agent.errors import AgentError

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient

app = typer.Typer(
    name="flowise-dev-agent",
    help="Build, change and test chatflows on a Flowise server from requirements in plain words.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Help by Rich takes as long to load as all else of the command.
    rich_markup_mode=None,
)

Concurrency = Annotated[
    int | None, typer.Option(help="Sessions to run at a time. Overrides AGENT_WORKER_CONCURRENCY.", min=1, max=1000)
]
Url = Annotated[str | None, typer.Option(help="Address of the service. [default: http://localhost:AGENT_API_PORT]")]


def main() -> None:
    """Run the command line. An AgentError is printed as a sentence and gives exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        # Names and texts come from anywhere; one that the terminal cannot show must not end the command.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except AgentError as error:
        from flowise_dev_agent.cli.console import fail

        fail(error.message, error.hint)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None: ...


@app.command("serve")
def serve_command(
    embedded: Annotated[bool, typer.Option(help="Start an embedded Postgres instead of using POSTGRES_DSN.")] = False,
    worker: Annotated[bool, typer.Option(help="Also run sessions in this process.")] = True,
    host: Annotated[str | None, typer.Option(help="Overrides AGENT_API_HOST.")] = None,
    port: Annotated[int | None, typer.Option(help="Overrides AGENT_API_PORT.", min=0, max=65_535)] = None,
    concurrency: Concurrency = None,
) -> None:
    """Run the service: API, page and (unless --no-worker) a worker."""
    load_modules("flowise_dev_agent.cli.serve", "flowise_dev_agent.api", "flowise_dev_agent.runtime.dependencies")
    from flowise_dev_agent.cli.serve import open_listener, serve

    settings = with_concurrency(command_settings(), concurrency)
    if not embedded:
        require_database(settings)
    settings, listener = open_listener(settings, host, port)
    with ExitStack() as stack:
        stack.enter_context(listener)
        if embedded:
            with needs_devkit("--embedded"):
                from flowise_dev_agent.devkit.stack import embedded_database
            settings = with_database(settings, stack.enter_context(embedded_database()))
        run_service(serve(settings, listener, worker=worker))


@app.command("worker")
def worker_command(
    concurrency: Concurrency = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(help="Serve /metrics, /live and /ready on this port.", min=0, max=65_535),
    ] = None,
) -> None:
    """Run sessions, without an API. Any number of workers can share one Postgres."""
    load_modules("flowise_dev_agent.cli.serve", "flowise_dev_agent.runtime.dependencies")
    from flowise_dev_agent.cli.serve import work

    settings = require_database(with_concurrency(command_settings(), concurrency))
    if metrics_port is None:
        run_service(work(settings))
        return
    from flowise_dev_agent.cli.serve import open_listener

    settings, listener = open_listener(settings, None, metrics_port)
    with listener:
        run_service(work(settings, listener))


@app.command("build")
def build(
    requirement: Annotated[
        str | None, typer.Argument(help="What to build or change, in plain words; none with --guided.")
    ] = None,
    guided: Annotated[bool, typer.Option("--guided", help="Ask for each part of a new flow instead.")] = False,
    attach: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file for the flow: PDF, DOCX, text, CSV, OpenAPI. May be repeated.", dir_okay=False, exists=True
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve the plan, and accept the result if its tests pass.")
    ] = False,
    url: Url = None,
) -> None:
    """Build a chatflow on a running service, showing progress. Exit code 0 when it was accepted."""
    from flowise_dev_agent.cli import build as build_command
    from flowise_dev_agent.cli.guided import ask_form
    from flowise_dev_agent.contracts.requests import StartSession

    if guided == (requirement is not None):
        raise typer.BadParameter("Name a requirement, or use --guided.")
    request = StartSession(design=ask_form()) if guided else StartSession(requirement=requirement or "")

    async def run(client: "AgentClient") -> bool:
        return await build_command.build(client, request, assume_yes=yes, attach=attach or [])

    if not with_client(url, run):
        raise typer.Exit(1)


@app.command("sessions")
def sessions(
    status: Annotated[str | None, typer.Option(help="Only sessions in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    session_id: Annotated[UUID | None, typer.Argument(help="Show only this session, with its open question.")] = None,
    url: Url = None,
) -> None:
    """List the sessions of a running service, or show one."""
    from flowise_dev_agent.cli import sessions as sessions_command

    async def run(client: "AgentClient") -> None:
        await sessions_command.show_sessions(client, session_id, status=status, limit=limit)

    with_client(url, run)


Instance = Annotated[
    str | None, typer.Option(help="Flowise instance, by its name in the service. [default: the first one]")
]


@app.command("export")
def export_command(
    flow: Annotated[str, typer.Argument(help="Id of the chatflow.")],
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. [default: standard output]")
    ] = None,
    ops: Annotated[bool, typer.Option("--ops", help="Write the ops that build the flow, instead of the flow.")] = False,
    instance: Instance = None,
    url: Url = None,
) -> None:
    """Write a flow to a file, for example for git. Needs a running service, like import, diff, apply and promote."""
    from flowise_dev_agent.cli import files as files_command

    with_client(url, lambda client: files_command.export_flow(client, flow, file, ops=ops, instance=instance))


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="A file from `export`, or exported from Flowise.")],
    name: Annotated[str | None, typer.Option(help="Name of the new flow. [default: the one in the file]")] = None,
    onto: Annotated[str | None, typer.Option(help="Id of a flow to replace, instead of creating one.")] = None,
    instance: Instance = None,
    url: Url = None,
) -> None:
    """Create a flow from a file, or replace one, as a session that can be rolled back."""
    from flowise_dev_agent.cli import files as files_command

    with_client(url, lambda client: files_command.import_flow(client, file, name=name, onto=onto, instance=instance))


@app.command("diff")
def diff_command(
    before: Annotated[str, typer.Argument(help="A file, or the id of a flow.")],
    after: Annotated[str, typer.Argument(help="A file, or the id of a flow.")],
    instance: Instance = None,
    url: Url = None,
) -> None:
    """Show the differences between two flows. Exit code 1 when there are any."""
    from flowise_dev_agent.cli import files as files_command

    if with_client(url, lambda client: files_command.show_diff(client, before, after, instance=instance)):
        raise typer.Exit(1)


@app.command("apply")
def apply_command(
    file: Annotated[Path, typer.Argument(help="A JSON file of ops.")],
    flow: Annotated[str, typer.Argument(help="Id of the chatflow to change.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")] = False,
    instance: Instance = None,
    url: Url = None,
) -> None:
    """Apply ops to a flow, as a session that can be rolled back: compile, check, write, read back. For CI."""
    from flowise_dev_agent.cli import files as files_command

    with_client(url, lambda client: files_command.apply_ops(client, file, flow, dry_run=dry_run, instance=instance))


flows_app = typer.Typer(help="Check and test flows by a running service, for CI.", no_args_is_help=True)
app.add_typer(flows_app, name="flows")


@flows_app.command("check")
def flows_check_command(
    flow: Annotated[str, typer.Argument(help="A file, or the id of a flow.")],
    instance: Instance = None,
    url: Url = None,
) -> None:
    """Check a flow against what the server has. Nothing is written.

    Exit codes: 0 valid, 1 could not be checked, 3 not valid.
    """
    from flowise_dev_agent.cli import files as files_command

    if not with_client(url, lambda client: files_command.check_flow(client, flow, instance=instance)):
        raise typer.Exit(3)


@flows_app.command("test")
def flows_test_command(
    flow: Annotated[str, typer.Argument(help="A file, which is tested as a draft, or the id of a flow.")],
    question: Annotated[list[str] | None, typer.Option("--question", "-q", help="A question. May be repeated.")] = None,
    tests: Annotated[Path | None, typer.Option("--tests", help="A JSON file of tests.")] = None,
    trials: Annotated[int, typer.Option(min=1, max=10, help="How often each conversation has to pass.")] = 1,
    instance: Instance = None,
    url: Url = None,
) -> None:
    """Ask a flow test questions, in conversations that are removed afterwards.

    Exit codes: 0 all passed, 1 could not be tested, 3 not all passed.
    """
    from flowise_dev_agent.cli import files as files_command

    if not with_client(
        url,
        lambda client: files_command.test_flow(
            client, flow, questions=question or [], file=tests, trials=trials, instance=instance
        ),
    ):
        raise typer.Exit(3)


@app.command("promote")
def promote_command(
    flow: Annotated[str, typer.Argument(help="Id of the chatflow.")],
    to: Annotated[str, typer.Option("--to", help="The target instance.")],
    source: Annotated[str | None, typer.Option("--from", help="The source instance. [default: the first one]")] = None,
    name: Annotated[str | None, typer.Option(help="Name there. [default: the same]")] = None,
    onto: Annotated[str | None, typer.Option(help="Id of a flow there to replace.")] = None,
    url: Url = None,
) -> None:
    """Copy a flow to another Flowise instance, as a session that can be rolled back.

    Its credentials are mapped by name and type.
    """
    from flowise_dev_agent.cli import files as files_command

    with_client(
        url, lambda client: files_command.promote_flow(client, flow, source=source, target=to, name=name, onto=onto)
    )


@app.command("approve")
def approve(
    session_id: Annotated[UUID | None, typer.Argument(help="The session; or use --payload.")] = None,
    payload: Annotated[
        str | None,
        typer.Option(help="File with a webhook payload, or a GitHub event that contains one; - is standard input."),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(help="An offered action: approve, accept, request_changes, iterate, rollback, cancel, ..."),
    ] = None,
    feedback: Annotated[str | None, typer.Option(help="What to change.")] = None,
    approach: Annotated[str | None, typer.Option(help="Which of the plan's approaches to approve.")] = None,
    interrupt: Annotated[
        str | None, typer.Option(help="Answer only if this interrupt is still open. [default: the payload's]")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only show the question.")] = False,
    wait: Annotated[
        float, typer.Option(min=0, max=86_400, help="Seconds to wait for the next question or the end.")
    ] = 600,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as JSON.")] = False,
    url: Url = None,
) -> None:
    """Answer a session's question, at the terminal or from CI.

    Exit codes: 0 answered or shown, 1 failed, 3 no such question is open, 4 an answer is needed.
    """
    from flowise_dev_agent.cli import sessions as sessions_command

    if (session_id is None) == (payload is None):
        raise typer.BadParameter("Give either a session or a --payload.")
    if session_id is not None:
        question = sessions_command.Question(session_id, interrupt)
    else:
        asked = sessions_command.from_payload(payload or "")
        question = sessions_command.Question(asked.session_id, interrupt or asked.interrupt_id, over=asked.over)

    async def run(client: "AgentClient") -> sessions_command.Exit:
        if show:
            return await sessions_command.show_question(client, question, wait=wait, as_json=as_json)
        given = sessions_command.Given(answer, feedback, approach)
        return await sessions_command.approve(client, question, given, wait=wait, as_json=as_json)

    raise typer.Exit(with_client(url, run, door="webhook" if payload else "cli"))


keys_app = typer.Typer(help="Keys of people and programs. Needs a key with the scope admin.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
KeyRef = Annotated[str, typer.Argument(help="Name or id of the key.")]


@keys_app.command("list")
def keys_list_command(
    every: Annotated[bool, typer.Option("--all", help="Also revoked and expired ones.")] = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the keys with their last use."""
    from flowise_dev_agent.cli import keys as keys_command

    with_client(url, lambda client: keys_command.list_keys(client, every=every, as_json=as_json))


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
    from flowise_dev_agent.cli import keys as keys_command

    if unknown := sorted(set(scope) - ALL_SCOPES):
        raise typer.BadParameter(f"There is no scope '{unknown[0]}': use read, build, approve or admin.")
    wanted = ALL_SCOPES.intersection(scope)
    with_client(
        url, lambda client: keys_command.create_key(client, name, wanted, owner=owner, days=days, as_json=as_json)
    )


@keys_app.command("rotate")
def keys_rotate_command(
    key: KeyRef,
    keep_old: Annotated[int, typer.Option(min=0, max=604_800, help="Seconds for which the old key opens too.")] = 0,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Replace a key by another with the same name, scopes and end. It is printed once."""
    from flowise_dev_agent.cli import keys as keys_command

    with_client(url, lambda client: keys_command.rotate_key(client, key, keep_old_secs=keep_old, as_json=as_json))


@keys_app.command("revoke")
def keys_revoke_command(key: KeyRef, url: Url = None) -> None:
    """End a key at once."""
    from flowise_dev_agent.cli import keys as keys_command

    with_client(url, lambda client: keys_command.revoke_key(client, key))


audit_app = typer.Typer(help="Who answered what, and what was written.", no_args_is_help=True)
app.add_typer(audit_app, name="audit")

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
    from flowise_dev_agent.cli import audit as audit_command

    which = {"session": session, "flow": flow, "person": person}
    with_client(url, lambda client: audit_command.list_rows(client, which, limit=limit, as_json=as_json))


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
    from flowise_dev_agent.cli import audit as audit_command

    which = {"session": session, "flow": flow, "person": person}
    format_ = "csv" if as_csv else "jsonl"
    with_client(url, lambda client: audit_command.export_rows(client, which, file=file, format_=format_))


@audit_app.command("verify")
def audit_verify_command(session: AuditSession = None, as_json: AsJson = False, url: Url = None) -> None:
    """Check that no row is missing or changed.

    Exit codes: 0 all there, 1 could not be checked, 3 something is missing or changed.
    """
    from flowise_dev_agent.cli import audit as audit_command

    if not with_client(url, lambda client: audit_command.verify(client, session, as_json=as_json)):
        raise typer.Exit(3)


@audit_app.command("erase")
def audit_erase_command(session: AuditSession = None, person: AuditPerson = None, url: Url = None) -> None:
    """Erase what was said in a session, by a person, or both. The rows stay."""
    from flowise_dev_agent.cli import audit as audit_command

    with_client(url, lambda client: audit_command.erase(client, session_id=session, person=person))


@app.command("mcp")
def mcp_command(url: Url = None) -> None:
    """Serve MCP on standard input and output, for desktop clients. The sessions are those of a running service."""
    from flowise_dev_agent.mcp import AgentMcpServer, Host

    approval = command_settings("WARNING").server.mcp_approval

    async def run(client: "AgentClient") -> None:
        # The service need not run yet: a call that cannot reach it says so.
        await AgentMcpServer(Host(lambda _: client, approval, lambda _: client.base_url)).run_stdio_async()

    with_client(url, run, door="mcp")


@app.command("migrate")
def migrate_command() -> None:
    """Create or update the tables in POSTGRES_DSN. Safe to run at any time, also several times in parallel."""
    from flowise_dev_agent.cli.console import say
    from flowise_dev_agent.persistence import migrate

    settings = require_database(command_settings())
    dsn = settings.database.direct_dsn or settings.database.dsn
    assert dsn is not None  # noqa: S101 - require_database has checked it
    run_async(migrate(dsn.get_secret_value()))
    say("The database is up to date.")


@app.command("domains")
def domains(
    refresh: Annotated[str | None, typer.Option(help="Renew what this domain knows.", metavar="NAME")] = None,
) -> None:
    """List the domains that are in use, or renew what one of them knows."""
    settings = command_settings()
    from flowise_dev_agent.agent.domains.installed import installed_domains
    from flowise_dev_agent.cli.console import say
    from flowise_dev_agent.errors import InvalidInputError

    found = {
        one.name: one for one in installed_domains(settings.domain_settings.names, settings.domain_settings.folder)
    }
    if refresh is None:
        for name, one in found.items():
            say(f"{name}: {(type(one).__doc__ or '').strip().splitlines()[0]}")
        return
    if refresh not in found:
        raise InvalidInputError(f"There is no domain '{refresh}' in use.", hint=f"In use: {', '.join(found)}.")
    say(f"{refresh}: {run_async(found[refresh].refresh())}")


@app.command("doctor")
def doctor() -> None:
    """Check the settings, the database, Flowise and the model provider. Exit code 0 when all of them work."""
    from flowise_dev_agent.cli import doctor as doctor_command

    if not run_async(doctor_command.examine(command_settings())):
        raise typer.Exit(1)


@app.command("demo")
def demo(
    once: Annotated[
        bool, typer.Option("--once", help="Stop after the build instead of leaving the service running.")
    ] = False,
    port: Annotated[int | None, typer.Option(help="Overrides AGENT_API_PORT.", min=0, max=65_535)] = None,
) -> None:
    """Start Postgres, Flowise and the service on this machine, and build a chatbot with them."""
    with needs_devkit("The demo"):
        from flowise_dev_agent.cli import demo as demo_command
    if not demo_command.run(command_settings("WARNING"), once=once, port=port):
        raise typer.Exit(1)
