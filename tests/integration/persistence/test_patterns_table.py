"""The pattern table and its routes on a real Postgres."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.api import create_app
from flowise_dev_agent.caller import serving
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.persistence import Database, NewPattern, Patterns, migrate
from flowise_dev_agent.persistence import pattern_rows as module
from flowise_dev_agent.settings import FlowiseSettings, load_settings

OPS = [{"op_type": "AddNode", "node_name": "chatOpenAI", "node_id": "chatOpenAI_0"}]


def new(terms: str, **values: Any) -> NewPattern:
    base: dict[str, Any] = {
        "owner": "default",
        "instance_id": "default",
        "name": "A flow",
        "requirement": terms,
        "terms": terms,
        "flow_kind": "CHATFLOW",
        "ops": OPS,
        "node_types": ["chatOpenAI"],
        "category": "custom",
        "schema_fingerprint": "abc",
    }
    return NewPattern(**{**base, **values})


@pytest.fixture
async def database(database_dsn: str) -> AsyncIterator[Database]:
    await migrate(database_dsn)
    async with Database(database_dsn) as database:
        yield database


async def test_search_finds_by_shared_words_and_ranks_them(database: Database) -> None:
    patterns = Patterns(database)
    one = await patterns.save(new("bicycle customer shop support"))
    other = await patterns.save(new("customer french translation"))
    with serving("else"):
        await patterns.save(new("customer support", owner="else"))
    await patterns.save(new("customer support", instance_id="else"))
    found = await patterns.matching("default", "default", ["support", "customer", "bicycle"])
    assert [row.id for row in found] == [one, other]
    assert (found[0].ops, found[0].node_types, found[0].success_count) == (OPS, ["chatOpenAI"], 0)
    assert await patterns.matching("default", "default", ["größe", "4o"]) == []


async def test_the_same_words_are_one_pattern_whose_counts_stay(database: Database) -> None:
    patterns = Patterns(database)
    one = await patterns.save(new("a b"))
    assert one is not None
    session = uuid4()
    for _ in range(2):  # a run that runs twice
        await patterns.record("default", [one], session, accepted=True)
    await patterns.record("default", [one], uuid4(), accepted=False)
    await patterns.record("else", [one], uuid4(), accepted=False)
    assert await patterns.save(new("a b", name="Newer")) == one
    assert await patterns.save(new("a b"), replace=False) is None
    (row,) = await patterns.page("default", instance_id=None, category=None, terms=[], limit=9)
    assert (row.name, row.success_count, row.failure_count) == ("Newer", 1, 1)
    assert row.last_used_at is not None
    assert await patterns.delete("else", one) is False
    assert await patterns.delete("default", one) is True


async def test_the_table_is_bounded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PATTERNS", 2)
    patterns = Patterns(database)
    kept = [await patterns.save(new(f"word{number}")) for number in range(3)]
    rows = await patterns.page("default", instance_id=None, category=None, terms=[], limit=9)
    assert {row.id for row in rows} == set(kept[1:])


async def test_patterns_travel_by_export_and_import(database: Database) -> None:
    instances = Instances(FlowiseSettings())
    engine: Any = SimpleNamespace(db=database, instances=instances)
    app = create_app(load_settings(), engine)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        bind = {"op_type": "BindCredential", "node_id": "chatOpenAI_0", "credential_id": str(uuid4())}
        item = {"requirement": "Bicycle shop support", "name": "Support", "ops": [*OPS, bind], "success_count": 3}
        sent = {"format": "flowise-dev-agent/patterns", "version": 1, "patterns": [item, {**item, "ops": [bind]}]}
        result = (await http.post("/patterns/import", json=sent)).json()
        assert (len(result["imported"]), [entry["index"] for entry in result["skipped"]]) == (1, [1])
        (view,) = (await http.get("/patterns", params={"q": "bicycle"})).json()["patterns"]
        assert (view["ops"], view["category"], view["success_count"]) == (1, "custom", 3)
        assert (await http.get("/patterns", params={"q": "please"})).json() == {"patterns": []}
        exported = (await http.get("/patterns/export")).json()
        again = (await http.post("/patterns/import", json=exported)).json()
        assert again["imported"] == []
        assert "already" in again["skipped"][0]["reason"]
        id_ = view["id"]
        assert (await http.delete(f"/patterns/{id_}")).status_code == 204
        gone = await http.delete(f"/patterns/{id_}")
        assert (gone.status_code, gone.json()["code"]) == (404, "pattern_not_found")
        assert (await http.post("/patterns/import", json=exported)).json()["skipped"] == []
    await instances.aclose()
