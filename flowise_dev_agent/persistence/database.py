"""The connection pool, and the translation of psycopg's errors."""

import asyncio
import select
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, AsyncTransaction, pq
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, class_row, dict_row
from psycopg.sql import SQL, Identifier, Literal
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool, PoolClosed

from flowise_dev_agent.caller import current_caller, serving
from flowise_dev_agent.errors import DatabaseUnavailableError, LeaseLostError
from flowise_dev_agent.persistence.notices import Notices
from flowise_dev_agent.sanitize import json_text
from flowise_dev_agent.texts import text

#: SQLSTATE raised by the SQL function `assert_owner`.
LEASE_LOST_STATE: Final = "FD001"


ASSERT_OWNER_SQL: Final = "SELECT assert_owner(%s, %s)"


@dataclass(frozen=True)
class Lease:
    """One claim of a run. The next claim raises the epoch; then writes under this one are rejected."""

    run_id: UUID
    epoch: int


T = TypeVar("T")
Connection = AsyncConnection[DictRow]
#: Called with a session's id at the end of the transaction that ends its run.
OnRest = Callable[[Connection, UUID], Awaitable[None]]

#: Keep-alive settings: a host that disappears silently is noticed after about this time instead of hours.
KEEPALIVE: Final[dict[str, int]] = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
#: Longest wait of a caller for the database.
ROUND_TRIP_SECS: Final = 30.0
#: Interval at which a waiting connection checks for missed data.
_SLEEP_SECS: Final = 60.0
#: In ms. A frozen process must not hold its locks, and the statement of a lost client must not go on.
_SERVER_LIMITS: Final = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "statement_timeout": 30_000,
        "idle_in_transaction_session_timeout": 10_000,
        "client_connection_check_interval": 5_000,
    }.items()
)


#: Each transaction acts in one of these roles (`roles.sql`): for the caller's owner, or for the service across owners.
APP_ROLE: Final = "fda_app"
SYSTEM_ROLE: Final = "fda_system"
_ACT: Final = "SELECT set_config('role', %(role)s, %(ends)s), set_config('app.owner', %(owner)s, %(ends)s)"
# Variant for the start of a transaction: it takes no snapshot, so the isolation level may still be set.
_SET_ROLE: Final = SQL("SET LOCAL ROLE {}")
_SET_OWNER: Final = SQL("SET LOCAL app.owner = {}")


def jsonb(value: Any) -> Jsonb:
    """`value`, cleaned, as a jsonb parameter."""
    return Jsonb(value, dumps=json_text)


_patience: ContextVar[float | None] = ContextVar("patience", default=None)


@contextmanager
def patient(seconds: float) -> Generator[None]:
    """Let the block and its tasks wait longer for a connection; for background work.

    If many share a pool, an early timeout would only make more work for it.
    """
    token = _patience.set(seconds)
    try:
        yield
    finally:
        _patience.reset(token)


_across_owners: ContextVar[bool] = ContextVar("across_owners", default=False)


@contextmanager
def across_owners() -> Generator[None]:
    """Let the statements of the block see the rows of all owners: to find work and to remove old data."""
    token = _across_owners.set(True)
    try:
        yield
    finally:
        _across_owners.reset(token)


@contextmanager
def for_owner(owner: str) -> Generator[None]:
    """Within `across_owners`: let the statements of the block see only one owner's rows, as the service itself."""
    token = _across_owners.set(False)
    try:
        with serving(owner):
            yield
    finally:
        _across_owners.reset(token)


def _acts_as() -> tuple[str, str]:
    """Role and owner of the current statements."""
    return (SYSTEM_ROLE, "") if _across_owners.get() else (APP_ROLE, current_caller().owner)


class _Pipeline(AsyncPipeline):
    """Pipeline without psycopg's flush request after its Sync.

    A pooler may have given the server's connection to another client by then, and the request would occupy a second
    one.
    """

    def _exit_gen(self) -> PQGen[None]:
        try:
            self._enqueue_sync()
            yield from self._communicate_gen()
        finally:
            yield from self._fetch_gen(flush=False)


class SleepingConnection(AsyncConnection[Any]):
    """Connection that sleeps until the server sends something.

    The base class wakes up ten times a second to be interruptible, which asyncio does by itself.
    """

    async def wait(self, gen: PQGen[T], interval: float = _SLEEP_SECS, timeout: float | None = None) -> T:  # noqa: ASYNC109
        """Wait as in the base class, with a longer interval."""
        return await super().wait(gen, interval=max(interval, _SLEEP_SECS), timeout=timeout)


class _Connection(SleepingConnection):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cursor_factory = _Cursor
        #: True if no pooler is in between: session settings stay set.
        self._is_direct = False
        #: The role and owner that are set, see `_acts_as`; None if unknown.
        self._set: tuple[str, str] | None = None
        #: True inside a transaction that began by setting them.
        self._says_for_whom = False

    async def look_at_server(self) -> None:
        """Detect a direct connection: poolers report a fake backend pid."""
        cursor = await AsyncCursor(self).execute("SELECT pg_backend_pid() AS pid", prepare=False)
        self._is_direct = await cursor.fetchone() == {"pid": self.pgconn.backend_pid}

    async def say_for_whom(self) -> bool:
        """Set role and owner for the next statement if necessary. False: they must be set in its transaction."""
        if self._says_for_whom or self._set == (wanted := _acts_as()):
            return True
        # A setting made where it could be rolled back may not stay.
        if not self._is_direct or self.in_pipeline or self.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            return False
        self._set = None
        await self._say(wanted, ends=False)
        self._set = wanted
        return True

    async def say_in_transaction(self) -> None:
        """Set role and owner until the end of the transaction."""
        await self._say(_acts_as(), ends=True)

    async def _say(self, acts_as: tuple[str, str], *, ends: bool) -> None:
        role, owner = acts_as
        await AsyncCursor(self).execute(_ACT, {"role": role, "owner": owner, "ends": ends})

    @property
    def in_pipeline(self) -> bool:
        return self._pipeline is not None

    @asynccontextmanager
    async def pipeline(self) -> AsyncGenerator[AsyncPipeline]:
        """Start a pipeline as in the base class, see `_Pipeline`."""
        if self._pipeline is None:
            self._pipeline = _Pipeline(self)
        async with super().pipeline() as pipeline:
            yield pipeline

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncGenerator[AsyncTransaction]:
        """Start a transaction as in the base class; the outermost one sets role and owner."""
        if self._says_for_whom:
            async with super().transaction(savepoint_name, force_rollback) as inner:
                yield inner
            return
        if self._pipeline is not None:  # what ran there is not part of this
            await self._pipeline.sync()
        async with AsyncExitStack() as stack:
            if await self.say_for_whom():
                outer = await stack.enter_async_context(AsyncTransaction(self, savepoint_name, force_rollback))
            else:
                async with self.pipeline():
                    outer = await stack.enter_async_context(AsyncTransaction(self, savepoint_name, force_rollback))
                    role, owner = _acts_as()
                    cursor = AsyncCursor(self)
                    await cursor.execute(_SET_ROLE.format(Identifier(role)), prepare=False)
                    await cursor.execute(_SET_OWNER.format(Literal(owner)), prepare=False)
            self._says_for_whom = True
            stack.callback(setattr, self, "_says_for_whom", False)
            yield outer


class _Cursor(AsyncCursor[DictRow]):
    """Cursor that sets role and owner before a statement if necessary.

    Behind a pooler it does so in the same round trip, since others use the server's connection too.
    """

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        connection = self._own_connection()
        if await connection.say_for_whom():
            return await super().execute(query, params, **options)
        if connection.in_pipeline:
            await connection.say_in_transaction()
            return await super().execute(query, params, **options)
        async with connection.pipeline():
            await connection.say_in_transaction()
            await super().execute(query, params, **options)
        return self

    async def executemany(self, query: Any, params_seq: Any, *, returning: bool = False) -> None:
        connection = self._own_connection()
        if await connection.say_for_whom():
            await super().executemany(query, params_seq, returning=returning)
        elif connection.in_pipeline:
            await connection.say_in_transaction()
            await super().executemany(query, params_seq, returning=returning)
        else:
            async with connection.transaction():
                await super().executemany(query, params_seq, returning=returning)

    def _own_connection(self) -> "_Connection":
        return cast("_Connection", self.connection)


class _Pool(AsyncConnectionPool[Connection]):
    async def getconn(self, timeout: float | None = None) -> Connection:  # noqa: ASYNC109 - as the pool has it
        return await super().getconn(_patience.get() if timeout is None else timeout)


def server_options(dsn: str) -> str:
    """The `options` of `dsn`, preceded by the server limits. Poolers reject them."""
    return f"{_SERVER_LIMITS} {conninfo_to_dict(dsn).get('options') or ''}".rstrip()


@contextmanager
def translated_errors() -> Generator[None]:
    """Raise `DatabaseUnavailableError` for an absent or restarting server and `LeaseLostError` for a lost lease.

    Other errors of psycopg are mistakes of ours and pass through.
    """
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate == LEASE_LOST_STATE:
            raise LeaseLostError("Another worker owns this run now.") from error
        # PoolTimeout, AdminShutdown, a cut connection, a deadlock: all are OperationalError and worth a retry.
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            raise _unavailable() from error
        raise
    except TimeoutError as error:
        raise _unavailable() from error


def _unavailable() -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        text("error.database_does_not_answer"),
        hint=text("error.nothing_is_lost"),
    )


async def check_connection(connection: AsyncConnection[Any]) -> None:
    """Check of a pooled connection: raises psycopg's errors if the idle connection is no longer usable."""
    # A server announces that it ends a connection, so an idle one without incoming data is fine: no round trip then.
    # Unprepared: an empty statement would be prepared again each time.
    if _has_input(connection.fileno()):
        await connection.execute("", prepare=False)


async def _look_at_server(connection: AsyncConnection[Any]) -> None:
    await cast("_Connection", connection).look_at_server()


def _has_input(fileno: int) -> bool:
    poll = select.poll()
    poll.register(fileno, select.POLLIN)
    return bool(poll.poll(0))


async def listening_connection(dsn: str) -> Connection:
    """A separate connection outside of any pool, for LISTEN. Raises psycopg's errors."""
    parameters: dict[str, Any] = {"connect_timeout": 5, **KEEPALIVE}
    return await SleepingConnection.connect(make_conninfo(dsn, **parameters), autocommit=True, row_factory=dict_row)


class Database:
    """A pool of autocommit connections with dict rows. Use as an async context manager, or `open` and `close`.

    Every statement sees the rows of the current caller's owner, or of all within `across_owners`, whatever the rights
    of the role that it connects as.

    Behind a transaction pooler (`pooler`) nothing is prepared, since the next statement may go to another server
    connection, and the server's own limits are the pooler's matter, which refuses them at connect.
    """

    def __init__(
        self, dsn: str, *, min_size: int = 2, max_size: int = 10, connect_timeout: float = 5.0, pooler: bool = False
    ) -> None:
        self._connect_timeout = connect_timeout
        self.notices = Notices(self.connection)
        self.pool: AsyncConnectionPool[Connection] = _Pool(
            dsn,
            connection_class=_Connection,
            kwargs={
                "autocommit": True,
                "prepare_threshold": None if pooler else 0,
                "row_factory": dict_row,
                "connect_timeout": max(2, round(connect_timeout)),
                **KEEPALIVE,
                **({} if pooler else {"options": server_options(dsn)}),
            },
            min_size=min_size,
            max_size=max_size,
            open=False,
            timeout=connect_timeout,
            # Attempts back off exponentially; giving up early lets the next caller start a fresh, quick one.
            reconnect_timeout=3.0,
            configure=None if pooler else _look_at_server,
            check=check_connection,
            name="flowise-dev-agent",
        )

    async def open(self) -> None:
        """Connect. Raises DatabaseUnavailableError when the server cannot be reached in time."""
        with translated_errors():
            try:
                await self.pool.open(wait=True, timeout=self._connect_timeout)
            except psycopg.OperationalError:
                await self.pool.close()
                raise

    async def close(self) -> None:
        """Close all connections."""
        await self.notices.close()
        await self.pool.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        """A connection in autocommit mode, for at most 30 s.

        Raises DatabaseUnavailableError, LeaseLostError (see `translated_errors`).
        """
        with translated_errors():
            try:
                async with asyncio.timeout(ROUND_TRIP_SECS):
                    # The pool's own context commits, which is unnecessary and waits for a lock.
                    connection = await self.pool.getconn()
                    try:
                        yield connection
                    finally:
                        await self.pool.putconn(connection)
            except PoolClosed as error:
                raise _unavailable() from error

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """A connection inside a transaction that commits at the end of the block and rolls back on an error."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def fetch_one(self, query: Any, params: Any = None) -> DictRow | None:
        """The first row of a query, or None."""
        async with self.connection() as connection:
            return await (await connection.execute(query, params)).fetchone()

    async def fetch_all(self, query: Any, params: Any = None) -> list[DictRow]:
        """All rows of a query with a limit of its own."""
        async with self.connection() as connection:
            return await (await connection.execute(query, params)).fetchall()

    async def rows(self, row: type[T], query: Any, params: Any = None, *, prepare: bool | None = None) -> list[T]:
        """All rows of a query with a limit of its own, each as a `row`.

        `prepare` False: planned for these parameters.
        """
        async with self.connection() as connection, connection.cursor(row_factory=class_row(row)) as cursor:
            await cursor.execute(query, params, prepare=prepare)
            return await cursor.fetchall()

    async def row(self, row: type[T], query: Any, params: Any = None, *, prepare: bool | None = None) -> T | None:
        """The first row of a query as a `row`; None if there is none."""
        async with self.connection() as connection, connection.cursor(row_factory=class_row(row)) as cursor:
            await cursor.execute(query, params, prepare=prepare)
            return await cursor.fetchone()
