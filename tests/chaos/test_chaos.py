"""Many sessions while everything under them breaks: real processes, a real Postgres, Flowise over real HTTP.

A short one with the clock of tests, and a long one with that of production: `make chaos`, `make nightly`, with
CHAOS_SESSIONS sessions.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from flowise_dev_agent.client import AgentClient, ServiceError, ServiceUnreachableError
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.timings import Timings
from tests.chaos.fake_flowise import CREDENTIALS, FakeFlowise
from tests.e2e.people import make_flow
from tests.e2e.scripted import COLDER, REQUIREMENT, SUPPORT, change, model_environment, script
from tests.e2e.service import QUICK, ServiceProcess
from tests.fixtures.golden_flows import chat
from tests.fixtures.postgres import restart
from tests.fixtures.proxy import FaultyProxy

CONTENDERS = 3
SECRET = "flowise-key-that-must-stay-inside"
RESTART_SECS = 0.5


@dataclass(frozen=True)
class Scale:
    """How many sessions, by which clock."""

    sessions: int
    timings: Timings

    @property
    def frozen_secs(self) -> float:
        """Long enough for the workers that are left to see that another one is silent and to take its runs."""
        return self.timings.stalled + 2 * self.timings.recovery

    @property
    def deadline_secs(self) -> float:
        return 60 + self.sessions * 8.0


SHORT = Scale(12, QUICK)
LONG = Scale(int(os.environ.get("CHAOS_SESSIONS", "60")), Timings())


@pytest.fixture(
    params=[
        pytest.param(SHORT, id="short"),
        pytest.param(LONG, id="long", marks=[pytest.mark.nightly, pytest.mark.timeout(LONG.deadline_secs + 60)]),
    ]
)
def scale(request: pytest.FixtureRequest) -> Scale:
    return request.param


@pytest.fixture
def postgres() -> Iterator[EmbeddedPostgres]:
    """A durable server of this test's own: what is committed must outlive an immediate stop."""
    folder = Path(tempfile.mkdtemp(prefix="fda-chaos-"))
    try:
        with EmbeddedPostgres(folder / "data") as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Cluster:
    """One API process and two workers on one database, and what may happen to them.

    A worker that ends is started again, as every process manager does: it may be killed, and one that starts while
    Postgres is away says so and gives up.
    """

    def __init__(self, postgres: EmbeddedPostgres, environment: dict[str, str], folder: Path, timings: Timings) -> None:
        self.postgres = postgres
        self._timings = timings
        self._environment = environment
        self._folder = folder
        self._count = 0
        self.api = self._process("serve", "--no-worker")
        self.workers = [self._process("worker"), self._process("worker")]
        self._managers: list[asyncio.Task[None]] = []
        self.log: list[str] = []
        self._began = time.monotonic()

    def _process(self, *command: str) -> ServiceProcess:
        self._count += 1
        folder = self._folder / f"process-{self._count}"
        folder.mkdir()
        return ServiceProcess(self._environment, folder, *command, timings=self._timings)

    def note(self, text: str) -> None:
        self.log.append(f"{time.monotonic() - self._began:6.1f} s  {text}")

    def logs(self) -> str:
        """The last lines of every process."""
        lines = [f"--- {path.parent.name}\n{path.read_text()[-3000:]}" for path in self._folder.glob("*/service.log")]
        return "\n".join(lines)

    async def start(self) -> None:
        await self.api.start()
        for index, worker in enumerate(self.workers):
            await worker.launch()
            self._managers.append(asyncio.create_task(self._manage(index)))

    async def _manage(self, index: int) -> None:
        while True:
            code = await self.workers[index].ended()
            self.note(f"worker {index} ended ({code}); starting another one")
            await asyncio.sleep(RESTART_SECS)
            self.workers[index] = self._process("worker")
            await self.workers[index].launch()

    async def stop(self) -> None:
        for manager in self._managers:
            manager.cancel()
        await asyncio.gather(*self._managers, return_exceptions=True)
        for process in (self.api, *self.workers):
            await process.kill()

    async def freeze(self, index: int, seconds: float) -> None:
        self.send(index, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.send(index, signal.SIGCONT)

    def send(self, index: int, number: signal.Signals) -> None:
        self.note(f"{number.name} of worker {index}")
        with suppress(ProcessLookupError):  # it may have ended and wait to be started again
            self.workers[index].send(number)

    async def restart_postgres(self, *, immediate: bool) -> None:
        self.note(f"restart of Postgres{', immediate' if immediate else ''}")
        if immediate:
            os.kill(self.postgres.pid, signal.SIGQUIT)
        await asyncio.to_thread(restart, self.postgres)
        self.note("Postgres is back")


@pytest.fixture
def fake_flowise() -> Iterator[FakeFlowise]:
    with FakeFlowise(api_key=SECRET) as server:
        yield server


@pytest.fixture
def proxy(fake_flowise: FakeFlowise) -> Iterator[FaultyProxy]:
    with FaultyProxy("127.0.0.1", fake_flowise.port) as proxy:
        yield proxy


def make_cluster(
    postgres: EmbeddedPostgres, proxy: FaultyProxy, api_key: str, folder: Path, timings: Timings, standin: ModelStandIn
) -> Cluster:
    script(standin, SUPPORT, when=REQUIREMENT)
    script(standin, change("chatOpenAI_0", "temperature", 0.2), when=COLDER)
    environment = {
        **model_environment(standin),
        "POSTGRES_DSN": postgres.create_database("chaos"),
        "FLOWISE_API_ENDPOINT": proxy.endpoint,
        "FLOWISE_API_KEY": api_key,
        # A run may be hit by each of the disasters and by several lost answers.
        "RUN_ATTEMPTS": "20",
        "LOG_LEVEL": "WARNING",
    }
    return Cluster(postgres, environment, folder, timings)


@pytest.fixture
async def cluster(
    postgres: EmbeddedPostgres, proxy: FaultyProxy, tmp_path: Path, scale: Scale, standin: ModelStandIn
) -> AsyncIterator[Cluster]:
    cluster = make_cluster(postgres, proxy, SECRET, tmp_path, scale.timings, standin)
    await cluster.start()
    yield cluster
    await cluster.stop()


async def persistently(call: Any) -> Any:
    """The result of a call that is safe to repeat, over outages; what the service refuses is raised."""
    while True:
        try:
            return await call()
        except ServiceUnreachableError:
            await asyncio.sleep(0.2)
        except ServiceError as error:
            if error.status != 503:
                raise
            await asyncio.sleep(0.2)


async def begin(client: AgentClient, target: str | None) -> SessionView:
    """A session that makes a flow, or changes the target on a draft."""
    key = uuid4().hex
    body = StartSession(requirement=COLDER, target=target) if target else StartSession(requirement=REQUIREMENT)
    return await persistently(lambda: client.start(body, idempotency_key=key))


async def settled(client: AgentClient, session_id: UUID) -> SessionView:
    while True:
        view = await persistently(lambda: client.get(session_id))
        if view.error and view.error.code == "session_quarantined":
            # Two disasters hit one step. A person who knows why tries it again.
            await persistently(lambda: client.retry(session_id))
        elif not view.in_progress:
            return view
        await asyncio.sleep(0.3)


async def contend(client: AgentClient, view: SessionView, action: str) -> bool:
    """Answer the open question once, as one of several; whether this answer was taken."""
    assert view.interrupt is not None
    body = ResumeSession(interrupt_id=view.interrupt.id, answer={"action": action})
    key = uuid4().hex
    try:
        await persistently(lambda: client.resume(view.thread_id, body, idempotency_key=key))
    except ServiceError as error:
        if (error.status, error.problem_code) != (409, "session_conflict"):
            raise
        return False
    return True


async def all_settled(client: AgentClient, views: list[SessionView], interrupt: str | None) -> list[SessionView]:
    found = list(await asyncio.gather(*(settled(client, view.thread_id) for view in views)))
    for view in found:
        assert (view.interrupt.type if view.interrupt else None) == interrupt, (view.status, view.error)
    return found


def rows(dsn: str, query: Any, *params: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, connect_timeout=5) as connection:
        return connection.execute(query, params).fetchall()


def check_threads(dsn: str) -> None:
    """Checkpoints form one line per session: no checkpoint has two successors."""
    forks = rows(
        dsn,
        "SELECT thread_id, parent_checkpoint_id FROM checkpoints WHERE parent_checkpoint_id IS NOT NULL"
        " GROUP BY 1, 2 HAVING count(*) > 1",
    )
    assert forks == []


def check_database(dsn: str, views: list[SessionView]) -> None:
    """Event sequences without gaps, one end each, one winner per question, and no secret in any table."""
    for session_id, head, count, low, high, ends in rows(
        dsn,
        "SELECT s.id, s.event_seq, count(*), min(e.seq), max(e.seq), count(*) FILTER (WHERE e.type = 'done')"
        " FROM sessions AS s JOIN session_events AS e ON e.session_id = s.id GROUP BY 1, 2",
    ):
        assert (low, high, count, ends) == (1, head, head, 1), session_id
    answered = rows(dsn, "SELECT session_id, interrupt_id, count(*) FROM runs WHERE kind = 'resume' GROUP BY 1, 2")
    assert len(answered) == 2 * len(views)
    assert {count for _, _, count in answered} == {1}
    assert rows(dsn, "SELECT count(*) FROM runs WHERE status IN ('queued', 'running')") == [(0,)]
    for (table,) in rows(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        query = sql.SQL("SELECT count(*) FROM {} AS t WHERE t::text LIKE %s").format(sql.Identifier(table))
        assert rows(dsn, query, f"%{SECRET}%") == [(0,)], table


def unsettled(dsn: str) -> str:
    """What the database says of the runs that have not ended: the words of a failed test."""
    found = rows(
        dsn,
        "SELECT r.id, r.kind, r.status, r.epoch, r.attempt, now() - r.updated_at, j.id, j.status, j.attempts,"
        " j.scheduled_at - now(), now() - w.last_heartbeat"
        " FROM runs AS r LEFT JOIN procrastinate_jobs AS j ON j.id = r.job_id"
        " LEFT JOIN procrastinate_workers AS w ON w.id = j.worker_id WHERE r.status IN ('queued', 'running')",
    )
    return "\n".join(" ".join(map(str, row)) for row in found)


async def survived(
    cluster: Cluster, postgres: EmbeddedPostgres, proxy: FaultyProxy, scale: Scale, targets: list[str]
) -> list[SessionView]:
    """The sessions after all disasters: accepted, each with its own flow, and the database in order."""
    dsn = postgres.dsn("chaos")
    try:
        async with asyncio.timeout(scale.deadline_secs), AgentClient(cluster.api.url) as client:
            done = await disasters(cluster, client, proxy, dsn, scale, targets)
    except TimeoutError:
        pytest.fail("\n".join(["Not settled in time.", *cluster.log, unsettled(dsn), cluster.logs()]))

    print("\n".join(["", *cluster.log]))
    assert {(view.status, view.outcome) for view in done} == {("completed", "accepted")}
    assert len({view.chatflow_id for view in done}) == scale.sessions
    assert [view.chatflow_id for view in done[: len(targets)]] == targets
    assert all(view.totals.flowise_calls > 0 for view in done)
    check_database(dsn, done)
    return done


def temperature(flow_data: str) -> str:
    (model,) = [node for node in json.loads(flow_data)["nodes"] if node["data"]["name"].startswith("chatOpenAI")]
    return str(model["data"]["inputs"]["temperature"])


async def test_p01_p02_p11_p40_p42_every_session_ends_once_whatever_breaks(
    cluster: Cluster, postgres: EmbeddedPostgres, fake_flowise: FakeFlowise, proxy: FaultyProxy, scale: Scale
) -> None:
    schemas = NodeStore.from_snapshot().schemas
    flow_data = compile_ops(GraphIR.empty(), chat({"openAIApi": CREDENTIALS[0]["id"]}), schemas).flow_data
    targets = [fake_flowise.add(f"Bot {number}", flow_data) for number in range(scale.sessions // 3)]
    done = await survived(cluster, postgres, proxy, scale, targets)
    assert set(fake_flowise.flows) == {view.chatflow_id for view in done}
    assert {row.get("category") or "" for row in fake_flowise.flows.values()} == {""}
    assert {temperature(fake_flowise.flows[id_]["flowData"]) for id_ in targets} == {"0.2"}


@pytest.mark.nightly
@pytest.mark.timeout(600)
async def test_p02_p11_p40_the_same_on_the_real_flowise(
    postgres: EmbeddedPostgres,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
    faulty_flowise: FaultyProxy,
    tmp_path: Path,
    standin: ModelStandIn,
) -> None:
    scale = Scale(6, QUICK)
    targets = [(await make_flow(flowise_client, name=f"Bot {number}")).id for number in range(3)]
    before = {row.id async for row in flowise_client.iter_chatflows()} - set(targets)
    cluster = make_cluster(
        postgres, faulty_flowise, flowise.api_key.get_secret_value(), tmp_path, scale.timings, standin
    )
    await cluster.start()
    try:
        done = await survived(cluster, postgres, faulty_flowise, scale, targets)
    finally:
        await cluster.stop()
    rows = {row.id: row async for row in flowise_client.iter_chatflows() if row.id not in before}
    assert set(rows) == {view.chatflow_id for view in done}
    assert all(not tag.startswith("fda:") for row in rows.values() for tag in row.tags)
    assert {temperature((await flowise_client.get_chatflow(id_)).flow_data) for id_ in targets} == {"0.2"}


async def disasters(
    cluster: Cluster, client: AgentClient, proxy: FaultyProxy, dsn: str, scale: Scale, targets: list[str]
) -> list[SessionView]:
    """Lead the sessions from start to acceptance while everything under them breaks; what they are at the end.

    One for each target, which it changes; the others make flows.
    """
    made: list[str | None] = [None] * (scale.sessions - len(targets))
    views = list(await asyncio.gather(*(begin(client, target) for target in [*targets, *made])))
    cluster.note(f"{scale.sessions} sessions started, {len(targets)} of them change a flow")
    frozen = asyncio.create_task(cluster.freeze(0, scale.frozen_secs))
    await cluster.restart_postgres(immediate=False)
    planned = await all_settled(client, views, "plan_approval")
    await frozen
    cluster.note("all ask for their plan's approval")
    check_threads(dsn)

    for _ in range(max(2, scale.sessions // 5)):
        proxy.fault("POST /api/v1/chatflows", "drop_answer")
        proxy.fault("POST /api/v1/chatflows", "drop_request")
        proxy.fault("POST /api/v1/prediction", "drop_answer")
        proxy.fault("GET /api/v1/chatflows", "drop_answer")
    contenders = [view for view in planned for _ in range(CONTENDERS)]
    random.shuffle(contenders)
    answers = asyncio.gather(*(contend(client, view, "approve") for view in contenders))
    cluster.send(1, signal.SIGKILL)
    won = await answers
    cluster.note(f"{len(contenders)} answers given, {sum(won)} taken")
    assert sum(won) == scale.sessions
    await cluster.restart_postgres(immediate=True)
    built = await all_settled(client, planned, "result_review")
    cluster.note("all are built and tested")
    check_threads(dsn)

    # Promotions, acceptances and removals of drafts.
    for _ in range(max(2, scale.sessions // 5)):
        proxy.fault("PUT /api/v1/chatflows", "drop_answer")
        proxy.fault("PUT /api/v1/chatflows", "drop_request")
        proxy.fault("DELETE /api/v1/chatflows", "drop_answer")
    answers = asyncio.gather(*(contend(client, view, "accept") for view in built))
    cluster.send(0, signal.SIGKILL)
    assert all(await answers)
    done = await all_settled(client, built, None)
    cluster.note("all are accepted")
    return done
