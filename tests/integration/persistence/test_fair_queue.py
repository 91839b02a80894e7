"""Owners share the slots of a worker: whoever has fewer running jobs is next, and one leaves a slot to the others."""

import asyncio
import time
from collections.abc import AsyncGenerator

import pytest

from flowise_dev_agent.persistence import Database, Queue
from flowise_dev_agent.persistence.database import across_owners
from flowise_dev_agent.persistence.queue import RUN_QUEUE, RUN_TASK

SLOTS = 10


@pytest.fixture
async def queue(database: Database, database_dsn: str) -> AsyncGenerator[Queue]:
    with across_owners():
        async with database.connection() as connection:
            await connection.execute("INSERT INTO owners (id, name) VALUES ('other', 'other') ON CONFLICT DO NOTHING")
    async with Queue(database_dsn) as queue:
        yield queue


async def add(queue: Queue, owner: str, number: int) -> None:
    await queue.app.configure_task(RUN_TASK, queue=RUN_QUEUE).batch_defer_async(
        *({"run_id": str(one), "owner": owner} for one in range(number))
    )


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
    queue.share([RUN_QUEUE], SLOTS)
    worker = asyncio.create_task(
        queue.app.run_worker_async(
            queues=[RUN_QUEUE], concurrency=SLOTS, install_signal_handlers=False, shutdown_graceful_timeout=0.1,
            fetch_job_polling_interval=30, delete_jobs="successful",
        )
    )  # fmt: skip
    try:
        async with asyncio.timeout(20):
            await busy.wait()
        asked = time.monotonic()
        await add(queue, "other", 1)
        async with asyncio.timeout(20):
            await first.wait()
        assert began["other"] - asked < 2
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
