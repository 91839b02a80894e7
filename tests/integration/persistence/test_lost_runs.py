"""Runs whose worker is gone: who may take them, how often they are tried again, and when they are set aside."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError, LeaseLostError
from flowise_dev_agent.persistence import Claim, Database, FencedSaver, Queue, Runs, Sessions
from flowise_dev_agent.persistence.queue import RUN_QUEUE, RUN_TASK
from flowise_dev_agent.persistence.runs import Lost
from flowise_dev_agent.persistence.sessions import NewSession
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.sessions.executor import failure
from flowise_dev_agent.sessions.recovery import LostWork, Recovery
from flowise_dev_agent.timings import Timings
from tests.integration.persistence.test_saver import add_run, checkpoint, config


@pytest.fixture
async def queue(database: Database, database_dsn: str) -> AsyncGenerator[Queue]:
    async with Queue(database_dsn) as queue:
        yield queue


@pytest.fixture
def runs(database: Database, queue: Queue) -> Runs:
    return Runs(database, queue)


async def start(database: Database, queue: Queue, session_id: UUID) -> None:
    await Sessions(database, queue).start(
        NewSession(id=session_id, requirement="r", request={}, instance_id="i", name=None)
    )


async def one(database: Database, query: str, *params: Any) -> dict[str, Any]:
    row = await database.fetch_one(query, params)
    assert row is not None
    return dict(row)


async def taken(database: Database, runs: Runs, session_id: UUID) -> Claim:
    run = await one(database, "SELECT id, job_id FROM runs WHERE session_id = %s", session_id)
    claim = await runs.claim(run["id"], run["job_id"])
    assert claim is not None
    return claim


async def lose_worker(database: Database) -> None:
    """Every worker disappears with its job, long ago."""
    async with database.connection() as connection:
        await connection.execute("DELETE FROM procrastinate_jobs")
        await connection.execute("UPDATE runs SET updated_at = now() - interval '1 hour'")


async def end_of(database: Database, session_id: UUID) -> tuple[str, str | None]:
    row = await one(database, "SELECT status, error ->> 'code' AS code FROM sessions WHERE id = %s", session_id)
    return row["status"], row["code"]


async def started(database: Database, queue: Queue, runs: Runs, *, attempts: int) -> tuple[UUID, Recovery]:
    """A session with a run in the queue, and what takes care of lost runs."""
    session_id = uuid4()
    await start(database, queue, session_id)
    return session_id, Recovery(runs, Timings(), attempts=attempts)


async def test_p86_a_run_that_is_lost_twice_at_one_checkpoint_is_set_aside(
    database: Database, queue: Queue, runs: Runs
) -> None:
    session_id, recovery = await started(database, queue, runs, attempts=5)
    await taken(database, runs, session_id)
    await lose_worker(database)
    assert await recovery.pass_once() == 1
    assert await end_of(database, session_id) == ("queued", None)
    claim = await taken(database, runs, session_id)
    assert claim.attempt == 1
    await lose_worker(database)
    assert await recovery.pass_once() == 1
    assert await end_of(database, session_id) == ("failed", "session_quarantined")
    # A person may try it again, from the beginning of the count.
    assert await Sessions(database, queue).retry(session_id)
    assert await end_of(database, session_id) == ("queued", None)


async def test_a_lost_job_that_nobody_had_taken_sets_no_session_aside(
    database: Database, queue: Queue, runs: Runs
) -> None:
    session_id, recovery = await started(database, queue, runs, attempts=5)
    await taken(database, runs, session_id)
    for _ in range(4):
        await lose_worker(database)
        assert await recovery.pass_once() == 1
    assert await end_of(database, session_id) == ("queued", None)


async def test_three_lost_workers_end_in_worker_lost_with_three_attempts(
    database: Database, queue: Queue, runs: Runs
) -> None:
    session_id, recovery = await started(database, queue, runs, attempts=3)
    for number in range(3):
        assert await end_of(database, session_id) == ("queued", None)
        claim = await taken(database, runs, session_id)
        await FencedSaver(database, claim.lease).aput(config(session_id), checkpoint(number), {}, {"x": 1})
        await lose_worker(database)
        assert await recovery.pass_once() == 1
    assert await end_of(database, session_id) == ("failed", "worker_lost")
    assert await recovery.pass_once() == 0


async def test_a_lost_run_that_was_settled_meanwhile_is_neither_queued_nor_failed(
    database: Database, runs: Runs
) -> None:
    session_id, lease = await add_run(database)
    lost = Lost(id=lease.run_id, session_id=session_id, owner="default", job_id=None, attempt=0)
    async with database.connection() as connection:
        await connection.execute("UPDATE runs SET status = 'done'")
        await connection.execute("UPDATE sessions SET status = 'completed'")
    assert not await runs.take_back(lost)
    assert not await runs.give_up(lost, failure(Failure(code="worker_lost", detail="gone")))
    assert await end_of(database, session_id) == ("completed", None)
    found = await one(database, "SELECT status, epoch, job_id, attempt FROM runs")
    assert found == {"status": "done", "epoch": lease.epoch, "job_id": None, "attempt": 0}
    assert (await one(database, "SELECT count(*) AS n FROM procrastinate_jobs"))["n"] == 0
    assert (await one(database, "SELECT count(*) AS n FROM session_events"))["n"] == 0


async def test_p40_a_worker_that_lost_its_lease_cannot_hand_the_run_back(
    database: Database, queue: Queue, runs: Runs
) -> None:
    session_id = UUID(int=5)
    await start(database, queue, session_id)
    old = await taken(database, runs, session_id)
    await lose_worker(database)
    assert await Recovery(runs, Timings(), attempts=3).pass_once() == 1
    await taken(database, runs, session_id)
    before = await one(database, "SELECT job_id, status, epoch, attempt FROM runs")
    with pytest.raises(LeaseLostError):
        await runs.requeue(old.lease, session_id, attempt=7)
    assert await one(database, "SELECT job_id, status, epoch, attempt FROM runs") == before
    assert (await one(database, "SELECT count(*) AS n FROM procrastinate_jobs WHERE status = 'todo'"))["n"] <= 1


async def test_a_job_that_was_replaced_claims_nothing(database: Database, queue: Queue, runs: Runs) -> None:
    session_id = UUID(int=4)
    await start(database, queue, session_id)
    old = await one(database, "SELECT id, job_id FROM runs")
    await lose_worker(database)
    assert await Recovery(runs, Timings(), attempts=3).pass_once() == 1
    assert await runs.claim(old["id"], old["job_id"]) is None
    assert (await one(database, "SELECT status, epoch FROM runs")) == {"status": "queued", "epoch": 0}


class Outage:
    """Runs whose database was away; the time of each look at them."""

    def __init__(self) -> None:
        self.looked: list[float] = []
        self.again = asyncio.Event()

    @asynccontextmanager
    async def recovery_turn(self) -> AsyncGenerator[bool]:
        self.looked.append(asyncio.get_running_loop().time())
        if len(self.looked) == 1:
            raise DatabaseUnavailableError("away")
        self.again.set()
        yield False


async def test_p42_after_an_outage_the_living_have_time_to_say_so() -> None:
    runs, timings = Outage(), Timings(recovery=0.01, stalled=0.5)
    recovery = Recovery(cast(Any, runs), timings, attempts=1)
    loop = asyncio.create_task(LostWork(_always, [recovery.pass_once], timings).run())
    async with asyncio.timeout(10):
        await runs.again.wait()
    loop.cancel()
    assert runs.looked[1] - runs.looked[0] >= timings.stalled


async def _always() -> bool:
    return True


async def test_the_next_isolated_run_starts_when_the_one_before_it_is_cancelled(
    database: Database, queue: Queue
) -> None:
    taken: list[str] = []
    one_runs, both = asyncio.Event(), asyncio.Event()

    @queue.app.task(name=RUN_TASK, queue=RUN_QUEUE)
    async def run(run_id: str, owner: str) -> None:
        taken.append(run_id)
        one_runs.set()
        if len(taken) == 2:
            both.set()
        await both.wait()

    async with database.transaction() as connection:
        first, _ = [await queue.defer_run(connection, UUID(int=number), isolated=True) for number in (1, 2)]
    worker = asyncio.create_task(
        queue.app.run_worker_async(
            queues=[RUN_QUEUE], concurrency=2, install_signal_handlers=False, fetch_job_polling_interval=600
        )
    )
    async with asyncio.timeout(60):
        await one_runs.wait()
        async with database.connection() as connection:
            await queue.cancel_job(connection, first)
        await both.wait()
        worker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await worker
    assert taken == [str(UUID(int=1)), str(UUID(int=2))]
