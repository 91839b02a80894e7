"""Event streams: nothing missing, nothing twice, in order, ended when they should be."""

import asyncio
import uuid
from contextlib import aclosing
from typing import Any

import pytest

from flowise_dev_agent.errors import SessionNotFoundError
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.persistence import Events, StoredEvent
from flowise_dev_agent.schemas.event_data import DecisionData, DoneData
from flowise_dev_agent.schemas.events import SessionEvent
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.sessions import feed
from tests.runtime_world import World, running_engine, script, until

WAIT = 20.0


async def collect(engine: Runtime, session_id: uuid.UUID, after: int = 0, *, last: str = "done") -> list[SessionEvent]:
    events: list[SessionEvent] = []
    async with asyncio.timeout(WAIT), aclosing(engine.service.events(session_id, after)) as stream:
        async for event in stream:
            events.append(event)
            if event.type == last:
                break
    return events


def numbers(events: list[SessionEvent]) -> list[int]:
    return [event.seq for event in events if event.seq is not None]


async def test_a_stream_tells_each_node_the_question_and_the_end_in_order(engine: Runtime) -> None:
    started = await engine.service.start(script("work:a", "ask:why", "end:accepted"))
    first = await collect(engine, started.thread_id, last="interrupt")
    assert [(event.type, event.node) for event in first] == [
        ("node_start", "work"),
        ("node_end", "work"),
        ("node_start", "ask"),
        ("interrupt", "ask"),
    ]
    assert first[-1].status == "pending_interrupt"
    assert first[1].duration_ms is not None
    assert first[1].phase == "labour"
    await engine.service.resume(started.thread_id, ResumeSession(response="yes"))
    events = await collect(engine, started.thread_id)
    assert numbers(events) == list(range(1, len(events) + 1))
    assert [event.type for event in events[4:]] == ["node_start", "node_end", "node_start", "node_end", "done"]
    assert events[-1].data == DoneData(outcome="accepted")
    assert len({event.run_id for event in events}) == 2


async def test_p48_an_answer_sent_the_moment_the_question_is_streamed_is_never_refused(engine: Runtime) -> None:
    async def play() -> None:
        started = await engine.service.start(script("ask:1", "ask:2", "ask:3"))
        async with aclosing(engine.service.events(started.thread_id)) as stream:
            async for event in stream:
                if event.type == "interrupt":
                    body = ResumeSession(interrupt_id=event.data.interrupt_id, answer={"ok": True})
                    await engine.service.resume(started.thread_id, body)

    async with asyncio.timeout(60):
        await asyncio.gather(*(play() for _ in range(12)))


async def test_readers_that_come_late_or_read_slowly_get_every_event_once(engine: Runtime, world: World) -> None:
    started = await engine.service.start(script("gate:g", "tell:700", "work:a"))
    slow: list[SessionEvent] = []
    attached = asyncio.Event()

    async def read_slowly() -> None:
        async with aclosing(engine.service.events(started.thread_id)) as stream:
            async for event in stream:
                slow.append(event)
                attached.set()
                if len(slow) == 100:
                    await engine.service.wait(started.thread_id, WAIT)  # far behind the ring now

    reader = asyncio.create_task(read_slowly())
    await attached.wait()
    await world.open_gate("g")
    fast, from_600 = await asyncio.gather(
        collect(engine, started.thread_id), collect(engine, started.thread_id, after=600)
    )
    async with asyncio.timeout(WAIT):
        await reader
    assert numbers(fast) == list(range(1, len(fast) + 1))
    assert len(fast) > 700
    assert numbers(slow) == numbers(fast)
    assert numbers(from_600) == list(range(601, len(fast) + 1))


async def test_summaries_and_data_are_bounded_and_clean(engine: Runtime) -> None:
    started = await engine.service.start(script("tell:1"))
    event = next(event for event in await collect(engine, started.thread_id) if event.type == "decision")
    assert len(event.summary) == 200
    assert event.summary.endswith("…")
    assert "\x00" not in event.summary
    assert event.data == DecisionData(taken="0", truncated=["why"])


async def test_model_text_is_streamed_live_in_bundles_and_not_stored(engine: Runtime, world: World) -> None:
    started = await engine.service.start(script("gate:g", "talk:200", "ask:q"))
    live: list[SessionEvent] = []
    attached = asyncio.Event()

    async def read() -> None:
        async with aclosing(engine.service.events(started.thread_id)) as stream:
            async for event in stream:
                attached.set()
                live.append(event)
                if event.type == "interrupt":
                    return

    reader = asyncio.create_task(read())
    await attached.wait()
    await world.open_gate("g")
    async with asyncio.timeout(WAIT):
        await reader
    tokens = [event for event in live if event.type == "token"]
    assert "".join(event.data.text for event in tokens) == "".join(f"{number} " for number in range(200))
    assert all(event.seq is None for event in tokens)
    assert len(tokens) < 20
    replayed = await collect(engine, started.thread_id, last="interrupt")
    assert "token" not in {event.type for event in replayed}


async def test_model_text_comes_after_the_start_of_its_step_however_slowly_the_log_is_read(
    engine: Runtime, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = await engine.service.start(script("gate:g", "talk:200", "ask:q"))
    heard, read_log, receive = asyncio.Event(), Events.read, feed._live_event

    async def read_after_the_text(*args: Any, **named: Any) -> list[StoredEvent]:
        await heard.wait()
        return await read_log(*args, **named)

    def hear(payload: dict[str, Any]) -> StoredEvent:
        heard.set()
        return receive(payload)

    live: list[SessionEvent] = []
    async with asyncio.timeout(WAIT), aclosing(engine.service.events(started.thread_id)) as stream:
        async for event in stream:
            if not live:
                monkeypatch.setattr(feed, "_live_event", hear)
                monkeypatch.setattr(Events, "read", read_after_the_text)
                await world.open_gate("g")
            live.append(event)
            if event.type == "interrupt":
                break
    order = [(event.type, event.node) for event in live if event.type in ("node_start", "node_end", "token")]
    talk = next(node for kind, node in order if kind == "token")
    assert order.index(("node_start", talk)) < order.index(("token", talk))
    assert numbers(live) == list(range(1, len(numbers(live)) + 1))


async def test_p45_a_stream_of_an_unknown_session_is_an_error_and_starts_nothing(engine: Runtime) -> None:
    with pytest.raises(SessionNotFoundError):
        await collect(engine, uuid.uuid4())
    assert (await engine.service.list()).sessions == []


async def test_a_stream_from_the_end_of_a_finished_session_ends_at_once(engine: Runtime) -> None:
    started = await engine.service.start(script("work:a"))
    events = await collect(engine, started.thread_id)
    assert await collect(engine, started.thread_id, after=events[-1].seq or 0) == []


async def test_a_stream_ends_when_its_session_is_deleted(engine: Runtime, world: World) -> None:
    started = await engine.service.start(script("ask:q"))
    await engine.service.wait(started.thread_id, WAIT)
    reader = asyncio.create_task(collect(engine, started.thread_id))
    await asyncio.sleep(0)
    await engine.service.delete(started.thread_id)
    assert "done" not in {event.type for event in await asyncio.wait_for(reader, WAIT)}


async def test_p50_streams_and_waits_end_when_the_engine_is_left(database_dsn: str) -> None:
    async with running_engine(database_dsn) as engine:
        started = await engine.service.start(script("work:a", "gate:never"))
        reader = asyncio.create_task(collect(engine, started.thread_id))
        waiter = asyncio.create_task(engine.service.wait(started.thread_id, WAIT))
        await until(lambda: _begun(engine, started.thread_id), "the session runs")
    async with asyncio.timeout(2):
        assert (await waiter).status == "in_progress"
        await reader


async def _begun(engine: Runtime, session_id: uuid.UUID) -> bool:
    return (await engine.service.get(session_id)).last_event_seq >= 3


async def test_p44_a_lost_listen_connection_loses_no_event(engine: Runtime, world: World) -> None:
    started = await engine.service.start(script("gate:g", "tell:50", "ask:q"))
    reader = asyncio.create_task(collect(engine, started.thread_id, last="interrupt"))
    await until(lambda: _begun_at(engine, started.thread_id, 1), "the session runs")
    killed = await world.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE 'LISTEN fda%%'"
    )
    assert killed == [(True,)]
    await world.open_gate("g")
    events = await reader
    assert numbers(events) == list(range(1, len(events) + 1))
    assert len(events) >= 55


async def _begun_at(engine: Runtime, session_id: uuid.UUID, seq: int) -> bool:
    return (await engine.service.get(session_id)).last_event_seq >= seq


async def test_p52_open_streams_hold_no_connection(engine: Runtime, world: World) -> None:
    started = await engine.service.start(script("ask:q"))
    await engine.service.wait(started.thread_id, WAIT)
    readers = [asyncio.create_task(collect(engine, started.thread_id)) for _ in range(50)]
    await engine.service.resume(started.thread_id, ResumeSession(response="ok"))
    assert (await engine.service.wait(started.thread_id, WAIT)).status == "completed"
    for events in await asyncio.gather(*readers):
        assert numbers(events) == list(range(1, len(events) + 1))
    rows = await world.fetch(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert rows[0][0] <= 8 + 4 + 3  # the pool, the queue's, and the three listeners


async def test_a_stream_of_a_session_whose_events_are_gone_ends(engine: Runtime, world: World) -> None:
    started = await engine.service.start(script("work:a"))
    await collect(engine, started.thread_id)
    await world.fetch("DELETE FROM session_events WHERE session_id = %s RETURNING seq", started.thread_id)
    assert await collect(engine, started.thread_id) == []
