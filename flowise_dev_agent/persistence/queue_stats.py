"""State of the database and of the work that waits in it."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psycopg

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence.database import Connection, Database, across_owners
from flowise_dev_agent.persistence.schema import Fit, compare
from flowise_dev_agent.texts import text

_QUEUE: Final = """
    SELECT count(*) AS queued, COALESCE(EXTRACT(EPOCH FROM now() - min(updated_at)), 0)::float8 AS oldest_secs,
           (SELECT count(*) FROM procrastinate_workers
            WHERE last_heartbeat > now() - make_interval(secs => %(silent)s)) AS consumers
    FROM runs WHERE status = 'queued'
"""
_PROBE: Final = "INSERT INTO probe VALUES (1, now()) ON CONFLICT (id) DO UPDATE SET checked_at = now() RETURNING paused"
_PAUSED: Final = "SELECT paused FROM probe"
_PAUSE: Final = """
    INSERT INTO probe (id, checked_at, paused) VALUES (1, now(), %(paused)s)
    ON CONFLICT (id) DO UPDATE SET paused = EXCLUDED.paused
"""
#: An update of one row fits into its page: this one needs new files and pages, about 120 KB, until it is committed.
_ROOM: Final = """
    CREATE TEMPORARY TABLE probe_room ON COMMIT DROP AS SELECT md5(number::text) FROM generate_series(1, 2000) AS number
"""
# A job taken by a worker, or work without a job.
_BUSY: Final = """
    SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status = 'doing')
        OR EXISTS (SELECT 1 FROM runs WHERE status IN ('queued', 'running'))
        OR EXISTS (SELECT 1 FROM webhook_deliveries WHERE status = 'pending')
        OR EXISTS (SELECT 1 FROM knowledge_refreshes WHERE status IN ('queued', 'running'))
        OR EXISTS (SELECT 1 FROM flow_tests WHERE status IN ('queued', 'running')) AS busy
"""
_SESSIONS: Final = "SELECT status, count(*) AS n FROM sessions GROUP BY status"
_DELIVERIES: Final = """
    SELECT count(*) AS queued,
           COALESCE(EXTRACT(EPOCH FROM now() - min(next_attempt_at)), 0)::float8 AS oldest_secs
    FROM webhook_deliveries WHERE status = 'pending' AND next_attempt_at <= now()
"""


@dataclass(frozen=True)
class Backlog:
    """Work that waits for a worker: its amount, and the age of the oldest item in seconds."""

    queued: int
    oldest_secs: float


@dataclass(frozen=True)
class DatabaseHealth:
    """Health of the database. `consumers` have a recent heartbeat; `latency_ms` is the time of the whole check.

    `paused` says that workers wait, see `pause`.
    """

    latency_ms: float
    fit: Fit
    runs: Backlog
    consumers: int
    paused: bool


@dataclass(frozen=True)
class QueueStats:
    """Number of sessions by row status, and the backlogs."""

    sessions: Mapping[str, int]
    runs: Backlog
    deliveries: Backlog
    consumers: int


async def read_database_health(database: Database, *, silent: float) -> DatabaseHealth:
    """Read the data of health checks; workers silent for more than `silent` seconds do not count.

    A killed worker leaves its row until another one removes it. Raises DatabaseUnavailableError.
    """
    started = time.monotonic()
    with across_owners():
        async with database.connection() as connection:
            fit = await compare(connection)
            paused = not fit.pending and await _write(connection)
            row = await (await connection.execute(_QUEUE, {"silent": silent})).fetchone() or {}
    return DatabaseHealth(
        latency_ms=round((time.monotonic() - started) * 1000, 1),
        fit=fit,
        runs=Backlog(row["queued"], row["oldest_secs"]),
        consumers=row["consumers"],
        paused=paused,
    )


async def pause(database: Database, *, paused: bool) -> None:
    """Have workers that start on this database wait, or end that. Raises DatabaseUnavailableError."""
    with across_owners():
        async with database.connection() as connection:
            await connection.execute(_PAUSE, {"paused": paused})


async def is_paused(database: Database) -> bool:
    """True while workers wait, see `pause`. Raises DatabaseUnavailableError."""
    with across_owners():
        row = await database.fetch_one(_PAUSED)
    return bool(row and row["paused"])


async def is_busy(database: Database) -> bool:
    """True if any worker has or awaits work that a stop would interrupt. Raises DatabaseUnavailableError."""
    with across_owners():
        row = await database.fetch_one(_BUSY)
    return bool(row and row["busy"])


async def _write(connection: Connection) -> bool:
    """Test a write; True if the service is paused.

    Raises DatabaseUnavailableError if the database rejects it: a full disk, a standby.
    """
    try:
        row = await (await connection.execute(_PROBE)).fetchone()
        # A database may keep its roles from making temporary tables.
        with suppress(psycopg.errors.InsufficientPrivilege):
            async with connection.transaction():
                await connection.execute(_ROOM)
    except (psycopg.InternalError, psycopg.errors.DiskFull) as error:
        raise DatabaseUnavailableError(
            text("error.database_no_writes"), hint=text("error.database_no_writes_hint")
        ) from error
    return bool(row and row["paused"])


async def read_queue_stats(database: Database, *, silent: float) -> QueueStats:
    """Read the data of metrics in three indexed queries; `silent` as above. Raises DatabaseUnavailableError."""
    with across_owners():
        async with database.connection() as connection:
            sessions = await (await connection.execute(_SESSIONS)).fetchall()
            runs = await (await connection.execute(_QUEUE, {"silent": silent})).fetchone() or {}
            deliveries = await (await connection.execute(_DELIVERIES)).fetchone() or {}
    return QueueStats(
        sessions={row["status"]: row["n"] for row in sessions},
        runs=Backlog(runs["queued"], runs["oldest_secs"]),
        deliveries=Backlog(deliveries["queued"], deliveries["oldest_secs"]),
        consumers=runs["consumers"],
    )
