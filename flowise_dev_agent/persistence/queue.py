"""The job queue: procrastinate on the same Postgres. One job is one attempt at a run or at a webhook's delivery."""

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from procrastinate import App, PsycopgConnector
from procrastinate.connector import LISTEN_TIMEOUT, Notify
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Notification, Status
from procrastinate.manager import JobManager, NotificationCallback
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence.database import (
    KEEPALIVE,
    SYSTEM_ROLE,
    Connection,
    SleepingConnection,
    check_connection,
    server_options,
)
from flowise_dev_agent.texts import text

if TYPE_CHECKING:
    from flowise_dev_agent.persistence.runs import Claim

RUN_TASK: Final = "run"
RUN_QUEUE: Final = "runs"
DELIVERY_TASK: Final = "webhook"
DELIVERY_QUEUE: Final = "webhooks"
MAINTENANCE_TASK: Final = "maintenance"
MAINTENANCE_QUEUE: Final = "maintenance"
REFRESH_TASK: Final = "refresh"
FLOW_TEST_TASK: Final = "flow_test"
#: Longer pauses are left to the workers' poll, which is seconds late.
_MAX_WAKE_SECS: Final = 120.0
#: procrastinate executes one job with a lock at a time.
_ISOLATED: Final = "isolated"
#: Used instead of a notice's channel: the consumer listens from now on.
_LISTENS: Final = "listens"
#: The heartbeats of several workers of the queue.
_HEARTBEATS: Final = "SELECT procrastinate_update_heartbeat_v1(id) FROM unnest(%(ids)s::bigint[]) AS id"
#: Parts of a larger statement that add the job of a run for the row of `claimed`; parameters `run` and `worker`, see
#: `Queue.slot`. A worker that was taken for lost gets nothing.
ADD_JOB: Final = f"""
    own AS (SELECT id FROM procrastinate_workers WHERE id = %(worker)s),
    job AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, worker_id)
        SELECT '{RUN_QUEUE}', '{RUN_TASK}',
               jsonb_build_object('run_id', %(run)s::text, 'owner', current_setting('app.owner')),
               CASE WHEN own.id IS NULL THEN 'todo' ELSE 'doing' END::procrastinate_job_status, own.id
        FROM claimed LEFT JOIN own ON true RETURNING id, worker_id
    )
"""
#: A job that has ended well; the end of its run may have removed it before.
_REMOVE: Final = "DELETE FROM procrastinate_jobs WHERE id = %(id)s"

#: The next job of a worker: of the owner with the fewest running ones, the oldest. Where there are several owners, one
#: leaves a slot of each worker to the others. The rest is what procrastinate's own function does.
_FETCH: Final = """
    WITH doing AS (
        SELECT COALESCE(args ->> 'owner', '') AS owner, count(*) AS running,
               count(*) FILTER (WHERE worker_id = %(worker_id)s) AS here
        FROM procrastinate_jobs WHERE status = 'doing' AND queue_name = ANY(%(queues)s::text[]) GROUP BY 1
    ), candidate AS (
        SELECT jobs.id FROM procrastinate_jobs AS jobs
        LEFT JOIN doing ON doing.owner = COALESCE(jobs.args ->> 'owner', '')
        WHERE jobs.status = 'todo' AND jobs.queue_name = ANY(%(queues)s::text[])
          AND (jobs.scheduled_at IS NULL OR jobs.scheduled_at <= now())
          AND (COALESCE(doing.here, 0) < %(most)s OR (SELECT count(*) FROM owners) < 2)
          AND (jobs.lock IS NULL OR NOT EXISTS (
              SELECT FROM procrastinate_jobs AS other WHERE other.lock = jobs.lock AND (
                  other.status = 'doing' OR (other.status = 'todo' AND (
                      other.priority > jobs.priority OR (other.priority = jobs.priority AND other.id < jobs.id))))))
        ORDER BY COALESCE(doing.running, 0), jobs.priority DESC, jobs.id LIMIT 1
        FOR UPDATE OF jobs SKIP LOCKED
    ), taken AS (
        UPDATE procrastinate_jobs SET status = 'doing', worker_id = %(worker_id)s
        FROM candidate WHERE procrastinate_jobs.id = candidate.id RETURNING procrastinate_jobs.*
    )
    SELECT taken.*, EXISTS (
        SELECT FROM procrastinate_jobs AS other WHERE status = 'todo' AND queue_name = ANY(%(queues)s::text[])
        AND (scheduled_at IS NULL OR scheduled_at <= now()) AND other.id IS DISTINCT FROM taken.id
    ) AS waits
    FROM (VALUES (1)) AS always LEFT JOIN taken ON true
"""


class _Connector(PsycopgConnector):
    """Signals when LISTEN is active; earlier jobs send no notification."""

    async def _loop_notify(
        self,
        on_notification: Notify,
        connection: AsyncConnection[Any],
        timeout: float = LISTEN_TIMEOUT,  # noqa: ASYNC109 - of the base class
    ) -> None:
        await on_notification(channel=_LISTENS, payload=json.dumps({"type": "job_inserted", "job_id": 0}))
        await super()._loop_notify(on_notification, connection, timeout)


@dataclass
class _Consumer:
    """State of one consumer of this process."""

    #: Jobs that it may have at a time, for all owners; 0 until it is known.
    slots: int = 0
    worker_id: int | None = None
    #: Wakes it, once it listens.
    on_notification: NotificationCallback | None = None
    notices: int = 0
    #: `notices` at the last look after which no job waited; -1 if one did.
    answered: int = -1
    #: True if the last look returned a job.
    took_one: bool = False
    #: Ids of its jobs, slots that are being filled, and jobs of this process that it has not taken yet.
    running: set[int | None] = field(default_factory=set)
    reserved: int = 0
    own: deque[Job] = field(default_factory=deque)
    claims: "dict[int, Claim]" = field(default_factory=dict)

    async def wake(self, queue: str) -> None:
        """Have it take its next job."""
        if self.on_notification is not None:
            await self.on_notification(channel=queue, notification={"type": "job_inserted", "job_id": 0})


@dataclass
class Slot:
    """A slot of this process for a run; `worker_id` is None if it has none to give."""

    _consumer: _Consumer
    worker_id: int | None

    async def begin(self, claim: "Claim") -> None:
        """Begin a run whose job was stored as this worker's."""
        job = Job(
            id=claim.job_id,
            status="doing",
            queue=RUN_QUEUE,
            lock=None,
            queueing_lock=None,
            task_name=RUN_TASK,
            task_kwargs={"run_id": str(claim.lease.run_id), "owner": claim.caller.owner},
            worker_id=self.worker_id,
        )
        self._consumer.own.append(job)
        self._consumer.claims[claim.job_id] = claim
        await self._consumer.wake(RUN_QUEUE)


class Jobs(JobManager):
    """Gives consumers the jobs of this process from memory, and sends one heartbeat statement for all of them."""

    def __init__(self, connector: PsycopgConnector, heartbeat_secs: float) -> None:
        super().__init__(connector)
        self._interval = heartbeat_secs
        #: Time of the last call of each consumer.
        self._called: dict[int, float] = {}
        self._told: tuple[float, frozenset[int]] = (float("-inf"), frozenset())
        #: By queues.
        self._consumers: defaultdict[tuple[str, ...], _Consumer] = defaultdict(_Consumer)
        #: Jobs that the end of their run has removed.
        self.removed: set[int] = set()

    def consumer(self, queues: Iterable[str] | None) -> _Consumer:
        """The consumer of these queues."""
        return self._consumers[tuple(queues or ())]

    @property
    def runs(self) -> _Consumer:
        """The consumer of runs; one without slots if the process has none."""
        return next((one for queues, one in self._consumers.items() if RUN_QUEUE in queues), _Consumer())

    @contextmanager
    def slot(self) -> Generator[Slot]:
        """See `Queue.slot`."""
        runs = self.runs
        # One slot is left to the queue: its jobs may be of other owners.
        free = runs.slots - 1 - len(runs.running) - len(runs.own) - runs.reserved
        runs.reserved += 1
        try:
            yield Slot(runs, runs.worker_id if free > 0 and runs.on_notification else None)
        finally:
            runs.reserved -= 1

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        consumer = self.consumer(queues)
        consumer.worker_id = worker_id
        job = await self._job_for(consumer, queues, worker_id)
        consumer.took_one = job is not None
        if job is not None:
            consumer.running.add(job.id)
        return job

    async def _job_for(self, consumer: _Consumer, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        # procrastinate forgets a notice that comes while it looks.
        while True:
            if consumer.own:
                return consumer.own.popleft()
            # After each job it looks for another one: there is none before the next notice.
            if consumer.took_one and consumer.answered == consumer.notices:
                return None
            before = consumer.notices
            job, waits = await self._next(consumer, queues, worker_id)
            consumer.answered = -1 if waits else before
            if job is not None or (consumer.notices == before and not consumer.own):
                return job

    async def _next(self, consumer: _Consumer, queues: Iterable[str] | None, worker_id: int) -> tuple[Job | None, bool]:
        """The next job, and if others wait."""
        if not consumer.slots:
            return await super().fetch_job(queues, worker_id), True
        row = await self.connector.execute_query_one_async(
            _FETCH, queues=list(queues or ()), worker_id=worker_id, most=max(1, consumer.slots - 1)
        )
        waits = row.pop("waits")
        return (Job.from_row(row) if row["id"] is not None else None), waits

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        consumer = self.consumer(queues)

        async def counted(*, channel: str, notification: Notification) -> None:
            consumer.on_notification = on_notification
            consumer.notices += notification["type"] == "job_inserted"
            await on_notification(channel=channel, notification=notification)

        await super().listen_for_jobs(on_notification=counted, queues=queues)

    async def unregister_worker(self, worker_id: int) -> None:
        for consumer in self._consumers.values():
            if consumer.worker_id == worker_id:
                consumer.worker_id = None
        await super().unregister_worker(worker_id)

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        if not delete_job:
            await super().finish_job(job, status, delete_job)
        elif job.id not in self.removed:
            await self.connector.execute_query_async(_REMOVE, id=job.id)
        self.removed.discard(job.id or 0)
        consumer = next((one for one in self._consumers.values() if job.id in one.running), _Consumer(answered=0))
        consumer.running.discard(job.id)
        # What waits may wait for this slot, or for the job's lock: no consumer is notified of that.
        if consumer.answered < 0 or job.lock:
            await self.wake(job.queue)

    async def wake(self, queue: str) -> None:
        """Let this process's consumer of a queue look for jobs; those of other processes find them at their polls."""
        for queues, consumer in self._consumers.items():
            if queue in queues:
                consumer.notices += 1
                await consumer.wake(queue)

    async def update_heartbeat(self, worker_id: int) -> None:
        now = time.monotonic()
        self._called[worker_id] = now
        told_at, told = self._told
        # Two of which each says it when the other has not for three quarters of the interval cannot take turns.
        if worker_id in told and now - told_at < self._interval * 3 / 4:
            return
        self._called = {id_: at for id_, at in self._called.items() if now - at < 2 * self._interval}
        # Before it is said: the other one may call at the same moment.
        self._told = now, frozenset(self._called)
        try:
            await self.connector.execute_query_async(_HEARTBEATS, ids=list(self._called))
        except BaseException:
            self._told = told_at, told
            raise


class Queue:
    """The queue's app object. `dsn` must reach Postgres directly (LISTEN does not pass a transaction pooler).

    Tasks are registered by the runtime; deferring needs none of them. `heartbeat_secs` is the consumers' interval.
    """

    def __init__(self, dsn: str, *, heartbeat_secs: float = 2.0) -> None:
        # A separate pool. With `autocommit` among its kwargs procrastinate's listener would die silently.
        connector = _Connector(
            conninfo=dsn,
            min_size=1,
            max_size=4,
            timeout=5.0,
            reconnect_timeout=3.0,
            pool_factory=_pool,
            configure=_autocommit,
            kwargs={"connect_timeout": 5, **KEEPALIVE, "options": f"{server_options(dsn)} -c role={SYSTEM_ROLE}"},
            name="flowise-dev-agent-queue",
        )
        self.app = App(connector=connector)
        self._jobs = Jobs(connector, heartbeat_secs)
        self.app.job_manager = self._jobs
        self._wakers: set[asyncio.Task[None]] = set()

    def share(self, queues: list[str], slots: int) -> None:
        """Let owners share the `slots` that this process has for `queues`."""
        self._jobs.consumer(queues).slots = slots

    def slot(self) -> AbstractContextManager[Slot]:
        """Reserve a slot of this process for the run that the block stores, see `ADD_JOB`.

        A run whose job is stored as its worker's is begun with `Slot.begin`; any other waits in the queue.
        """
        return self._jobs.slot()

    def taken(self, job_id: int) -> "Claim | None":
        """The claim of a run that this process has begun."""
        return self._jobs.runs.claims.pop(job_id, None)

    def removed(self, job_id: int) -> None:
        """Note that the end of a run has removed its job."""
        self._jobs.removed.add(job_id)

    async def open(self) -> None:
        """Connect; only workers need it. Raises DatabaseUnavailableError."""
        try:
            await self.app.open_async()
        except ConnectorException as error:
            raise DatabaseUnavailableError(text("error.queue_does_not_answer")) from error

    async def close(self) -> None:
        """Close the queue's own connections."""
        for waker in self._wakers:
            waker.cancel()
        await asyncio.gather(*self._wakers, return_exceptions=True)
        await self.app.close_async()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def defer_run(
        self, connection: Connection, run_id: UUID, *, delay: float = 0.0, isolated: bool = False
    ) -> int:
        """Queue one attempt at a run inside the caller's transaction, `delay` seconds from now; returns the job id.

        Isolated jobs are executed one at a time over all workers.
        """
        lock = _ISOLATED if isolated else None
        arguments = {"run_id": str(run_id), "owner": current_caller().owner}
        return await self._defer(connection, RUN_TASK, RUN_QUEUE, delay, lock=lock, **arguments)

    async def defer_delivery(self, connection: Connection, delivery_id: UUID, *, delay: float = 0.0) -> int:
        """Queue one attempt at a webhook's delivery, as `defer_run` does."""
        return await self._defer(connection, DELIVERY_TASK, DELIVERY_QUEUE, delay, delivery_id=str(delivery_id))

    async def defer_refresh(self, connection: Connection, refresh_id: UUID) -> int:
        """Queue one attempt at a refresh of an instance's knowledge, as `defer_run` does."""
        return await self._defer(connection, REFRESH_TASK, MAINTENANCE_QUEUE, 0.0, refresh_id=str(refresh_id))

    async def defer_flow_test(self, connection: Connection, test_id: UUID) -> int:
        """Queue a test of a flow, as `defer_run` does."""
        return await self._defer(connection, FLOW_TEST_TASK, MAINTENANCE_QUEUE, 0.0, test_id=str(test_id))

    async def _defer(
        self, connection: Connection, task: str, queue: str, delay: float, *, lock: str | None = None, **arguments: str
    ) -> int:
        options: dict[str, Any] = {"schedule_in": {"milliseconds": round(delay * 1000)}} if delay > 0 else {}
        deferrer = self.app.configure_task(task, queue=queue, lock=lock, connection=connection, **options)
        job_id = await deferrer.defer_async(**arguments)
        if 0 < delay <= _MAX_WAKE_SECS:
            waker = asyncio.create_task(self._wake(queue, delay), name=f"wake {queue}")
            self._wakers.add(waker)
            waker.add_done_callback(self._wakers.discard)
        return job_id

    async def _wake(self, queue: str, delay: float) -> None:
        """Wake this process's worker when a delayed job is due: by itself it polls only every few seconds."""
        await asyncio.sleep(delay)
        await self._jobs.wake(queue)

    async def cancel_job(self, connection: Connection, job_id: int) -> None:
        """Take a waiting job out of the queue, or have its worker cancel it."""
        await self._jobs.cancel_job_by_id_async(job_id, abort=True, connection=connection)

    async def stalled(self, task: str, seconds: float) -> list[Job]:
        """Running jobs of a task whose worker has been silent for `seconds`."""
        return list(await self._jobs.get_stalled_jobs(task_name=task, seconds_since_heartbeat=seconds))

    async def finish_as_failed(self, job: Job) -> None:
        """Close a stalled job, so that no worker takes it again."""
        await self._jobs.finish_job(job, Status.FAILED, delete_job=False)


def _pool(**settings: Any) -> AsyncConnectionPool[Any]:
    """Procrastinate's pool, with a check that costs no round trip."""
    settings["check"] = check_connection
    return AsyncConnectionPool(connection_class=SleepingConnection, **settings)


async def _autocommit(connection: AsyncConnection[Any]) -> None:
    # procrastinate runs one statement per connection that it takes.
    await connection.set_autocommit(True)
