"""What the runtime tells Prometheus."""

import re

from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.schemas.requests import ResumeSession
from tests.fixtures.metrics import value_of
from tests.integration.sessions.conftest import StartWorker
from tests.runtime_world import World, running_engine, script, until

WAIT = 20.0


def measured(text: str, name: str) -> dict[str, float]:
    """Samples of a metric by their labels as written."""
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, flags=re.MULTILINE)
    return {labels: float(value) for labels, value in found}


async def test_a_scrape_tells_of_sessions_runs_steps_calls_queue_and_pool(engine: Runtime) -> None:
    runs = {end: value_of("fda_run_duration_seconds_count", kind="start", end=end) for end in ("waiting", "failed")}
    resumed = value_of("fda_run_duration_seconds_count", kind="resume", end="completed")
    work = value_of("fda_node_duration_seconds_count", node="work", status="ok")
    calls = value_of("fda_flowise_calls_total", route="GET /nodes")
    for words in (("work:a", "call:3", "ask:q"), ("fail",), ("ask:q",)):
        started = await engine.service.start(script(*words))
        view = await engine.service.wait(started.thread_id, WAIT)
    await engine.service.resume(view.thread_id, ResumeSession(response="ok"))
    await engine.service.wait(view.thread_id, WAIT)

    text = (await engine.health.metrics()).decode()
    assert measured(text, "fda_sessions") == {
        'status="in_progress"': 0,
        'status="pending_interrupt"': 1,
        'status="completed"': 1,
        'status="error"': 1,
        'status="cancelled"': 0,
    }
    assert value_of("fda_run_duration_seconds_count", kind="start", end="waiting") == runs["waiting"] + 2
    assert value_of("fda_run_duration_seconds_count", kind="start", end="failed") == runs["failed"] + 1
    assert value_of("fda_run_duration_seconds_count", kind="resume", end="completed") == resumed + 1
    assert value_of("fda_node_duration_seconds_count", node="work", status="ok") == work + 1
    assert value_of("fda_flowise_calls_total", route="GET /nodes") == calls + 3
    assert measured(text, "fda_queue_depth") == {'queue="runs"': 0, 'queue="webhooks"': 0}
    assert measured(text, "fda_workers") == {"": 1}
    assert measured(text, "fda_database_up") == {"": 1}
    assert measured(text, "fda_pool_connections_max") == {"": 8}
    assert measured(text, "fda_runs_active") == {"": 0}


async def test_what_waits_for_a_worker_shows_in_depth_and_age(api: Runtime) -> None:
    for _ in range(3):
        await api.service.start(script("work:a"))
    text = (await api.health.metrics()).decode()
    assert measured(text, "fda_queue_depth")['queue="runs"'] == 3
    assert measured(text, "fda_queue_oldest_seconds")['queue="runs"'] > 0
    assert measured(text, "fda_workers") == {"": 0}
    assert measured(text, "fda_sessions")['status="in_progress"'] == 3


async def test_a_killed_worker_is_not_counted_as_one_that_works(api: Runtime, start_worker: StartWorker) -> None:
    worker = await start_worker()

    async def workers(count: int) -> bool:
        ready = await api.health.readiness()
        counted = measured((await api.health.metrics()).decode(), "fda_workers")
        return ready.queue.workers == count and counted == {"": count}

    await until(lambda: workers(1), "the worker is counted")
    worker.kill()
    await until(lambda: workers(0), "it is so no longer")


async def test_p42_without_the_database_the_process_still_tells_of_itself(database_dsn: str, world: World) -> None:
    async with running_engine(database_dsn, worker=False) as engine:
        await engine.db.close()
        text = (await engine.health.metrics()).decode()
    assert measured(text, "fda_database_up") == {"": 0}
    assert "fda_runs_active" in text
    assert "fda_sessions{" not in text


async def test_model_costs_are_counted_by_phase(engine: Runtime) -> None:
    before = value_of("fda_model_tokens_total", phase="speech", direction="input")
    started = await engine.service.start(script("cost:250"))
    assert (await engine.service.wait(started.thread_id, WAIT)).status == "completed"
    assert value_of("fda_model_tokens_total", phase="speech", direction="input") == before + 250
