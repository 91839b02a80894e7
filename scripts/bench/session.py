"""What whole sessions cost: `python scripts/bench/session.py [ROW ...] [--sessions N]`.

Rows: start, idle, rules, openai, claude, update, question, flows, inflight, workers; by default all. Sessions go over
HTTP to the real command line (`serve`, with its worker), which has a real Postgres, and Flowise and model of
`outside.py`.

The unit is Y: the processor time of plain LangGraph with 18 steps and its own Postgres saver on this machine. It is
measured again before each row, so that what else the machine does weighs on both, and after it, to show whether it did.
Processor time is that of all threads; of Postgres that of all its processes. BENCH_POSTGRES_DSN is not read: the server
must be on this machine.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from runtime import plain_cpu, resident_mb

from flowise_dev_agent.caller import DEFAULT_OWNER, serving
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.persistence.database import Connection
from flowise_dev_agent.runtime.runs.worker import CONSUMERS

_ROOT = Path(__file__).resolve().parents[2]
_HERE = Path(__file__).resolve().parent
_TICK = os.sysconf("SC_CLK_TCK")
REQUIREMENT = "Build a customer support chatbot with GPT-4o and memory"
COLDER = "Set the temperature to 0.2, change nothing else"
#: Modules that are large and that few processes need.
_LARGE = ("anthropic", "openai", "mcp", "langsmith", "fastapi", "langgraph")

View = dict[str, Any]


def show(name: str, value: str) -> None:
    """One line of the table."""
    print(f"{name:<46} {value}", flush=True)


@dataclass(frozen=True)
class Cost:
    """What a part of the bench used, divided by its number of sessions. Seconds; calls by route."""

    wall: float
    service: float
    postgres: float
    commits: float
    calls: Mapping[str, float]


@dataclass(frozen=True)
class Service:
    """The process under test."""

    process: Process
    http: httpx2.AsyncClient
    workers: Sequence[Process] = ()


class Bench:
    """Postgres, and what is measured against it."""

    def __init__(self, postgres: EmbeddedPostgres, folder: Path, sessions: int) -> None:
        self.postgres = postgres
        self.folder = folder
        self.sessions = sessions
        self.y = 0.0
        self._databases = 0

    async def unit(self) -> None:
        """Measure Y."""
        kwargs: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(self.database(), kwargs=kwargs, open=False)
        async with pool:
            await AsyncPostgresSaver(pool).setup()
            self.y = (await plain_cpu(pool, 30))[1]

    def ratio(self, seconds: float) -> str:
        """Milliseconds and Y."""
        return f"{seconds * 1000:.0f} ms = {seconds / self.y:.2f} Y"

    @asynccontextmanager
    async def outside(self, model_secs: float = 0.0) -> AsyncGenerator[dict[str, str]]:
        """The addresses of Flowise and of the model."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(_HERE / "outside.py"), str(model_secs), stdout=PIPE, env=_environment({})
        )
        try:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            yield json.loads(await process.stdout.readline())
        finally:
            await _end(process)

    @asynccontextmanager
    async def service(
        self, outside: Mapping[str, str], *options: str, workers: int = 0, **settings: str
    ) -> AsyncGenerator[Service]:
        """A service that answers, and processes of workers; on an empty database if the settings name none."""
        port = settings.setdefault("AGENT_API_PORT", str(20_000 + os.getpid() % 10_000 + self._databases))
        variables = {
            "POSTGRES_DSN": self.database(),
            "FLOWISE_API_ENDPOINT": outside["flowise"],
            "FLOWISE_API_KEY": "bench",
            "REASONING_ENGINE": "deterministic",
            "OPENAI_API_KEY": "sk-bench",
            "OPENAI_BASE_URL": f"{outside['model']}/openai/v1",
            "ANTHROPIC_API_KEY": "sk-ant-bench",
            "ANTHROPIC_BASE_URL": f"{outside['model']}/anthropic",
            "RATE_LIMIT_SESSIONS_PER_MIN": "0",
            "LOG_LEVEL": "WARNING",
            **settings,
        }
        process = await self._command("serve", *options, variables=variables)
        others: list[Process] = []
        try:
            limits = httpx2.Limits(max_connections=None)
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=600, limits=limits) as http:
                await self._answering(process, http)
                others = [await self._command("worker", variables=variables) for _ in range(workers)]
                await self._working(variables["POSTGRES_DSN"], workers)
                yield Service(process, http, others)
        finally:
            for one in (*others, process):
                await _end(one)

    async def _command(self, *command: str, variables: Mapping[str, str]) -> Process:
        with (self.folder / "service.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "flowise_dev_agent",
                *command,
                cwd=self.folder,
                env=_environment(variables),
                stdout=log,
                stderr=log,
            )

    async def _working(self, dsn: str, workers: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            query = "SELECT count(*) FROM procrastinate_workers"
            while (row := connection.execute(query).fetchone()) and row[0] < workers * CONSUMERS:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def _answering(self, process: Process, http: httpx2.AsyncClient) -> None:
        while True:
            if process.returncode is not None:
                raise SystemExit((self.folder / "service.log").read_text())
            try:
                await http.get("/live")
            except httpx2.TransportError:
                await asyncio.sleep(0.01)
            else:
                return

    def database(self) -> str:
        """The DSN of a new one."""
        self._databases += 1
        return self.postgres.create_database(f"bench_{self._databases}")

    def commits(self) -> int:
        """Transactions of the server so far; each statement outside of a transaction is one."""
        with psycopg.connect(self.postgres.dsn(), autocommit=True) as connection:
            query = "SELECT sum(xact_commit)::bigint FROM pg_stat_database WHERE datname LIKE 'bench%'"
            row = connection.execute(query).fetchone()
        return int(row[0]) if row else 0

    def postgres_cpu(self) -> float:
        """Seconds of the server's processes, ended ones included."""
        return tree_cpu(self.postgres.pid)


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    await process.wait()


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "XDG_RUNTIME_DIR")}
    return {**kept, "PYTHONPATH": str(_ROOT), **variables}


def tree_cpu(pid: int) -> float:
    """Seconds of a process, of its children, and of those that have ended."""
    total = _ticks(pid, own=True) + _ticks(pid, own=False)
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            total += _ticks(int(child), own=True)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / _TICK


def _ticks(pid: int, *, own: bool) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in (fields[11:13] if own else fields[13:15]))


# --- sessions --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def costs(bench: Bench, service: Service, outside: Mapping[str, str], into: list[Cost]) -> AsyncGenerator[None]:
    """Add what the block costs one session."""
    pid, count = service.process.pid, bench.sessions
    async with httpx2.AsyncClient() as http:
        await http.get(f"{outside['flowise']}/counts")
        commits, postgres, own, began = bench.commits(), bench.postgres_cpu(), tree_cpu(pid), time.perf_counter()
        yield
        wall, own, postgres = time.perf_counter() - began, tree_cpu(pid) - own, bench.postgres_cpu() - postgres
        calls = (await http.get(f"{outside['flowise']}/counts")).json()
    await asyncio.sleep(1.1)  # a backend reports its transactions once a second
    into.append(
        Cost(
            wall / count,
            own / count,
            postgres / count,
            (bench.commits() - commits) / count,
            {name: number / count for name, number in calls.items()},
        )
    )


async def ok(response: httpx2.Response) -> View:
    """The session of a response."""
    if response.status_code != 200:
        raise SystemExit(response.text)
    return response.json()


async def begin(http: httpx2.AsyncClient, requirement: str = REQUIREMENT, **more: Any) -> View:
    """A session at its first question."""
    return await ok(await http.post("/sessions?wait=300", json={"requirement": requirement, **more}))


async def answer(http: httpx2.AsyncClient, view: View, action: str) -> View:
    """The session at its next question or its end."""
    if view["status"] != "pending_interrupt":
        raise SystemExit(f"a session ended as {view['status']}: {view.get('error')}")
    body = {"interrupt_id": view["interrupt"]["id"], "answer": {"action": action}}
    return await ok(await http.post(f"/sessions/{view['thread_id']}/resume?wait=300", json=body))


async def created(http: httpx2.AsyncClient) -> View:
    """A session that made a chatflow."""
    view = await answer(http, await begin(http), "approve")
    done = await answer(http, view, "accept")
    if done["outcome"] != "accepted":
        raise SystemExit(f"a session ended as {done['outcome']} {done.get('error')}")
    return done


def table(bench: Bench, name: str, costs: Mapping[str, Cost]) -> None:
    """A line per step and one for the whole."""
    for step, cost in costs.items():
        calls = ", ".join(f"{route} {number:.3g}" for route, number in sorted(cost.calls.items()))
        show(
            f"{name}: {step}",
            f"wall {cost.wall * 1000:.0f} ms, CPU {bench.ratio(cost.service)}, Postgres {bench.ratio(cost.postgres)}, "
            f"commits {cost.commits:.1f}, Flowise {sum(cost.calls.values()):.3g} ({calls})",
        )
    every = list(costs.values())
    show(
        f"{name}: whole",
        f"wall {sum(cost.wall for cost in every) * 1000:.0f} ms, "
        f"CPU {bench.ratio(sum(cost.service for cost in every))}, "
        f"Postgres {bench.ratio(sum(cost.postgres for cost in every))}, "
        f"commits {sum(cost.commits for cost in every):.1f}, "
        f"Flowise {sum(sum(cost.calls.values()) for cost in every):.3g}",
    )


async def in_steps(
    bench: Bench,
    service: Service,
    outside: Mapping[str, str],
    first: Callable[[int], Awaitable[View]],
    actions: tuple[str, ...],
) -> dict[str, Cost]:
    """The costs of each step: all sessions take it, one after the other, before any takes the next."""
    found: list[Cost] = []
    async with costs(bench, service, outside, found):
        views = [await first(number) for number in range(bench.sessions)]
    for action in actions:
        async with costs(bench, service, outside, found):
            views = [await answer(service.http, view, action) for view in views]
    if bad := [view["status"] for view in views if view["status"] != "completed"]:
        raise SystemExit(f"sessions ended as {Counter(bad)}: {views[0].get('error')}")
    return dict(zip(("first question", *actions), found, strict=True))


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
        ids = await _copies(service, outside, bench.sessions)
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
        (target,) = await _copies(service, outside, 1)
        found = await in_steps(
            bench,
            service,
            outside,
            lambda _: begin(service.http, "Which model does this flow use?", target=target),
            (),
        )
    table(bench, "question, rules", found)


async def _copies(service: Service, outside: Mapping[str, str], count: int) -> list[str]:
    made = await created(service.http)
    async with httpx2.AsyncClient(timeout=60) as http:
        body = {"id": made["chatflow_id"], "count": count}
        return (await http.post(f"{outside['flowise']}/copies", json=body)).json()


async def flows(bench: Bench) -> None:
    """New chatflows on a server that has many."""
    for count in (600, 10_000):
        async with bench.outside() as outside, bench.service(outside) as service:
            await _copies(service, outside, count)
            found = await in_steps(bench, service, outside, lambda _: begin(service.http), ("approve", "accept"))
        table(bench, f"CREATE, rules, {count} chatflows", found)


async def inflight(bench: Bench) -> None:
    """Sessions to their first question, all started at once, with a model that takes a second."""
    for count in (100, 400, 1_000):
        async with (
            bench.outside(model_secs=1.0) as outside,
            bench.service(
                outside,
                REASONING_ENGINE="openai",
                AGENT_WORKER_CONCURRENCY=str(count),
                AGENT_MAX_CONNECTIONS=str(2 * count),
            ) as service,
        ):
            # What is loaded and connected once is not the sessions'.
            await starts(service.http, 20)
            before, cpu = resident_mb(service.process.pid), tree_cpu(service.process.pid)
            began = time.perf_counter()
            all_ = asyncio.ensure_future(starts(service.http, count))
            peak = before
            while not all_.done():
                peak = max(peak, resident_mb(service.process.pid))
                await asyncio.wait([all_], timeout=0.1)
            await all_
            wall, cpu = time.perf_counter() - began, tree_cpu(service.process.pid) - cpu
        show(
            f"{count} starts at once, model calls of 1 s",
            f"{wall:.1f} s, CPU {bench.ratio(cpu / count)} each, {(peak - before) / count:.2f} MB each",
        )


async def starts(http: httpx2.AsyncClient, count: int) -> None:
    """So many sessions at their first question, started at once."""
    await asyncio.gather(*(begin(http) for _ in range(count)))


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
        ("serve", "flowise_dev_agent.cli.serve, flowise_dev_agent.api, flowise_dev_agent.runtime.dependencies"),
    ):
        show(f"modules of {name}", imports(modules))


def help_secs() -> float:
    """What the shortest command takes."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "flowise_dev_agent", "--help"]
    subprocess.run(command, check=True, capture_output=True, env=_environment({}))
    return time.perf_counter() - began


def imports(modules: str) -> str:
    """How many modules these import, of which large packages."""
    script = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=_environment({})
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
    "flows": flows,
    "inflight": inflight,
    "workers": workers,
}


async def main(names: list[str], sessions: int) -> None:
    """Measure and print."""
    if unknown := set(names) - set(ROWS):
        raise SystemExit(f"no such row: {', '.join(sorted(unknown))}")
    folder = Path(tempfile.mkdtemp(prefix="fda-bench-"))
    try:
        with EmbeddedPostgres(folder / "data") as postgres:
            bench = Bench(postgres, folder, sessions)
            for name in names or ROWS:
                await bench.unit()
                show("Y: LangGraph alone, 18 steps, its own saver", f"{bench.y * 1000:.1f} ms")
                await ROWS[name](bench)
                await bench.unit()
                show("Y after it", f"{bench.y * 1000:.1f} ms")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--sessions", type=int, default=20)
    given = parser.parse_args()
    with serving(DEFAULT_OWNER):
        asyncio.run(main(given.rows, given.sessions))
