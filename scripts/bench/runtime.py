"""Numbers of the runtime with a graph that does nothing: `python scripts/bench/runtime.py`.

Starts an embedded Postgres of its own (durable, in a temporary folder), or uses the one that BENCH_POSTGRES_DSN names,
whose database must be empty. API and worker share this process, as in `serve`.
"""

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict
from uuid import UUID

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.runtime import Agent, Engine, ResumeSession, StartSession
from flowise_dev_agent.settings import FlowiseSettings

STEPS = int(os.environ.get("BENCH_STEPS", "7"))
EVENTS = 200


class State(TypedDict, total=False):
    """Counts steps and keeps a plan of the usual size."""

    step: int
    plan: dict[str, Any]


def build_agent() -> Agent:
    """Seven steps, a question, a step that tells."""

    async def step(state: State) -> State:
        return State(step=state.get("step", 0) + 1, plan={"nodes": ["x" * 40] * 20})

    async def ask(state: State) -> State:
        interrupt({"type": "plan_approval", "reason": "bench", "message": "go on?", "options": [], "data": {}})
        return State(step=state.get("step", 0) + 1)

    async def tell(state: State, runtime: Runtime[None]) -> State:
        for number in range(EVENTS):
            data = {"at": time.perf_counter()}
            runtime.stream_writer(
                {"type": "write", "node": "tell", "phase": "bench", "summary": str(number), "data": data}
            )
            await asyncio.sleep(0.005)
        return State(step=state.get("step", 0) + 1)

    builder = StateGraph(State)
    names = [f"step_{number}" for number in range(STEPS)]
    for name in names:
        builder.add_node(name, step)
    builder.add_node("ask", ask)
    builder.add_node("tell", tell)
    path = [START, *names, "ask", "tell", END]
    for source, target in pairwise(path):
        builder.add_edge(source, target)
    return Agent(
        graph=builder.compile(),
        context=lambda session, lease, emit: None,
        initial_state=lambda request: {"step": 0},
        project=lambda values: {"iteration": values.get("step", 0)},
        check_answer=lambda interrupt, body: body.answer or {},
        instances=Instances(FlowiseSettings()),
        chatflow_url=lambda endpoint, chatflow_id: f"{endpoint}/canvas/{chatflow_id}",
        node_phases=dict.fromkeys(path, "bench"),
    )


@asynccontextmanager
async def database() -> AsyncGenerator[str]:
    """DSN of an empty database."""
    if dsn := os.environ.get("BENCH_POSTGRES_DSN"):
        yield dsn
        return
    folder = Path(tempfile.mkdtemp(prefix="fda-bench-"))
    try:
        with EmbeddedPostgres(folder / "data") as server:
            yield server.create_database("bench")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def to_question(engine: Engine) -> tuple[float, UUID]:
    """Seconds from the start to the first question."""
    began = time.perf_counter()
    view = await engine.service.start(StartSession(requirement="bench"))
    view = await engine.service.wait(view.thread_id, 60)
    if view.status != "pending_interrupt":
        raise SystemExit(f"a session ended as {view.status}: {view.error}")
    return time.perf_counter() - began, view.thread_id


def show(name: str, values: list[float], unit: str = "ms", factor: float = 1000) -> None:
    """One line: median and p99."""
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(f"{name:<58} {statistics.median(ordered) * factor:8.1f} {unit}   p99 {p99 * factor:8.1f} {unit}")


async def throughput(engine: Engine, sessions: int) -> tuple[float, float]:
    """Sessions brought to their first question per second, all started at once, and CPU seconds for each."""
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(to_question(engine) for _ in range(sessions)))
    return sessions / (time.perf_counter() - began), (time.process_time() - cpu) / sessions


async def delivery(engine: Engine, session_id: UUID, readers: int) -> list[float]:
    """Seconds from a node's event, over its commit, to each reader of the session's stream."""
    lags: list[float] = []
    first = (await engine.service.get(session_id)).last_event_seq + 1
    attached = asyncio.Semaphore(0)

    async def read() -> None:
        async with aclosing(engine.service.events(session_id, first - 2)) as stream:
            async for event in stream:
                attached.release()
                if event.type == "write":
                    lags.append(time.perf_counter() - event.data["at"])
                if event.type == "done":
                    return

    tasks = [asyncio.create_task(read()) for _ in range(readers)]
    for _ in range(readers):
        await attached.acquire()
    await engine.service.resume(session_id, ResumeSession(response="ok"))
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks)
    return lags


async def size(db: Database, session_id: UUID) -> str:
    """Rows and bytes of a session in the saver's tables."""
    query = """
        SELECT count(*) AS n, COALESCE(sum(bytes), 0) AS bytes FROM (
            SELECT pg_column_size(t.*) AS bytes FROM checkpoints AS t WHERE thread_id = %(id)s
            UNION ALL SELECT pg_column_size(t.*) FROM checkpoint_blobs AS t WHERE thread_id = %(id)s
            UNION ALL SELECT pg_column_size(t.*) FROM checkpoint_writes AS t WHERE thread_id = %(id)s
        ) AS rows"""
    row = await db.fetch_one(query, {"id": str(session_id)})
    return f"{row['n']} rows, {row['bytes'] / 1024:.1f} KB" if row else "none"


async def main() -> None:
    """Measure and print."""
    async with database() as dsn:
        pool = Database(dsn, min_size=4, max_size=10)
        async with Engine.assemble(pool, dsn, build_agent(), worker=True, concurrency=20) as engine:
            for _ in range(10):
                await to_question(engine)
            runs = [await to_question(engine) for _ in range(100)]
            show(f"POST to first question, {STEPS} steps", [seconds for seconds, _ in runs])
            rate, cpu = await throughput(engine, 200)
            print(
                f"{'sessions/s to the first question, 200 at once':<58} {rate:8.1f} /s   CPU {cpu * 1000:5.1f} ms each"
            )
            session_id = runs[0][1]
            print(f"{'checkpoints of a waiting session':<58} {await size(engine.db, session_id)}")
            await engine.service.resume(session_id, ResumeSession(response="ok"))
            await engine.service.wait(session_id, 30)
            print(f"{'checkpoints of a finished session':<58} {await size(engine.db, session_id)}")
            for readers in (2, 100):
                lags = await delivery(engine, runs[readers - 1][1], readers)
                show(f"a node's event to {readers} reader(s) of one session", lags)
            began = time.perf_counter()
            page = await engine.service.list(limit=200)
            print(f"{f'list of {len(page.sessions)} sessions':<58} {(time.perf_counter() - began) * 1000:8.1f} ms")


if __name__ == "__main__":
    asyncio.run(main())
