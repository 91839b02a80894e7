"""Migrations to the current version: the saver's tables, the queue's schema, and our numbered SQL files."""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, LiteralString, cast

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from procrastinate.schema import SchemaManager
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import DictRow, dict_row

from flowise_dev_agent.errors import ConfigurationError, DatabaseUnavailableError
from flowise_dev_agent.persistence.database import Connection, translated_errors

#: An arbitrary number, the same for every replica.
_LOCK_KEY: Final = 7_046_029_254_386_353_131
_RETRY_SECS: Final = 0.1
#: As `server_version_num` has it.
_OLDEST_SERVER: Final = 160_000
#: SQLSTATE raised by `roles.sql`.
_ROLES_OF_OTHERS: Final = "FD002"
#: What a database is made of: recorded by every migration, and compared after a restore. Names of
#: parts that `grants.sql` makes again begin with "right" or "policy".
_PARTS: Final = """
    WITH acting AS (SELECT oid, rolname FROM pg_roles WHERE rolname IN ('fda_app', 'fda_system')),
    relations AS (
        SELECT oid, relname, relkind, relacl, relforcerowsecurity FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relpersistence = 'p'
    )
    SELECT CASE relkind WHEN 'i' THEN 'index ' WHEN 'S' THEN 'sequence ' ELSE 'table ' END || relname AS part
    FROM relations LEFT JOIN pg_index ON indexrelid = oid WHERE indisvalid IS NOT FALSE
    UNION SELECT 'row security of ' || relname FROM relations WHERE relforcerowsecurity
    UNION SELECT 'constraint ' || conname || ' of ' || relname
    FROM pg_constraint JOIN relations ON relations.oid = conrelid WHERE contype IN ('p', 'u', 'f', 'c')
    UNION SELECT 'trigger ' || tgname || ' of ' || relname
    FROM pg_trigger JOIN relations ON relations.oid = tgrelid WHERE NOT tgisinternal
    UNION SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
    UNION SELECT 'policy ' || polname || ' of ' || relname FROM pg_policy JOIN relations ON relations.oid = polrelid
    UNION SELECT 'right of ' || rolname || ' to ' || privilege_type || ' ' || relname
    FROM relations CROSS JOIN aclexplode(relacl) JOIN acting ON acting.oid = grantee
    UNION SELECT 'right of ' || rolname || ' to ' || privilege_type || ' ' || relname || '.' || attname
    FROM pg_attribute JOIN relations ON relations.oid = attrelid CROSS JOIN aclexplode(attacl)
        JOIN acting ON acting.oid = grantee
    UNION SELECT 'right of ' || rolname || ' to ' || privilege_type || ' ' || proname
    FROM pg_proc CROSS JOIN aclexplode(proacl) JOIN acting ON acting.oid = grantee
    WHERE pronamespace = current_schema()::regnamespace
"""
_RECORDS: Final = """
    SELECT to_regclass('sessions') IS NOT NULL AS made, to_regclass('schema_parts') IS NOT NULL AS recorded,
        has_table_privilege(to_regclass('schema_parts'), 'SELECT') AS readable
"""
_RECORD: Final = f"INSERT INTO schema_parts (part) {_PARTS} ON CONFLICT DO NOTHING"
_MADE_AGAIN: Final = ("right ", "policy ")
_NO_ROWS: Final = ["rows of schema_parts"]
_MOST_NAMED: Final = 5
#: The first line of a migration that older code cannot work beside: the migration that such code has to know.
_NEEDS: Final = re.compile(r"-- needs: (\S+)\n")
_APPLIED: Final = "SELECT name, to_jsonb(m) ->> 'needs' AS needs FROM schema_migrations m"
_READABLE: Final = "SELECT COALESCE(has_table_privilege(to_regclass('schema_migrations'), 'SELECT'), false) AS known"


async def migrate(dsn: str, *, deadline_secs: float = 60.0) -> None:
    """Apply missing migrations, and what a restore left out of rights and policies. Safe for concurrent processes.

    On an up-to-date database it takes about 30 ms and needs only the rights of the service. Raises
    DatabaseUnavailableError if the server cannot be reached or another process holds the lock too long, and
    ConfigurationError if the login may not change the tables, or the database is newer than this code or restored
    only half.
    """
    async with _changing(dsn, deadline_secs) as connection:
        await _check_not_newer(connection)
        if not await _is_current(connection) or await _lost(connection):
            await _migrate(connection, deadline_secs)


async def make_roles(dsn: str) -> None:
    """Make the roles that a dump names, before it is restored. Raises as `migrate` does."""
    async with _changing(dsn, 0) as connection, connection.transaction():
        await connection.execute(cast(LiteralString, _script("roles.sql")))


async def check_whole(dsn: str) -> None:
    """Compare the database with what its last migration recorded.

    Raises ConfigurationError if parts are missing, or if the database is newer than this code.
    """
    with translated_errors():
        async with _connection(dsn) as connection:
            await _check_not_newer(connection)
            if lost := await _lost(connection):
                raise _half_restored(lost)


@asynccontextmanager
async def _changing(dsn: str, deadline_secs: float) -> AsyncGenerator[Connection]:
    with translated_errors():
        try:
            async with asyncio.timeout(deadline_secs + 30), _connection(dsn) as connection:
                yield connection
        except InsufficientPrivilege as error:
            raise ConfigurationError(
                f"The database's login may not make or change the tables: {error.diag.message_primary}.",
                hint="Run `flowise-dev-agent migrate` once with a login that owns the tables and may make roles"
                " (CREATEROLE); see docs/operations.md.",
            ) from error
        except psycopg.Error as error:
            if error.sqlstate != _ROLES_OF_OTHERS:
                raise
            raise ConfigurationError(
                f"{error.diag.message_primary}. They are valid for the whole server, so a second installation that"
                " acts as them could read the rows of the first.",
                hint="Give each installation a Postgres server of its own. If this is the installation that made them,"
                " with another login: GRANT fda_app, fda_system TO that login.",
            ) from error


async def _check_not_newer(connection: Connection) -> None:
    if newer := (await compare(connection)).newer:
        raise ConfigurationError(
            f"The database is newer than this version of the service: it has {', '.join(newer)}.",
            hint="Run the version that migrated it, or a later one; see docs/operations.md#upgrade-and-downgrade.",
        )


async def _is_current(connection: Connection) -> bool:
    row = await (await connection.execute(_READABLE)).fetchone()
    if not (row and row["known"]):
        return False
    needed = {*_known_migrations(), _grants()[0]}
    if not needed <= {row["name"] for row in await _applied(connection)}:
        return False
    row = await (await connection.execute("SELECT max(v) AS version FROM checkpoint_migrations")).fetchone()
    return row is not None and row["version"] == len(AsyncPostgresSaver.MIGRATIONS) - 1


async def _lost(connection: Connection) -> list[str]:
    """Recorded parts that the database lacks; nothing while no migration has recorded any."""
    row = await (await connection.execute(_RECORDS)).fetchone() or {}
    if not (row["recorded"] and row["made"]):
        return []
    if not row["readable"]:
        return ["right to SELECT schema_parts"]
    recorded = {str(row["part"]) for row in await (await connection.execute("TABLE schema_parts")).fetchall()}
    # Without any: a restore that ended before the rows of this table.
    return sorted(recorded - await _parts(connection)) if recorded else _NO_ROWS


async def _parts(connection: Connection) -> set[str]:
    return {str(row["part"]) for row in await (await connection.execute(_PARTS)).fetchall()}


def _makes_again(lost: list[str]) -> bool:
    return all(part.startswith(_MADE_AGAIN) for part in lost)


def _half_restored(lost: list[str]) -> ConfigurationError:
    named = ", ".join(lost[:_MOST_NAMED]) + (f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else "")
    return ConfigurationError(
        f"The database is restored only half. It lacks: {named}.",
        hint="Run `flowise-dev-agent migrate`, which makes rights and policies again."
        if _makes_again(lost)
        else "Restore the dump again, into an empty database; see docs/operations.md.",
        details={"lost": lost[:_MOST_NAMED], "number": len(lost)},
    )


async def _migrate(connection: Connection, deadline_secs: float) -> None:
    async with _lock(connection, deadline_secs):
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations"
            " (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        await connection.execute("ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS needs text")
        await _start_records(connection)
        lost = await _lost(connection)
        applied = {str(row["name"]) for row in await _applied(connection)}
        # A migration that is still to come may make what is missing.
        if not _makes_again(lost) and (_known_migrations() <= applied or lost == _NO_ROWS):
            raise _half_restored(lost)
        async with connection.transaction():
            await connection.execute(cast(LiteralString, _script("roles.sql")))
        await AsyncPostgresSaver(connection).setup()
        await _migrate_queue(connection, applied)
        for name, statements in _own_migrations():
            if name not in applied:
                await _apply(connection, statements, [name])
        name, statements = _grants()
        if lost or name not in applied:
            await _apply(connection, statements, [name])
        if still := sorted(set(lost) - await _parts(connection)):
            raise _half_restored(still)


async def _start_records(connection: Connection) -> None:
    """Make the table of the parts, with those that are there already."""
    async with connection.transaction():
        row = await (await connection.execute(_RECORDS)).fetchone()
        if row and not row["recorded"]:
            await connection.execute("CREATE TABLE schema_parts (part text PRIMARY KEY)")
            await connection.execute(_RECORD)


@dataclass(frozen=True)
class Fit:
    """Migrations of this code that a database lacks, and those of the database that this code cannot work beside."""

    pending: list[str]
    newer: list[str]


async def compare(connection: Connection) -> Fit:
    """Compare a database with this code, for readiness checks."""
    try:
        row = await (await connection.execute(_READABLE)).fetchone()
    except psycopg.DataError:  # the roles are not there yet
        row = None
    rows = await _applied(connection) if row and row["known"] else []
    applied, known = {str(row["name"]) for row in rows}, _known_migrations()
    return Fit(
        pending=[name for name, _ in _own_migrations() if name not in applied],
        newer=[
            row["name"]
            for row in rows
            if row["name"] not in known
            and not row["name"].startswith("grants/")
            # A later migration says what older code has to know; one without a word is not ours.
            and (row["needs"] is None or (row["needs"] != "" and row["needs"] not in known))
        ],
    )


async def _applied(connection: Connection) -> list[DictRow]:
    return await (await connection.execute(_APPLIED)).fetchall()


@asynccontextmanager
async def _connection(dsn: str) -> AsyncGenerator[Connection]:
    # Plain and in autocommit mode: CREATE INDEX CONCURRENTLY runs in no transaction and waits for all others.
    try:
        connection = await Connection.connect(dsn, autocommit=True, row_factory=dict_row, connect_timeout=5)
    except psycopg.OperationalError as error:
        # For operators, at a start: role, database and certificate are named, a password never is.
        reason = " ".join(str(error).split())
        raise DatabaseUnavailableError(
            f"The database cannot be used: {reason}", hint="Correct POSTGRES_DSN, or start the server."
        ) from error
    async with connection:
        if connection.info.server_version < _OLDEST_SERVER:
            version = connection.info.parameter_status("server_version")
            raise ConfigurationError(
                f"This is Postgres {version}; the service needs Postgres {_OLDEST_SERVER // 10_000} or newer.",
                hint="Set POSTGRES_DSN (and POSTGRES_DIRECT_DSN) to a newer server.",
            )
        yield connection


@asynccontextmanager
async def _lock(connection: Connection, deadline_secs: float) -> AsyncGenerator[None]:
    # Poll the lock: a blocking wait would be a transaction that CONCURRENTLY waits for.
    deadline = time.monotonic() + deadline_secs
    while True:
        row = await (await connection.execute("SELECT pg_try_advisory_lock(%s) AS locked", (_LOCK_KEY,))).fetchone()
        if row and row["locked"]:
            break
        if time.monotonic() > deadline:
            raise DatabaseUnavailableError(
                f"Another process has been migrating the database for more than {deadline_secs:.0f} s.",
                hint="Wait for it or end it, then start again.",
            )
        await asyncio.sleep(_RETRY_SECS)
    try:
        yield
    finally:
        if not connection.closed:
            await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK_KEY,))


async def _migrate_queue(connection: Connection, applied: set[str]) -> None:
    """Apply procrastinate's migrations. It keeps no record of them, so ours has them under `procrastinate/`."""
    scripts = _queue_migrations()
    if not any(name in applied for name in scripts):
        await _apply(connection, SchemaManager.get_schema(), list(scripts))
        return
    for name, statements in scripts.items():
        if name not in applied:
            await _apply(connection, statements, [name])


def _queue_migrations() -> dict[str, str]:
    return {f"procrastinate/{name}": text for name, text in _scripts(Path(SchemaManager.get_migrations_path()))}


def _own_migrations() -> list[tuple[str, str]]:
    return _scripts(files("flowise_dev_agent.persistence") / "migrations")


def _known_migrations() -> set[str]:
    return {*_queue_migrations(), *(name for name, _ in _own_migrations())}


def _grants() -> tuple[str, str]:
    """The script of the roles' rights, under a name that changes with the tables and the rights."""
    text = _script("grants.sql")
    of = " ".join([*_queue_migrations(), *(name for name, _ in _own_migrations()), text])
    return f"grants/{hashlib.sha256(of.encode()).hexdigest()[:16]}", text


def _script(name: str) -> str:
    return (files("flowise_dev_agent.persistence") / name).read_text(encoding="utf-8")


def _scripts(folder: Traversable) -> list[tuple[str, str]]:
    scripts = sorted((item for item in folder.iterdir() if item.name.endswith(".sql")), key=lambda item: item.name)
    return [(script.name, script.read_text(encoding="utf-8")) for script in scripts]


async def _apply(connection: Connection, statements: str, names: list[str]) -> None:
    """Run a script and record it, with the parts that it makes and removes, in one transaction."""
    async with connection.transaction():
        before = await _parts(connection)
        await connection.execute(cast(LiteralString, statements))
        needs = _NEEDS.match(statements)
        await connection.execute(
            "INSERT INTO schema_migrations (name, needs) SELECT unnest(%s::text[]), %s ON CONFLICT DO NOTHING",
            (names, needs[1] if needs else ""),
        )
        removed = list(before - await _parts(connection))
        await connection.execute("DELETE FROM schema_parts WHERE part = ANY(%s)", (removed,))
        await connection.execute(_RECORD)
