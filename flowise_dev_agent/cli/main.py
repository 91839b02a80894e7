"""The commands and their options; what they do stands in the modules beside this one.

Each command imports what it runs: the service's parts take seconds to load, and asking it something needs none of them.
"""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import UUID

import typer

from flowise_dev_agent import __version__
from flowise_dev_agent.cli.console import fail, say
from flowise_dev_agent.errors import AgentError, ConfigurationError

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient
    from flowise_dev_agent.flowise.instances import Instances
    from flowise_dev_agent.settings import Settings

_T = TypeVar("_T")

app = typer.Typer(
    name="flowise-dev-agent",
    help="A sentence becomes a tested chatflow on your Flowise server.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Concurrency = Annotated[
    int | None, typer.Option(help="Sessions worked on at a time. Overrides AGENT_WORKER_CONCURRENCY.", min=1, max=1000)
]
Url = Annotated[str | None, typer.Option(help="Address of the service. [default: http://localhost:AGENT_API_PORT]")]


def main() -> None:
    """Run the command line; an error that was foreseen becomes a sentence and exit code 1."""
    try:
        app()
    except AgentError as error:
        fail(error.message, error.hint)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(__version__)
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None: ...


@app.command("serve")
def serve_command(
    embedded: Annotated[bool, typer.Option(help="Start a Postgres of its own instead of using POSTGRES_DSN.")] = False,
    worker: Annotated[bool, typer.Option(help="Also run sessions in this process.")] = True,
    host: Annotated[str | None, typer.Option(help="Overrides AGENT_API_HOST.")] = None,
    port: Annotated[int | None, typer.Option(help="Overrides AGENT_API_PORT.", min=0, max=65_535)] = None,
    concurrency: Concurrency = None,
) -> None:
    """Run the service: API, page and (unless --no-worker) a worker."""
    _load("flowise_dev_agent.cli.serve", "flowise_dev_agent.runtime.dependencies")
    from flowise_dev_agent.cli.database import require_database, with_database
    from flowise_dev_agent.cli.serve import open_listener, serve

    settings = _with_concurrency(_settings(), concurrency)
    if not embedded:
        require_database(settings)
    settings, listener = open_listener(settings, host, port)
    with ExitStack() as stack:
        stack.enter_context(listener)
        if embedded:
            with _needs_devkit("--embedded"):
                from flowise_dev_agent.devkit.stack import embedded_database
            settings = with_database(settings, stack.enter_context(embedded_database()))
        asyncio.run(serve(settings, listener, worker=worker))


@app.command("worker")
def worker_command(
    concurrency: Concurrency = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve /metrics and /live at AGENT_API_HOST on this port.", min=0, max=65_535)
    ] = None,
) -> None:
    """Run sessions only, beside any number of API processes on the same Postgres."""
    _load("flowise_dev_agent.cli.work", "flowise_dev_agent.runtime.dependencies")
    from flowise_dev_agent.cli.database import require_database
    from flowise_dev_agent.cli.work import work

    settings = require_database(_with_concurrency(_settings(), concurrency))
    if metrics_port is None:
        asyncio.run(work(settings))
        return
    from flowise_dev_agent.cli.serve import open_listener

    settings, listener = open_listener(settings, None, metrics_port)
    with listener:
        asyncio.run(work(settings, listener))


@app.command("build")
def build(
    requirement: Annotated[str, typer.Argument(help="What to build, in plain words.")],
    yes: Annotated[bool, typer.Option("--yes", help="Approve the plan and accept a result whose tests pass.")] = False,
    url: Url = None,
) -> None:
    """Build a chatflow by a running service, visibly. Exit code 0 when it was accepted."""
    from flowise_dev_agent.cli import build as build_command

    async def run(client: "AgentClient") -> bool:
        return await build_command.build(client, requirement, assume_yes=yes)

    if not _with_client(url, run):
        raise typer.Exit(1)


@app.command("sessions")
def sessions(
    status: Annotated[str | None, typer.Option(help="Only sessions in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    session_id: Annotated[UUID | None, typer.Argument(help="Show this one with its open question.")] = None,
    url: Url = None,
) -> None:
    """List the sessions of a running service, or show one."""
    from flowise_dev_agent.cli import sessions as sessions_command

    async def run(client: "AgentClient") -> None:
        await sessions_command.show(client, session_id, status=status, limit=limit)

    _with_client(url, run)


Instance = Annotated[str | None, typer.Option(help="The Flowise instance. [default: the first one]")]


@app.command("export")
def export_command(
    flow: Annotated[str, typer.Argument(help="Id of the chatflow.")],
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output by default.")
    ] = None,
    ops: Annotated[bool, typer.Option("--ops", help="The ops that make the flow instead of the flow.")] = False,
    instance: Instance = None,
) -> None:
    """Write a flow to a file, for git."""
    from flowise_dev_agent.cli import files as files_command

    _with_flowise(lambda instances: files_command.export_flow(instances.client(instance), flow, file, ops=ops))


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="A file that `export` or Flowise made.")],
    name: Annotated[str | None, typer.Option(help="Name of the new flow; the one in the file by default.")] = None,
    onto: Annotated[str | None, typer.Option(help="Id of a flow to put it in the place of.")] = None,
    instance: Instance = None,
) -> None:
    """Create a flow from a file, or replace one: checked before, read back after."""
    from flowise_dev_agent.cli import files as files_command

    _with_flowise(lambda instances: files_command.import_flow(instances.client(instance), file, name=name, onto=onto))


@app.command("diff")
def diff_command(
    before: Annotated[str, typer.Argument(help="A file or the id of a flow.")],
    after: Annotated[str, typer.Argument(help="A file or the id of a flow.")],
    instance: Instance = None,
) -> None:
    """Say what differs between two flows. Exit code 1 when something does."""
    from flowise_dev_agent.cli import files as files_command

    if _with_flowise(lambda instances: files_command.show_diff(instances.client(instance), before, after)):
        raise typer.Exit(1)


@app.command("apply")
def apply_command(
    file: Annotated[Path, typer.Argument(help="A JSON file of ops.")],
    flow: Annotated[str, typer.Argument(help="Id of the chatflow to change.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")] = False,
    instance: Instance = None,
) -> None:
    """Apply ops to a flow: compiled, checked, written, read back. For CI."""
    from flowise_dev_agent.cli import files as files_command

    _with_flowise(lambda instances: files_command.apply_ops(instances.client(instance), file, flow, dry_run=dry_run))


@app.command("promote")
def promote_command(
    flow: Annotated[str, typer.Argument(help="Id of the chatflow.")],
    to: Annotated[str, typer.Option("--to", help="The instance that gets it.")],
    source: Annotated[str | None, typer.Option("--from", help="Its instance. [default: the first one]")] = None,
    name: Annotated[str | None, typer.Option(help="Name there; the same by default.")] = None,
    onto: Annotated[str | None, typer.Option(help="Id of a flow there to write over.")] = None,
) -> None:
    """Bring a flow to another Flowise instance, its credentials mapped by name and type."""
    from flowise_dev_agent.cli import files as files_command

    _with_flowise(
        lambda instances: files_command.promote_flow(instances, flow, source=source, target=to, name=name, onto=onto)
    )


@app.command("approve")
def approve(
    session_id: Annotated[UUID | None, typer.Argument(help="The session; or --payload.")] = None,
    payload: Annotated[
        str | None, typer.Option(help="File with a webhook's payload, or with the GitHub event around it; - is stdin.")
    ] = None,
    answer: Annotated[
        str | None, typer.Option(help="approve, accept, request_changes, iterate, rollback, cancel: what is offered.")
    ] = None,
    feedback: Annotated[str | None, typer.Option(help="What should be different.")] = None,
    approach: Annotated[str | None, typer.Option(help="Which of the plan's approaches is approved.")] = None,
    interrupt: Annotated[
        str | None, typer.Option(help="Answer only this interrupt, which was looked at. [default: the payload's]")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only show the question.")] = False,
    wait: Annotated[
        float, typer.Option(min=0, max=86_400, help="Seconds to wait for the next question or the end.")
    ] = 600,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as JSON.")] = False,
    url: Url = None,
) -> None:
    """Answer a session's question, at the terminal or from CI.

    Exit codes: 0 answered (or shown), 1 failed, 3 nothing of the kind is open, 4 an answer is needed.
    """
    from flowise_dev_agent.cli import approve as approve_command

    if (session_id is None) == (payload is None):
        raise typer.BadParameter("Name a session or a --payload, one of them.")
    if session_id is not None:
        question = approve_command.Question(session_id, interrupt)
    else:
        told = approve_command.from_payload(payload or "")
        question = approve_command.Question(told.session_id, interrupt or told.interrupt_id, over=told.over)

    async def run(client: "AgentClient") -> approve_command.Exit:
        if show:
            return await approve_command.show(client, question, wait=wait, as_json=as_json)
        given = approve_command.Given(answer, feedback, approach)
        return await approve_command.approve(client, question, given, wait=wait, as_json=as_json)

    raise typer.Exit(_with_client(url, run))


@app.command("mcp")
def mcp_command(url: Url = None) -> None:
    """Speak MCP on standard input and output, for desktop clients, in front of a running service."""
    from flowise_dev_agent.cli.mcp import serve_stdio

    approval = _settings("WARNING").server.mcp_approval
    _with_client(url, lambda client: serve_stdio(client, approval))


@app.command("migrate")
def migrate_command() -> None:
    """Create or update the tables in POSTGRES_DSN. Safe to run at any time, by several at once."""
    from flowise_dev_agent.cli.database import require_database
    from flowise_dev_agent.persistence import migrate

    settings = require_database(_settings())
    dsn = settings.database.direct_dsn or settings.database.dsn
    assert dsn is not None  # noqa: S101 - require_database saw to it
    asyncio.run(migrate(dsn.get_secret_value()))
    say("The database is up to date.")


@app.command("doctor")
def doctor() -> None:
    """Check the settings, the database, Flowise and the model provider. Exit code 0 when all of them work."""
    from flowise_dev_agent.cli import doctor as doctor_command

    if not asyncio.run(doctor_command.examine(_settings())):
        raise typer.Exit(1)


@app.command("demo")
def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End after the build instead of leaving the service up.")
    ] = False,
    port: Annotated[int | None, typer.Option(help="Overrides AGENT_API_PORT.", min=0, max=65_535)] = None,
) -> None:
    """Start Postgres, a real Flowise and the service on this machine and build a chatbot there."""
    with _needs_devkit("The demo"):
        from flowise_dev_agent.cli import demo as demo_command
    if not demo_command.run(_settings("WARNING"), once=once, port=port):
        raise typer.Exit(1)


def _load(*modules: str) -> None:
    """Import what a service consists of: two thousand modules, a sixth of whose time went into looking for garbage."""
    gc.disable()
    try:
        for module in modules:
            import_module(module)
    finally:
        gc.enable()


@contextmanager
def _needs_devkit(what: str) -> Generator[None]:
    """Around imports of the devkit, which a production install may leave out."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{what} needs parts that are not installed ({error.name}).",
            hint="Install them with: pip install 'flowise-dev-agent[devkit]'",
        ) from None


def _settings(default_level: str = "INFO") -> "Settings":
    from flowise_dev_agent.observability import configure_logging
    from flowise_dev_agent.settings import load_settings

    settings = load_settings()
    chosen = "log_level" in settings.server.model_fields_set
    configure_logging(settings.server.log_level if chosen else default_level)
    return settings


def _with_concurrency(settings: "Settings", concurrency: int | None) -> "Settings":
    if concurrency is None:
        return settings
    server = settings.server.model_copy(update={"worker_concurrency": concurrency})
    return settings.model_copy(update={"server": server})


def _with_flowise(run: "Callable[[Instances], Awaitable[_T]]") -> _T:
    from flowise_dev_agent.flowise.instances import Instances

    settings = _settings("WARNING")

    async def go() -> _T:
        instances = Instances(settings.flowise)
        try:
            return await run(instances)
        finally:
            await instances.aclose()

    return asyncio.run(go())


def _with_client(url: str | None, run: "Callable[[AgentClient], Awaitable[_T]]") -> _T:
    from flowise_dev_agent.client import AgentClient

    settings = _settings("WARNING")

    async def go() -> _T:
        address = url or f"http://localhost:{settings.server.port}"
        async with AgentClient(address, settings.server.api_key) as client:
            return await run(client)

    return asyncio.run(go())
