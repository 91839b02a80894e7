"""Tests of flows as jobs on a real Postgres: a lost worker, another job, and what is kept."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from pydantic import HttpUrl, SecretStr

from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows import flow_tests
from flowise_dev_agent.flows.flow_tests import FlowTester
from flowise_dev_agent.persistence import Database, FlowTests, Queue
from flowise_dev_agent.settings import FlowiseSettings
from flowise_dev_agent.timings import Timings

LOST = {"code": "worker_lost", "detail": "gone"}
DRAFT = {"tag": "fda:t:draft", "name": "Test", "type": "CHATFLOW", "sha256": "ab"}
REQUEST = {"tests": [], "trials": 1}
HERE, THERE = "http://here.test", "http://there.test"


@pytest.fixture
async def tests(database: Database, database_dsn: str) -> AsyncIterator[FlowTests]:
    async with Queue(database_dsn) as queue:
        yield FlowTests(database, queue)


async def job_of(database: Database) -> int:
    row = await database.fetch_one("SELECT job_id FROM flow_tests")
    assert row
    return row["job_id"]


async def test_a_test_whose_worker_was_lost_fails_and_its_draft_is_left_to_maintenance(
    tests: FlowTests, database: Database
) -> None:
    row = await tests.start(uuid4(), "main", REQUEST, endpoint=HERE, flow_data="{}", draft=DRAFT)
    assert await tests.claim(row.id, await job_of(database))
    assert await tests.give_up_lost(0, error=LOST) == 0
    async with database.connection() as connection:
        await connection.execute("DELETE FROM procrastinate_jobs")
    assert await tests.give_up_lost(0, error=LOST) == 1
    failed = await tests.get(row.id)
    assert failed
    assert (failed.status, failed.error, failed.flow_data) == ("failed", LOST, None)
    left = await database.fetch_one("SELECT session_id, instance_id, endpoint, tag, names, texts FROM leftovers")
    assert left == {
        "session_id": row.id,
        "instance_id": "main",
        "endpoint": HERE,
        "tag": "fda:t:draft",
        "names": ["Test"],
        "texts": ["ab"],
    }


async def test_only_its_own_job_holds_a_test_and_only_once(tests: FlowTests, database: Database) -> None:
    row = await tests.start(uuid4(), "main", REQUEST, endpoint=HERE, chatflow_id="c1")
    job_id = await job_of(database)
    claims = await asyncio.gather(*(tests.claim(row.id, number) for number in (job_id, job_id, job_id + 1)))
    assert [claim is not None for claim in claims].count(True) == 1
    await tests.conclude(row.id, job_id + 1, error=LOST)
    running = await tests.get(row.id)
    assert running
    assert running.status == "running"
    await tests.conclude(row.id, job_id, trials=[({"passed": True}, "a trace")])
    done = await tests.get(row.id)
    assert done
    assert (done.status, len(done.trials)) == ("done", 1)
    assert await tests.trace(row.id, done.trials[0]["trace_sha256"]) == "a trace"
    assert await tests.trace(uuid4(), done.trials[0]["trace_sha256"]) is None


@pytest.mark.parametrize("same", [False, True], ids=["another server", "the same at another address"])
async def test_a_queued_test_is_refused_on_another_server(
    tests: FlowTests, database: Database, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances = Instances(FlowiseSettings(FLOWISE_API_ENDPOINT=HttpUrl(HERE), FLOWISE_API_KEY=SecretStr("key")))
    reached: list[str] = []

    async def hold_tests(client: Any, *_: object, **__: object) -> list[Any]:
        reached.append(client.endpoint)
        return []

    async def get_chatflow(chatflow_id: str) -> Any:
        return SimpleNamespace(id=chatflow_id, flow_data='{"nodes": [], "edges": []}')

    async def schemas(_: str) -> Any:
        return {}

    row = await tests.start(uuid4(), "default", REQUEST, endpoint=HERE, chatflow_id="c1")
    instances.connect(HttpUrl(THERE), SecretStr("key"), formerly=[HttpUrl(HERE)] if same else [])
    instances.client().get_chatflow = get_chatflow
    monkeypatch.setattr(flow_tests, "hold_tests", hold_tests)

    await FlowTester(tests, instances, schemas, Timings()).run(row.id, await job_of(database))

    over = await tests.get(row.id)
    assert over
    assert (over.status, (over.error or {}).get("code")) == (("done", None) if same else ("failed", "server_changed"))
    assert reached == ([THERE] if same else [])
    await instances.aclose()
