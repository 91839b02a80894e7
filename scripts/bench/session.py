"""What whole sessions cost: `python scripts/bench/session.py [ROW ...] [--sessions N] [--part F]`.

Rows: start, idle, rules, openai, claude, update, question, events, inflight, workers; by default all. Sessions go over
HTTP to the real command line (`serve`, with its worker), which has a real Postgres, and Flowise and model of
`outside.py`.

The unit is Y: the processor time of plain LangGraph with 18 steps and its own Postgres saver on this machine. It is
measured again before each row, so that what else the machine does weighs on both, and after it, to show whether it did.
Processor time is that of all threads; of Postgres that of all its processes. BENCH_POSTGRES_DSN is not read: the server
must be on this machine.
"""

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

import httpx2
import psycopg
from service import (
    REQUIREMENT,
    Bench,
    Cost,
    View,
    begin,
    copies,
    costs,
    created,
    delay,
    environment,
    in_steps,
    load,
    measure_rows,
    ok,
    show,
    starts,
    table,
    tree_cpu,
)
from yardstick import resident_mb

from flowise_dev_agent.caller import DEFAULT_OWNER, serving
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres

COLDER = "Set the temperature to 0.2, change nothing else"
#: Modules that are large and that few processes need.
_LARGE = ("anthropic", "openai", "mcp", "langsmith", "fastapi", "langgraph")

# --- sessions --------------------------------------------------------------------------------------------------------


async def _create(bench: Bench, name: str, engine: str) -> None:
    async with bench.outside() as outside, bench.service(outside, REASONING_ENGINE=engine) as service:
        for _ in range(5):
            await created(service.http)
        found = await in_steps(bench, service, outside, lambda _: begin(service.http), ("approve", "accept"))
        show(f"CREATE, {name}: memory", f"{resident_mb(service.process.pid)} MB")
    table(bench, f"CREATE, {name}", found)


async def rules(bench: Bench) -> None:
    """A new chatflow by the rules."""
    await _create(bench, "rules", "deterministic")


async def openai(bench: Bench) -> None:
    """A new chatflow by a model behind OpenAI's API."""
    await _create(bench, "openai", "openai")


async def claude(bench: Bench) -> None:
    """A new chatflow by a model behind Anthropic's API."""
    await _create(bench, "claude", "claude")


async def update(bench: Bench) -> None:
    """A change of a chatflow, on a draft first."""
    async with bench.outside() as outside, bench.service(outside) as service:
        ids = await copies(service, outside, bench.sessions)
        found = await in_steps(
            bench,
            service,
            outside,
            lambda number: begin(service.http, COLDER, target=ids[number]),
            ("approve", "accept"),
        )
    table(bench, "UPDATE, rules", found)


async def question(bench: Bench) -> None:
    """A question about a chatflow, which ends with its answer."""
    async with bench.outside() as outside, bench.service(outside) as service:
        (target,) = await copies(service, outside, 1)
        found = await in_steps(
            bench,
            service,
            outside,
            lambda _: begin(service.http, "Which model does this flow use?", target=target),
            (),
        )
    table(bench, "question, rules", found)


# --- events ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrival:
    """When a client had an event, and when that was made; seconds. `seq` is None of one that is not stored."""

    seq: int | None
    made: float
    here: float


async def events(bench: Bench) -> None:
    """From an event to a client of the three streams that a CREATE has."""
    with commit_times(bench.postgres):
        for engine in ("deterministic", "openai"):
            dsn = bench.database()
            async with (
                bench.outside() as outside,
                bench.service(outside, POSTGRES_DSN=dsn, REASONING_ENGINE=engine) as service,
            ):
                for _ in range(5):
                    await created(service.http)
                followed = [await _followed(service.http) for _ in range(bench.sessions)]
            _show_arrivals(engine, followed, _committed(dsn, [session_id for session_id, _ in followed]))


@contextmanager
def commit_times(postgres: EmbeddedPostgres) -> Generator[None]:
    """Let the server keep when each transaction was committed, which costs the others nothing this way."""
    _set_at_restart(postgres, "ALTER SYSTEM SET track_commit_timestamp = on")
    try:
        yield
    finally:
        _set_at_restart(postgres, "ALTER SYSTEM RESET track_commit_timestamp")


def _set_at_restart(postgres: EmbeddedPostgres, statement: LiteralString) -> None:
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(statement)
    postgres.stop()
    postgres.start()


async def _followed(http: httpx2.AsyncClient) -> tuple[str, list[list[Arrival]]]:
    """A session that makes a chatflow, and what came by its streams."""
    streams = [await _stream(http, "/sessions/stream", {"requirement": REQUIREMENT})]
    session_id = str(streams[0][1]["session_id"])
    for action in ("approve", "accept"):
        view = await ok(await http.get(f"/sessions/{session_id}"))
        body = {"interrupt_id": view["interrupt"]["id"], "answer": {"action": action}}
        streams.append(await _stream(http, f"/sessions/{session_id}/stream", body))
    return session_id, [arrivals for arrivals, _ in streams]


async def _stream(http: httpx2.AsyncClient, path: str, body: View) -> tuple[list[Arrival], View]:
    """What came, and the last event."""
    async with http.stream("POST", path, json=body) as response:
        lines = [(time.time(), line) async for line in response.aiter_lines()]
    found = [(here, json.loads(line.removeprefix("data:"))) for here, line in lines if line.startswith("data:")]
    return [
        Arrival(event["seq"], datetime.fromisoformat(event["ts"]).timestamp(), here) for here, event in found
    ], found[-1][1]


def _committed(dsn: str, session_ids: Sequence[str]) -> dict[tuple[str, int], float]:
    """By session and number when an event was committed."""
    query = """
        SELECT session_id::text, seq, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM session_events
        WHERE session_id = ANY(%s::uuid[])"""
    with psycopg.connect(dsn) as connection:
        return {(id_, seq): moment for id_, seq, moment in connection.execute(query, (list(session_ids),))}


def _show_arrivals(
    engine: str, followed: Sequence[tuple[str, list[list[Arrival]]]], committed: Mapping[tuple[str, int], float]
) -> None:
    after_commit: dict[str, list[float]] = {}
    after_made: dict[str, list[float]] = {}
    for session_id, streams in followed:
        for arrivals in streams:
            stored = [(arrival, arrival.seq) for arrival in arrivals if arrival.seq is not None]
            for number, (arrival, seq) in enumerate(stored):
                kind = "the rest" if number else "first of a stream"
                after_commit.setdefault(kind, []).append(arrival.here - committed[session_id, seq])
                after_made.setdefault(kind, []).append(arrival.here - arrival.made)
            live = [arrival.here - arrival.made for arrival in arrivals if arrival.seq is None]
            after_made.setdefault("not stored", []).extend(live)
    for kind, lags in after_made.items():
        stored = f"after its commit {lag(after_commit[kind])}, " if kind in after_commit else ""
        if lags:
            show(f"event -> client, {engine}: {kind}", f"{stored}after it was made {lag(lags)}, of {len(lags)}")


def lag(seconds: Sequence[float]) -> str:
    """Median and 95th percentile in milliseconds."""
    ordered = sorted(seconds)
    return f"{statistics.median(ordered) * 1000:.1f} ms (p95 {ordered[int(len(ordered) * 0.95)] * 1000:.1f})"


# --- many at once ----------------------------------------------------------------------------------------------------


async def inflight(bench: Bench) -> None:
    """Sessions to their first question, all started at once, with a model that takes so many seconds."""
    for secs in (0, 1, 20):
        for count in map(bench.sized, (100, 400, 1_000)):
            await _inflight(bench, count, secs)


async def _inflight(bench: Bench, count: int, secs: int) -> None:
    found: list[Cost] = []
    await bench.unit()
    async with (
        bench.outside() as outside,
        bench.service(
            outside,
            REASONING_ENGINE="openai",
            AGENT_WORKER_CONCURRENCY=str(count),
            AGENT_MAX_CONNECTIONS=str(2 * count + 40),
        ) as service,
    ):
        # What is loaded and connected once is not the sessions'.
        await starts(service.http, 20)
        await delay(outside, secs)
        before = peak = resident_mb(service.process.pid)
        async with costs(bench, service, outside, found, count):
            all_ = asyncio.ensure_future(starts(service.http, count))
            while not all_.done():
                peak = max(peak, resident_mb(service.process.pid))
                await asyncio.wait([all_], timeout=0.1)
            again = await all_
    (cost,) = found
    wall, cpu = cost.wall * count, cost.service * count
    ideal = max(cpu, cost.model_calls * secs)
    show(
        f"{count} starts at once, model calls of {secs} s",
        f"{wall:.1f} s, {wall / cpu:.2f} times their processor time, {wall / ideal:.2f} times the ideal {ideal:.1f} s, "
        f"CPU {bench.ratio(cost.service)} each, Postgres {bench.ratio(cost.postgres)} each, "
        f"{(peak - before) / count:.2f} MB each, told to come again {again}, load {load()}",
    )


async def workers(bench: Bench) -> None:
    """Starts a second of one worker process and of two, beside a process that serves, all at once."""
    count = 5 * bench.sessions
    for number in (1, 2):
        async with (
            bench.outside() as outside,
            bench.service(outside, "--no-worker", workers=number, REASONING_ENGINE="openai") as service,
        ):
            await starts(service.http, 20)
            pids = [process.pid for process in (service.process, *service.workers)]
            own, began = sum(map(tree_cpu, pids)), time.perf_counter()
            await starts(service.http, count)
            wall, own = time.perf_counter() - began, sum(map(tree_cpu, pids)) - own
        show(
            f"{count} starts at once, worker processes: {number}",
            f"{count / wall:.1f} a second, CPU {bench.ratio(own / count)} each",
        )


# --- the process -----------------------------------------------------------------------------------------------------


async def idle(bench: Bench) -> None:
    """A service that nobody uses."""
    seconds = 40
    async with bench.outside() as outside, bench.service(outside) as service:
        await created(service.http)
        with psycopg.connect(bench.postgres.dsn(), autocommit=True) as connection:
            # Its transactions are not the service's.
            connection.execute("ALTER SYSTEM SET autovacuum = off")
            connection.execute("SELECT pg_reload_conf()")
        # Until all have reported what they did before: those that listen do when they are asked for life, each 30 s.
        await asyncio.sleep(45)
        pid = service.process.pid
        commits, own, postgres = bench.commits(), tree_cpu(pid), bench.postgres_cpu()
        await asyncio.sleep(seconds)
        own, postgres = tree_cpu(pid) - own, bench.postgres_cpu() - postgres
        commits = bench.commits() - commits
        with psycopg.connect(bench.postgres.dsn(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET autovacuum")
            connection.execute("SELECT pg_reload_conf()")
    show(
        "idle, a second",
        f"commits {commits / seconds:.1f}, CPU {own / seconds * 1000:.1f} ms, "
        f"Postgres {postgres / seconds * 1000:.1f} ms",
    )


async def start(bench: Bench) -> None:
    """Until the first answer, memory then, and what is imported."""
    taken: list[float] = []
    memory = 0
    dsn = bench.database()
    async with bench.outside() as outside:
        for _ in range(4):  # the first one migrates the database
            began = time.perf_counter()
            async with bench.service(outside, POSTGRES_DSN=dsn) as service:
                taken.append(time.perf_counter() - began)
                memory = resident_mb(service.process.pid)
    show("serve: first HTTP answer, memory", f"{min(taken):.2f} s ({spread(taken)}), {memory} MB")
    helps = [help_secs() for _ in range(7)]
    show("CLI --help", f"{min(helps):.2f} s ({spread(helps)})")
    for name, modules in (
        ("--help", "flowise_dev_agent.cli"),
        ("serve", "flowise_dev_agent.cli.serve, flowise_dev_agent.api, flowise_dev_agent.ops.dependencies"),
    ):
        show(f"modules of {name}", imports(modules))


def help_secs() -> float:
    """What the shortest command takes."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "flowise_dev_agent", "--help"]
    subprocess.run(command, check=True, capture_output=True, env=environment({}))
    return time.perf_counter() - began


def imports(modules: str) -> str:
    """How many modules these import, of which large packages."""
    script = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment({})
    )
    names = done.stdout.split()
    of = Counter(re.split(r"\.", name)[0] for name in names)
    large = ", ".join(f"{name} {of[name]}" for name in _LARGE if of[name])
    return f"{len(names)} ({large or 'none of the large ones'})"


def spread(seconds: list[float]) -> str:
    """Median and longest."""
    return f"median {statistics.median(seconds):.2f}, longest {max(seconds):.2f}"


ROWS: dict[str, Callable[[Bench], Awaitable[None]]] = {
    "start": start,
    "idle": idle,
    "rules": rules,
    "openai": openai,
    "claude": claude,
    "update": update,
    "question": question,
    "events": events,
    "inflight": inflight,
    "workers": workers,
}


if __name__ == "__main__":
    with serving(DEFAULT_OWNER):
        asyncio.run(measure_rows(ROWS, __doc__ or ""))
