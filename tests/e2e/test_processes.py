"""The service as operators run it: hanging models, open streams at SIGTERM, many replicas, API and workers apart."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import UUID

import httpx2
import psycopg
import pytest

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.devkit.standin.protocol import StandInFailure
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.timings import Timings
from tests.e2e.service import QUICK, ServiceProcess
from tests.e2e.topology import serves
from tests.fixtures.pooler import TransactionPooler

REQUIREMENT = "A customer support chatbot with GPT-4o and memory"

Launch = Callable[..., ServiceProcess]


@pytest.fixture
async def launch(tmp_path: Path) -> AsyncIterator[Launch]:
    """Make processes, each with a folder of its own; what is left of them is killed at the end."""
    made: list[ServiceProcess] = []

    def make(environment: dict[str, str], *command: str, timings: Timings | None = None) -> ServiceProcess:
        folder = tmp_path / f"process-{len(made)}"
        folder.mkdir()
        # Nobody listens at port 1: without a Flowise of the test's own a session gets as far as the model.
        environment = {"FLOWISE_API_ENDPOINT": "http://127.0.0.1:1", **environment}
        made.append(ServiceProcess(environment, folder, *command, timings=timings))
        return made[-1]

    yield make
    for process in made:
        await process.kill()


async def until(check: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not await check():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.05)


@pytest.fixture(params=[QUICK, pytest.param(Timings(), marks=pytest.mark.nightly)], ids=["quick", "production"])
def timings(request: pytest.FixtureRequest) -> Timings:
    return request.param


@pytest.fixture
async def hanging(
    launch: Launch, database_dsn: str, standin: ModelStandIn, timings: Timings
) -> tuple[ServiceProcess, UUID]:
    """A service whose one session waits for a model that never answers."""
    standin.script(lambda _: True, StandInFailure.hang())
    service = launch(
        {
            "POSTGRES_DSN": database_dsn,
            "REASONING_ENGINE": "claude",
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": standin.base_url_anthropic,
        },
        timings=timings,
    )
    await service.start()
    async with AgentClient(service.url) as client:
        view = await client.start(StartSession(requirement=REQUIREMENT))

    async def asked() -> bool:
        return bool(standin.requests)

    await until(asked, 30, "the model is asked")
    return service, view.thread_id


async def test_a_session_is_cancelled_at_once_while_its_model_hangs(hanging: tuple[ServiceProcess, UUID]) -> None:
    service, session_id = hanging
    async with AgentClient(service.url) as client:
        view = await client.cancel(session_id)
        assert (view.status, view.outcome) == ("cancelled", "cancelled")

        async def idle() -> bool:
            worker = (await client.health()).worker
            return worker is not None and worker.runs == 0

        # The model would hang for minutes.
        await until(idle, 30, "the run has ended")
        assert [event.type async for event in client.events(session_id)][-1] == "done"


async def test_p50_sigterm_ends_open_streams_and_a_hanging_run_soon_after_its_grace(
    hanging: tuple[ServiceProcess, UUID], database_dsn: str, timings: Timings
) -> None:
    service, session_id = hanging
    ended: list[float] = []
    async with httpx2.AsyncClient(base_url=service.url, timeout=30) as http:
        opened = asyncio.Semaphore(0)

        async def read() -> None:
            async with http.stream("GET", f"/sessions/{session_id}/stream") as response:
                async for _ in response.aiter_lines():
                    opened.release()
            ended.append(time.monotonic())

        readers = [asyncio.create_task(read()) for _ in range(5)]
        for _ in readers:
            await opened.acquire()
        waiting = asyncio.create_task(http.get(f"/sessions/{session_id}"))
        await waiting
        began = time.monotonic()
        assert await service.stop() == 0
        taken = time.monotonic() - began
        await asyncio.gather(*readers)
    assert taken < timings.drain + 2
    assert max(ended) - began < 3
    with psycopg.connect(database_dsn, connect_timeout=5) as connection:
        runs = connection.execute("SELECT status, attempt FROM runs").fetchall()
    assert runs == [("queued", 0)]


@pytest.mark.nightly
async def test_ten_replicas_start_at_once_on_an_empty_database(own_postgres: EmbeddedPostgres, launch: Launch) -> None:
    environment = {"POSTGRES_DSN": own_postgres.create_database("replicas")}
    replicas = [launch(environment, "serve", "--concurrency", "1") for _ in range(10)]
    for replica in replicas:
        await replica.launch()
    await asyncio.gather(*(replica.answering() for replica in replicas))
    for replica in replicas:
        assert "Traceback" not in replica.log(), replica.log()
    async with httpx2.AsyncClient(timeout=10) as http:
        answers = [await http.get(f"{replica.url}/ready") for replica in replicas]

        async def counted() -> bool:
            # A worker is counted from its first heartbeat, which may come after the first answer.
            return (await http.get(f"{replicas[0].url}/ready")).json()["queue"]["workers"] == 10

        await until(counted, 30, "all ten workers are counted")
    for answer in answers:
        assert (answer.status_code, answer.json()["database"]["pending_migrations"]) == (200, [])


@pytest.mark.nightly
async def test_two_apis_and_two_workers_of_the_compose_file_serve_behind_a_transaction_pooler(
    database_dsn: str, transaction_pooler: TransactionPooler, tmp_path: Path
) -> None:
    metrics = await serves(transaction_pooler.dsn, database_dsn, tmp_path, sessions=4)
    runs = [re.findall(r'fda_run_duration_seconds_count{end="(\w+)",kind="(\w+)"} (\S+)', text) for text in metrics]
    counted = Counter({(kind, end): float(n) for end, kind, n in runs[0]})
    counted.update({(kind, end): float(n) for end, kind, n in runs[1]})
    assert counted == {("start", "waiting"): 4, ("resume", "waiting"): 4, ("resume", "completed"): 4}
    assert transaction_pooler.refused == []
    assert transaction_pooler.transactions > 100
