"""Postgres goes away and comes back under a running service."""

import asyncio
from contextlib import aclosing

import pytest

from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.schemas.events import SessionEvent
from flowise_dev_agent.schemas.requests import ResumeSession
from tests.fixtures.postgres import restart
from tests.runtime_world import World, running_engine, script, until

WAIT = 30.0


async def healthy(engine: Runtime) -> bool:
    return (await engine.health.health()).status == "ok"


async def test_p42_reads_say_unavailable_while_postgres_is_away_and_everything_recovers(
    own_postgres: EmbeddedPostgres,
) -> None:
    dsn = own_postgres.create_database("outage")
    world = World(dsn)
    async with running_engine(dsn) as engine:
        service = engine.service
        waiting = await service.wait((await service.start(script("ask:q", "work:a"))).thread_id, WAIT)
        running = await service.start(script("work:a", "gate:g", "tell:5", "work:b", "end:accepted"))
        events: list[SessionEvent] = []
        attached = asyncio.Event()

        async def read() -> None:
            async with aclosing(service.events(running.thread_id)) as stream:
                async for event in stream:
                    events.append(event)
                    attached.set()

        reader = asyncio.create_task(read())
        await attached.wait()

        await asyncio.to_thread(own_postgres.stop)
        async with asyncio.timeout(10):
            with pytest.raises(DatabaseUnavailableError):
                await service.get(waiting.thread_id)
            with pytest.raises(DatabaseUnavailableError):
                await service.start(script("work:a"))
            assert (await engine.health.health()).status == "unavailable"
        await asyncio.to_thread(own_postgres.start)

        await until(lambda: healthy(engine), "the engine recovers by itself")
        assert await service.get(waiting.thread_id) == waiting
        await world.open_gate("g")
        done = await service.wait(running.thread_id, WAIT)
        assert (done.status, done.outcome) == ("completed", "accepted")
        async with asyncio.timeout(WAIT):
            await reader
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert events[-1].type == "done"
        assert (await world.effects(running.thread_id)).count("b") == 1

        await service.resume(waiting.thread_id, ResumeSession(response="yes"))
        assert (await service.wait(waiting.thread_id, WAIT)).status == "completed"


async def test_p42_a_quick_restart_is_not_noticed_by_clients(own_postgres: EmbeddedPostgres) -> None:
    dsn = own_postgres.create_database("restart")
    async with running_engine(dsn) as engine:
        await asyncio.to_thread(restart, own_postgres)
        view = await engine.service.start(script("work:a", "end:accepted"))
        assert (await engine.service.wait(view.thread_id, WAIT)).status == "completed"
