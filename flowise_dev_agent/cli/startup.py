"""Common start of commands: settings, the database, clients.

Everything is imported where it is needed: `--help` must not wait for it.
"""

import gc
import os
from base64 import b64encode
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from enum import IntEnum
from importlib import import_module
from pathlib import Path
from secrets import token_bytes
from tempfile import NamedTemporaryFile
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


def with_secrets_key(settings: "Settings", *, make: bool) -> "Settings":
    """The settings with a SECRETS_KEY: the operator's, else that of a file in the data folder.

    `make`: where there is no file, one is made, for this user alone. Where none can be kept, for example on a read-only
    disk, the settings stay without a key. Raises ConfigurationError when the file holds something else.
    """
    from pydantic import SecretStr

    from flowise_dev_agent.cli.console import warn
    from flowise_dev_agent.settings import data_folder

    if settings.database.secrets_key is not None:
        return settings
    path = data_folder() / "secrets.key"
    try:
        if make and not path.exists():
            _write_key(path)
        key = path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return settings
    except OSError as error:
        warn(f"No key can be kept in {path} ({type(error).__name__}): set SECRETS_KEY to connect at the page.")
        return settings
    database = settings.database.model_copy(update={"secrets_key": SecretStr(key)})
    try:
        usable = len(database.secrets_keys) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(
            f"{path} holds no key.",
            hint="Bring the file back from a backup. Without one, delete it: a new key is made, and what was connected "
            "at the page has to be connected again.",
        )
    return settings.model_copy(update={"database": database})


def _write_key(path: Path) -> None:
    """A new key at `path`, whole or not at all; that of a process that was faster stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Its mode is 0600.
    with NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(b64encode(token_bytes(32)).decode())
    try:
        with suppress(FileExistsError):
            os.link(file.name, path)
    finally:
        os.unlink(file.name)


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
