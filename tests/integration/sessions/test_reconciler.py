"""What sessions left on Flowise: what is removed, when, and what stays."""

import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.flow_tags import copy_tag, tool_tag
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.flows.reconciler import Reconciler
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.persistence import Database, Leftovers, Queue, Sessions, WriteIntents
from flowise_dev_agent.persistence.database import Lease
from flowise_dev_agent.publish import draft_tag, flow_tag
from flowise_dev_agent.schemas.custom_tools import PlannedTool
from flowise_dev_agent.settings import FlowiseSettings
from tests.chaos.fake_flowise import FakeFlowise
from tests.integration.persistence.test_saver import add_run

KEY = "fda-test"
DAY = 86_400
NAME = "Bot (draft)"
EMPTY = '{"nodes":[],"edges":[]}'


@pytest.fixture
def server() -> Iterator[FakeFlowise]:
    with FakeFlowise(api_key=KEY, latency=0) as server:
        yield server


@pytest.fixture
async def instances(server: FakeFlowise) -> AsyncIterator[Instances]:
    """Two servers, of which the second one does not answer."""
    servers = [
        {"id": "main", "endpoint": f"http://127.0.0.1:{server.port}", "api_key": KEY},
        {"id": "away", "endpoint": "http://127.0.0.1:1", "api_key": KEY},
    ]
    instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers), FLOWISE_CONNECT_TIMEOUT=1))
    yield instances
    await instances.aclose()


@pytest.fixture
def sweep(database: Database, instances: Instances) -> Reconciler:
    return Reconciler(Leftovers(database), instances, failed_days=7)


@pytest.fixture
async def client(server: FakeFlowise) -> AsyncIterator[FlowiseClient]:
    async with FlowiseClient(f"http://127.0.0.1:{server.port}", SecretStr(KEY)) as client:
        yield client


async def announce_create(intents: WriteIntents, lease: Lease, key: uuid.UUID, session_id: uuid.UUID, tag: str) -> None:
    """What is recorded before a chatflow is created."""
    await intents.open(
        lease,
        key=key,
        session_id=session_id,
        op="create",
        iteration=0,
        target_id=None,
        payload_sha256=payload_sha256(EMPTY),
        base_sha256=None,
        tag=tag,
        name=NAME,
    )


async def session_with_draft(
    database: Database,
    client: FlowiseClient,
    *,
    status: str = "cancelled",
    age_secs: float = 2 * 3600,
    instance: str = "main",
    answered: bool = True,
    category: str = "",
    tag_of: Callable[[str], str] = draft_tag,
) -> tuple[uuid.UUID, str]:
    """A session at rest whose draft is on the server; without `answered` it never learned the draft's id."""
    session_id, lease = await add_run(database)
    tag = tag_of(str(session_id))
    intents, key = WriteIntents(database), uuid.uuid4()
    await announce_create(intents, lease, key, session_id, tag)
    draft = await client.create_chatflow(ChatflowCreate(name=NAME, flow_data=EMPTY, category=category or tag))
    if answered:
        await intents.finish(lease, key, status="done", result={"chatflow_id": draft.id})
    async with database.connection() as connection:
        await connection.execute("UPDATE runs SET status = 'done' WHERE session_id = %s", (session_id,))
        await connection.execute(
            "UPDATE sessions SET status = %s, instance_id = %s, interrupt_id = CASE WHEN %s = 'waiting' THEN 'i' END,"
            " updated_at = now() - make_interval(secs => %s) WHERE id = %s",
            (status, instance, status, age_secs, session_id),
        )
    return session_id, draft.id


async def left(database: Database) -> int:
    row = await database.fetch_one("SELECT count(*) AS n FROM leftovers")
    return row["n"] if row else 0


async def test_the_draft_of_a_cancelled_session_is_removed(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    for answered in (True, False):
        for tag_of in (draft_tag, copy_tag):
            await session_with_draft(database, client, answered=answered, tag_of=tag_of)
    assert len(server.flows) == 4
    assert await sweep.pass_once() == 4
    assert server.flows == {}
    assert await sweep.pass_once() == 0


async def test_p47_the_draft_of_a_deleted_session_is_removed(
    database: Database, database_dsn: str, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    session_id, draft_id = await session_with_draft(database, client, status="waiting", age_secs=0)
    await Sessions(database, Queue(database_dsn)).delete(session_id, purge=True)
    assert await sweep.pass_once() == 1
    assert draft_id not in server.flows


async def test_what_was_left_on_a_server_that_is_no_longer_connected_waits_for_it(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    session_id, draft_id = await session_with_draft(database, client)
    for endpoint, removed in (("http://former.test", 0), (client.endpoint, 1)):
        async with database.connection() as connection:
            await connection.execute("UPDATE sessions SET endpoint = %s WHERE id = %s", (endpoint, session_id))
            await connection.execute(
                "UPDATE leftovers SET endpoint = %s, noted_at = now() - interval '2 days'", (endpoint,)
            )
        assert (await sweep.pass_once(), await sweep.pass_once()) == (removed, 0)
        assert (draft_id in server.flows) is not bool(removed)
    assert await left(database) == 0


async def test_a_failed_session_keeps_its_draft_for_its_retry_until_it_is_old(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    _, young = await session_with_draft(database, client, status="failed", age_secs=6 * DAY)
    _, old = await session_with_draft(database, client, status="failed", age_secs=8 * DAY)
    assert await sweep.pass_once() == 1
    assert set(server.flows) == {young}
    assert old not in server.flows


async def test_drafts_of_open_sessions_and_those_of_nobody_we_know_stay(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    for status in ("queued", "running", "waiting"):
        await session_with_draft(database, client, status=status, age_secs=100 * DAY)
    await session_with_draft(database, client, age_secs=1)
    # Another service may use the same Flowise: a tag alone is no reason to delete.
    foreign = draft_tag(str(uuid.uuid4()))
    await client.create_chatflow(ChatflowCreate(name="Not ours", flow_data=EMPTY, category=foreign))
    assert await sweep.pass_once() == 0
    assert len(server.flows) == 5


async def test_a_draft_without_its_tag_or_in_use_belongs_to_the_person(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    await session_with_draft(database, client, category="mine")
    _, deployed = await session_with_draft(database, client)
    await client.update_chatflow(deployed, deployed=True)
    assert await sweep.pass_once() == 0
    assert len(server.flows) == 2


async def test_p88_a_late_draft_is_looked_for_during_a_day_and_each_time_that_it_comes(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    _, draft_id = await session_with_draft(database, client, answered=False)
    late = server.flows.pop(draft_id)
    assert await sweep.pass_once() == 0
    for number in range(2):
        server.flows[f"late-{number}"] = late | {"id": f"late-{number}"}
        assert await sweep.pass_once() == 1
    assert server.flows == {}
    async with database.connection() as connection:
        await connection.execute("UPDATE leftovers SET noted_at = now() - interval '25 hours'")
    assert await left(database) == 1
    assert await sweep.pass_once() == 0
    assert await left(database) == 0


async def test_a_server_that_does_not_answer_is_asked_again_and_holds_nobody_up(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    _, away = await session_with_draft(database, client, instance="away")
    _, gone = await session_with_draft(database, client, instance="not-configured")
    _, here = await session_with_draft(database, client)
    assert await sweep.pass_once() == 1
    assert set(server.flows) == {away, gone}
    assert here not in server.flows
    async with database.connection() as connection:
        await connection.execute("UPDATE leftovers SET instance_id = 'main'")
    assert await sweep.pass_once() == 2


async def test_a_retried_session_makes_a_new_draft_and_keeps_it(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    session_id, draft_id = await session_with_draft(database, client, status="failed", age_secs=8 * DAY)
    late = server.flows.pop(draft_id)
    await sweep.pass_once()
    server.flows[draft_id] = late
    async with database.connection() as connection:
        await connection.execute("UPDATE sessions SET status = 'queued' WHERE id = %s", (session_id,))
    assert await sweep.pass_once() == 0
    assert draft_id in server.flows
    (intent,) = await WriteIntents(database).list_for(session_id)
    assert intent.status == "failed"


async def session_with_twin(
    database: Database, client: FlowiseClient, *, status: str, known: bool = True
) -> tuple[uuid.UUID, str, str]:
    """A session whose first create had no answer and whose second had one: (session, its flow, the late twin)."""
    session_id, lease = await add_run(database)
    tag, intents, key = flow_tag(str(session_id)), WriteIntents(database), uuid.uuid4()
    for _ in range(2 if known else 1):
        await announce_create(intents, lease, key, session_id, tag)
    row = ChatflowCreate(name=NAME, flow_data=EMPTY, category=tag)
    ours, twin = await client.create_chatflow(row), await client.create_chatflow(row)
    if known:
        await intents.finish(lease, key, status="done", result={"chatflow_id": ours.id})
    async with database.connection() as connection:
        await connection.execute("UPDATE runs SET status = 'done' WHERE session_id = %s", (session_id,))
        await connection.execute(
            "UPDATE sessions SET status = %s, interrupt_id = CASE WHEN %s = 'waiting' THEN 'i' END,"
            " instance_id = 'main', updated_at = now() - interval '2 hours' WHERE id = %s",
            (status, status, session_id),
        )
    return session_id, ours.id, twin.id


async def test_p88_the_twin_of_a_late_create_is_removed_and_the_sessions_own_flow_stays(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    states = ("waiting", "completed", "cancelled", "failed")
    ours = {(await session_with_twin(database, client, status=status))[1] for status in states}
    assert await sweep.pass_once() == len(ours) == 4
    assert set(server.flows) == ours


async def test_p88_a_session_that_works_settles_its_own_twins(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    _, ours, twin = await session_with_twin(database, client, status="waiting")
    await sweep.pass_once()
    server.flows[twin] = server.flows[ours] | {"id": twin}
    async with database.connection() as connection:
        await connection.execute("UPDATE sessions SET status = 'running', interrupt_id = NULL")
    assert await sweep.pass_once() == 0
    assert set(server.flows) == {ours, twin}


@pytest.mark.parametrize("status", ["queued", "running"])
async def test_p88_twins_of_a_session_at_work_are_not_looked_for(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler, status: str
) -> None:
    _, ours, twin = await session_with_twin(database, client, status=status)
    assert await sweep.pass_once() == 0
    assert (set(server.flows), await left(database)) == ({ours, twin}, 0)


async def test_drafts_of_failed_sessions_stay_for_ever_when_the_setting_is_0(
    database: Database, client: FlowiseClient, server: FakeFlowise, instances: Instances
) -> None:
    _, failed = await session_with_draft(database, client, status="failed", age_secs=1000 * DAY)
    _, cancelled = await session_with_draft(database, client)
    assert await Reconciler(Leftovers(database), instances, failed_days=0).pass_once() == 1
    assert (failed in server.flows, cancelled in server.flows) == (True, False)


@pytest.mark.parametrize("known", [True, False])
async def test_p88_the_flow_of_a_deleted_session_that_failed_is_removed(
    database: Database, database_dsn: str, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler, known: bool
) -> None:
    session_id, _, _ = await session_with_twin(database, client, status="failed", known=known)
    await Sessions(database, Queue(database_dsn)).delete(session_id, purge=True)
    assert await sweep.pass_once() == 2
    assert server.flows == {}


async def test_p88_p89_what_a_person_changed_stays_whatever_its_tag(
    database: Database, client: FlowiseClient, server: FakeFlowise, sweep: Reconciler
) -> None:
    changes: list[dict[str, Any]] = [
        {"flowData": '{"nodes":[],"edges":[],"by":"a person"}'},
        {"name": "Mine"},
        {"category": "{tag};mine"},
        {"category": "mine"},
        {"deployed": True},
        {"isPublic": True},
    ]
    for change in changes:
        _, _, twin = await session_with_twin(database, client, status="completed")
        _, draft = await session_with_draft(database, client)
        for id_ in (twin, draft):
            tag = server.flows[id_]["category"]
            server.flows[id_] |= {**change, **{k: v.format(tag=tag) for k, v in change.items() if k == "category"}}
    before = set(server.flows)
    assert await sweep.pass_once() == 0
    assert set(server.flows) == before
    assert len(before) == 3 * len(changes)


async def test_on_a_real_flowise_the_draft_goes_and_everything_else_stays(
    database: Database, flowise: FlowiseAccess, flowise_client: FlowiseClient
) -> None:
    servers = [{"id": "main", "endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}]
    live = await flowise_client.create_chatflow(ChatflowCreate(name="Bot", flow_data=EMPTY, category="mine"))
    _, draft_id = await session_with_draft(database, flowise_client)
    instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers)))
    try:
        assert await Reconciler(Leftovers(database), instances, failed_days=7).pass_once() == 1
    finally:
        await instances.aclose()
    ids = {row.id async for row in flowise_client.iter_chatflows()}
    assert live.id in ids
    assert draft_id not in ids


async def test_of_equal_tools_on_a_real_flowise_only_that_of_the_session_goes(
    database: Database, flowise: FlowiseAccess, flowise_client: FlowiseClient
) -> None:
    tool = PlannedTool(name=f"tool_{uuid.uuid4().hex[:8]}", description="Says one.", code="return '1';")
    theirs, own, adopted = [await flowise_client.create_tool(tool.name, tool.columns) for _ in range(3)]
    for tool_id, found in ((own, {}), (adopted, {"adopted": True})):
        session_id, lease = await add_run(database)
        intents, key = WriteIntents(database), uuid.uuid4()
        await intents.open(
            lease, key=key, session_id=session_id, op="tool_create", iteration=0, target_id=None,
            payload_sha256=tool.sha256, base_sha256=None, tag=tool_tag(str(session_id), tool.sha256), name=tool.name,
        )  # fmt: skip
        await intents.finish(lease, key, status="done", result={"tool_id": tool_id, **found})
        async with database.connection() as connection:
            await connection.execute("UPDATE runs SET status = 'done' WHERE session_id = %s", (session_id,))
            await connection.execute(
                "UPDATE sessions SET status = 'cancelled', updated_at = now() - interval '2 hours' WHERE id = %s",
                (session_id,),
            )
    servers = [{"id": "main", "endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}]
    instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers)))
    try:
        async with database.connection() as connection:
            await connection.execute("UPDATE sessions SET instance_id = 'main'")
        assert await Reconciler(Leftovers(database), instances, failed_days=7).pass_once() == 1
    finally:
        await instances.aclose()
    left_there = {row.get("id") for row in await flowise_client.list_tools() if row.get("name") == tool.name}
    assert left_there == {theirs, adopted}
    for tool_id in (theirs, adopted):
        await flowise_client.delete_tool(tool_id)
