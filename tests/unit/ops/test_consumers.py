"""The consumers of a process: they say together that they live, and miss no job."""
# pyright: reportPrivateUsage=false

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from procrastinate import PsycopgConnector
from procrastinate.jobs import Job, Status

from flowise_dev_agent.persistence import queue
from flowise_dev_agent.persistence.queue import Jobs


class Connector:
    """Keeps of whom heartbeats were stored."""

    def __init__(self) -> None:
        self.told: list[list[int]] = []
        self.away = False
        #: Ids of jobs that wait, and how often somebody looked.
        self.jobs: list[int] = []
        self.looks = 0
        self.ended: list[int] = []
        #: How often the consumer was woken.
        self.woken = 0
        self.during: Callable[[], None] = lambda: None
        self.on_notification: Any = None

    async def execute_query_one_async(self, query: str, **_: Any) -> dict[str, Any]:
        self.looks += 1
        found = self.jobs.pop(0) if self.jobs else None
        self.during()
        return {"id": found, "waits": bool(self.jobs), **JOB}

    async def listen_notify(self, on_notification: Any, channels: Any) -> None:
        self.on_notification = on_notification

    async def execute_query_async(self, query: str, **values: Any) -> None:
        if "finish" in query:
            self.ended.append(values["job_id"])
        else:
            assert "heartbeat" in query
            await asyncio.sleep(0)
            if self.away:
                raise OSError
            self.told.append(values["ids"])


JOB = {
    "status": "doing",
    "task_name": "run",
    "priority": 0,
    "lock": None,
    "queueing_lock": None,
    "args": {},
    "scheduled_at": None,
    "queue_name": "runs",
    "attempts": 0,
    "worker_id": 1,
}


NOTICE = '{"type": "job_inserted", "job_id": 1}'


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(queue, "time", clock)
    return clock


def jobs_of(connector: Connector) -> Jobs:
    return Jobs(cast("PsycopgConnector", cast(Any, connector)), 2.0)


@pytest.mark.parametrize("later", [0.0, 0.3, 0.98, 1.0, 1.02, 1.7])
async def test_two_consumers_need_one_statement_in_each_interval(clock: Clock, later: float) -> None:
    connector = Connector()
    jobs = jobs_of(connector)
    for _ in range(10):
        await jobs.update_heartbeat(1)
        clock.now += later
        await jobs.update_heartbeat(2)
        clock.now += 2 - later
    # At first the one does not know of the other.
    assert len(connector.told) <= 12
    assert connector.told[2:] == [[1, 2]] * len(connector.told[2:])


async def test_consumers_that_call_at_the_same_moment_need_one_statement(clock: Clock) -> None:
    connector = Connector()
    jobs = jobs_of(connector)
    for _ in range(5):
        await asyncio.gather(jobs.update_heartbeat(1), jobs.update_heartbeat(2))
        clock.now += 2
    # At first the one does not know of the other.
    assert len(connector.told) <= 6


async def test_nobody_speaks_for_a_consumer_that_is_silent(clock: Clock) -> None:
    connector = Connector()
    jobs = jobs_of(connector)
    await jobs.update_heartbeat(1)
    for _ in range(4):
        await jobs.update_heartbeat(2)
        clock.now += 2
    assert connector.told[-2:] == [[2], [2]]


async def test_a_heartbeat_that_was_not_stored_is_sent_again(clock: Clock) -> None:
    connector = Connector()
    jobs = jobs_of(connector)
    await jobs.update_heartbeat(1)
    clock.now += 2
    connector.away = True
    with pytest.raises(OSError):
        await jobs.update_heartbeat(1)
    connector.away = False
    await jobs.update_heartbeat(1)
    assert connector.told == [[1], [1]]


async def a_consumer(connector: Connector) -> Jobs:
    """It listens, and has looked once and found nothing."""
    jobs = jobs_of(connector)
    jobs.consumer(["runs"]).slots = 10

    async def wake(**_: Any) -> None:
        connector.woken += 1

    await jobs.listen_for_jobs(on_notification=wake, queues=["runs"])
    await connector.on_notification(channel=queue._LISTENS, payload=NOTICE)
    assert await jobs.fetch_job(["runs"], 1) is None
    connector.looks = connector.woken = 0
    return jobs


async def test_a_notice_that_comes_while_somebody_looks_is_not_forgotten() -> None:
    connector = Connector()
    jobs = await a_consumer(connector)

    def inserted() -> None:
        connector.during = lambda: None
        connector.jobs = [1]
        with pytest.raises(StopIteration):  # it waits for nothing
            connector.on_notification(channel="runs", payload=NOTICE).send(None)

    connector.during = inserted
    job = await jobs.fetch_job(["runs"], 1)
    assert job is not None
    assert job.id == 1
    assert connector.looks == 2


async def test_after_the_jobs_that_were_announced_nobody_looks_until_the_next_notice_or_poll() -> None:
    connector = Connector()
    jobs = await a_consumer(connector)
    connector.jobs = [1, 2]
    for _ in range(2):
        await connector.on_notification(channel="runs", payload=NOTICE)
    assert [job and job.id for job in [await jobs.fetch_job(["runs"], 1) for _ in range(3)]] == [1, 2, None]
    assert connector.looks == 2
    connector.jobs = [3]  # its notice got lost
    polled = await jobs.fetch_job(["runs"], 1)
    assert polled is not None
    assert polled.id == 3


@pytest.mark.parametrize(("lock", "woken"), [("isolated", 1), (None, 0)])
async def test_the_end_of_a_job_wakes_the_consumer_if_another_may_wait_for_it(lock: str | None, woken: int) -> None:
    connector = Connector()
    jobs = await a_consumer(connector)
    await jobs.finish_job(Job.from_row({"id": 1, **JOB, "lock": lock}), Status.ABORTED, delete_job=False)
    assert connector.ended == [1]
    assert connector.woken == woken
    connector.jobs = [2, 3]
    first = await jobs.fetch_job(["runs"], 1)
    assert first is not None
    connector.jobs = []
    # Another job waited when it was taken, for a slot of its owner maybe.
    await jobs.finish_job(first, Status.ABORTED, delete_job=False)
    assert connector.woken == woken + 1
