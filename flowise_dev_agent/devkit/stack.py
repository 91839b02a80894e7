"""The local stack: Postgres, the model stand-in and Flowise on this machine."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from flowise_dev_agent.devkit.flowise import FLOWISE_VERSION, FlowiseAccess, FlowiseInstallation, LocalFlowise
from flowise_dev_agent.devkit.flowise.install import Progress
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.devkit.processes import default_data_dir
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.errors import ConfigurationError

#: Not Flowise's usual 3000, where another server may run.
DEFAULT_FLOWISE_PORT = 3100
AGENT_DATABASE = "flowise_dev_agent"
FLOWISE_DATABASE = "flowise"


class DevStack:
    """Starts Postgres, stand-in and Flowise in this order and stops them in reverse order.

    State lives in `data_dir` (default: the user's data folder), so that a second run takes seconds and finds the
    chatflows and sessions of the first. Processes left behind by a killed run are taken over or ended. One stack per
    data folder at a time.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        cache_dir: Path | None = None,
        flowise_port: int = DEFAULT_FLOWISE_PORT,
    ) -> None:
        self.data_dir = (data_dir or default_data_dir()).expanduser().absolute()
        self.standin = ModelStandIn()
        self._cache_dir = cache_dir
        self._flowise_port = flowise_port
        self._postgres = EmbeddedPostgres(self.data_dir / "postgres")
        self._access: FlowiseAccess | None = None
        self._running = ExitStack()

    @property
    def dsn(self) -> str:
        """DSN of the agent's database."""
        return self._postgres.dsn(AGENT_DATABASE)

    @property
    def flowise(self) -> FlowiseAccess:
        """Access data of Flowise; the API key is valid."""
        if self._access is None:
            raise ConfigurationError("The development stack is not running.", hint="Call start() first.")
        return self._access

    @property
    def access_file(self) -> Path:
        """File with Flowise's account, including its password."""
        return self.data_dir / "flowise" / "access.json"

    def start(self, progress: Progress = lambda _: None) -> Self:
        """Start everything; if one part fails, the others are stopped again.

        Raises:
            ConfigurationError: a part is not installed or does not start; the message says which and what to do.
        """
        with ExitStack() as parts:
            progress("Starting the embedded Postgres")
            parts.enter_context(self._postgres)
            ensure_database(self._postgres, AGENT_DATABASE)
            parts.enter_context(self.standin)
            progress(f"Model stand-in (no real model) at {self.standin.endpoint}")
            flowise = LocalFlowise(
                data_dir=self.data_dir / "flowise",
                postgres=self._postgres,
                database=FLOWISE_DATABASE,
                port=self._flowise_port,
                env=self.standin.flowise_env(),
                installation=FlowiseInstallation(self._cache_dir),
            )
            flowise.install(progress)
            progress(f"Starting Flowise {FLOWISE_VERSION}")
            parts.callback(flowise.stop)
            flowise.start(progress)
            self._access = flowise.bootstrap()
            progress(f"Flowise {FLOWISE_VERSION} at {self._access.endpoint}")
            self._running = parts.pop_all()
        return self

    def stop(self) -> None:
        """End Flowise, the stand-in and Postgres, in this order. Does nothing if they are not running."""
        self._access = None
        self._running.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def embedded_database(data_dir: Path | None = None) -> Generator[str]:
    """Run the embedded Postgres alone (`serve --embedded`); yields the DSN of the agent's database.

    It is the same database that `DevStack` uses with this data folder.
    """
    folder = (data_dir or default_data_dir()).expanduser().absolute()
    with EmbeddedPostgres(folder / "postgres") as postgres:
        ensure_database(postgres, AGENT_DATABASE)
        yield postgres.dsn(AGENT_DATABASE)


def ensure_database(postgres: EmbeddedPostgres, name: str) -> None:
    """Create the database if it is missing."""
    if not postgres.has_database(name):
        postgres.create_database(name)
