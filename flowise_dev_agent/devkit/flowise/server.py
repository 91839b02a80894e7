"""Start and stop of the installed Flowise as a child process."""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import httpx2
import psycopg

from flowise_dev_agent.devkit.flowise.account import FlowiseAccess, bootstrap
from flowise_dev_agent.devkit.flowise.install import OWN_SERVER_HINT, FlowiseInstallation, Progress, node_binary
from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.devkit.processes import ManagedProcess
from flowise_dev_agent.errors import ConfigurationError

HOST = "127.0.0.1"
_READY_SECS = 120.0
_POLL_SECS = 0.1

# Flowise's migrations call this function, and the embedded Postgres does not ship its extension.
_UUID_FUNCTION = (
    "CREATE OR REPLACE FUNCTION public.uuid_generate_v4() RETURNS uuid "
    "LANGUAGE sql VOLATILE AS 'SELECT gen_random_uuid()'"
)


class LocalFlowise:
    """A local Flowise: files under `data_dir`, tables in `database` on `postgres`, listening on loopback.

    `port=0` takes a free port. `env` is added to its environment, for example the base URLs of model providers
    (`OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`, `GROQ_BASE_URL`); nothing else of our environment reaches it, so that a
    provider key set for the agent is not picked up by the flows.
    """

    def __init__(
        self,
        *,
        data_dir: Path,
        postgres: PostgresServer,
        database: str = "flowise",
        port: int = 0,
        env: Mapping[str, str] | None = None,
        installation: FlowiseInstallation | None = None,
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.installation = installation or FlowiseInstallation()
        self._postgres = postgres
        self._database = database
        self._port = port
        self._env = dict(env or {})
        self._process = ManagedProcess(self.data_dir / "flowise.pid", self.data_dir / "flowise.log")

    @property
    def endpoint(self) -> str:
        """Base address, without a slash at the end. The port is final once `start` has returned."""
        return f"http://{HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        """Process id while Flowise runs."""
        return self._process.pid

    def install(self, progress: Progress = lambda _: None) -> None:
        """Install Flowise; see `FlowiseInstallation.install`."""
        self.installation.install(progress)

    def start(self, progress: Progress = lambda _: None) -> Self:
        """Install if necessary, start, and return once Flowise answers (about 6 s).

        Raises:
            ConfigurationError: the port is taken, or Flowise ended or did not answer within two minutes; with the tail
                of its log.
        """
        folder = self.installation.install(progress)
        (self.data_dir / "home").mkdir(parents=True, exist_ok=True)
        self._process.end_stale()
        self._port = _claim_port(self._port)
        self._prepare_database()
        preload = Path(__file__).with_name("preload.cjs")
        argv = [str(node_binary()), "--require", str(preload), "node_modules/flowise/bin/run", "start"]
        self._process.start(argv, env=self._environment(), cwd=folder)
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop Flowise within a time limit. Does nothing if it is not running."""
        self._process.stop()

    def bootstrap(self) -> FlowiseAccess:
        """Create account, API key and dummy credentials; see `account.bootstrap`."""
        return bootstrap(self.endpoint, self.data_dir / "access.json")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _prepare_database(self) -> None:
        if not self._postgres.has_database(self._database):
            self._postgres.create_database(self._database)
        with psycopg.connect(self._postgres.dsn(self._database), autocommit=True) as connection:
            connection.execute(_UUID_FUNCTION)

    def _environment(self) -> dict[str, str]:
        database = self._postgres.connection_parts(self._database)
        return {
            "PATH": f"{node_binary().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.data_dir / "home"),
            "HOST": HOST,
            "PORT": str(self._port),
            "DATABASE_TYPE": "postgres",
            "DATABASE_HOST": database["host"],
            "DATABASE_PORT": database["port"],
            "DATABASE_NAME": self._database,
            "DATABASE_USER": database["user"],
            "DATABASE_PASSWORD": database["password"],
            "LOG_PATH": str(self.data_dir / "logs"),
            "BLOB_STORAGE_PATH": str(self.data_dir / "storage"),
            "DISABLE_FLOWISE_TELEMETRY": "true",
            # Cache of compiled modules, beside them: later starts are quicker.
            "NODE_COMPILE_CACHE": str(self.installation.folder / ".compile-cache"),
            **self._env,
        }

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECS
        with httpx2.Client(timeout=2, trust_env=False) as http:
            while time.monotonic() < deadline:
                code = self._process.exit_code()
                if code is not None:
                    raise self._did_not_start(f"ended with code {code}")
                try:
                    if http.get(f"{self.endpoint}/api/v1/ping").text == "pong":
                        return
                except httpx2.TransportError:
                    pass
                time.sleep(_POLL_SECS)
        raise self._did_not_start(f"did not answer within {_READY_SECS:.0f} s")

    def _did_not_start(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"The local Flowise {what}. The end of its log ({self._process.log_file}):\n{self._process.log_tail()}",
            hint=OWN_SERVER_HINT,
        )


def _claim_port(port: int) -> int:
    """`port` if it is free; a free port for 0."""
    with socket.socket() as probe:
        # Same option as Node: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ConfigurationError(
                f"Port {port} on {HOST}, meant for the local Flowise, is in use.",
                hint=f"End the program that listens there or choose another port. {OWN_SERVER_HINT}",
            ) from error
        return int(probe.getsockname()[1])
