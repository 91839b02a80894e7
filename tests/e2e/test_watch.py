"""The watch on a real Flowise: 200 flows that somebody edits by Flowise's API while sessions write others."""

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import pytest
from pydantic import HttpUrl

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.flow_settings import settings_of
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.flows.proposals import Proposals
from flowise_dev_agent.flows.watch import Watch
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.knowledge.nodes import NodeKnowledge
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.persistence import Blobs, Database, InstanceNodes, WatchedVersions
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow, RestoreVersion
from flowise_dev_agent.settings import FlowiseSettings
from tests.e2e.people import make_flow
from tests.integration.sessions.test_flow_writes import written
from tests.runtime_world import FAST, World, make_agent

pytestmark = pytest.mark.nightly

FLOWS, ROUNDS, EDITS, SESSIONS = 200, 6, 40, 3


@pytest.fixture
def calls() -> Counter[str]:
    return Counter()


@pytest.fixture
def instances(flowise: FlowiseAccess, calls: Counter[str]) -> Instances:
    def count(call: str) -> None:
        calls[call] += 1

    settings = FlowiseSettings(FLOWISE_API_ENDPOINT=HttpUrl(flowise.endpoint), FLOWISE_API_KEY=flowise.api_key)
    return Instances(settings, on_call=count)


@pytest.fixture
async def runtime(database_dsn: str, instances: Instances) -> AsyncIterator[Runtime]:
    agent = replace(make_agent(World(database_dsn)), instances=instances)
    database = Database(database_dsn, min_size=1, max_size=8)
    async with Runtime.assemble(database, database_dsn, agent, worker=True, timings=FAST) as running:
        yield running
    await instances.aclose()


def edited(row: Chatflow, number: int, chance: random.Random) -> dict[str, str]:
    """Columns of the next save of a person: nodes moved, another text, or another name."""
    kind = chance.choice(("move", "text", "text", "name"))
    if kind == "name":
        return {"name": f"{row.name.split(' #')[0]} #{number}"}
    document = json.loads(row.flow_data)
    if kind == "move":
        document["nodes"][0]["position"]["x"] += number + 1
    else:
        document["nodes"][0]["data"]["label"] = f"Label {number} ü"
    return {"flow_data": json.dumps(document, ensure_ascii=chance.random() < 0.5)}


@pytest.fixture
def watch(runtime: Runtime, instances: Instances) -> Watch:
    return Watch(
        runtime.db,
        index=FlowIndex(runtime.db, watched=WatchedVersions(runtime.db)),
        blobs=Blobs(runtime.db),
        instances=instances,
        schemas=Proposals(instances, NodeKnowledge(0, InstanceNodes(runtime.db))).schemas,
        every_secs=60,
    )


async def test_settings_that_the_canvas_saves_are_versions_and_come_back_byte_for_byte(
    runtime: Runtime, instances: Instances, flowise_client: FlowiseClient, watch: Watch
) -> None:
    """The dialogs of the canvas send one column each."""
    id_, row = instances.default_id, await make_flow(flowise_client)
    before = settings_of(row)
    await watch.look(id_)
    saves = {
        "chatbot_config": '{"starterPrompts":{"0":{"prompt":"Wo ist mein Paket?"}},"leads":{"status":false},"n":0.10}',
        "api_config": '{"rateLimit":{"status":true,"limitMax":"5","limitDuration":"60","limitMsg":"Later."}}',
        "analytic": json.dumps({"langFuse": {"credentialId": str(UUID(int=7)), "status": True}}),
        "speech_to_text": '{"openAIWhisper":{"status":true,"language":"de"}}',
        "text_to_speech": '{"openai":{"status":false}}',
        "follow_up_prompts": '{"status":false}',
        "category": "sales;new",
    }
    for column, value in saves.items():
        await flowise_client.update_chatflow(row.id, **{column: value})
        await watch.look(id_)
        await watch.look(id_)
    found = (await runtime.versions.numbered(row.id, limit=50)).versions
    assert len(found) == 1 + len(saves)
    last = await flowise_client.get_chatflow(row.id)
    assert settings_of(last).columns == saves
    done = await runtime.flow_writer.restore(row.id, 1, RestoreVersion())
    await written(runtime, done)
    back = await flowise_client.get_chatflow(row.id)
    # Flowise lifts a limit only when it is told that it is off.
    off = {"api_config": '{"rateLimit":{"status":false}}'}
    assert (settings_of(back).columns, back.flow_data) == (before.columns | off, row.flow_data)
    assert done.session_id is not None
    await runtime.versions.rollback(done.session_id, None)
    assert settings_of(await flowise_client.get_chatflow(row.id)).columns == saves
    await flowise_client.delete_chatflow(row.id)
    await watch.look(id_)
    again = await written(runtime, await runtime.flow_writer.restore(row.id, 1 + len(saves), RestoreVersion()))
    assert again.chatflow_id is not None
    assert settings_of(await flowise_client.get_chatflow(again.chatflow_id)).columns == saves


@pytest.mark.timeout(900)
async def test_every_state_that_is_there_at_a_turn_is_a_version_once_and_is_restored_byte_for_byte(
    runtime: Runtime, instances: Instances, flowise_client: FlowiseClient, watch: Watch, calls: Counter[str]
) -> None:
    id_, chance = instances.default_id, random.Random(44)  # noqa: S311 - a fixed order of edits
    first = await make_flow(flowise_client)
    rows = [
        await flowise_client.create_chatflow(
            ChatflowCreate(name=f"Flow {number}", flow_data=first.flow_data, type="CHATFLOW")
        )
        for number in range(FLOWS)
    ]
    await watch.look(id_)
    now = {row.id: row for row in rows}
    states: dict[str, list[tuple[str, str]]] = {row.id: [(row.name, row.flow_data)] for row in rows}
    ours, turns = defaultdict[str, int](int), list[int]()
    for number in range(ROUNDS):
        chosen = chance.sample(rows, EDITS + SESSIONS)
        for row in chosen[SESSIONS:]:
            now[row.id] = await flowise_client.update_chatflow(row.id, **edited(now[row.id], number, chance))
            states[row.id].append((now[row.id].name, now[row.id].flow_data))

        async def write(row: Chatflow, temperature: float) -> None:
            op = {
                "op_type": "SetParam",
                "node_id": json.loads(row.flow_data)["nodes"][0]["id"],
                "param_name": "temperature",
                "value": temperature,
            }
            done = await runtime.flow_writer.apply(row.id, ApplyToFlow.model_validate({"ops": [op]}))
            await written(runtime, done)

        before = calls["GET /chatflows"]
        # The turn comes in the middle of the writes of sessions.
        await asyncio.gather(
            watch.look(id_),
            *(write(now[row.id], (number + place) / 100) for place, row in enumerate(chosen[:SESSIONS], 1)),
        )
        turns.append(calls["GET /chatflows"] - before)
        for row in chosen[:SESSIONS]:
            now[row.id] = await flowise_client.get_chatflow(row.id)
            states[row.id].append((now[row.id].name, now[row.id].flow_data))
            ours[row.id] += 1
        await watch.look(id_)
    idle = calls["GET /chatflows"]
    for _ in range(5):
        await watch.look(id_)
    print(f"list requests per turn with {EDITS} edits: {turns}; of 5 idle turns: {calls['GET /chatflows'] - idle}")

    texts, lost, twice, strangers = Blobs(runtime.db), 0, 0, 0
    for row in rows:
        found = (await runtime.versions.numbered(row.id, limit=50)).versions[::-1]
        kept = [(one.flow_name, await texts.get(one.sha256)) for one in found]
        lost += sum(state not in kept for state in states[row.id])
        twice += len(kept) - len(states[row.id])
        strangers += sum(one.origin == "elsewhere" for one in found[1:]) - (len(states[row.id]) - 1 - ours[row.id])
        assert kept == states[row.id], row.name
    print(f"states: {sum(map(len, states.values()))}, lost: {lost}, twice: {twice}, ours as theirs: {strangers}")
    assert (lost, twice, strangers) == (0, 0, 0)

    for row in chance.sample([row for row in rows if len(states[row.id]) > 2], 5):
        await written(runtime, await runtime.flow_writer.restore(row.id, 1, RestoreVersion()))
        back = await flowise_client.get_chatflow(row.id)
        assert (back.name, back.flow_data) == states[row.id][0]
    gone = rows[0]
    await flowise_client.delete_chatflow(gone.id)
    await watch.look(id_)
    deleted = (await runtime.fleet.page(None, limit=1, cursor=None)).deleted
    assert [one.id for one in deleted] == [gone.id]
    newest = (await runtime.versions.numbered(gone.id, limit=1)).versions[0]
    made = await runtime.flow_writer.restore(gone.id, int(newest.name[1:]), RestoreVersion())
    done = await written(runtime, made)
    assert done.chatflow_id is not None
    again = await flowise_client.get_chatflow(done.chatflow_id)
    assert (again.name, again.flow_data) == states[gone.id][-1]
