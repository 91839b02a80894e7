"""The commands and their options; the modules beside this one hold what they do.

Each command imports what it runs: the parts of the service take seconds to load, and its clients need none of them.
"""

import sys
from contextlib import ExitStack
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, cast

import typer

from flowise_dev_agent import __version__
from flowise_dev_agent.cli import admin, flow_commands, session_commands
from flowise_dev_agent.cli.options import AsJson, Url
from flowise_dev_agent.cli.startup import (
    Exit,
    command_settings,
    load_modules,
    needs_devkit,
    require_database,
    run_async,
    run_service,
    tell_unknown_settings,
    with_client,
    with_concurrency,
    with_database,
)
from flowise_dev_agent.errors import AgentError, NeedsPersonError

if TYPE_CHECKING:
    from types import ModuleType

    from flowise_dev_agent.client import AgentClient

# LangGraph loads httpx, and httpx its own command line, with rich and pygments, if it finds it.
sys.modules.setdefault("httpx._main", cast("ModuleType", None))

app = typer.Typer(
    name="flowise-dev-agent",
    help="Build, change and test chatflows on a Flowise server from requirements in plain words.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Help by Rich takes as long to load as all else of the command.
    rich_markup_mode=None,
)
app.add_typer(session_commands.commands)
app.add_typer(flow_commands.commands)
app.add_typer(admin.commands)

Concurrency = Annotated[
    int | None, typer.Option(help="Sessions to run at a time. Overrides AGENT_WORKER_CONCURRENCY.", min=1, max=1000)
]


def main() -> None:
    """Run the command line. What goes wrong is a sentence and an exit code of `Exit`, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # Names and texts come from anywhere; one that the terminal cannot show must not end the command.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except AgentError as error:
        from flowise_dev_agent.cli.console import fail_with

        fail_with(error)
        sys.exit(Exit.NEEDS_ANSWER if isinstance(error, NeedsPersonError) else Exit.FAILED)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last place where it can become a sentence
        from flowise_dev_agent.cli.console import fail, in_words

        fail(*in_words(error))
        sys.exit(Exit.FAILED)


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
    paused: Annotated[
        bool,
        typer.Option("--paused", help="On a restored copy: let all workers wait until `flowise-dev-agent resume`."),
    ] = False,
    host: Annotated[str | None, typer.Option(help="Overrides AGENT_API_HOST.")] = None,
    port: Annotated[int | None, typer.Option(help="Overrides AGENT_API_PORT.", min=0, max=65_535)] = None,
    concurrency: Concurrency = None,
) -> None:
    """Run the service: API, page and (unless --no-worker) a worker."""
    load_modules("flowise_dev_agent.cli.serve", "flowise_dev_agent.api", "flowise_dev_agent.ops.dependencies")
    from flowise_dev_agent.cli.serve import open_listener, serve

    settings = with_concurrency(command_settings(), concurrency)
    tell_unknown_settings()
    if not embedded:
        require_database(settings)
    settings, listener = open_listener(settings, host, port)
    with ExitStack() as stack:
        stack.enter_context(listener)
        if embedded:
            with needs_devkit("--embedded"):
                from flowise_dev_agent.devkit.stack import embedded_database
            settings = with_database(settings, stack.enter_context(embedded_database()))
        run_service(serve(settings, listener, worker=worker, paused=paused))


@app.command("worker")
def worker_command(
    concurrency: Concurrency = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(help="Serve /metrics, /live and /ready on this port.", min=0, max=65_535),
    ] = None,
) -> None:
    """Run sessions, without an API. Any number of workers can share one Postgres."""
    load_modules("flowise_dev_agent.cli.serve", "flowise_dev_agent.ops.dependencies")
    from flowise_dev_agent.cli.serve import work

    settings = require_database(with_concurrency(command_settings(), concurrency))
    tell_unknown_settings()
    if metrics_port is None:
        run_service(work(settings))
        return
    from flowise_dev_agent.cli.serve import open_listener

    settings, listener = open_listener(settings, None, metrics_port)
    with listener:
        run_service(work(settings, listener))


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
def migrate_command(
    roles: Annotated[
        bool, typer.Option("--roles", help="Make the roles only, before a dump is restored into an empty database.")
    ] = False,
) -> None:
    """Create or update the tables in POSTGRES_DSN. Safe to run at any time, also several times in parallel."""
    from flowise_dev_agent.cli.console import say
    from flowise_dev_agent.persistence.schema import make_roles, migrate

    settings = require_database(command_settings())
    dsn = settings.database.direct_dsn or settings.database.dsn
    assert dsn is not None  # noqa: S101 - require_database has checked it
    run_async((make_roles if roles else migrate)(dsn.get_secret_value()))
    say("The roles are there." if roles else "The database is up to date.")


@app.command("resume")
def resume_command() -> None:
    """Let the workers of a service act that was started with `serve --paused`, within a few seconds."""
    from flowise_dev_agent.cli.console import say
    from flowise_dev_agent.persistence import Database
    from flowise_dev_agent.persistence.queue_stats import pause

    dsn = require_database(command_settings()).database.dsn
    assert dsn is not None  # noqa: S101 - require_database has checked it

    async def run(address: str) -> None:
        async with Database(address, min_size=1, max_size=2) as database:
            await pause(database, paused=False)

    run_async(run(dsn.get_secret_value()))
    say("Workers act again.")


@app.command("doctor")
def doctor(as_json: AsJson = False) -> None:
    """Check the settings, the database, Flowise and the model provider. Exit code 0 when all of them work."""
    from flowise_dev_agent.cli import doctor as doctor_command

    settings = command_settings()
    tell_unknown_settings()
    if not run_async(doctor_command.examine(settings, as_json=as_json)):
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
