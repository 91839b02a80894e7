"""Refreshes of what is known of an instance: on a real Postgres, through the queue; only the Flowise is a double."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from flowise_dev_agent.errors import FlowiseAuthError, InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import Credential, NodeList
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.ops.knowledge_refresh import STEPS, KnowledgeService, Refresher
from flowise_dev_agent.persistence import Database, Queue, Refreshes
from flowise_dev_agent.schemas.knowledge import RefreshView
from flowise_dev_agent.settings import FlowiseSettings
from tests.runtime_world import FAST, World, running_engine, until

LOST = {"code": "worker_lost", "detail": "gone"}
TEMPLATE = {"templateName": "T", "type": "Chatflow", "flowData": '{"nodes": [], "edges": []}'}


class Server(FlowiseClient):
    """A Flowise with one node type, one template and two credentials; `closed` holds each answer back."""

    def __init__(self) -> None:
        super().__init__("http://flowise.test", None)
        self.calls: list[str] = []
        self.failure: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        await self.open.wait()
        if self.failure:
            raise self.failure

    async def version(self) -> str:
        return "3.1.4"

    async def list_nodes(self, etag: str | None = None) -> NodeList:
        await self._called("nodes")
        return NodeList(({"name": "chatOpenAI", "label": "OpenAI", "inputs": []},), None)

    async def list_templates(self) -> list[dict[str, Any]]:
        await self._called("templates")
        return [TEMPLATE]

    async def list_credentials(self) -> list[Credential]:
        await self._called("credentials")
        return [Credential(id=str(number), name="a", credential_name="openAIApi") for number in range(2)]


class OneServer(Instances):
    def __init__(self, server: Server) -> None:
        instances = json.dumps([{"id": "main", "endpoint": "http://flowise.test"}])
        super().__init__(FlowiseSettings(instances_json=instances))
        self._server = server

    def client(self, instance_id: str | None = None) -> FlowiseClient:
        self.endpoint(instance_id)
        return self._server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as server:
        yield server


@pytest.fixture
async def engine(database_dsn: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    monkeypatch.setattr("tests.runtime_world.Instances", lambda _: OneServer(server))
    async with running_engine(database_dsn) as engine:
        yield engine


@pytest.fixture
async def refreshes(database: Database, database_dsn: str) -> AsyncIterator[Refreshes]:
    async with Queue(database_dsn) as queue:
        yield Refreshes(database, queue)


async def ended(engine: Runtime) -> RefreshView:
    async def look() -> RefreshView | None:
        (known,) = (await engine.knowledge.list()).instances
        return known.refresh if known.refresh and known.refresh.status in {"done", "failed"} else None

    return await until(look, "the refresh is over")


async def test_a_refresh_reads_everything_and_tells_what_it_found(engine: Runtime, server: Server) -> None:
    (before,) = (await engine.knowledge.list()).instances
    assert (before.nodes.source, before.templates, before.refresh) == ("snapshot", None, None)
    await engine.knowledge.refresh("main")
    done = await ended(engine)
    assert (done.status, done.steps_done, done.steps, done.error) == ("done", 3, len(STEPS), None)
    assert [done.result[name].count for name in STEPS] == [1, 1, 2]
    (after,) = (await engine.knowledge.list()).instances
    assert (after.nodes.source, after.nodes.node_count, after.templates) == ("live", 1, 1)


async def test_an_instance_is_refreshed_once_at_a_time(engine: Runtime, server: Server) -> None:
    server.open.clear()
    views = await asyncio.gather(*(engine.knowledge.refresh("main") for _ in range(6)))
    assert len({view.id for view in views}) == 1
    server.open.set()
    first = await ended(engine)
    again = await engine.knowledge.refresh("main")
    assert again.id != first.id
    await ended(engine)


async def test_what_a_server_says_ends_the_refresh_with_its_words(engine: Runtime, server: Server) -> None:
    server.failure = FlowiseAuthError("Flowise refused the API key.", hint="Set FLOWISE_API_KEY.")
    await engine.knowledge.refresh("main")
    failed = await ended(engine)
    assert (failed.status, failed.steps_done, failed.step) == ("failed", 0, None)
    assert failed.error is not None
    assert failed.error.model_dump(include={"code", "detail", "hint"}) == server.failure.as_problem()
    with pytest.raises(InvalidInputError):
        await engine.knowledge.refresh("elsewhere")


async def test_p40_a_refresh_whose_worker_died_goes_on_where_it_was(
    database: Database, database_dsn: str, refreshes: Refreshes, server: Server
) -> None:
    """The first worker stops after one step for ever; the job that follows it does only the rest."""
    instances = OneServer(server)
    view = await KnowledgeService(database, refreshes, instances).refresh("main")
    lost = await job_of(database_dsn, view.id)
    assert await refreshes.claim(view.id, lost) is not None
    assert await refreshes.progress(view.id, lost, step=None, done=1, found={"nodes": {"count": 1}})
    await World(database_dsn).fetch("DELETE FROM procrastinate_jobs WHERE id = %s RETURNING id", lost)

    assert await refreshes.take_back_lost(0, attempts=3, error=LOST) == 1
    taken = await job_of(database_dsn, view.id)
    refresher = Refresher(database, refreshes, instances, FAST)
    await refresher.run(view.id, lost)
    assert server.calls == []
    await refresher.run(view.id, taken)
    assert server.calls == ["templates", "credentials"]
    latest = (await refreshes.latest())["main"]
    assert (latest.status, latest.attempt, set(latest.result)) == ("done", 2, set(STEPS))
    assert not await refreshes.progress(view.id, lost, step="nodes", done=0)


async def test_a_refresh_that_kills_its_workers_is_given_up(database_dsn: str, refreshes: Refreshes) -> None:
    row = await refreshes.start("main")
    for _ in range(2):
        job = await job_of(database_dsn, row.id)
        assert await refreshes.claim(row.id, job)
        await World(database_dsn).fetch("DELETE FROM procrastinate_jobs WHERE id = %s RETURNING id", job)
        assert await refreshes.take_back_lost(0, attempts=2, error=LOST) == 1
    latest = (await refreshes.latest())["main"]
    assert (latest.status, latest.error) == ("failed", LOST)
    assert (await refreshes.start("main")).id != row.id


async def job_of(dsn: str, refresh_id: UUID) -> int:
    ((job_id,),) = await World(dsn).fetch("SELECT job_id FROM knowledge_refreshes WHERE id = %s", refresh_id)
    return job_id
