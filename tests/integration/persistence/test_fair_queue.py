"""Slots of a worker: a process begins the runs that it stores; owners share the slots for what waits in the queue."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from flowise_dev_agent.persistence import Database, Queue, Sessions
from flowise_dev_agent.persistence.database import across_owners
from flowise_dev_agent.persistence.queue import RUN_QUEUE, RUN_TASK
from flowise_dev_agent.persistence.sessions import NewSession
from tests.runtime_world import until

SLOTS = 10


@pytest.fixture
async def queue(database: Database, database_dsn: str) -> AsyncGenerator[Queue]:
    with across_owners():
        async with database.connection() as connection:
            await connection.execute("INSERT INTO owners (id, name) VALUES ('other', 'other') ON CONFLICT DO NOTHING")
    async with Queue(database_dsn) as queue:
        yield queue


def new_session() -> NewSession:
    return NewSession(id=uuid4(), name=None, requirement="r", request={}, instance_id="i")


async def add(queue: Queue, owner: str, number: int) -> None:
    jobs: list[Any] = [{"run_id": str(one), "owner": owner} for one in range(number)]
    await queue.app.configure_task(RUN_TASK, queue=RUN_QUEUE).batch_defer_async(*jobs)


@pytest.mark.parametrize("secs", [0.05, 30.0])
async def test_five_hundred_jobs_of_an_owner_do_not_delay_the_first_of_another(queue: Queue, secs: float) -> None:
    began: dict[str, float] = {}
    running: list[int] = [0]
    most: list[int] = [0]
    first, busy = asyncio.Event(), asyncio.Event()

    @queue.app.task(name=RUN_TASK)
    async def run(run_id: str, owner: str) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        if running[0] == SLOTS - 1 or secs < 1:
            busy.set()
        began.setdefault(owner, time.monotonic())
        if owner == "other":
            first.set()
        await asyncio.sleep(secs)
        running[0] -= 1

    await add(queue, "default", 500)
    async with working(queue):
        async with asyncio.timeout(20):
            await busy.wait()
        asked = time.monotonic()
        await add(queue, "other", 1)
        async with asyncio.timeout(20):
            await first.wait()
        assert began["other"] - asked < 2


async def test_the_jobs_of_one_owner_go_on_while_there_are_several(queue: Queue) -> None:
    done: list[str] = []
    all_ = asyncio.Event()

    @queue.app.task(name=RUN_TASK)
    async def run(run_id: str, owner: str) -> None:
        done.append(run_id)
        if len(done) == 3 * SLOTS:
            all_.set()
        await asyncio.sleep(0.01)

    await add(queue, "default", 3 * SLOTS)
    async with working(queue):
        async with asyncio.timeout(20):
            await all_.wait()


@asynccontextmanager
async def working(queue: Queue, slots: int = SLOTS) -> AsyncGenerator[None]:
    """A consumer of runs that polls too rarely to matter."""
    queue.share([RUN_QUEUE], slots)
    worker = asyncio.create_task(
        queue.app.run_worker_async(
            queues=[RUN_QUEUE], concurrency=slots, install_signal_handlers=False, shutdown_graceful_timeout=0.1,
            fetch_job_polling_interval=60, delete_jobs="successful",
        )
    )  # fmt: skip
    try:
        yield
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


_NOTED = (
    "SELECT EXISTS (SELECT FROM procrastinate_events WHERE job_id = jobs.id) AS noted FROM procrastinate_jobs AS jobs"
)


async def has_slot(queue: Queue) -> bool:
    with queue.slot() as slot:
        return slot.worker_id is not None


@pytest.mark.parametrize(("slots", "through_the_queue"), [(SLOTS, False), (1, True)])
async def test_a_run_begins_in_the_process_that_stored_it_if_a_slot_is_free(
    database: Database, queue: Queue, slots: int, through_the_queue: bool
) -> None:
    began = asyncio.Event()
    noted: list[bool] = []

    @queue.app.task(name=RUN_TASK)
    async def run(run_id: str, owner: str) -> None:
        row = await database.fetch_one(_NOTED)
        noted.append(bool(row and row["noted"]))
        began.set()

    async with working(queue, slots):
        if not through_the_queue:
            await until(lambda: has_slot(queue), "the worker listens")
        await Sessions(database, queue).start(new_session())
        async with asyncio.timeout(20):
            await began.wait()
    assert noted == [through_the_queue]


async def test_a_process_whose_worker_was_taken_for_lost_leaves_its_run_to_the_queue(
    database: Database, queue: Queue
) -> None:
    @queue.app.task(name=RUN_TASK)
    async def run(run_id: str, owner: str) -> None: ...

    async with working(queue):
        await until(lambda: has_slot(queue), "the worker listens")
        async with database.connection() as connection:
            await connection.execute("DELETE FROM procrastinate_workers")
            await Sessions(database, queue).start(new_session())
            row = await (await connection.execute(_NOTED)).fetchone()
    assert row is None or row["noted"]
