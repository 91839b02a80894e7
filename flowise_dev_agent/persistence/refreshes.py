"""Repository of refreshes of an instance's knowledge: jobs with progress, one at a time per instance."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from psycopg.rows import class_row

from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Database, across_owners, jsonb
from flowise_dev_agent.persistence.lost_jobs import take_back_each
from flowise_dev_agent.persistence.queue import REFRESH_TASK, Queue

#: Number of finished refreshes kept per instance.
_KEPT: Final = 10
_COLUMNS: Final = "id, owner, instance_id, status, attempt, step, steps_done, result, error, created_at, updated_at"


@dataclass(frozen=True)
class RefreshRow:
    """One refresh as stored. `result` holds what each finished step found."""

    id: UUID
    owner: str
    instance_id: str
    status: str
    attempt: int
    step: str | None
    steps_done: int
    result: dict[str, Any]
    error: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


class Refreshes:
    """Repository of refreshes. A refresh belongs to one job at a time; with another job nothing is changed."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self._database = database
        self._queue = queue

    async def start(self, instance_id: str) -> RefreshRow:
        """Queue a refresh of the instance, or return the current one."""
        async with (
            self._database.transaction() as connection,
            connection.cursor(row_factory=class_row(RefreshRow)) as cursor,
        ):
            await cursor.execute(
                "INSERT INTO knowledge_refreshes (id, instance_id) VALUES (%s, %s)"
                " ON CONFLICT (owner, instance_id) WHERE status IN ('queued', 'running') DO NOTHING"
                f" RETURNING {_COLUMNS}",
                (uuid4(), instance_id),
            )
            row = await cursor.fetchone()
            if row is not None:
                job_id = await self._queue.defer_refresh(connection, row.id)
                await connection.execute("UPDATE knowledge_refreshes SET job_id = %s WHERE id = %s", (job_id, row.id))
                await connection.execute(
                    "DELETE FROM knowledge_refreshes WHERE status IN ('done', 'failed') AND id IN"
                    " (SELECT id FROM knowledge_refreshes WHERE instance_id = %s ORDER BY created_at DESC OFFSET %s)",
                    (instance_id, _KEPT),
                )
                await record(connection, Fact("refresh", instance_id=instance_id))
                return row
            await cursor.execute(
                f"SELECT {_COLUMNS} FROM knowledge_refreshes WHERE instance_id = %s ORDER BY created_at DESC LIMIT 1",
                (instance_id,),
            )
            running = await cursor.fetchone()
        assert running is not None  # noqa: S101 - the insert met it
        return running

    async def latest(self) -> dict[str, RefreshRow]:
        """The newest refresh of each instance."""
        rows = await self._database.fetch_all(
            f"SELECT DISTINCT ON (instance_id) {_COLUMNS} FROM knowledge_refreshes"
            " ORDER BY instance_id, created_at DESC LIMIT 200"
        )
        return {str(row["instance_id"]): RefreshRow(**row) for row in rows}

    # --- for the worker ----------------------------------------------------------------------------------------------

    async def claim(self, refresh_id: UUID, job_id: int) -> RefreshRow | None:
        """Begin an attempt; None if the job does not own the refresh or the refresh is over.

        Finished steps stay done.
        """
        with across_owners():
            row = await self._database.fetch_one(
                "UPDATE knowledge_refreshes SET status = 'running', attempt = attempt + 1, updated_at = now()"
                f" WHERE id = %s AND job_id = %s AND status IN ('queued', 'running') RETURNING {_COLUMNS}",
                (refresh_id, job_id),
            )
        return RefreshRow(**row) if row else None

    async def progress(
        self, refresh_id: UUID, job_id: int, *, step: str | None, done: int, found: Mapping[str, Any] | None = None
    ) -> bool:
        """Record the current step and the results so far; False if the refresh belongs to another job by now."""
        async with self._database.connection() as connection:
            changed = await connection.execute(
                "UPDATE knowledge_refreshes SET step = %s, steps_done = %s, result = result || %s, updated_at = now()"
                " WHERE id = %s AND job_id = %s AND status = 'running'",
                (step, done, jsonb(found or {}), refresh_id, job_id),
            )
        return changed.rowcount > 0

    async def conclude(self, refresh_id: UUID, job_id: int, *, error: Mapping[str, Any] | None = None) -> None:
        """End a refresh: done, or failed with an error for people."""
        async with self._database.connection() as connection:
            await connection.execute(
                "UPDATE knowledge_refreshes SET status = %s, step = NULL, error = %s, updated_at = now()"
                " WHERE id = %s AND job_id = %s AND status = 'running'",
                ("failed" if error else "done", None if error is None else jsonb(error), refresh_id, job_id),
            )

    async def take_back_lost(self, seconds: float, *, attempts: int, error: Mapping[str, Any]) -> int:
        """Give a new job to refreshes whose worker has been silent for `seconds`; after `attempts` they fail."""
        return await take_back_each(
            self._database,
            self._queue,
            REFRESH_TASK,
            "knowledge_refreshes",
            unfinished="status IN ('queued', 'running')",
            seconds=seconds,
            take_back=lambda refresh_id, job_id: self._take_back(refresh_id, job_id, attempts, error),
        )

    async def _take_back(self, refresh_id: UUID, job_id: int | None, attempts: int, error: Mapping[str, Any]) -> bool:
        async with self._database.transaction() as connection:
            row = await (
                await connection.execute(
                    "SELECT attempt FROM knowledge_refreshes WHERE id = %s AND job_id IS NOT DISTINCT FROM %s"
                    " AND status IN ('queued', 'running') FOR UPDATE",
                    (refresh_id, job_id),
                )
            ).fetchone()
            if row is None:
                return False
            if row["attempt"] >= attempts:
                await connection.execute(
                    "UPDATE knowledge_refreshes SET status = 'failed', step = NULL, error = %s, updated_at = now()"
                    " WHERE id = %s",
                    (jsonb(error), refresh_id),
                )
                return True
            new_job_id = await self._queue.defer_refresh(connection, refresh_id)
            await connection.execute(
                "UPDATE knowledge_refreshes SET job_id = %s, status = 'queued', updated_at = now() WHERE id = %s",
                (new_job_id, refresh_id),
            )
        return True
