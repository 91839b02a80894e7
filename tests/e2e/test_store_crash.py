"""A document store that a session fills: whatever is killed, cancelled or deleted, there is one store or none."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.document_stores import VectorSpec
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows.reconciler import Reconciler
from flowise_dev_agent.persistence import Database, Leftovers
from flowise_dev_agent.settings import FlowiseSettings
from tests.e2e.people import MakeService, http_of, ok
from tests.e2e.scripted import READS, SEARCHES, model_environment, script
from tests.e2e.service import QUICK, ServiceProcess, until_settled
from tests.fixtures.proxy import FaultyProxy

NOTES = "# Vacation\n\nEmployees of the Zurich office have 31 days of vacation a year."
REQUIREMENT = "Build a bot with GPT-4o that answers from our notes in a document store of its own"
SEARCHED = f"{REQUIREMENT}, which is searched"
READ = "POST /api/v1/document-store/loader/process"
EMBED = "POST /api/v1/document-store/vectorstore/insert"


@pytest.fixture
async def service(
    make_service: MakeService, faulty_flowise: FaultyProxy, standin: ModelStandIn, stores_of_the_test: None
) -> ServiceProcess:
    """A service whose model plans a store that is read, or one that is searched where `SEARCHED` is asked for."""
    script(standin, SEARCHES, when=SEARCHED)
    script(standin, READS)
    service = make_service(QUICK, FLOWISE_API_ENDPOINT=faulty_flowise.endpoint, **model_environment(standin))
    await service.start()
    return service


@pytest.fixture
async def sweep(database: Database, flowise: FlowiseAccess, faulty_flowise: FaultyProxy) -> AsyncIterator[Reconciler]:
    # At the address that the service has: what began at another one is left alone.
    api_key = flowise.api_key.get_secret_value()
    servers = [{"id": "default", "endpoint": faulty_flowise.endpoint, "api_key": api_key}]
    instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers)))
    yield Reconciler(Leftovers(database), instances, failed_days=7)
    await instances.aclose()


async def approved(http: httpx2.AsyncClient, requirement: str = REQUIREMENT) -> str:
    """A session whose plan with a new store was approved just now."""
    stored = (await http.post("/attachments", files={"file": ("notes.md", NOTES.encode())})).json()
    body = {
        "requirement": requirement,
        "attachments": [stored["id"]],
        "test_questions": ["How many days of vacation does Zurich have?"],
    }
    planned = await ok(await http.post("/sessions?wait=60", json=body))
    assert len(planned["interrupt"]["data"]["contract"]["document_stores"]) == 1, planned["interrupt"]["message"]
    given = {"interrupt_id": planned["interrupt"]["id"], "answer": {"action": "approve"}}
    assert (await http.post(f"/sessions/{planned['thread_id']}/resume", json=given)).is_success
    return planned["thread_id"]


async def ids_of(client: FlowiseClient) -> set[str]:
    return {one.id for one in await client.list_document_stores()}


async def aged(database: Database) -> None:
    """What has just ended has ended long ago."""
    async with database.connection() as connection:
        await connection.execute("UPDATE sessions SET updated_at = now() - interval '2 hours'")


async def deletions(database: Database) -> list[str]:
    rows = await database.fetch_all(
        "SELECT words FROM audit_log LEFT JOIN audit_words USING (chain, seq) WHERE action = 'write.store_delete'"
    )
    return [row["words"] for row in rows]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("POST /api/v1/document-store/store", id="create"),
        pytest.param(READ, id="read", marks=pytest.mark.nightly),
        pytest.param(EMBED, id="embed", marks=pytest.mark.nightly),
    ],
)
async def test_p02_kill_9_while_a_store_is_filled_leaves_one_store_that_is_whole(
    service: ServiceProcess, flowise_client: FlowiseClient, faulty_flowise: FaultyProxy, vectors: VectorSpec, call: str
) -> None:
    if call == EMBED:
        model = await flowise_client.create_document_store("Travel", "of a test")
        await flowise_client.insert_vectors(model.id, vectors, timeout=30)
    before = await ids_of(flowise_client)
    async with http_of(service) as http, AgentClient(service.url) as client:
        faulty_flowise.fault(call, "hold_answer")
        session = await approved(http, SEARCHED if call == EMBED else REQUIREMENT)
        assert await asyncio.to_thread(faulty_flowise.holding.wait, 60)
        await service.kill()
        await service.start()
        view = await until_settled(client, session)
        assert view.interrupt is not None, view.error
        review: Any = view.interrupt.data
        assert [test.passed for test in review.tests] == [True]
    (made,) = await ids_of(flowise_client) - before
    store = await flowise_client.get_document_store(made)
    assert (store.status, store.total_chunks) == ("UPSERTED" if call == EMBED else "SYNC", 1)
    assert sum(line.startswith(call) for line in faulty_flowise.seen) == 1


@pytest.mark.nightly
async def test_a_store_whose_session_is_cancelled_while_it_fills_is_removed_and_named_in_the_ledger(
    service: ServiceProcess,
    flowise_client: FlowiseClient,
    faulty_flowise: FaultyProxy,
    database: Database,
    sweep: Reconciler,
) -> None:
    before = await ids_of(flowise_client)
    async with http_of(service) as http:
        faulty_flowise.fault(READ, "hold_answer")
        session = await approved(http)
        assert await asyncio.to_thread(faulty_flowise.holding.wait, 60)
        cancelled = await ok(await http.post(f"/sessions/{session}/cancel?wait=30"))
        assert cancelled["status"] == "cancelled"
    assert len(await ids_of(flowise_client) - before) == 1
    assert await sweep.pass_once() == 0
    await aged(database)
    assert await sweep.pass_once() == 1
    assert await ids_of(flowise_client) == before
    (said,) = await deletions(database)
    assert said.startswith("Deleted the document store '")


@pytest.mark.nightly
async def test_the_store_of_a_deleted_session_goes_after_its_flow_and_its_vectors_are_named(
    service: ServiceProcess, flowise_client: FlowiseClient, database: Database, sweep: Reconciler, vectors: VectorSpec
) -> None:
    model = await flowise_client.create_document_store("Travel", "of a test")
    await flowise_client.insert_vectors(model.id, vectors, timeout=30)
    before = await ids_of(flowise_client)
    async with http_of(service) as http, AgentClient(service.url) as client:
        session = await approved(http, SEARCHED)
        view = await until_settled(client, session)
        assert view.interrupt is not None, view.error
        (made,) = await ids_of(flowise_client) - before
        assert len(await flowise_client.flows_with(made)) == 1
        assert (await http.delete(f"/sessions/{session}")).is_success
    assert await sweep.pass_once() == 2
    assert await ids_of(flowise_client) == before
    (said,) = await deletions(database)
    assert "stay in postgres (tableName fda_" in said


@pytest.mark.nightly
async def test_a_store_that_a_flow_uses_stays_whatever_became_of_its_session(
    service: ServiceProcess, flowise_client: FlowiseClient, database: Database, sweep: Reconciler
) -> None:
    before = await ids_of(flowise_client)
    async with http_of(service) as http, AgentClient(service.url) as client:
        session = await approved(http)
        view = await until_settled(client, session)
        # Somebody keeps the flow: it loses the tag that the session would find it by.
        await flowise_client.update_chatflow(str(view.chatflow_id), category="mine")
        await ok(await http.post(f"/sessions/{session}/cancel?wait=30"))
    await aged(database)
    assert await sweep.pass_once() == 0
    assert len(await ids_of(flowise_client) - before) == 1
