"""The consumers of a process: they say together that they live, and look for jobs when there may be some."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from procrastinate import PsycopgConnector

from flowise_dev_agent.persistence import queue
from flowise_dev_agent.persistence.queue import _Jobs


class Connector:
    """Keeps of whom heartbeats were stored."""

    def __init__(self) -> None:
        self.told: list[list[int]] = []
        self.away = False
        #: Ids of jobs that wait, and how often somebody looked.
        self.jobs: list[int] = []
        self.looks = 0
        self.during: Callable[[], None] = lambda: None
        self.on_notification: Any = None

    async def execute_query_one_async(self, query: str, **_: Any) -> dict[str, Any]:
        if "register" in query:
            return {"worker_id": 1}
        self.looks += 1
        found = self.jobs.pop(0) if self.jobs else None
        self.during()
        return {"id": found, **JOB}

    async def listen_notify(self, on_notification: Any, channels: Any) -> None:
        self.on_notification = on_notification

    async def execute_query_async(self, query: str, *, ids: list[int]) -> None:
        assert "heartbeat" in query
        if self.away:
            raise OSError
        self.told.append(ids)


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


def jobs_of(connector: Connector) -> _Jobs:
    return _Jobs(cast("PsycopgConnector", cast(Any, connector)), 2.0)


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


async def a_consumer(connector: Connector) -> _Jobs:
    """It has looked once and found nothing."""
    jobs = jobs_of(connector)

    async def wake(**_: Any) -> None: ...

    await jobs.register_worker()
    await jobs.listen_for_jobs(on_notification=wake, queues=["runs"])
    assert await jobs.fetch_job(["runs"], 1) is None
    connector.looks = 0
    return jobs


async def found(jobs: _Jobs) -> list[int | None]:
    """What a consumer does when it was woken: it fetches until there is nothing."""
    ids: list[int | None] = []
    while (job := await jobs.fetch_job(["runs"], 1)) is not None:
        ids.append(job.id)
    return ids


async def told(connector: Connector, count: int = 1, channel: str = "runs") -> None:
    for _ in range(count):
        await connector.on_notification(channel=channel, payload=NOTICE)


async def test_after_the_only_job_that_was_told_of_nobody_looks_for_another(clock: Clock) -> None:
    connector = Connector()
    jobs = await a_consumer(connector)
    for number in (1, 2):
        connector.jobs = [number]
        await told(connector)
        assert await found(jobs) == [number]
    assert connector.looks == 2
    connector.jobs = [3, 4, 5]
    await told(connector, 3)
    assert await found(jobs) == [3, 4, 5]
    assert connector.looks == 5


async def test_a_job_whose_notice_got_lost_is_found_with_a_later_one(clock: Clock) -> None:
    connector = Connector()
    jobs = await a_consumer(connector)
    clock.now += 6
    connector.jobs = [1, 2]
    await told(connector)
    assert await found(jobs) == [1, 2]


async def test_without_a_notice_all_waiting_jobs_are_fetched(clock: Clock) -> None:
    connector = Connector()
    jobs = await a_consumer(connector)
    connector.jobs = [1, 2]
    assert await found(jobs) == [1, 2]


async def test_a_consumer_that_begins_again_fetches_all_that_waits(clock: Clock) -> None:
    connector = Connector()
    jobs = await a_consumer(connector)
    connector.jobs = [1]
    await told(connector)
    assert await jobs.fetch_job(["runs"], 1) is not None
    connector.jobs = [2, 3]
    await jobs.register_worker()
    assert await found(jobs) == [2, 3]


async def test_a_consumer_that_begins_to_listen_fetches_all_that_waits(clock: Clock) -> None:
    connector = Connector()
    jobs = await a_consumer(connector)
    connector.jobs = [1, 2, 3]
    await told(connector, channel=queue._LISTENS)
    assert await found(jobs) == [1, 2, 3]


async def test_a_consumer_that_begins_to_listen_while_it_looks_fetches_all_that_waits(clock: Clock) -> None:
    connector = Connector()
    jobs = await a_consumer(connector)

    def begins() -> None:
        connector.during = lambda: None
        connector.jobs = [1, 2, 3]
        with pytest.raises(StopIteration):  # it waits for nothing
            connector.on_notification(channel=queue._LISTENS, payload=NOTICE).send(None)

    connector.during = begins
    assert await found(jobs) == [1, 2, 3]


async def test_a_notice_that_comes_while_somebody_looks_is_not_forgotten(clock: Clock) -> None:
    connector = Connector()
    jobs = await a_consumer(connector)

    def inserted() -> None:
        connector.during = lambda: None
        connector.jobs = [1]
        jobs._expected_of(["runs"]).notices += 1

    connector.during = inserted
    assert await found(jobs) == [1]
