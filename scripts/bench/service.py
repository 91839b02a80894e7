"""The service under test and what its sessions cost; `session.py` measures with it."""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import httpx2
import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.persistence.database import Connection
from tests.support.sessions import KEPT

_ROOT = Path(__file__).resolve().parents[2]
_HERE = Path(__file__).resolve().parent
_TICK = os.sysconf("SC_CLK_TCK")
REQUIREMENT = "Build a customer support chatbot with GPT-4o and memory"

View = dict[str, Any]


def load() -> str:
    """Load of this machine, as the mean of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def show(name: str, value: str) -> None:
    """One line of the table."""
    print(f"{name:<50} {value}", flush=True)


def resident_mb(pid: int) -> int:
    """Memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20


@dataclass(frozen=True)
class Cost:
    """Use of a part of the bench, divided by its number of sessions. Seconds, also of the quickest session, of which
    Flowise and the model took so many; calls of Flowise by route."""

    wall: float
    shortest: float
    service: float
    postgres: float
    commits: float
    calls: Mapping[str, float]
    flowise: float
    model: float
    model_calls: float


@dataclass(frozen=True)
class Service:
    """The process under test."""

    process: Process
    http: httpx2.AsyncClient


STEPS = 18


class State(TypedDict, total=False):
    """Counts steps and keeps a plan of the usual size."""

    step: int
    plan: dict[str, Any]


async def _step(state: State) -> State:
    return State(step=state.get("step", 0) + 1, plan={"nodes": ["x" * 40] * 20})


async def plain_cpu(pool: AsyncConnectionPool[Connection], runs: int) -> float:
    """Run 18 steps, one thread after the other: CPU seconds of one."""
    builder = StateGraph(State)
    names = [f"step_{number}" for number in range(STEPS)]
    for name in names:
        builder.add_node(name, _step)
    for source, target in pairwise([START, *names, END]):
        builder.add_edge(source, target)
    graph = builder.compile()
    cpu = 0.0
    for number in range(runs + 10):
        if number == 10:
            cpu = time.process_time()
        thread = graph.copy(update={"checkpointer": AsyncPostgresSaver(pool)})
        await thread.ainvoke({"step": 0}, {"configurable": {"thread_id": str(uuid4())}}, durability="sync")
    return (time.process_time() - cpu) / runs


class Bench:
    """Postgres, and what is measured against it."""

    def __init__(self, postgres: EmbeddedPostgres, folder: Path, sessions: int, part: float) -> None:
        self.postgres = postgres
        self.folder = folder
        self.sessions = sessions
        self._part = part
        self.y = 0.0
        self._databases = 0

    async def unit(self) -> None:
        """Measure Y."""
        kwargs: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(self.database(), kwargs=kwargs, open=False)
        async with pool:
            await AsyncPostgresSaver(pool).setup()
            self.y = await plain_cpu(pool, 30)

    def sized(self, count: int) -> int:
        """The part of a number that shall be measured."""
        return max(1, round(count * self._part))

    def ratio(self, seconds: float) -> str:
        """Milliseconds and Y."""
        return f"{seconds * 1000:.0f} ms = {seconds / self.y:.2f} Y"

    @asynccontextmanager
    async def outside(self) -> AsyncGenerator[dict[str, str]]:
        """The addresses of Flowise and of the model."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(_HERE / "outside.py"), stdout=PIPE, env=environment({})
        )
        try:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            yield json.loads(await process.stdout.readline())
        finally:
            await _end(process)

    @asynccontextmanager
    async def service(self, outside: Mapping[str, str], **settings: str) -> AsyncGenerator[Service]:
        """A service that answers; on an empty database if the settings name none."""
        port = settings.setdefault("AGENT_API_PORT", str(20_000 + os.getpid() % 10_000 + self._databases))
        variables = {
            "POSTGRES_DSN": self.database(),
            "FLOWISE_API_ENDPOINT": outside["flowise"],
            "FLOWISE_API_KEY": "bench",
            "REASONING_ENGINE": "openai",
            "OPENAI_API_KEY": "sk-bench",
            "OPENAI_BASE_URL": f"{outside['model']}/openai/v1",
            "ANTHROPIC_API_KEY": "sk-ant-bench",
            "ANTHROPIC_BASE_URL": f"{outside['model']}/anthropic",
            "RATE_LIMIT_SESSIONS_PER_MIN": "0",
            "LOG_LEVEL": "WARNING",
            **settings,
        }
        process = await self._serve(variables)
        try:
            limits = httpx2.Limits(max_connections=None)
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=600, limits=limits) as http:
                await self._answering(process, http)
                yield Service(process, http)
        finally:
            await _end(process)

    async def _serve(self, variables: Mapping[str, str]) -> Process:
        with (self.folder / "service.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "flowise_dev_agent",
                "serve",
                cwd=self.folder,
                env=environment(variables),
                stdout=log,
                stderr=log,
            )

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


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Of a process under test: what a system needs, and `variables`."""
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


def kept(dsn: str, session: str) -> tuple[int, int]:
    """Rows and kilobytes that a session leaves in a database."""
    with psycopg.connect(dsn) as connection:
        rows, size = next(iter(connection.execute(KEPT, {"id": session})))
    return rows, round(size / 1000)


def _ticks(pid: int, *, own: bool) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in (fields[11:13] if own else fields[13:15]))


# --- sessions --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def costs(
    bench: Bench, service: Service, outside: Mapping[str, str], into: list[Cost], count: int
) -> AsyncGenerator[list[float]]:
    """Add what the block, which has `count` sessions, costs one. Takes the seconds of each, if they come in turn."""
    pid, walls = service.process.pid, list[float]()
    async with httpx2.AsyncClient() as http:
        await _usage(http, outside)
        commits, postgres, own, began = bench.commits(), bench.postgres_cpu(), tree_cpu(pid), time.perf_counter()
        yield walls
        wall, own, postgres = time.perf_counter() - began, tree_cpu(pid) - own, bench.postgres_cpu() - postgres
        flowise, model = await _usage(http, outside)
    await asyncio.sleep(1.1)  # a backend reports its transactions once a second
    into.append(
        Cost(
            wall / count,
            min(walls, default=wall / count),
            own / count,
            postgres / count,
            (bench.commits() - commits) / count,
            {name: number / count for name, number in flowise["calls"].items()},
            flowise["secs"] / count,
            model["secs"] / count,
            sum(model["calls"].values()) / count,
        )
    )


async def _usage(http: httpx2.AsyncClient, outside: Mapping[str, str]) -> tuple[View, View]:
    flowise, model = [(await http.get(f"{outside[name]}/counts")).json() for name in ("flowise", "model")]
    return flowise, model


async def ok(response: httpx2.Response) -> View:
    """The session of a response."""
    if response.status_code != 200:
        raise SystemExit(response.text)
    return response.json()


async def begin(http: httpx2.AsyncClient) -> View:
    """A session at its first question."""
    return await ok(await http.post("/sessions?wait=300", json={"requirement": REQUIREMENT}))


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
        show(f"{name}: {step}", f"{_line(bench, [cost])} ({calls})")
    show(f"{name}: whole", _line(bench, list(costs.values())))


def _line(bench: Bench, costs: Sequence[Cost]) -> str:
    wall, flowise, model = (
        sum(seconds) * 1000 for seconds in zip(*((cost.wall, cost.flowise, cost.model) for cost in costs), strict=True)
    )
    return (
        f"wall {wall:.0f} ms, shortest {sum(cost.shortest for cost in costs) * 1000:.0f} "
        f"(without Flowise {wall - flowise:.0f}, nor the model {wall - flowise - model:.0f}), "
        f"CPU {bench.ratio(sum(cost.service for cost in costs))}, "
        f"Postgres {bench.ratio(sum(cost.postgres for cost in costs))}, "
        f"commits {sum(cost.commits for cost in costs):.1f}, "
        f"Flowise {sum(sum(cost.calls.values()) for cost in costs):.3g}"
    )


async def in_steps(bench: Bench, service: Service, outside: Mapping[str, str]) -> dict[str, Cost]:
    """The costs of each step: all sessions take it, one after the other, before any takes the next."""
    found: list[Cost] = []
    async with costs(bench, service, outside, found, bench.sessions) as walls:
        views = [await _timed(begin(service.http), walls) for _ in range(bench.sessions)]
    for action in ("approve", "accept"):
        async with costs(bench, service, outside, found, bench.sessions) as walls:
            views = [await _timed(answer(service.http, view, action), walls) for view in views]
    if bad := [view["status"] for view in views if view["status"] != "completed"]:
        raise SystemExit(f"sessions ended as {Counter(bad)}: {views[0].get('error')}")
    return dict(zip(("first question", "approve", "accept"), found, strict=True))


async def _timed(step: Awaitable[View], walls: list[float]) -> View:
    began = time.perf_counter()
    view = await step
    walls.append(time.perf_counter() - began)
    return view


async def delay(outside: Mapping[str, str], secs: float) -> None:
    """Let each answer of the model take so long."""
    async with httpx2.AsyncClient() as http:
        await http.post(f"{outside['model']}/delay", json={"secs": secs})


async def starts(http: httpx2.AsyncClient, count: int) -> int:
    """So many sessions at their first question, started at once. How often a client was told to come again."""
    return sum(await asyncio.gather(*(_start(http) for _ in range(count))))


async def _start(http: httpx2.AsyncClient) -> int:
    key, again = {"Idempotency-Key": str(uuid4())}, 0
    while True:
        response = await http.post("/sessions?wait=300", json={"requirement": REQUIREMENT}, headers=key)
        if response.status_code != 503:
            await ok(response)
            return again
        again += 1
        await asyncio.sleep(float(response.headers["Retry-After"]))


# --- rows ------------------------------------------------------------------------------------------------------------


async def measure_rows(rows: Mapping[str, Callable[[Bench], Awaitable[None]]], about: str) -> None:
    """Measure and print the rows that the command line names."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--sessions", type=int, default=20, help="of each row that has one after the other")
    parser.add_argument("--part", type=float, default=1.0, help="of all other sizes, to see that the rows work")
    given = parser.parse_args()
    if unknown := set(given.rows) - set(rows):
        raise SystemExit(f"no such row: {', '.join(sorted(unknown))}")
    folder = Path(tempfile.mkdtemp(prefix="fda-bench-"))
    try:
        with EmbeddedPostgres(folder / "data") as postgres:
            bench = Bench(postgres, folder, given.sessions, given.part)
            for name in given.rows or list(rows)[:-1]:
                await _unit(bench, "Y: LangGraph alone, 18 steps, its own saver")
                await rows[name](bench)
                await _unit(bench, "Y after it")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _unit(bench: Bench, name: str) -> None:
    await bench.unit()
    show(name, f"{bench.y * 1000:.1f} ms, load {load()}")
