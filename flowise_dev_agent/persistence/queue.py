"""The job queue: procrastinate on the same Postgres. One job is one attempt at a run or at a webhook's delivery."""

import asyncio
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
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

RUN_TASK: Final = "run"
RUN_QUEUE: Final = "runs"
DELIVERY_TASK: Final = "webhook"
DELIVERY_QUEUE: Final = "webhooks"
MAINTENANCE_TASK: Final = "maintenance"
MAINTENANCE_QUEUE: Final = "maintenance"
REFRESH_TASK: Final = "refresh"
FLOW_TEST_TASK: Final = "flow_test"
#: Longer pauses are left to the poll of the workers, which is late by seconds.
_MAX_WAKE_SECS: Final = 120.0
#: procrastinate executes one job with a lock at a time.
_ISOLATED: Final = "isolated"
#: By then a job whose task has returned is closed.
_END_SECS: Final = 0.2
#: procrastinate's own notice of a job, on the channel of a queue.
_WAKE: Final = "SELECT pg_notify('procrastinate_queue_v1#' || %(queue)s, %(payload)s)"
#: In place of the channel of a notice: the consumer listens from now on.
_LISTENS: Final = "listens"
#: So long after it has found nothing a consumer believes that notices tell of all new jobs.
_TRUSTED_SECS: Final = 5.0
#: The heartbeats of several workers of the queue.
_HEARTBEATS: Final = "SELECT procrastinate_update_heartbeat_v1(id) FROM unnest(%(ids)s::bigint[]) AS id"
#: What `Queue.defer_run` does, as an expression of a larger statement with the parameter `run`: the id of the new job.
DEFER_RUN: Final = f"""
    unnest(procrastinate_defer_jobs_v1(ARRAY[ROW(
        '{RUN_QUEUE}', '{RUN_TASK}', 0, NULL, NULL,
        jsonb_build_object('run_id', %(run)s::text, 'owner', current_setting('app.owner')), NULL
    )::procrastinate_job_to_defer_v1]))
"""


class _Connector(PsycopgConnector):
    """Says when it begins to listen: of what was queued before that, no notice comes."""

    async def _loop_notify(
        self,
        on_notification: Notify,
        connection: AsyncConnection[Any],
        timeout: float = LISTEN_TIMEOUT,  # noqa: ASYNC109 - of the base class
    ) -> None:
        await on_notification(channel=_LISTENS, payload=json.dumps({"type": "job_inserted", "job_id": 0}))
        await super()._loop_notify(on_notification, connection, timeout)


@dataclass
class _Expected:
    """What a consumer knows of its queues: how many notices of jobs have come since it looked, when it last found
    nothing with no notice meanwhile, and whether that is so again after the job that it has just found."""

    notices: int = 0
    empty_at: float = float("-inf")
    is_empty: bool = False


class _Jobs(JobManager):
    """Says of all consumers of this process in one statement that they live; each has to say so itself, too. After a
    job a consumer looks for another one only if it may be there."""

    def __init__(self, connector: PsycopgConnector, heartbeat_secs: float) -> None:
        super().__init__(connector)
        self._interval = heartbeat_secs
        #: When each consumer last called.
        self._called: dict[int, float] = {}
        self._told: tuple[float, frozenset[int]] = (float("-inf"), frozenset())
        self._expected: dict[tuple[str, ...], _Expected] = {}

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        expected = self._expected_of(queues)
        if expected.is_empty:
            expected.is_empty = False
            return None
        while True:
            counted, now = expected.notices, time.monotonic()
            job = await super().fetch_job(queues, worker_id)
            if job is not None:
                break
            # Other workers have got notices of the same jobs.
            expected.notices -= counted
            # The consumer forgets notices that come while it looks.
            if expected.notices == 0:
                expected.empty_at = now
                return None
        if counted:
            expected.notices -= 1
            # Notices get lost when a connection breaks: it is looked now and then all the same.
            expected.is_empty = expected.notices == 0 and now - expected.empty_at < _TRUSTED_SECS
        return job

    async def register_worker(self) -> int:
        # Of a consumer that begins: it does not know what was missed.
        for expected in self._expected.values():
            expected.is_empty, expected.empty_at = False, float("-inf")
        return await super().register_worker()

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        expected = self._expected_of(queues)

        async def counted(*, channel: str, notification: Notification) -> None:
            if notification["type"] == "job_inserted":
                expected.notices += 1
                expected.is_empty = False
            if channel == _LISTENS:
                expected.empty_at = float("-inf")
            await on_notification(channel=channel, notification=notification)

        await super().listen_for_jobs(on_notification=counted, queues=queues)

    def _expected_of(self, queues: Iterable[str] | None) -> _Expected:
        return self._expected.setdefault(tuple(queues or ()), _Expected())

    async def update_heartbeat(self, worker_id: int) -> None:
        now = time.monotonic()
        self._called[worker_id] = now
        told_at, told = self._told
        # Two of which each says it when the other has not for three quarters of the interval cannot take turns.
        if worker_id in told and now - told_at < self._interval * 3 / 4:
            return
        self._called = {id_: at for id_, at in self._called.items() if now - at < 2 * self._interval}
        await self.connector.execute_query_async(_HEARTBEATS, ids=list(self._called))
        self._told = now, frozenset(self._called)


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
        self.app.job_manager = _Jobs(connector, heartbeat_secs)
        self._wakers: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Connect; only workers need to. Raises DatabaseUnavailableError."""
        try:
            await self.app.open_async()
        except ConnectorException as error:
            raise DatabaseUnavailableError("The job queue's database does not answer.") from error

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

        Of the isolated ones the workers together execute one at a time.
        """
        lock = _ISOLATED if isolated else None
        arguments = {"run_id": str(run_id), "owner": current_caller().owner}
        return await self._defer(connection, RUN_TASK, RUN_QUEUE, delay, lock=lock, **arguments)

    async def defer_delivery(self, connection: Connection, delivery_id: UUID, *, delay: float = 0.0) -> int:
        """Queue one attempt at a webhook's delivery, as `defer_run` does."""
        return await self._defer(connection, DELIVERY_TASK, DELIVERY_QUEUE, delay, delivery_id=str(delivery_id))

    async def defer_refresh(self, connection: Connection, refresh_id: UUID) -> int:
        """Queue one attempt at a refresh of what is known of an instance, as `defer_run` does."""
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
            self._wake_later(queue, job_id, delay)
        return job_id

    def ended(self, job: Job) -> None:
        """Call it when a job is about to end: after an isolated one the next of them may start."""
        if job.lock and job.id is not None:
            self._wake_later(job.queue, job.id, _END_SECS)

    def _wake_later(self, queue: str, job_id: int, delay: float) -> None:
        waker = asyncio.create_task(self._wake(queue, job_id, delay), name=f"wake {queue}")
        self._wakers.add(waker)
        waker.add_done_callback(self._wakers.discard)

    async def _wake(self, queue: str, job_id: int, delay: float) -> None:
        """Notify the workers when a delayed job is due: on their own they look only every few seconds."""
        await asyncio.sleep(delay)
        payload = json.dumps({"type": "job_inserted", "job_id": job_id})
        with suppress(ConnectorException):
            await self.app.connector.execute_query_async(_WAKE, queue=queue, payload=payload)

    async def cancel_job(self, connection: Connection, job_id: int) -> None:
        """Take a waiting job out of the queue, or have its worker cancel it."""
        await self.app.job_manager.cancel_job_by_id_async(job_id, abort=True, connection=connection)

    async def stalled_runs(self, seconds: float) -> list[Job]:
        """Runs of workers that have not been heard of for `seconds`."""
        return await self._stalled(RUN_TASK, seconds)

    async def stalled_deliveries(self, seconds: float) -> list[Job]:
        """Deliveries of such workers."""
        return await self._stalled(DELIVERY_TASK, seconds)

    async def stalled_refreshes(self, seconds: float) -> list[Job]:
        """Refreshes of such workers."""
        return await self._stalled(REFRESH_TASK, seconds)

    async def stalled_flow_tests(self, seconds: float) -> list[Job]:
        """Tests of flows of such workers."""
        return await self._stalled(FLOW_TEST_TASK, seconds)

    async def _stalled(self, task: str, seconds: float) -> list[Job]:
        return list(await self.app.job_manager.get_stalled_jobs(task_name=task, seconds_since_heartbeat=seconds))

    async def finish_as_failed(self, job: Job) -> None:
        """Close a stalled job, so that nobody takes it up again."""
        await self.app.job_manager.finish_job(job, Status.FAILED, delete_job=False)
        self.ended(job)


def _pool(**settings: Any) -> AsyncConnectionPool[Any]:
    """procrastinate's pool, with a check that costs no round trip."""
    settings["check"] = check_connection
    return AsyncConnectionPool(connection_class=SleepingConnection, **settings)


async def _autocommit(connection: AsyncConnection[Any]) -> None:
    # procrastinate runs one statement per connection that it takes.
    await connection.set_autocommit(True)
