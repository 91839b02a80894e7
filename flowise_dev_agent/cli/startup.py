"""Common start of commands: settings, the database, clients.

Everything is imported where it is needed: `--help` must not wait for it.
"""

import gc
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from flowise_dev_agent.errors import ConfigurationError

if TYPE_CHECKING:
    from flowise_dev_agent.caller import Door
    from flowise_dev_agent.client import AgentClient
    from flowise_dev_agent.settings import Settings

T = TypeVar("T")


class Exit(IntEnum):
    """Exit codes of all commands; docs/ci.md has the same table."""

    #: It is done, and the answer is yes.
    DONE = 0
    #: It could not be done.
    FAILED = 1
    #: The command line is wrong.
    USAGE = 2
    #: It is done, and the answer is no: flows differ, a flow is not valid, a test has failed, the result was not
    #: accepted, rows are missing, no such question is open.
    NO = 3
    #: A person has to answer, and none is there.
    NEEDS_ANSWER = 4
    #: Ctrl-C.
    INTERRUPTED = 130


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, in an event loop of its own."""
    import asyncio

    return asyncio.run(work)


def run_service(work: Coroutine[Any, Any, None]) -> None:
    """As `run_async`, for processes that stay: in uvloop's event loop, which takes less time but is not for Windows."""
    try:
        import uvloop
    except ModuleNotFoundError:
        run_async(work)
    else:
        uvloop.run(work)


def load_modules(*modules: str) -> None:
    """Import the parts of a service. The garbage collector, a quarter of the time, stays off until it is ready."""
    gc.disable()
    for module in modules:
        import_module(module)


@contextmanager
def needs_devkit(what: str) -> Generator[None]:
    """Around imports of the devkit, which a production install may leave out."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{what} needs packages that are not installed ({error.name}).",
            hint="Install them with: pip install 'flowise-dev-agent[devkit]'",
        ) from None


def command_settings(default_level: str = "INFO") -> "Settings":
    """The settings, with logging configured; `default_level` applies when LOG_LEVEL is not set."""
    from flowise_dev_agent.observability import configure_logging
    from flowise_dev_agent.settings import load_settings

    settings = load_settings()
    chosen = "log_level" in settings.server.model_fields_set
    configure_logging(settings.server.log_level if chosen else default_level, settings.server.log_format)
    return settings


def tell_unknown_settings() -> None:
    """Warn of variables that look like settings and are none: misspelt, renamed, or of another version."""
    from flowise_dev_agent.cli.console import warn
    from flowise_dev_agent.settings import unknown_settings

    for name, meant in unknown_settings().items():
        warn(f"{name} is no setting of this version." + (f" Is {meant} meant?" if meant else ""))


def with_concurrency(settings: "Settings", concurrency: int | None) -> "Settings":
    """The settings with `concurrency` for the worker, if it is given."""
    if concurrency is None:
        return settings
    server = settings.server.model_copy(update={"worker_concurrency": concurrency})
    return settings.model_copy(update={"server": server})


def with_database(settings: "Settings", dsn: str) -> "Settings":
    """The settings with `dsn` for the database."""
    from pydantic import SecretStr

    database = settings.database.model_copy(update={"dsn": SecretStr(dsn), "direct_dsn": None})
    return settings.model_copy(update={"database": database})


def require_database(settings: "Settings") -> "Settings":
    """The settings, when POSTGRES_DSN is set. Raises ConfigurationError that names both ways to have a database."""
    if settings.database.dsn is None:
        raise ConfigurationError(
            "POSTGRES_DSN is not set: the service needs a Postgres database to keep sessions in.",
            hint="Set POSTGRES_DSN (docker-compose.postgres.yml starts a server), or try `flowise-dev-agent serve "
            "--embedded`, which starts a Postgres of its own on this machine.",
        )
    return settings


def with_client(url: str | None, run: "Callable[[AgentClient], Awaitable[T]]", *, door: "Door" = "cli") -> T:
    """Run a coroutine with a client of the service at `url` (default: this machine, AGENT_API_PORT)."""
    from flowise_dev_agent.client import AgentClient

    settings = command_settings("WARNING")

    async def go() -> T:
        address = url or f"http://localhost:{settings.server.port}"
        async with AgentClient(address, next(iter(settings.server.api_keys), None), door=door) as client:
            return await run(client)

    return run_async(go())
