"""From a run to the log: order, bundling, waiting for the database, the end of a lease."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID, uuid4

import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError, LeaseLostError
from flowise_dev_agent.persistence import Events, Lease, NewEvent, StoredEvent
from flowise_dev_agent.schemas.event_data import CostData, DoneData, TokenData, ToolCallData
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.sessions.emission import EventWriter


class Log(Events):
    """An event log in memory whose next calls may fail."""

    def __init__(self) -> None:
        self.stored: list[NewEvent] = []
        self.live: list[StoredEvent] = []
        self.batches = 0
        self.sends = 0
        self.appended = asyncio.Event()
        self.failures: list[Exception] = []

    async def append(
        self, lease: Lease, session_id: UUID, events: Sequence[NewEvent], *, flowise_calls: int = 0
    ) -> None:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.batches += 1
        self.stored += events
        self.appended.set()

    async def send_live(self, session_id: UUID, events: Sequence[StoredEvent]) -> None:
        self.sends += 1
        self.live += events


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
async def events(log: Log) -> AsyncIterator[EventWriter]:
    """A writer to this log."""
    writer = EventWriter(log, Lease(uuid4(), 1), uuid4())
    yield writer
    await writer.close()


async def test_events_are_stored_in_order_and_several_at_a_time(log: Log, events: EventWriter) -> None:
    for number in range(120):
        events.put(NewEvent("write", summary=str(number)))
    await events.flush()
    assert [event.summary for event in log.stored] == [str(number) for number in range(120)]
    assert log.batches == 3


async def test_the_first_event_is_stored_at_once_and_those_right_after_it_together(
    log: Log, events: EventWriter
) -> None:
    events.put(NewEvent("node_start"))
    # Without a pause: this loop has nothing else to do.
    for _ in range(5):
        await asyncio.sleep(0)
    assert [event.type for event in log.stored] == ["node_start"]
    log.appended.clear()
    for type_ in ("node_end", "node_start"):
        events.put(NewEvent(type_))
        await asyncio.sleep(0)
    await log.appended.wait()
    assert [event.type for event in log.stored] == ["node_start", "node_end", "node_start"]
    assert log.batches == 2


async def test_what_is_not_stored_at_the_end_is_left_to_the_end_of_the_run(log: Log, events: EventWriter) -> None:
    events.put(NewEvent("node_start"))
    await log.appended.wait()
    events.put(NewEvent("node_end"))
    rest, calls = await events.finish()
    assert [event.type for event in log.stored] == ["node_start"]
    assert [event.type for event in rest] == ["node_end"]
    assert calls == 0


async def test_what_comes_before_the_last_text_of_a_run_is_stored_before_the_text_is_sent(
    log: Log, events: EventWriter
) -> None:
    events.put(NewEvent("node_start"))
    await log.appended.wait()
    events.put(NewEvent("node_end"))
    events.emit(NodeEvent("plan", "plan", "", TokenData(text="Hello")))
    rest, _ = await events.finish()
    assert ([event.type for event in log.stored], rest) == (["node_start", "node_end"], [])
    assert [event.data["text"] for event in log.live] == ["Hello"]


async def test_an_end_waits_for_the_events_that_are_just_being_stored(log: Log, events: EventWriter) -> None:
    log.failures = [DatabaseUnavailableError("away")]
    events.put(NewEvent("node_start"))
    rest, _ = await events.finish()
    assert [event.type for event in log.stored + rest] == ["node_start"]


async def test_text_is_bundled_per_node_and_long_text_is_cut_to_fit_a_notice(log: Log, events: EventWriter) -> None:
    for word in ("Hel", "lo"):
        events.emit(NodeEvent("plan", "plan", "", TokenData(text=word)))
    events.emit(NodeEvent("patch", "patch", "", TokenData(text="x" * 4000)))
    await events.flush()
    assert [(event.node, len(event.data["text"])) for event in log.live] == [
        ("plan", 5),
        ("patch", 900),
        ("patch", 900),
        ("patch", 900),
        ("patch", 900),
        ("patch", 400),
    ]
    assert log.sends == 1
    assert log.stored == []


async def test_events_of_a_node_are_stored_or_sent_and_those_of_the_run_are_refused(
    log: Log, events: EventWriter
) -> None:
    events.emit(NodeEvent("plan", "plan", "1 in", CostData(usd=1)))
    events.emit(NodeEvent("plan", "plan", "get_node", ToolCallData(name="get_node")))
    events.emit(NodeEvent("plan", "plan", "a node must not say this", DoneData()))
    await events.flush()
    assert [event.type for event in log.stored] == ["cost"]
    assert [event.type for event in log.live] == ["tool_call"]


async def test_p42_while_the_database_is_away_events_wait_and_are_stored_once(log: Log, events: EventWriter) -> None:
    log.failures = [DatabaseUnavailableError("away")]
    events.put(NewEvent("write"))
    await events.flush()
    assert len(log.stored) == 1


async def test_a_lost_lease_is_told_by_flush_and_drops_the_rest(log: Log, events: EventWriter) -> None:
    log.failures = [LeaseLostError("lost")]
    events.put(NewEvent("write"))
    with pytest.raises(LeaseLostError):
        await events.flush()
    with pytest.raises(LeaseLostError):
        await events.finish()
    assert log.stored == []


async def test_an_event_that_cannot_be_stored_is_told_instead_of_waited_for(log: Log, events: EventWriter) -> None:
    log.failures = [ValueError("a mistake of ours")]
    events.put(NewEvent("write"))
    with pytest.raises(ValueError, match="mistake"):
        await events.flush()
