"""Killed, frozen, stopped and doubled workers: real processes on a real database."""

import asyncio
import signal
import time
from typing import Any
from uuid import UUID

import pytest

from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.persistence import Database, Queue, Runs
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.sessions.recovery import Recovery
from flowise_dev_agent.timings import Timings
from tests.forked import Forked
from tests.integration.sessions.conftest import StartWorker
from tests.runtime_world import DEADLINE_SECS, FAST, World, running_engine, script, until

WAIT = 25.0


async def reached(world: World, view: SessionView, name: str, times: int = 1) -> None:
    async def check() -> bool:
        return (await world.effects(view.thread_id)).count(name) >= times

    await until(check, f"effect {name} happened {times} times")


async def trace(world: World, session_id: UUID) -> tuple[Any, ...]:
    """Everything that a run could write."""
    text = str(session_id)
    return (
        await world.fetch("SELECT checkpoint_id FROM checkpoints WHERE thread_id = %s ORDER BY 1", text),
        await world.fetch("SELECT count(*) FROM checkpoint_writes WHERE thread_id = %s", text),
        await world.fetch("SELECT seq, type, node FROM session_events WHERE session_id = %s ORDER BY 1", session_id),
        await world.fetch("SELECT status, outcome, iteration FROM sessions WHERE id = %s", session_id),
        await world.effects(session_id),
    )


async def no_gaps(world: World, view: SessionView) -> None:
    rows = await world.fetch("SELECT seq FROM session_events WHERE session_id = %s ORDER BY seq", view.thread_id)
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))


async def _nothing_at_work(world: World) -> bool:
    return await world.fetch("SELECT 1 FROM procrastinate_jobs WHERE status = 'doing'") == []


async def test_p40_a_killed_worker_is_replaced_and_finished_steps_do_not_run_again(
    api: Runtime, world: World, start_worker: StartWorker
) -> None:
    first = await start_worker()
    view = await api.service.start(script("work:a", "work:b", "gate:g", "work:c", "end:accepted"))
    await reached(world, view, "g")
    second = await start_worker()
    first.kill()
    killed = time.monotonic()
    await reached(world, view, "g", times=2)
    assert time.monotonic() - killed < 10
    await world.open_gate("g")
    done = await api.service.wait(view.thread_id, WAIT)
    assert (done.status, done.outcome) == ("completed", "accepted")
    assert await world.effects(view.thread_id) == ["a", "b", "g", "g", "c"]
    assert await world.pids(view.thread_id) == [first.pid] * 3 + [second.pid] * 2
    await no_gaps(world, view)
    # The job of the dead is closed, else every look for lost runs would find it again.
    await until(lambda: _nothing_at_work(world), "no job is left open")


async def test_p02_a_worker_that_dies_inside_a_step_repeats_only_that_step(
    api: Runtime, world: World, start_worker: StartWorker
) -> None:
    dying = await start_worker()
    view = await api.service.start(script("work:a", "die", "work:b", "ask:q"))
    assert await dying.wait() == -signal.SIGKILL
    await start_worker()
    waiting = await api.service.wait(view.thread_id, WAIT)
    assert waiting.status == "pending_interrupt"
    assert await world.effects(view.thread_id) == ["a", "die", "die", "b"]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(("ask:one", "die"), id="in the next step", marks=pytest.mark.nightly),
        pytest.param(("vow:one",), id="in the asking step"),
    ],
)
async def test_p40_an_answer_taken_by_a_worker_that_dies_is_not_lost(
    api: Runtime, world: World, start_worker: StartWorker, steps: tuple[str, ...]
) -> None:
    dying = await start_worker()
    view = await api.service.start(script(*steps, "work:a"))
    waiting = await api.service.wait(view.thread_id, WAIT)
    assert waiting.interrupt is not None
    await api.service.resume(view.thread_id, ResumeSession(interrupt_id=waiting.interrupt.id, answer={"n": 1}))
    assert await dying.wait() == -signal.SIGKILL
    await start_worker()
    done = await api.service.wait(view.thread_id, WAIT)
    assert done.status == "completed"
    assert done.totals.model_calls == 1  # the one answer, once
    assert await world.effects(view.thread_id) == ["die", "die", "a"]


async def test_p40_a_frozen_worker_that_thaws_after_its_successor_writes_nothing(
    api: Runtime, world: World, start_worker: StartWorker
) -> None:
    frozen = await start_worker()
    view = await api.service.start(script("work:a", "gate:g", "work:b", "work:c", "end:accepted"))
    await reached(world, view, "g")
    frozen.send_signal(signal.SIGSTOP)
    successor = await start_worker()
    await reached(world, view, "g", times=2)
    await world.open_gate("g")
    assert (await api.service.wait(view.thread_id, WAIT)).status == "completed"
    before = await trace(world, view.thread_id)
    successor.kill()
    await successor.wait()

    frozen.send_signal(signal.SIGCONT)
    # It works again, on the next session, and by then has run into the fence with the old one.
    other = await api.service.start(script("work:x", "end:accepted"))
    assert (await api.service.wait(other.thread_id, WAIT)).status == "completed"
    assert set(await world.pids(other.thread_id)) == {frozen.pid}
    assert await trace(world, view.thread_id) == before
    assert before[-1] == ["a", "g", "g", "b", "c"]


async def test_p50_sigterm_hands_a_hanging_run_back_within_its_grace(
    api: Runtime, world: World, start_worker: StartWorker
) -> None:
    first = await start_worker(stalled=60.0)
    view = await api.service.start(script("work:a", "gate:g", "work:b"))
    await reached(world, view, "g")
    first.terminate()
    stopped = time.monotonic()
    assert await first.wait() == 0
    assert time.monotonic() - stopped < FAST.drain + 4
    rows = await world.fetch("SELECT status, attempt FROM runs WHERE session_id = %s", view.thread_id)
    assert rows == [("queued", 0)]
    await world.open_gate("g")
    await start_worker(stalled=60.0)
    assert (await api.service.wait(view.thread_id, WAIT)).status == "completed"
    assert await world.effects(view.thread_id) == ["a", "g", "g", "b"]


async def test_p50_sigterm_between_steps_repeats_no_step(api: Runtime, world: World, start_worker: StartWorker) -> None:
    first = await start_worker(drain=8.0)
    steps = [f"work:{number}" for number in range(60)]
    view = await api.service.start(script(*steps))
    await reached(world, view, "3")
    first.terminate()
    assert await first.wait() == 0
    assert len(await world.effects(view.thread_id)) < 60
    second = await start_worker()
    assert (await api.service.wait(view.thread_id, WAIT)).status == "completed"
    assert await world.effects(view.thread_id) == [str(number) for number in range(60)]
    assert set(await world.pids(view.thread_id)) == {first.pid, second.pid}


async def test_a_run_lost_after_its_question_was_saved_settles_without_running_anything_again(
    database_dsn: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    finalize = Runs.finalize
    calls: list[str] = []

    async def lost_once(self: Runs, *args: Any, **named: Any) -> None:
        calls.append("finalize")
        if len(calls) == 1:
            raise RuntimeError("the process would be gone here")
        await finalize(self, *args, **named)

    monkeypatch.setattr(Runs, "finalize", lost_once)
    async with running_engine(database_dsn) as engine:
        view = await engine.service.start(script("work:a", "ask:q"))
        waiting = await engine.service.wait(view.thread_id, WAIT)
    assert waiting.interrupt is not None
    assert calls == ["finalize", "finalize"]
    assert await world.effects(view.thread_id) == ["a"]


async def test_a_session_that_takes_its_workers_down_fails_instead_of_going_round_for_ever(
    api: Runtime, database_dsn: str, database: Database, world: World, start_worker: StartWorker
) -> None:
    worker = await start_worker(recovery=600.0)
    view = await api.service.start(script("gate:never"))
    await reached(world, view, "never")
    worker.kill()
    await worker.wait()
    timings = Timings(stalled=0.5)
    async with Queue(database_dsn) as queue:
        recovery = Recovery(Runs(database, queue), timings, attempts=1)
        await until(recovery.pass_once, "the lost run is found")
        assert await recovery.pass_once() == 0
    failed = await api.service.get(view.thread_id)
    assert failed.status == "error"
    assert failed.error is not None
    assert failed.error.code == "worker_lost"


async def test_two_workers_share_the_sessions_and_each_runs_once(
    api: Runtime, world: World, start_worker: StartWorker
) -> None:
    await start_worker()
    await start_worker()
    views = [await api.service.start(script("work:a", "work:b", "end:accepted")) for _ in range(20)]
    for view in views:
        assert (await api.service.wait(view.thread_id, WAIT)).status == "completed"
        assert await world.effects(view.thread_id) == ["a", "b"]


async def until_killed(process: Forked) -> None:
    async with asyncio.timeout(DEADLINE_SECS):
        await process.wait()


@pytest.mark.parametrize(
    ("poison", "deaths", "code"),
    [
        # At the same step each time: twice among neighbours, and once alone.
        (["poison:3,always"], 3, "session_quarantined"),
        # A step further each time: RUN_ATTEMPTS, the last one alone.
        pytest.param(
            ["poison:3,a", "poison:3,b", "poison:1,c", "poison:1,d", "poison:1,e"],
            5,
            "worker_lost",
            marks=pytest.mark.nightly,
        ),
    ],
)
async def test_p86_a_session_that_kills_workers_is_set_aside_alone(
    api: Runtime, world: World, start_worker: StartWorker, poison: list[str], deaths: int, code: str
) -> None:
    worker = await start_worker()
    neighbours = [await api.service.start(script("work:a", "gate:gate", "work:b", "end:accepted")) for _ in range(3)]
    poisoned = await api.service.start(script(*poison))
    for death in range(1, deaths):
        await until_killed(worker)
        if death == deaths - 1:
            await world.open_gate("gate")
        worker = await start_worker()
    # Tried alone, it takes down a worker that may have finished the neighbours, or not.
    await until_killed(worker)
    await start_worker()
    for neighbour in neighbours:
        view = await api.service.wait(neighbour.thread_id, WAIT)
        assert (view.status, view.outcome, view.error) == ("completed", "accepted", None)
        assert (await world.effects(neighbour.thread_id)).count("b") == 1
        await no_gaps(world, view)
    view = await api.service.wait(poisoned.thread_id, WAIT)
    assert (view.status, view.error and view.error.code) == ("error", code)
    assert await world.fetch("SELECT attempt FROM runs WHERE session_id = %s", poisoned.thread_id) == [(deaths - 1,)]
