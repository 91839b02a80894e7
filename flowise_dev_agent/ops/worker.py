"""The worker: the queues' consumers under a supervisor, and the recovery loops."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from procrastinate import JobContext

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.flows.flow_tests import FlowTester
from flowise_dev_agent.flows.reconciler import Reconciler
from flowise_dev_agent.flows.watch import Watch
from flowise_dev_agent.ops.guards import GuardKeeper
from flowise_dev_agent.ops.knowledge_refresh import Refresher
from flowise_dev_agent.persistence import Database, Queue, Retention
from flowise_dev_agent.persistence.queue import (
    DELIVERY_QUEUE,
    DELIVERY_TASK,
    FLOW_TEST_TASK,
    MAINTENANCE_QUEUE,
    MAINTENANCE_TASK,
    REFRESH_TASK,
    RUN_QUEUE,
    RUN_TASK,
)
from flowise_dev_agent.persistence.queue_stats import is_busy, is_paused
from flowise_dev_agent.sessions.executor import RunExecutor
from flowise_dev_agent.sessions.recovery import LostWork, Recovery
from flowise_dev_agent.sessions.version_history import FlowVersions
from flowise_dev_agent.timings import Timings, end_tasks
from flowise_dev_agent.webhooks.worker import DeliveryWorker

logger = logging.getLogger(__name__)

_RESTART_SECS: Final = (0.2, 5.0)
_KEEP_FINISHED_JOBS_HOURS: Final = 24
#: Consumers of a worker process that are registered with the queue: for runs, and for webhooks.
CONSUMERS: Final = 2


class Worker:
    """Executes queued runs, up to `concurrency` at once, and delivers webhooks. An async context manager.

    It does nothing while the service is paused. Webhooks have a consumer of their own, so that slow receivers never
    hold a run.

    Leaving it drains: no new runs, running ones stop before their next step or, after `timings.drain`, are cut off;
    either way their runs are handed back.
    """

    def __init__(
        self,
        *,
        database: Database,
        queue: Queue,
        executor: RunExecutor,
        recovery: Recovery,
        retention: Retention,
        reconciler: Reconciler,
        versions: FlowVersions,
        guards: GuardKeeper,
        deliveries: DeliveryWorker,
        refresher: Refresher,
        flow_tester: FlowTester,
        watch: Watch | None,
        timings: Timings,
        concurrency: int,
    ) -> None:
        self._database = database
        self._retention = retention
        self._reconciler = reconciler
        self._versions = versions
        self._guards = guards
        self._queue = queue
        self._executor = executor
        passes = recovery.pass_once, deliveries.take_back_lost, refresher.take_back_lost, flow_tester.give_up_lost
        self._lost_work = LostWork(partial(is_busy, database), passes, timings)
        self._deliveries = deliveries
        self._refresher = refresher
        self._flow_tester = flow_tester
        self._watch = watch
        self._timings = timings
        self._concurrency = concurrency
        self._tasks: list[asyncio.Task[None]] = []
        self._consuming: set[str] = set()
        self._register_tasks()

    @property
    def running(self) -> bool:
        """False while a consumer is being restarted after a fault of the database."""
        return len(self._consuming) == CONSUMERS

    @property
    def active_runs(self) -> int:
        """Number of runs that this process executes now."""
        return self._executor.active

    async def __aenter__(self) -> Self:
        runs = partial(self._supervise, [RUN_QUEUE, MAINTENANCE_QUEUE], self._concurrency)
        deliveries = partial(self._supervise, [DELIVERY_QUEUE], self._deliveries.concurrency)
        self._tasks = [
            asyncio.create_task(self._when_resumed(work), name=name)
            for name, work in (("worker", runs), ("webhooks", deliveries), ("recovery", self._lost_work.run))
        ]
        if self._watch is not None:
            self._tasks.append(asyncio.create_task(self._watch.run(), name="watch"))
        return self

    async def _when_resumed(self, work: Callable[[], Awaitable[None]]) -> None:
        while await self._waits():  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(self._timings.poll)
        await work()

    async def _waits(self) -> bool:
        try:
            return await is_paused(self._database)
        except DatabaseUnavailableError:
            return True

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._executor.request_drain()
        # A consumer waits for its jobs, then cancels them: only its own patience limits that.
        consumers, loops = self._tasks[:CONSUMERS], self._tasks[CONSUMERS:]
        await asyncio.gather(end_tasks(consumers, patience=self._timings.drain + 1.5), end_tasks(loops))

    def _register_tasks(self) -> None:
        app = self._queue.app

        @app.task(name=RUN_TASK, queue=RUN_QUEUE, pass_context=True)
        async def run(context: JobContext, run_id: str, owner: str | None = None) -> None:
            if context.job.id is not None:
                await self._executor.run(UUID(run_id), context.job.id, owner)

        @app.task(name=DELIVERY_TASK, queue=DELIVERY_QUEUE, pass_context=True)
        async def deliver(context: JobContext, delivery_id: str) -> None:
            if context.job.id is not None:
                await self._deliveries.deliver(UUID(delivery_id), context.job.id)

        @app.task(name=REFRESH_TASK, queue=MAINTENANCE_QUEUE, pass_context=True)
        async def refresh(context: JobContext, refresh_id: str) -> None:
            if context.job.id is not None:
                await self._refresher.run(UUID(refresh_id), context.job.id)

        @app.task(name=FLOW_TEST_TASK, queue=MAINTENANCE_QUEUE, pass_context=True)
        async def flow_test(context: JobContext, test_id: str) -> None:
            if context.job.id is not None:
                await self._flow_tester.run(UUID(test_id), context.job.id)

        # At least one periodic task must exist, else the consumer stops watching its own side tasks.
        @app.periodic(cron="*/10 * * * *")
        @app.task(name=MAINTENANCE_TASK, queue=MAINTENANCE_QUEUE, queueing_lock=MAINTENANCE_TASK)
        async def maintenance(timestamp: int) -> None:
            del timestamp
            await app.job_manager.delete_old_jobs(
                nb_hours=_KEEP_FINISHED_JOBS_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
            )
            removed = await self._retention.pass_once()
            removed["leftovers"] = await self._reconciler.pass_once()
            await self._versions.pass_once()
            await self._guards.pass_once()
            if any(removed.values()):
                logger.info("Removed what was old: %s.", ", ".join(f"{name} {n}" for name, n in removed.items() if n))

        del run, deliver, refresh, flow_test, maintenance

    async def _supervise(self, queues: list[str], concurrency: int) -> None:
        """Restart a consumer of `queues` whenever it ends; a restart of Postgres ends it."""
        pause, longest = _RESTART_SECS
        self._queue.share(queues, concurrency)
        while True:
            started = asyncio.get_running_loop().time()
            self._consuming.add(queues[0])
            try:
                await self._queue.app.run_worker_async(
                    queues=queues,
                    concurrency=concurrency,
                    install_signal_handlers=False,
                    update_heartbeat_interval=self._timings.heartbeat,
                    stalled_worker_timeout=self._timings.stalled,
                    shutdown_graceful_timeout=self._timings.drain,
                    fetch_job_polling_interval=self._timings.poll,
                    abort_job_polling_interval=self._timings.poll,
                    delete_jobs="successful",
                )
                logger.warning("The consumer of %s ended; starting it again.", queues[0])
            except Exception as error:  # noqa: BLE001 - a worker is useless without its consumer, whatever ended it
                logger.warning("The consumer of %s failed (%s); starting it again.", queues[0], type(error).__name__)
            finally:
                self._consuming.discard(queues[0])
            if asyncio.get_running_loop().time() - started > longest:
                pause = _RESTART_SECS[0]
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - only spreads restarts
            pause = min(pause * 2, longest)
