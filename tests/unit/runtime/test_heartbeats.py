"""The consumers of a process say together that they live, and none says so for one that is silent."""

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

    async def execute_query_async(self, query: str, *, ids: list[int]) -> None:
        assert "heartbeat" in query
        if self.away:
            raise OSError
        self.told.append(ids)


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


async def test_two_consumers_need_one_statement_in_each_interval(clock: Clock) -> None:
    connector = Connector()
    jobs = jobs_of(connector)
    for _ in range(5):
        await jobs.update_heartbeat(1)
        clock.now += 0.3
        await jobs.update_heartbeat(2)
        clock.now += 1.7
    # The second one says so itself until the first one knows of it.
    assert connector.told == [[1], [1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]


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
