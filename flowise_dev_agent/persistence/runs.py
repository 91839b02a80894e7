"""Runs from a worker's view: claims, ends of runs, recovery. Every change is fenced by the lease."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from procrastinate.jobs import Job
from psycopg.types.json import Jsonb

from flowise_dev_agent.caller import NO_REQUEST, SERVICE, Caller, RequestIds, from_stored, serving
from flowise_dev_agent.errors import LeaseLostError
from flowise_dev_agent.persistence.database import Connection, Database, Lease, OnRest, across_owners, jsonb
from flowise_dev_agent.persistence.events import (
    INSERT_ITEMS,
    ITEMS,
    NewEvent,
    event_params,
    insert,
    last_phase,
    transaction_with_notice,
)
from flowise_dev_agent.persistence.queue import RUN_TASK, Queue
from flowise_dev_agent.persistence.read_model import SESSION_COLUMNS, SessionRow
from flowise_dev_agent.sanitize import clean_text

_RECOVERY_LOCK_KEY: Final = 2_862_933_555_777_941_757
_CHECKPOINT: Final = (
    "COALESCE((SELECT max(checkpoint_id) FROM checkpoints"
    " WHERE thread_id = runs.session_id::text AND checkpoint_ns = ''), '')"
)
# A run that was never claimed has stopped no worker.
_SELECT_LOST: Final = (
    "SELECT id, session_id, owner, job_id, attempt,"
    f" COALESCE(status = 'running' AND epoch > lost_epoch AND lost_at = {_CHECKPOINT}, false) AS stuck,"
    " status = 'running' AND epoch > COALESCE(lost_epoch, 0) AS claimed,"
    " lost_epoch IS NOT NULL AS lost_before"
    " FROM runs WHERE status IN ('queued', 'running')"
)
_COUNT_LOSS: Final = f"UPDATE runs SET lost_at = {_CHECKPOINT}, lost_epoch = epoch WHERE id = %s AND status = 'running'"


@dataclass(frozen=True)
class Claim:
    """A run that this worker may now execute."""

    lease: Lease
    job_id: int
    session: SessionRow
    kind: str
    #: Number of earlier failed attempts at this run.
    attempt: int
    interrupt_id: str | None
    answer: dict[str, Any] | None
    #: The end of the run is reported by webhook. Decided when the session starts.
    has_webhook: bool
    #: The caller who requested the run, and the request.
    caller: Caller = SERVICE
    request: RequestIds = NO_REQUEST
    #: Since the run was asked for.
    age_secs: float = 0.0
    #: When the stored connections were changed, in the order of their kinds.
    connected: Sequence[datetime] = ()

    @property
    def is_first(self) -> bool:
        """True if no part of the session can have been executed yet."""
        return self.kind == "start" and self.lease.epoch == 1


@dataclass(frozen=True)
class Lost:
    """An active run without a living worker. `job` is its stalled job, None if it no longer exists.

    `stuck`: it lost a worker at the same checkpoint before. `excused`: another run of the same worker may have killed
    it.
    """

    id: UUID
    session_id: UUID
    owner: str
    job_id: int | None
    attempt: int
    stuck: bool = False
    claimed: bool = False
    lost_before: bool = False
    job: Job | None = None
    excused: bool = False

    @property
    def isolated(self) -> bool:
        return self.job is not None and self.job.lock is not None

    def may_excuse(self, other: "Lost") -> bool:
        """True if this run, and not the other, may have killed the worker that both had.

        Companions of an isolated run can only be suspects, since no other isolated one ran with it.
        """
        return (
            self.id != other.id
            and self.claimed
            and _worker(self) == _worker(other)
            and (self.lost_before or not other.isolated)
        )


@dataclass(frozen=True)
class RunResult:
    """Data that a run's end writes to its session.

    `columns` come from `project`: None keeps the stored value, also of `result` (data of the last review).
    """

    status: Literal["waiting", "completed", "cancelled", "failed"]
    event: NewEvent
    columns: Mapping[str, Any] = field(default_factory=dict)
    interrupt: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None


#: Columns of `runs` from which `claim_of` makes a claim, and what it selects of them as `run`, besides the session's.
RUN_COLUMNS: Final = "session_id, kind, epoch, attempt, interrupt_id, answer, caller, owner, job_id, created_at"
CLAIM_COLUMNS: Final = """
    run.kind AS run_kind, run.epoch AS run_epoch, run.attempt AS run_attempt, run.interrupt_id AS run_interrupt_id,
    run.answer AS run_answer, run.caller AS run_caller, run.owner AS run_owner, run.job_id AS run_job_id,
    EXTRACT(EPOCH FROM now() - run.created_at)::float8 AS run_age_secs,
    EXISTS (SELECT 1 FROM webhook_endpoints AS endpoint WHERE endpoint.session_id = run.session_id) AS run_has_webhook,
    ARRAY(SELECT changed_at FROM connections ORDER BY kind) AS run_connected,
    EXISTS (SELECT 1 FROM attachments AS file WHERE file.session_id = run.session_id) AS has_files
"""
_CLAIM: Final = f"""
    WITH run AS (
        UPDATE runs SET epoch = epoch + 1, status = 'running', updated_at = now()
        WHERE id = %(run)s AND job_id = %(job)s AND status IN ('queued', 'running')
        RETURNING {RUN_COLUMNS}
    )
    SELECT {CLAIM_COLUMNS}, session.*
    FROM run JOIN (SELECT {SESSION_COLUMNS} FROM sessions) AS session ON session.id = run.session_id
"""


def claim_of(run_id: UUID, row: dict[str, Any]) -> Claim:
    """The claim of a row with `CLAIM_COLUMNS` and those of the session; epoch 0 means that nobody has claimed it."""
    names = (
        "kind",
        "epoch",
        "attempt",
        "interrupt_id",
        "answer",
        "has_webhook",
        "connected",
        "caller",
        "owner",
        "job_id",
        "age_secs",
    )
    run = {name: row.pop(f"run_{name}") for name in names}
    caller, request = from_stored(run.pop("caller"))
    return Claim(
        lease=Lease(run_id, run.pop("epoch")),
        session=SessionRow(**row),
        caller=replace(caller, owner=run.pop("owner")),
        request=request,
        **run,
    )


# One statement: the session is locked first (the lock order of the schema), the run ends only under its lease, and
# nothing else happens without that. The sums cover what is stored and what this statement stores.
_FINALIZE: Final = f"""
    WITH locked AS (
        SELECT id FROM sessions WHERE id = %(session)s FOR NO KEY UPDATE
    ), ended AS (
        UPDATE runs SET status = %(run_status)s, error = %(error)s, updated_at = now() FROM locked
        WHERE runs.session_id = locked.id AND runs.id = %(run)s AND epoch = %(epoch)s AND status = 'running'
        RETURNING runs.session_id, runs.job_id
    ), job AS (
        DELETE FROM procrastinate_jobs USING ended WHERE procrastinate_jobs.id = ended.job_id
    ), log AS (
        SELECT type, node, phase, duration_ms, data FROM session_events
        WHERE session_id = %(session)s AND type IN ('node_end', 'drift')
        UNION ALL SELECT item.type, item.node, item.phase, item.duration_ms, item.data FROM {ITEMS}
    ), head AS (
        UPDATE sessions SET
            status = %(status)s,
            name = COALESCE(name, %(session_name)s),
            phase = COALESCE(%(phase)s, phase),
            operation_mode = COALESCE(%(operation_mode)s, operation_mode),
            iteration = COALESCE(%(iteration)s, iteration),
            chatflow_id = COALESCE(%(chatflow_id)s, chatflow_id),
            outcome = COALESCE(%(outcome)s, outcome),
            answer = COALESCE(%(answer)s, answer),
            result = CASE WHEN %(conflicts)s::jsonb IS NULL THEN COALESCE(%(result)s, result)
                ELSE COALESCE(%(result)s, result, '{{}}') || jsonb_build_object('conflicts', %(conflicts)s::jsonb) END,
            change = COALESCE(%(change)s, change),
            degraded = COALESCE(%(degraded)s, degraded),
            totals = totals || COALESCE(%(totals)s, '{{}}'::jsonb) || (
                SELECT jsonb_build_object(
                    'phases_timed', count(DISTINCT phase),
                    'phase_durations_ms',
                        COALESCE(jsonb_object_agg(phase, of_phase) FILTER (WHERE phase <> ''), '{{}}'),
                    'node_durations_ms',
                        COALESCE(jsonb_object_agg(node, of_node) FILTER (WHERE node <> ''), '{{}}'))
                FROM (SELECT node, phase, sum(duration_ms) AS of_node, sum(sum(duration_ms)) OVER of_phase AS of_phase
                      FROM log WHERE type = 'node_end'
                      GROUP BY node, phase WINDOW of_phase AS (PARTITION BY phase)) AS timed
            ) || (
                SELECT jsonb_build_object(
                    'repairs', COALESCE(sum((data ->> 'asked')::int), 0),
                    'knowledge_repairs', COALESCE(sum((data ->> 'found')::int), 0))
                FROM log WHERE type = 'drift'
            ),
            interrupt = %(interrupt)s,
            interrupt_id = %(interrupt_id)s,
            error = %(error)s,
            event_seq = event_seq + %(count)s,
            flowise_calls = flowise_calls + %(flowise_calls)s,
            updated_at = now()
        FROM ended WHERE sessions.id = ended.session_id
        RETURNING sessions.id, event_seq - %(count)s AS base
    )
    {INSERT_ITEMS}
"""


class Runs:
    """Repository of runs. Methods that take a lease raise LeaseLostError when it is gone."""

    def __init__(self, database: Database, queue: Queue, on_rest: OnRest | None = None) -> None:
        self._database = database
        self._queue = queue
        self._on_rest = on_rest

    async def claim(self, run_id: UUID, job_id: int, owner: str | None = None) -> Claim | None:
        """Become the owner of the run; None if the job is not the run's current one or the run is over.

        `owner` is the session's owner according to the job; jobs of earlier versions have none. A run that this process
        has stored may be claimed since then.
        """
        if (taken := self._queue.taken(job_id)) is not None:
            return taken
        with across_owners() if owner is None else serving(owner):
            row = await self._database.fetch_one(_CLAIM, {"run": run_id, "job": job_id})
        return None if row is None else claim_of(run_id, row)

    async def finalize(
        self, claim: Claim, end: RunResult, rest: Sequence[NewEvent] = (), *, flowise_calls: int = 0
    ) -> None:
        """End the run: run, job, session, interrupt and events in one transaction, then the notice.

        `rest` and `flowise_calls` have not been stored by the run before.
        """
        session_id, columns = claim.session.id, end.columns
        params = event_params(session_id, claim.lease.run_id, [*rest, end.event]) | {
            "epoch": claim.lease.epoch,
            "run_status": "failed" if end.status == "failed" else "done",
            "status": end.status,
            "flowise_calls": flowise_calls,
            "session_name": _text(columns.get("session_name")),
            "phase": columns.get("phase") or last_phase([*rest, end.event]),
            "operation_mode": columns.get("operation_mode"),
            "iteration": columns.get("iteration"),
            "chatflow_id": columns.get("chatflow_id"),
            "outcome": columns.get("outcome"),
            "answer": _text(columns.get("answer")),
            "result": _jsonb(end.result),
            "conflicts": _jsonb(columns.get("conflicts")),
            "change": _jsonb(columns.get("change")),
            "degraded": _jsonb(columns.get("degraded")),
            "totals": _jsonb(columns.get("totals")),
            "interrupt": _jsonb(end.interrupt),
            "interrupt_id": end.interrupt["id"] if end.interrupt else None,
            "error": _jsonb(end.error),
        }
        on_rest = self._on_rest if claim.has_webhook else None
        # One statement needs no transaction around it.
        scope = self._database.transaction() if on_rest else self._database.connection()
        async with scope as connection:
            settled = await connection.execute(_FINALIZE, params)
            if settled.rowcount == 0:
                raise LeaseLostError("Another worker owns this run now.")
            if on_rest:
                await on_rest(connection, session_id)
        self._queue.removed(claim.job_id)
        await self._database.notices.tell(session_id, "settled")

    async def requeue(
        self, lease: Lease, session_id: UUID, *, attempt: int, delay: float = 0.0, event: NewEvent | None = None
    ) -> None:
        """Return the run to the queue, for any worker after `delay` seconds."""
        async with transaction_with_notice(self._database, session_id, "event") as connection:
            await connection.execute("UPDATE sessions SET status = 'queued' WHERE id = %s", (session_id,))
            job_id = await self._queue.defer_run(connection, lease.run_id, delay=delay)
            changed = await connection.execute(
                "UPDATE runs SET status = 'queued', job_id = %s, attempt = %s, updated_at = now()"
                " WHERE id = %s AND epoch = %s AND status = 'running'",
                (job_id, attempt, lease.run_id, lease.epoch),
            )
            if changed.rowcount == 0:
                raise LeaseLostError("Another worker owns this run now.")
            if event is not None:
                await insert(connection, session_id, lease.run_id, [event])

    # --- recovery ----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def recovery_turn(self) -> AsyncGenerator[bool]:
        """Try to take the lock of recovery; True for one process at a time: one pass over lost runs is enough."""
        async with self._database.transaction() as connection:
            row = await (
                await connection.execute("SELECT pg_try_advisory_xact_lock(%s) AS ours", (_RECOVERY_LOCK_KEY,))
            ).fetchone()
            yield bool(row and row["ours"])

    async def lost(self, seconds: float) -> list[Lost]:
        """Active runs whose job is gone or whose worker is silent for `seconds`. Closes stalled jobs without a run.

        A run whose job vanished also gets `seconds`: its outcome may be just about to be written.
        """
        found: list[Lost] = []
        for job in await self._queue.stalled(RUN_TASK, seconds):
            with across_owners():
                row = await self._database.fetch_one(
                    f"{_SELECT_LOST} AND id = %s AND job_id = %s", (UUID(str(job.task_kwargs["run_id"])), job.id)
                )
            if row is None:
                await self._queue.finish_as_failed(job)
            else:
                found.append(Lost(**row, job=job))
        found = [replace(lost, excused=any(other.may_excuse(lost) for other in found)) for lost in found]
        with across_owners():
            rows = await self._database.fetch_all(
                f"{_SELECT_LOST} AND updated_at < now() - make_interval(secs => %s) AND NOT EXISTS (SELECT 1 FROM"
                " procrastinate_jobs AS job WHERE job.id = runs.job_id AND job.status IN ('todo', 'doing')) LIMIT 100",
                (seconds,),
            )
        return [*found, *(Lost(**row) for row in rows)]

    async def take_back(self, lost: Lost, *, isolated: bool = False) -> bool:
        """Give a lost run a new job and close the old one; False if its owner or another process was faster.

        `isolated`: see `Queue.defer_run`.
        """
        async with self._database.transaction() as connection:
            if not await self._still_lost(connection, lost):
                return False
            job_id = await self._queue.defer_run(connection, lost.id, isolated=isolated)
            await connection.execute(
                "UPDATE runs SET job_id = %s, attempt = attempt + 1, updated_at = now() WHERE id = %s",
                (job_id, lost.id),
            )
            await connection.execute(_COUNT_LOSS, (lost.id,))
        if lost.job is not None:
            # Never re-queued itself: a frozen worker that continues would finish its successor's row.
            await self._queue.finish_as_failed(lost.job)
        return True

    async def give_up(self, lost: Lost, end: RunResult) -> bool:
        """Fail a lost run and its session; False as for `take_back`."""
        async with transaction_with_notice(self._database, lost.session_id, "settled") as connection:
            await connection.execute("SELECT 1 FROM sessions WHERE id = %s FOR NO KEY UPDATE", (lost.session_id,))
            if not await self._still_lost(connection, lost):
                return False
            await connection.execute(
                "UPDATE runs SET status = 'failed', epoch = epoch + 1, error = %s, updated_at = now() WHERE id = %s",
                (_jsonb(end.error), lost.id),
            )
            await connection.execute(
                "UPDATE sessions SET status = 'failed', error = %s, updated_at = now() WHERE id = %s",
                (_jsonb(end.error), lost.session_id),
            )
            await insert(connection, lost.session_id, lost.id, [end.event])
            if self._on_rest:
                await self._on_rest(connection, lost.session_id)
        if lost.job is not None:
            await self._queue.finish_as_failed(lost.job)
        return True

    async def _still_lost(self, connection: Connection, lost: Lost) -> bool:
        row = await (
            await connection.execute(
                f"{_SELECT_LOST} AND id = %s AND job_id IS NOT DISTINCT FROM %s FOR NO KEY UPDATE",
                (lost.id, lost.job_id),
            )
        ).fetchone()
        return row is not None


def _worker(lost: Lost) -> int | None:
    """The id of the run's worker; None if the worker is known to be gone and nothing else."""
    return lost.job.worker_id if lost.job else None


def _jsonb(value: Any) -> Jsonb | None:
    return None if value is None else jsonb(value)


def _text(value: Any) -> str | None:
    return None if value is None else clean_text(str(value))
