"""Cost of whole sessions: `python scripts/bench/session.py [ROW ...] [--sessions N] [--part F]`.

Rows: start, openai, claude, inflight, many; by default all but the last, in about two minutes on an idle machine. Each
ends with what the first implementation took, measured against a real Flowise on another day: only Y compares. Sessions
go over HTTP to the real command line (`serve`, with its worker), which has a real Postgres, and Flowise and model of
`outside.py`.

The unit is Y: the processor time of plain LangGraph with 18 steps and its own Postgres saver on this machine. It is
measured again before each row, so that what else the machine does weighs on both, and after it, to show whether it did.
Processor time is that of all threads; of Postgres that of all its processes. BENCH_POSTGRES_DSN is not read: the server
must be on this machine.
"""

import asyncio
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from service import (
    Bench,
    Cost,
    costs,
    created,
    delay,
    environment,
    in_steps,
    kept,
    load,
    measure_rows,
    resident_mb,
    show,
    starts,
    table,
    tree_cpu,
)

from flowise_dev_agent.caller import DEFAULT_OWNER, serving

#: Modules that are large and that few processes need.
_LARGE = ("anthropic", "openai", "mcp", "langsmith", "fastapi", "langgraph")

# --- sessions --------------------------------------------------------------------------------------------------------


async def _create(bench: Bench, name: str, engine: str, first: str) -> None:
    dsn = bench.database()
    async with (
        bench.outside() as outside,
        bench.service(outside, REASONING_ENGINE=engine, POSTGRES_DSN=dsn) as service,
    ):
        pid, taken = service.process.pid, list[float]()
        for _ in range(5):
            taken.append(-tree_cpu(pid))
            await created(service.http)
            taken[-1] += tree_cpu(pid)
        found = await in_steps(bench, service, outside)
        memory = resident_mb(pid)
        rows, kilobytes = kept(dsn, (await created(service.http))["thread_id"])
    table(bench, f"CREATE, {name}", found)
    show(f"CREATE, {name}: first of a process", f"{taken[0] - min(taken):.2f} s of processor time beyond the others")
    show(f"CREATE, {name}: kept; memory", f"{rows} rows, {kilobytes} KB; {memory} MB")
    show("first implementation", first)


async def openai(bench: Bench) -> None:
    """A new chatflow by a model behind OpenAI's API."""
    await _create(bench, "openai", "openai", "CPU 2.58 Y, Postgres 0.72 Y, Flowise 3; 161 rows, 94 KB; 147 MB")


async def claude(bench: Bench) -> None:
    """A new chatflow by a model behind Anthropic's API."""
    await _create(bench, "claude", "claude", "CPU 2.45 Y, Postgres 0.76 Y, Flowise 3; 161 rows, 94 KB; 147 MB")


# --- many at once ----------------------------------------------------------------------------------------------------


async def inflight(bench: Bench) -> None:
    """100 sessions to their first question, all started at once, with a model that takes a second."""
    await _inflight(bench, bench.sized(100), 1)
    show("first implementation", "4.2-4.6 s")


async def many(bench: Bench) -> None:
    """The same of other numbers and models: a quarter of an hour."""
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
            # 100 at once need no settings.
            **(
                {"AGENT_WORKER_CONCURRENCY": str(count), "AGENT_MAX_CONNECTIONS": str(2 * count + 40)}
                if count > 100
                else {}
            ),
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


# --- the process -----------------------------------------------------------------------------------------------------


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
    show("first implementation", "first answer 1.5 s")


def help_secs() -> float:
    """Time of the shortest command."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "flowise_dev_agent", "--help"]
    subprocess.run(command, check=True, capture_output=True, env=environment({}))
    return time.perf_counter() - began


def imports(modules: str) -> str:
    """Number of modules that these import, with the large packages among them."""
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
    "openai": openai,
    "claude": claude,
    "inflight": inflight,
    "many": many,
}


if __name__ == "__main__":
    with serving(DEFAULT_OWNER):
        asyncio.run(measure_rows(ROWS, __doc__ or ""))
