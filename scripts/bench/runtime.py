"""Numbers of the runtime with a graph that does nothing: `python scripts/bench/runtime.py [ROW ...]`.

Rows: plain, question, throughput, latency, size, pickup, list, memory; by default all. Each line has what the first
implementation of this design and the spike for this one had, on their machine. The row `plain` says how this machine
compares: 18 steps by LangGraph with its own saver, without anything of ours. Where the machine is busy look at CPU time
and counts.

Starts an embedded Postgres of its own (durable, in a temporary folder), or uses the one that BENCH_POSTGRES_DSN names,
whose database must be empty.
"""

import asyncio
import gc
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg_pool import AsyncConnectionPool
from runtime_agent import STEPS, build_agent, build_graph

from flowise_dev_agent.caller import DEFAULT_OWNER, serving
from flowise_dev_agent.contracts.requests import ResumeSession, StartSession
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.persistence import Database, NewEvent
from flowise_dev_agent.persistence.database import Connection, patient
from flowise_dev_agent.persistence.events import insert
from flowise_dev_agent.persistence.notices import Notices
from flowise_dev_agent.runtime import Runtime

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Bench:
    """An engine without a worker, and the database that workers share with it."""

    engine: Runtime
    dsn: str

    @asynccontextmanager
    async def workers(self, count: int, concurrency: int = 20) -> AsyncGenerator[list[Process]]:
        """Worker processes that take up sessions; killed at the end."""
        async with AsyncExitStack() as stack:
            processes = [await asyncio.create_task(self._worker(concurrency)) for _ in range(count)]
            for process in processes:
                stack.push_async_callback(_end, process)
            yield processes

    async def _worker(self, concurrency: int) -> Process:
        script = str(Path(__file__).with_name("runtime_agent.py"))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            script,
            self.dsn,
            str(concurrency),
            stdout=PIPE,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
        )
        if process.stdout is None or await process.stdout.readline() != b"ready\n":
            raise SystemExit("a worker did not start")
        return process

    async def to_question(self, requirement: str = "bench") -> tuple[float, UUID]:
        """Seconds from the start to the first question."""
        began = time.perf_counter()
        view = await self.engine.service.start(StartSession(requirement=requirement))
        view = await self.engine.service.wait(view.thread_id, 300)
        if view.status != "pending_interrupt":
            raise SystemExit(f"a session ended as {view.status}: {view.error}")
        return time.perf_counter() - began, view.thread_id


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    await process.wait()


def show(name: str, value: str, first: str = "-", spike: str = "-") -> None:
    """One line of the table."""
    print(f"{name:<50} {value:<42} {first:<22} {spike}", flush=True)


def spread(seconds: list[float]) -> str:
    """Median and p99 in ms."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{statistics.median(ordered) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> int:
    """Memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20


async def plain_cpu(pool: AsyncConnectionPool[Connection], runs: int = 100) -> tuple[list[float], float]:
    """LangGraph with its own Postgres saver, one thread after the other: wall seconds of each, CPU seconds of one."""
    graph = build_graph(18)
    taken: list[float] = []
    cpu = 0.0
    for number in range(runs + 10):
        if number == 10:
            cpu = time.process_time()
        began = time.perf_counter()
        thread = graph.copy(update={"checkpointer": AsyncPostgresSaver(pool)})
        await thread.ainvoke({"step": 0}, {"configurable": {"thread_id": str(uuid4())}}, durability="sync")
        taken.append(time.perf_counter() - began)
    return taken[10:], (time.process_time() - cpu) / runs


async def plain(bench: Bench) -> None:
    """LangGraph alone, without anything of ours."""
    taken, cpu = await plain_cpu(bench.engine.db.pool)
    show("LangGraph alone, 18 steps, its own saver", f"{spread(taken)}, CPU {cpu * 1000:.1f} ms", "-", "20 ms")


async def question(bench: Bench) -> None:
    """From a start to the first question, one after the other, with one worker."""
    async with bench.workers(1) as (worker,):
        for _ in range(10):
            await bench.to_question()
        mine, its = time.process_time(), cpu_seconds(worker.pid)
        taken = [(await bench.to_question())[0] for _ in range(100)]
        mine, its = time.process_time() - mine, cpu_seconds(worker.pid) - its
    show(f"POST to first question, {STEPS} steps", spread(taken), "17 ms", "12.6-14.7 ms")
    show("  CPU of API, of worker", f"{mine * 10:.1f} ms, {its * 10:.1f} ms", "-", "9-14 ms")


async def throughput(bench: Bench) -> None:
    """Sessions brought to their first question, 200 started at once."""
    for count in (1, 2, 4):
        async with bench.workers(count) as workers:
            await asyncio.gather(*(bench.to_question() for _ in range(10 * count)))
            cpu = sum(cpu_seconds(worker.pid) for worker in workers)
            began = time.perf_counter()
            await asyncio.gather(*(bench.to_question() for _ in range(200)))
            rate = 200 / (time.perf_counter() - began)
            cpu = sum(cpu_seconds(worker.pid) for worker in workers) - cpu
        text = f"{rate:.0f} /s, worker CPU {cpu * 5:.1f} ms each"
        show(f"sessions/s to first question, {count} worker(s)", text, "73 /s", "82-110 /s")


async def latency(bench: Bench) -> None:
    """From the commit of an event to each reader of the session's stream."""
    async with bench.workers(1):
        sessions = [session_id for _, session_id in [await bench.to_question() for _ in range(100)]]
    for readers, spread_over, spike in (
        (1, 1, "2.0 ms, p99 3.9"),
        (100, 1, "6.2, p99 11.8"),
        (1000, 100, "2.6, p99 4.8"),
    ):
        lags = await _deliver(bench, sessions[:spread_over], readers // spread_over)
        show(f"commit to client, {readers} stream(s), {spread_over} session(s)", spread(lags), "1045 ms", spike)


async def _deliver(bench: Bench, sessions: list[UUID], readers: int, events: int = 100) -> list[float]:
    lags: list[float] = []
    committed: dict[int, float] = {}
    attached = asyncio.Semaphore(0)

    async def read(session_id: UUID, last: int) -> None:
        seen = 0
        # From the last event on, to know by it when the reader is there.
        async with aclosing(bench.engine.service.events(session_id, last - 1)) as stream:
            async for event in stream:
                if event.seq == last:
                    attached.release()
                else:
                    lags.append(time.perf_counter() - committed[int(event.summary)])
                    seen += 1
                    if seen == events // len(sessions):
                        return

    tasks: list[asyncio.Task[None]] = []
    for session_id in sessions:
        last = (await bench.engine.service.get(session_id)).last_event_seq
        tasks += [asyncio.create_task(read(session_id, last)) for _ in range(readers)]
    for _ in tasks:
        await attached.acquire()
    notices = Notices(bench.engine.db)
    for number in range(events):
        session_id = sessions[number % len(sessions)]
        async with bench.engine.db.connection() as connection:
            await insert(connection, session_id, None, [NewEvent("write", summary=str(number))])
            committed[number] = time.perf_counter()
        await notices.tell(session_id, "event")
        await asyncio.sleep(0.01)
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks)
    return lags


async def size(bench: Bench) -> None:
    """What one session keeps in Postgres."""
    async with bench.workers(1):
        _, session_id = await bench.to_question()
        waiting = await _size(bench.engine.db, session_id)
        await bench.engine.service.resume(session_id, ResumeSession(response="ok"))
        await bench.engine.service.wait(session_id, 60)
    show("checkpoints of a waiting session", waiting, "161 rows, 183 KB", "137 rows, 132 KB")
    show("checkpoints of a finished session", await _size(bench.engine.db, session_id), "-", "4 rows, 3 KB")


async def _size(db: Database, session_id: UUID) -> str:
    query = """
        SELECT count(*) AS n, COALESCE(sum(bytes), 0) AS bytes FROM (
            SELECT pg_column_size(t.*) AS bytes FROM checkpoints AS t WHERE thread_id = %(id)s
            UNION ALL SELECT pg_column_size(t.*) FROM checkpoint_blobs AS t WHERE thread_id = %(id)s
            UNION ALL SELECT pg_column_size(t.*) FROM checkpoint_writes AS t WHERE thread_id = %(id)s
        ) AS rows"""
    row = await db.fetch_one(query, {"id": str(session_id)})
    return f"{row['n']} rows, {row['bytes'] / 1024:.1f} KB" if row else "none"


async def pickup(bench: Bench) -> None:
    """From kill -9 of the worker of a session to its claim by another one, with the product's timings."""
    taken: list[float] = []
    for _ in range(3):
        async with bench.workers(1) as (owner,):
            view = await bench.engine.service.start(StartSession(requirement="stuck"))
            async with aclosing(bench.engine.service.events(view.thread_id)) as stream:
                await anext(stream)
            async with bench.workers(1):
                owner.kill()
                began = time.perf_counter()
                await _claimed_again(bench.engine.db, view.thread_id)
                taken.append(time.perf_counter() - began)
                await bench.engine.service.cancel(view.thread_id)
    show("pick-up after kill -9", f"{min(taken):.1f}-{max(taken):.1f} s of {len(taken)}", "never", "2-10 s")


async def _claimed_again(db: Database, session_id: UUID) -> None:
    query = "SELECT 1 FROM runs WHERE session_id = %s AND epoch > 1"
    while await db.fetch_one(query, (session_id,)) is None:  # noqa: ASYNC110 - it happens in another process
        await asyncio.sleep(0.02)


async def listing(bench: Bench) -> None:
    """The first page of 10 000 sessions, with totals, and a later one."""
    async with bench.engine.db.connection() as connection:
        await connection.execute(
            "INSERT INTO sessions (id, name, requirement, request, instance_id, status, created_at)"
            " SELECT gen_random_uuid(), 'Session ' || n, 'A bot for ' || n, '{}', 'default', 'completed',"
            " now() - make_interval(secs => n) FROM generate_series(1, 10000) AS n"
        )
        await connection.execute("ANALYZE sessions")
    first: list[float] = []
    later: list[float] = []
    for _ in range(20):
        began = time.perf_counter()
        page = await bench.engine.service.list(limit=100)
        first.append(time.perf_counter() - began)
        began = time.perf_counter()
        await bench.engine.service.list(limit=100, cursor=page.next_cursor)
        later.append(time.perf_counter() - began)
    show("list of 10 000 sessions, first 100 and totals", spread(first), "81 ms for 200", "one indexed query")
    show("  the next 100", spread(later))


async def memory(bench: Bench) -> None:
    """400 sessions in flight on one worker, each of seven steps of a second."""
    async with bench.workers(1, concurrency=400) as (worker,):
        began = time.perf_counter()
        views = [await bench.engine.service.start(StartSession(requirement="slow")) for _ in range(400)]
        peak = 0
        waiting = asyncio.gather(*(bench.engine.service.wait(view.thread_id, 300) for view in views))
        while not waiting.done():
            peak = max(peak, resident_mb(worker.pid))
            await asyncio.wait([waiting], timeout=0.2)
        taken = time.perf_counter() - began
    show("400 sessions in flight on one worker", f"{taken:.1f} s, {peak} MB", "-", "8.7 s, 110 MB")


ROWS: dict[str, Callable[[Bench], Awaitable[None]]] = {
    "plain": plain,
    "question": question,
    "throughput": throughput,
    "latency": latency,
    "size": size,
    "pickup": pickup,
    "list": listing,
    "memory": memory,
}


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


async def main(names: list[str]) -> None:
    """Measure and print."""
    if unknown := set(names) - set(ROWS):
        raise SystemExit(f"no such row: {', '.join(sorted(unknown))}")
    show("", "here", "first implementation", "spike")
    gc.freeze()  # as the service does
    async with database() as dsn:
        pool = Database(dsn, min_size=4, max_size=10)
        async with Runtime.assemble(pool, dsn, build_agent(), worker=False) as engine:
            # Where the machine is busy the waiting shall be measured, not the refusal to wait.
            with patient(60):
                for name in names or ROWS:
                    await ROWS[name](Bench(engine, dsn))


if __name__ == "__main__":
    with serving(DEFAULT_OWNER):
        asyncio.run(main(sys.argv[1:]))
