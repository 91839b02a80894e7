"""Repository of flow tests outside of sessions: jobs with their results."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg.rows import class_row

from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Database, across_owners, jsonb
from flowise_dev_agent.persistence.lost_jobs import take_back_each
from flowise_dev_agent.persistence.queue import FLOW_TEST_TASK, Queue

#: Number of finished tests kept per instance.
_KEPT: Final = 100
_COLUMNS: Final = (
    "id, owner, instance_id, endpoint, chatflow_id, flow_data, draft, request, status, attempt, trials, ways, error,"
    " created_at, updated_at"
)
#: A late call may still create the draft, so it is searched even after its removal.
_LEAVE: Final = (
    "INSERT INTO leftovers (owner, tag, session_id, instance_id, endpoint, names, texts)"
    " SELECT owner, draft ->> 'tag', id, instance_id, endpoint, ARRAY[draft ->> 'name'], ARRAY[draft ->> 'sha256']"
    " FROM flow_tests WHERE id = %s AND draft IS NOT NULL AND status = 'running' ON CONFLICT DO NOTHING"
)


@dataclass(frozen=True)
class FlowTestRow:
    """A stored test.

    `chatflow_id`, or `flow_data` until the test is over, is its subject. `endpoint` is the server's address at the
    request; None if unknown.
    """

    id: UUID
    owner: str
    instance_id: str
    endpoint: str | None
    chatflow_id: str | None
    flow_data: str | None = field(repr=False)
    draft: dict[str, str] | None
    request: dict[str, Any]
    status: str
    attempt: int
    trials: list[dict[str, Any]]
    ways: list[dict[str, Any]]
    error: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


class FlowTests:
    """Repository of tests. A test belongs to one job; with another job nothing is changed."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self._database = database
        self._queue = queue

    async def start(
        self,
        test_id: UUID,
        instance_id: str,
        request: Mapping[str, Any],
        *,
        endpoint: str,
        chatflow_id: str | None = None,
        flow_data: str | None = None,
        draft: Mapping[str, str] | None = None,
    ) -> FlowTestRow:
        """Queue a test of a flow on the server, or of `flow_data` as a `draft` (tag, name, type, hash of the text)."""
        async with (
            self._database.transaction() as connection,
            connection.cursor(row_factory=class_row(FlowTestRow)) as cursor,
        ):
            job_id = await self._queue.defer_flow_test(connection, test_id)
            await cursor.execute(
                "INSERT INTO flow_tests (id, instance_id, endpoint, chatflow_id, flow_data, draft, request, job_id)"
                f" VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING {_COLUMNS}",
                (
                    test_id,
                    instance_id,
                    endpoint,
                    chatflow_id,
                    flow_data,
                    None if draft is None else jsonb(draft),
                    jsonb(request),
                    job_id,
                ),
            )
            row = await cursor.fetchone()
            await connection.execute(
                "DELETE FROM flow_tests WHERE status IN ('done', 'failed') AND id IN"
                " (SELECT id FROM flow_tests WHERE instance_id = %s ORDER BY created_at DESC OFFSET %s)",
                (instance_id, _KEPT),
            )
            # The text is written to the server as a draft.
            await record(
                connection,
                Fact(
                    "test", instance_id=instance_id, chatflow_id=chatflow_id, after_sha256=(draft or {}).get("sha256")
                ),
            )
        assert row is not None  # noqa: S101 - the insert returns it
        return row

    async def get(self, test_id: UUID) -> FlowTestRow | None:
        """A stored test, or None."""
        row = await self._database.fetch_one(f"SELECT {_COLUMNS} FROM flow_tests WHERE id = %s", (test_id,))
        return FlowTestRow(**row) if row else None

    async def trace(self, test_id: UUID, sha256: str) -> str | None:
        """The trace with this hash from one of the test's trials."""
        row = await self._database.fetch_one(
            "SELECT trace FROM flow_test_traces WHERE test_id = %s AND sha256 = %s", (test_id, sha256)
        )
        return row["trace"] if row else None

    # --- for the worker ----------------------------------------------------------------------------------------------

    async def claim(self, test_id: UUID, job_id: int) -> FlowTestRow | None:
        """Begin the attempt; None if the job does not own the test or the test is over."""
        with across_owners():
            row = await self._database.fetch_one(
                "UPDATE flow_tests SET status = 'running', attempt = attempt + 1, updated_at = now()"
                f" WHERE id = %s AND job_id = %s AND status = 'queued' RETURNING {_COLUMNS}",
                (test_id, job_id),
            )
        return FlowTestRow(**row) if row else None

    async def conclude(
        self,
        test_id: UUID,
        job_id: int,
        *,
        trials: Sequence[tuple[Mapping[str, Any], str]] = (),
        ways: Sequence[Mapping[str, Any]] = (),
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """End a test: done with its trials, their traces and lines on its ways, or failed with an error for people."""
        async with self._database.transaction() as connection:
            shown: list[dict[str, Any]] = []
            for trial, trace in trials:
                sha256 = hashlib.sha256(trace.encode()).hexdigest()
                shown.append({**trial, "trace_sha256": sha256})
                await connection.execute(
                    "INSERT INTO flow_test_traces (test_id, sha256, trace) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                    (test_id, sha256, trace),
                )
            await connection.execute(_LEAVE, (test_id,))
            await connection.execute(
                "UPDATE flow_tests SET status = %s, trials = %s, ways = %s, error = %s, flow_data = NULL,"
                " updated_at = now() WHERE id = %s AND job_id = %s AND status = 'running'",
                (
                    "failed" if error else "done",
                    jsonb(shown),
                    jsonb(list(ways)),
                    None if error is None else jsonb(error),
                    test_id,
                    job_id,
                ),
            )

    async def give_up_lost(self, seconds: float, *, error: Mapping[str, Any]) -> int:
        """Fail tests whose worker has been silent for `seconds`.

        They are not retried, since a flow may have side effects.
        """
        return await take_back_each(
            self._database,
            self._queue,
            FLOW_TEST_TASK,
            "flow_tests",
            unfinished="status IN ('queued', 'running')",
            seconds=seconds,
            take_back=lambda test_id, _: self._give_up(test_id, error),
        )

    async def _give_up(self, test_id: UUID, error: Mapping[str, Any]) -> bool:
        async with self._database.transaction() as connection:
            await connection.execute(_LEAVE, (test_id,))
            changed = await connection.execute(
                "UPDATE flow_tests SET status = 'failed', error = %s, flow_data = NULL, updated_at = now()"
                " WHERE id = %s AND status IN ('queued', 'running')",
                (jsonb(error), test_id),
            )
        return changed.rowcount > 0
