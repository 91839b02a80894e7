"""Recovery of what lost its job: rows that wait for a job which is gone, or whose worker has fallen silent."""

from collections.abc import Awaitable, Callable
from typing import LiteralString
from uuid import UUID

from flowise_dev_agent.persistence.database import Database, across_owners
from flowise_dev_agent.persistence.queue import Queue


async def take_back_each(
    database: Database,
    queue: Queue,
    task: str,
    table: LiteralString,
    *,
    unfinished: LiteralString,
    seconds: float,
    take_back: Callable[[UUID, int | None], Awaitable[bool]],
) -> int:
    """Number of rows of a table that `take_back` took, by row and job. `unfinished`: condition of those that wait.

    A row whose job vanished also gets `seconds`: its outcome may be just about to be written.
    """
    taken = 0
    with across_owners():
        for job in await queue.stalled(task, seconds):
            (row_id,) = job.task_kwargs.values()
            taken += await take_back(UUID(str(row_id)), job.id)
            # Never re-queued itself: a frozen worker that continues would finish its successor's row.
            await queue.finish_as_failed(job)
        rows = await database.fetch_all(
            f"SELECT id, job_id FROM {table} AS waiting WHERE {unfinished}"
            " AND updated_at < now() - make_interval(secs => %s) AND NOT EXISTS"
            " (SELECT 1 FROM procrastinate_jobs AS job"
            " WHERE job.id = waiting.job_id AND job.status IN ('todo', 'doing')) LIMIT 100",
            (seconds,),
        )
        for row in rows:
            taken += await take_back(row["id"], row["job_id"])
    return taken
