"""Knowledge of a real server, kept in a real Postgres: what one worker learns, all know."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.errors import FlowiseAuthError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.knowledge.drift import knowledge_health
from flowise_dev_agent.knowledge.nodes import NodeKnowledge, NodeStore
from flowise_dev_agent.knowledge.refresh import Refresh
from flowise_dev_agent.knowledge.snapshot import full_text
from flowise_dev_agent.knowledge.templates import TemplateKnowledge, TemplateStore
from flowise_dev_agent.persistence import Database, InstanceNodes, InstanceTemplates

ROOT = Path(__file__).parents[3]


@pytest.fixture
def calls() -> list[str]:
    """Method and route of every request sent by `counted`."""
    return []


@pytest.fixture
async def counted(flowise: FlowiseAccess, calls: list[str]) -> AsyncIterator[FlowiseClient]:
    async with FlowiseClient(flowise.endpoint, flowise.api_key, on_call=calls.append) as client:
        yield client


async def test_workers_share_one_reading_with_flowises_descriptions(
    database: Database, counted: FlowiseClient, calls: list[str], catalogue: NodeStore
) -> None:
    workers = [NodeKnowledge(300, InstanceNodes(database)) for _ in range(3)]

    stores = [await worker.store("default", counted) for worker in workers]

    assert Counter(calls) == {"GET /version": 1, "GET /nodes": 1}
    assert {store.fingerprint for store in stores} == {catalogue.fingerprint}
    assert {(store.source, store.flowise_version) for store in stores} == {("live", "3.1.4")}
    assert all(store.schemas["calculator"].description for store in stores)
    assert catalogue.schemas["calculator"].description == ""
    assert await workers[0].store("default", counted) is stores[0]


async def test_an_expired_list_is_confirmed_by_its_etag(database: Database, counted: FlowiseClient) -> None:
    cache = InstanceNodes(database)
    knowledge = NodeKnowledge(0, cache)
    before = await knowledge.store("default", counted)
    head = await cache.head("default", counted.endpoint)

    after = await knowledge.store("default", counted)
    confirmed = await cache.head("default", counted.endpoint)

    assert after is before
    assert head is not None
    assert confirmed is not None
    assert (confirmed.revision, confirmed.etag) == (head.revision, head.etag)
    assert confirmed.etag
    assert await cache.head("default", "http://another") is None


async def test_an_outage_leaves_what_any_worker_read(database: Database, counted: FlowiseClient) -> None:
    await NodeKnowledge(300, InstanceNodes(database)).store("default", counted)
    other = NodeKnowledge(0, InstanceNodes(database))

    async with FlowiseClient(counted.endpoint, None) as locked_out:
        store = await other.store("default", locked_out)
        with pytest.raises(FlowiseAuthError):
            await other.store("default", locked_out, refresh=True)

    assert (store.source, len(store)) == ("live", 297)


async def test_a_repaired_type_is_seen_by_every_worker_at_once(database: Database, counted: FlowiseClient) -> None:
    class Partial:
        """The real server, but for one type that its list lacks."""

        endpoint = counted.endpoint
        version, get_node = counted.version, counted.get_node

        async def list_nodes(self, etag: str | None = None):
            listed = await counted.list_nodes()
            return type(listed)(tuple(node for node in listed.nodes if node["name"] != "calculator"), listed.etag)

    first, second = (NodeKnowledge(300, InstanceNodes(database)) for _ in range(2))
    client = Partial()
    assert "calculator" not in (await first.store("default", client)).schemas
    await second.store("default", client)

    repair = await first.repair("default", client, "calculator")
    again = await second.repair("default", client, "calculator")

    assert (repair.decision.action, again.decision.action) == ("update_new_node", "skip_same_version")
    store = await second.store("default", client)
    assert (store.repaired, store.schemas["calculator"].category) == (("calculator",), "Tools")
    row = await database.fetch_one("SELECT decision FROM repaired_nodes")
    assert row is not None
    assert row["decision"]["decision_reason"] == "the type was not known"


async def test_former_lists_are_kept_for_comparison_and_only_the_last_few(
    database: Database, counted: FlowiseClient
) -> None:
    cache = InstanceNodes(database)
    knowledge = NodeKnowledge(300, cache)
    now = await knowledge.store("default", counted)
    schemas = {name: schema for name, schema in now.schemas.items() if name != "calculator"}
    for number in range(4):
        await cache.save(
            "default",
            counted.endpoint,
            fingerprint=f"former{number}",
            flowise_version="3.1.3",
            etag=None,
            nodes=full_text(schemas.values()),
            names=list(schemas),
        )

    after = await knowledge.store("default", counted, refresh=True)
    change = await knowledge.changes_since("default", "former3", after)
    forgotten = await knowledge.changes_since("default", "former0", after)

    assert (change.added, change.removed, change.version_before) == (("calculator",), (), "3.1.3")
    assert (forgotten.any, forgotten.types_known) == (True, False)
    row = await database.fetch_one("SELECT count(*) AS kept FROM node_catalogues")
    assert row == {"kept": 3}


async def test_concurrent_first_readings_agree(database: Database, counted: FlowiseClient) -> None:
    workers = [NodeKnowledge(300, InstanceNodes(database)) for _ in range(4)]

    stores = await asyncio.gather(*(worker.store("default", counted) for worker in workers))

    assert len({store.fingerprint for store in stores}) == 1


async def test_health_reads_the_database_alone(
    database: Database, counted: FlowiseClient, calls: list[str], catalogue: NodeStore
) -> None:
    cache = InstanceNodes(database)
    await NodeKnowledge(300, cache).store("default", counted)
    calls.clear()

    report = await knowledge_health(cache, [("default", counted.endpoint), ("other", "http://elsewhere")])

    mine = report.instances["default"]
    assert (mine.drift, mine.node_count, mine.flowise_version) == (False, 297, "3.1.4")
    assert mine.fingerprint == catalogue.fingerprint[:12]
    assert report.instances["other"].source == "snapshot"
    assert calls == []


async def test_template_flows_come_once_from_the_server_and_then_from_the_database(
    database: Database, counted: FlowiseClient, calls: list[str]
) -> None:
    market = {row["templateName"]: row for row in await counted.list_templates() if "flowData" in row}
    calls.clear()

    for _ in range(2):
        knowledge = TemplateKnowledge(300, InstanceTemplates(database))
        assert await knowledge.content("default", counted, "Tool Agent") == market["Tool Agent"]["flowData"]
    assert await knowledge.content("default", counted, "Translator") == market["Translator"]["flowData"]

    assert calls == ["GET /marketplaces/templates"]
    listed = await knowledge.store("default", counted.endpoint)
    assert [one.slim() for one in listed.all()] == [one.slim() for one in TemplateStore.from_snapshot().all()]
    assert listed.get("Tool Agent").description


async def test_refresh_from_the_server_gives_the_committed_files(
    flowise: FlowiseAccess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLOWISE_API_ENDPOINT", flowise.endpoint)
    monkeypatch.setenv("FLOWISE_API_KEY", flowise.api_key.get_secret_value())
    for path in sorted((ROOT / "schemas").glob("*.meta.json")):
        (tmp_path / "schemas").mkdir(exist_ok=True)
        (tmp_path / "schemas" / path.name).write_bytes(path.read_bytes())
    run = Refresh(tmp_path, from_server=True)
    run.now = datetime(2030, 1, 1, tzinfo=UTC)

    told = [await run.nodes(), await run.templates(), await run.credentials()]

    assert "297 nodes of Flowise 3.1.4" in told[0]
    for name in ("flowise_nodes.snapshot.json", "flowise_templates.snapshot.json"):
        assert (tmp_path / "schemas" / name).read_bytes() == (ROOT / "schemas" / name).read_bytes(), name
    credentials = json.loads((tmp_path / "schemas" / "flowise_credentials.snapshot.json").read_bytes())
    # Other tests add credentials to the server that they share.
    found = {row["credential_id"]: row["type"] for row in credentials}
    assert {identity: found.get(identity) for identity in flowise.credentials.values()} == {
        identity: kind for kind, identity in flowise.credentials.items()
    }
    assert {key for row in credentials for key in row} == {
        "credential_id", "name", "type", "tags", "created_at", "updated_at"
    }  # fmt: skip
