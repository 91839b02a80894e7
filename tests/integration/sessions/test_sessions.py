"""Sessions from start to end in one process: answers, conflicts, idempotency, listing, deletion."""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from procrastinate import PsycopgConnector

from flowise_dev_agent.errors import (
    FlowiseUnreachableError,
    InvalidAnswerError,
    InvalidInputError,
    SessionConflictError,
    SessionNotFoundError,
    TraceNotFoundError,
)
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.persistence import Blobs, Events, Sessions
from flowise_dev_agent.persistence.queue import RUN_QUEUE, Jobs
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.schemas.interrupts import ClarificationInterrupt
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.service import ProcessHealth, WorkerState
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.schemas.verdict import Trace, TracedTurn
from flowise_dev_agent.sessions.feed import Feed
from tests.runtime_world import FAST, PLAN, RESULT, World, running_engine, script, until

WAIT = 20.0


def answer(view: SessionView, **value: Any) -> ResumeSession:
    assert view.interrupt is not None
    return ResumeSession(interrupt_id=view.interrupt.id, answer=value or {"ok": True})


async def begin(engine: Runtime, *words: str) -> SessionView:
    started = await engine.service.start(script(*words))
    return await engine.service.wait(started.thread_id, WAIT)


async def test_a_session_runs_to_its_question_and_after_the_answer_to_its_end(engine: Runtime, world: World) -> None:
    view = await begin(engine, "work:a", "ask:why", "work:b", "end:accepted")
    assert view.status == "pending_interrupt"
    assert view.interrupt is not None
    assert isinstance(view.interrupt, ClarificationInterrupt)
    assert (view.interrupt.message, view.interrupt.data.questions) == ("why", ["why"])
    assert view.session_name == "A script"
    assert view.phase == "labour"

    resumed = await engine.service.resume(view.thread_id, answer(view))
    assert resumed.status == "in_progress"
    assert resumed.interrupt is None
    done = await engine.service.wait(view.thread_id, WAIT)
    assert (done.status, done.outcome) == ("completed", "accepted")
    assert done.totals.model_calls == 1
    assert done.totals.phases_timed == 1
    assert done.totals.phase_durations_ms["labour"] >= 0
    assert await world.effects(view.thread_id) == ["a", "b"]


async def test_what_the_last_review_showed_is_there_after_its_answer(engine: Runtime) -> None:
    view = await begin(engine, "ask:plan", "ask:review-1", "ask:changes", "ask:review-2", "end:accepted")
    assert view.result is None
    for summary in ("review-1", "review-1", "review-2", "review-2"):
        await engine.service.resume(view.thread_id, answer(view))
        view = await engine.service.wait(view.thread_id, WAIT)
        assert view.result is not None
        assert view.result.summary == summary
    assert view.status == "completed"
    assert (view.result.tests, view.result.verdict) == (RESULT.tests, RESULT.verdict)


async def test_an_approved_plan_is_there_from_its_approval_on_until_another_one_is_approved(engine: Runtime) -> None:
    view = await begin(engine, "ask:plan-1", "ask:other", "ask:plan-2", "end:accepted")
    assert view.plan is None
    for text in ("plan-1", "plan-1", "plan-2"):
        at_once = await engine.service.resume(view.thread_id, answer(view))
        view = await engine.service.wait(view.thread_id, WAIT)
        for shown in (at_once, view):
            assert shown.plan is not None
            assert (shown.plan.text, shown.plan.contract) == (text, PLAN)
    told = await engine.summaries.of(view.thread_id)
    assert "## Approved plan\n\nplan-2\n" in told.summary


async def test_an_approved_plan_that_is_too_long_is_cut_and_the_answer_counts(engine: Runtime) -> None:
    view = await begin(engine, "ask:plan", "end:accepted")
    await engine.service.resume(view.thread_id, answer(view, dots=100_000))
    view = await engine.service.wait(view.thread_id, WAIT)
    assert view.status == "completed"
    assert view.plan is not None
    assert (view.plan.text, view.plan.contract) == ("", PLAN)


async def test_an_outcome_of_cancelled_ends_the_session_as_cancelled(engine: Runtime) -> None:
    assert (await begin(engine, "end:cancelled")).status == "cancelled"


async def test_p43_a_node_that_asks_runs_no_effect_twice(engine: Runtime, world: World) -> None:
    view = await begin(engine, "work:a", "ask:one", "work:b", "ask:two", "work:c")
    for _ in range(2):
        await engine.service.resume(view.thread_id, answer(view))
        view = await engine.service.wait(view.thread_id, WAIT)
    assert view.status == "completed"
    assert await world.effects(view.thread_id) == ["a", "b", "c"]


async def test_an_answer_that_does_not_fit_leaves_the_question_open(engine: Runtime) -> None:
    view = await begin(engine, "ask:one")
    with pytest.raises(InvalidAnswerError):
        await engine.service.resume(view.thread_id, ResumeSession(response="wrong"))
    assert (await engine.service.get(view.thread_id)).interrupt == view.interrupt


async def test_a_permanent_error_fails_the_session_with_its_own_words_and_can_be_retried(engine: Runtime) -> None:
    view = await begin(engine, "work:a", "fail")
    assert view.status == "error"
    assert view.error == Failure(
        code="flowise_auth",
        detail="Flowise at http://flowise.test refused the API key.",
        hint="Set FLOWISE_API_KEY.",
    )
    retried = await engine.service.retry(view.thread_id)
    assert (retried.status, retried.error) == ("in_progress", None)
    assert (await engine.service.wait(view.thread_id, WAIT)).status == "error"


async def test_p62_an_unexpected_exception_shows_its_kind_and_nothing_of_its_text(engine: Runtime) -> None:
    view = await begin(engine, "bug")
    assert view.error is not None
    assert view.error.code == "internal_error"
    events = [event async for event in _until_error(engine, view)]
    assert "sk-a-secret" not in view.model_dump_json() + "".join(event.model_dump_json() for event in events)
    assert "KeyError" in view.error.detail


async def _until_error(engine: Runtime, view: SessionView):
    async for event in engine.service.events(view.thread_id):
        yield event
        if event.type == "error":
            return


async def test_a_transient_error_is_tried_again_with_a_note_in_the_log(engine: Runtime, world: World) -> None:
    view = await begin(engine, "work:a", "flaky:2", "work:b")
    assert view.status == "completed"
    assert await world.effects(view.thread_id) == ["a", "flaky", "flaky", "flaky", "b"]
    events = [event async for event in engine.service.events(view.thread_id)]
    assert [event.data.attempt for event in events if event.type == "retry"] == [2, 3]


async def test_a_retry_starts_when_it_is_due_and_not_at_the_next_poll(database_dsn: str) -> None:
    async with running_engine(database_dsn, timings=replace(FAST, poll=600)) as engine:
        view = await begin(engine, "flaky:3")
    assert view.status == "completed"


async def test_what_was_queued_before_a_consumer_listened_starts_when_it_listens_and_not_at_the_next_poll(
    database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, queued = asyncio.Event(), asyncio.Event()
    listen, fetch = PsycopgConnector.listen_notify, Jobs.fetch_job

    async def listen_late(self: Any, on_notification: Any, channels: Any) -> None:
        await queued.wait()
        await listen(self, on_notification=on_notification, channels=channels)

    async def fetched(self: Jobs, queues: Any, worker_id: int) -> Any:
        job = await fetch(self, queues, worker_id)
        if RUN_QUEUE in queues and job is None:
            looked.set()
        return job

    monkeypatch.setattr(PsycopgConnector, "listen_notify", listen_late)
    monkeypatch.setattr(Jobs, "fetch_job", fetched)
    async with running_engine(database_dsn, timings=replace(FAST, poll=600)) as engine:
        await looked.wait()
        started = [await engine.service.start(script("end:accepted")) for _ in range(3)]
        queued.set()
        views = [await engine.service.wait(view.thread_id, WAIT) for view in started]
    assert [view.status for view in views] == ["completed"] * 3


async def test_transient_errors_end_in_a_failed_session_after_the_last_attempt(database_dsn: str) -> None:
    async with running_engine(database_dsn, attempts=2) as engine:
        view = await begin(engine, "flaky:9")
    assert view.status == "error"
    assert view.error is not None
    assert view.error.code == "flowise_timeout"
    assert await World(database_dsn).effects(view.thread_id) == ["flaky", "flaky"]


@pytest.mark.parametrize(("hours", "end"), [(1, "completed"), (0, "error")], ids=["back in time", "no patience"])
async def test_a_session_sleeps_until_flowise_is_back(
    database_dsn: str, monkeypatch: pytest.MonkeyPatch, hours: float, end: str
) -> None:
    monkeypatch.setattr("tests.runtime_world.FlowiseTimeoutError", FlowiseUnreachableError)
    async with running_engine(database_dsn, attempts=2, outage_secs=hours * 3600) as engine:
        view = await begin(engine, "flaky:5")
        assert view.status == end
        if end == "completed":
            events = [event async for event in engine.service.events(view.thread_id)]
            # Four of them are asleep, which uses up no attempt.
            assert [event.data.attempt for event in events if event.type == "retry"] == [2] * 5


async def test_cancel_ends_a_session_while_a_step_hangs(engine: Runtime, world: World) -> None:
    view = await engine.service.start(script("work:a", "gate:never", "work:b"))
    await until(lambda: _has(world, view, "never"), "the hanging step has begun")
    cancelled = await engine.service.cancel(view.thread_id)
    assert (cancelled.status, cancelled.outcome) == ("cancelled", "cancelled")
    health = await until(lambda: _no_runs(engine), "the run has ended")
    assert health.status == "ok"
    assert (await engine.service.cancel(view.thread_id)).status == "cancelled"
    assert (await engine.service.get(view.thread_id)).status == "cancelled"
    types = [event.type async for event in engine.service.events(view.thread_id)]
    assert types[-1] == "done"
    assert types.count("done") == 1


async def _has(world: World, view: SessionView, name: str) -> bool:
    return name in await world.effects(view.thread_id)


async def _no_runs(engine: Runtime) -> ProcessHealth | None:
    health = await engine.health.health()
    return health if health.worker and health.worker.runs == 0 else None


async def test_cancel_ends_a_waiting_session_and_refuses_a_completed_one(engine: Runtime) -> None:
    waiting = await begin(engine, "ask:one")
    assert (await engine.service.cancel(waiting.thread_id)).interrupt is None
    with pytest.raises(SessionConflictError):
        await engine.service.resume(waiting.thread_id, answer(waiting))
    completed = await begin(engine, "work:a")
    with pytest.raises(SessionConflictError, match="completed"):
        await engine.service.cancel(completed.thread_id)


async def test_p47_delete_leaves_no_row_of_the_session_even_while_it_runs(engine: Runtime, world: World) -> None:
    view = await engine.service.start(script("work:a", "gate:never"))
    await until(lambda: _has(world, view, "never"), "the hanging step has begun")
    await engine.service.delete(view.thread_id)
    await until(lambda: _no_runs(engine), "the run has ended")
    for table, column in [
        ("sessions", "id"),
        ("runs", "session_id"),
        ("session_events", "session_id"),
        ("checkpoints", "thread_id"),
        ("checkpoint_blobs", "thread_id"),
        ("checkpoint_writes", "thread_id"),
    ]:
        query = f"SELECT count(*) FROM {table} WHERE {column}::text = %s"  # noqa: S608 - names from the list above
        rows = await world.fetch(query, str(view.thread_id))
        assert rows == [(0,)], table
    with pytest.raises(SessionNotFoundError):
        await engine.service.get(view.thread_id)
    with pytest.raises(SessionNotFoundError):
        await engine.service.delete(view.thread_id)


async def test_p49_a_finished_thread_keeps_only_its_last_checkpoint(engine: Runtime, world: World) -> None:
    view = await begin(engine, *(f"work:{number}" for number in range(10)))
    rows = await world.fetch("SELECT count(*) FROM checkpoints WHERE thread_id = %s", str(view.thread_id))
    assert rows == [(1,)]


async def test_p46_the_list_pages_newest_first_and_filters_by_status(engine: Runtime) -> None:
    started = [await engine.service.start(script("ask:one")) for _ in range(5)]
    for view in started:
        await engine.service.wait(view.thread_id, WAIT)
    done = await begin(engine, "work:a")
    newest_first = [done.thread_id, *(view.thread_id for view in reversed(started))]
    seen: list[uuid.UUID] = []
    cursor = None
    while True:
        page = await engine.service.list(limit=2, cursor=cursor)
        seen += [view.thread_id for view in page.sessions]
        if (cursor := page.next_cursor) is None:
            break
    assert seen == newest_first
    waiting = await engine.service.list(status="pending_interrupt")
    assert [view.thread_id for view in waiting.sessions] == newest_first[1:]
    assert waiting.sessions[0].interrupt is not None
    assert not {"data", "response_schema"} & set(waiting.sessions[0].interrupt.model_dump())
    assert not {"plan", "result"} & set(waiting.sessions[0].model_dump())
    with pytest.raises(InvalidInputError, match="no status"):
        await engine.service.list(status="sleeping")
    with pytest.raises(InvalidInputError, match="cursor"):
        await engine.service.list(cursor="AAAA")


async def test_an_unknown_instance_is_refused_with_the_known_ones(engine: Runtime) -> None:
    with pytest.raises(InvalidInputError, match="main"):
        await engine.service.start(StartSession(requirement="work:a", flowise_instance_id="nope"))


async def test_a_session_can_be_renamed_and_keeps_its_name(engine: Runtime) -> None:
    view = await begin(engine, "ask:one")
    assert (await engine.service.rename(view.thread_id, "Mine")).session_name == "Mine"
    await engine.service.resume(view.thread_id, answer(view))
    assert (await engine.service.wait(view.thread_id, WAIT)).session_name == "Mine"


async def test_p41_waiting_ends_with_the_time_and_the_session_goes_on(engine: Runtime, world: World) -> None:
    view = await engine.service.start(script("gate:g", "end:accepted"))
    assert (await engine.service.wait(view.thread_id, 0.3)).status == "in_progress"
    await world.open_gate("g")
    assert (await engine.service.wait(view.thread_id, WAIT)).status == "completed"


async def test_whoever_watched_from_the_beginning_reads_the_session_when_it_is_idle(
    database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    get = Sessions.get

    async def counted(self: Sessions, session_id: uuid.UUID) -> Any:
        row = await get(self, session_id)
        reads.append(row.status)
        return row

    monkeypatch.setattr(Sessions, "get", counted)
    new_id = uuid.uuid4()
    # A poll, and the beginning of the feed's listening, have all waiters look: a notice may have been lost.
    async with running_engine(database_dsn, timings=replace(FAST, poll=600)) as engine:
        await until(lambda: _healthy(engine), "the feed listens")
        with engine.service.watch(new_id) as watched:
            view = await engine.service.start(script("end:accepted"), new_id=new_id)
            assert view.thread_id == new_id
            assert (await engine.service.wait(new_id, WAIT, watched)).status == "completed"
    assert reads == ["completed"]


async def test_polls_have_nobody_read_a_session_that_still_works_and_find_one_whose_notice_was_lost(
    database_dsn: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    polls: list[int] = []
    get, heads = Sessions.get, Events.heads

    async def counted(self: Sessions, session_id: uuid.UUID) -> Any:
        row = await get(self, session_id)
        reads.append(row.status)
        return row

    async def polled(self: Events, session_ids: Sequence[uuid.UUID]) -> Any:
        polls.append(len(session_ids))
        return await heads(self, session_ids)

    monkeypatch.setattr(Events, "heads", polled)
    monkeypatch.setattr(Feed, "notice", lambda *_: None)
    async with running_engine(database_dsn, timings=replace(FAST, poll=0.05)) as engine:
        await until(lambda: _healthy(engine), "the feed listens")
        view = await engine.service.start(script("gate:g", "end:accepted"))
        await until(lambda: _has(world, view, "g"), "the session works")
        monkeypatch.setattr(Sessions, "get", counted)
        waiting = [asyncio.create_task(engine.service.wait(view.thread_id, WAIT)) for _ in range(3)]
        await until(lambda: _seen(reads, 3), "all have looked once")
        polls.clear()
        await until(lambda: _seen(polls, 4), "polls have looked for all together")
        assert (len(reads), "completed" in reads, set(polls)) == (3, False, {1})
        await world.open_gate("g")
        assert {(await task).status for task in waiting} == {"completed"}
    assert reads[3:] == ["completed"] * 3


async def _seen(what: list[Any], count: int) -> bool:
    return len(what) >= count


async def test_health_names_database_queue_feed_and_worker(engine: Runtime, api: Runtime) -> None:
    report = await until(lambda: _healthy(engine), "all parts run")
    assert report.database.pending_migrations == []
    assert report.queue.workers >= 1
    assert report.worker == WorkerState(state="running", runs=0)
    ready = await engine.health.readiness()
    assert (ready.database.state, ready.database.pending_migrations) == ("ok", [])
    assert ready.queue.name == "runs"
    assert set(report.knowledge.instances) == {"main"}
    assert (await api.health.health()).worker is None


async def _healthy(engine: Runtime) -> ProcessHealth | None:
    report = await engine.health.health()
    return report if report.status == "ok" else None


async def _calls(engine: Runtime, view: SessionView, count: int) -> bool:
    running = await engine.service.get(view.thread_id)
    return (running.status, running.totals.flowise_calls) == ("in_progress", count)


async def test_a_session_counts_its_calls_to_flowise_over_all_its_runs_while_it_runs(
    engine: Runtime, world: World
) -> None:
    view = await engine.service.start(script("call:3", "work:a", "gate:g", "ask:one", "call:2"))
    await until(lambda: _has(world, view, "g"), "the calls are made")
    await until(lambda: _calls(engine, view, 3), "the calls are counted while it runs")
    await world.open_gate("g")
    waiting = await engine.service.wait(view.thread_id, WAIT)
    await engine.service.resume(view.thread_id, answer(waiting))
    done = await engine.service.wait(view.thread_id, WAIT)
    assert done.totals.flowise_calls == 5
    assert (await engine.service.list()).sessions[0].totals == done.totals


async def test_dd_069_a_session_tells_the_durations_of_its_nodes_and_phases(engine: Runtime) -> None:
    view = await begin(engine, "work:a", "work:b", "tell:1", "ask:q")
    totals = view.totals
    assert set(totals.node_durations_ms) == {"work", "tell"}
    assert totals.phase_durations_ms == {
        "labour": totals.node_durations_ms["work"],
        "speech": totals.node_durations_ms["tell"],
    }
    assert totals.phases_timed == 2


async def test_the_list_filters_by_instance_chatflow_and_words_and_sums_what_it_found(engine: Runtime) -> None:
    view = await begin(engine, "work:apples", "ask:pears")
    await begin(engine, "work:plums")
    searches: list[tuple[dict[str, Any], int]] = [
        ({"text": "APPL script"}, 1),
        ({"text": "apples plums"}, 0),
        ({"text": "?!"}, 0),
        ({"text": " "}, 2),
        ({"instance": "main"}, 2),
        ({"instance": "other"}, 0),
        ({"chatflow": "none"}, 0),
        ({"instance": "main", "text": "pears"}, 1),
    ]
    for filters, hits in searches:
        page = await engine.service.list(**filters)
        assert len(page.sessions) == hits, filters
        assert page.totals is not None
        assert page.totals.sessions == hits
    assert (await engine.service.list("pending_interrupt", text="pears")).sessions[0].thread_id == view.thread_id
    first = await engine.service.list(limit=1)
    assert (await engine.service.list(cursor=first.next_cursor)).totals is None


async def test_a_trace_is_read_in_its_own_session_only_and_other_texts_are_no_traces(engine: Runtime) -> None:
    mine, other = await begin(engine, "ask:q"), await begin(engine, "ask:q")
    blobs, trace = Blobs(engine.db), Trace(turns=[TracedTurn(said="Hi", answer="Hello")])
    sha256 = await blobs.put(mine.thread_id, trace.model_dump_json())
    flow = await blobs.put(mine.thread_id, '{"nodes":[],"edges":[]}')
    assert await engine.service.trace(mine.thread_id, sha256) == trace
    for session, wanted in ((other.thread_id, sha256), (mine.thread_id, flow), (mine.thread_id, "0" * 64)):
        with pytest.raises(TraceNotFoundError):
            await engine.service.trace(session, wanted)
    with pytest.raises(SessionNotFoundError):
        await engine.service.trace(uuid.uuid4(), sha256)


async def test_the_event_log_can_be_paged_and_narrowed_to_types(engine: Runtime) -> None:
    view = await begin(engine, "tell:5", "work:a", "ask:q")
    first = await engine.service.event_page(view.thread_id, limit=6)
    rest = await engine.service.event_page(view.thread_id, after_seq=first.next_after_seq or 0)
    assert [event.seq for event in [*first.events, *rest.events]] == list(range(1, view.last_event_seq + 1))
    assert rest.next_after_seq is None
    decisions = await engine.service.event_page(view.thread_id, types=["decision"], limit=3)
    assert [event.data.model_dump()["taken"] for event in decisions.events] == ["0", "1", "2"]
    more = await engine.service.event_page(view.thread_id, types=["decision"], after_seq=decisions.next_after_seq or 0)
    assert [event.data.model_dump()["taken"] for event in more.events] == ["3", "4"]
    with pytest.raises(SessionNotFoundError):
        await engine.service.event_page(uuid.uuid4())


async def test_p01_an_answer_to_a_question_that_was_answered_meanwhile_is_a_conflict(
    engine: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await begin(engine, "ask:one", "ask:two")
    claim = Sessions.resume

    async def late(self: Sessions, *args: Any, **named: Any) -> Any:
        # The slow answer has read question one; until it claims it, a quicker one leads to question two.
        monkeypatch.setattr(Sessions, "resume", claim)
        await engine.service.resume(view.thread_id, answer(view))
        await engine.service.wait(view.thread_id, WAIT)
        return await claim(self, *args, **named)

    monkeypatch.setattr(Sessions, "resume", late)
    with pytest.raises(SessionConflictError) as refused:
        await engine.service.resume(view.thread_id, ResumeSession(response="to question one"))
    open_ = (await engine.service.get(view.thread_id)).interrupt
    assert open_ is not None
    assert open_.message == "two"
    assert refused.value.details == {"status": "pending_interrupt", "interrupt_id": open_.id}
