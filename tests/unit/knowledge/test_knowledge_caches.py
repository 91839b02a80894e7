"""Caches per instance: how often a server is asked, and what holds while it cannot be."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import ValidationError

from flowise_dev_agent.errors import FlowiseNotFoundError, FlowiseUnreachableError
from flowise_dev_agent.flowise.models import NodeList
from flowise_dev_agent.knowledge.credential_store import CredentialKnowledge, CredentialStore, KnownCredential
from flowise_dev_agent.knowledge.nodes import NodeKnowledge
from tests.unit.knowledge.memory_caches import MemoryNodes


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Row:
    id: str
    name: str
    credential_name: str
    created_date: str | None = "2026-01-01T00:00:00.000Z"
    updated_date: str | None = None
    encrypted_data: str = "secret"


@dataclass
class Server:
    """A Flowise that counts what it is asked."""

    nodes: list[dict[str, Any]] = field(
        default_factory=lambda: [{"name": "own", "version": 1, "baseClasses": [], "category": "Tools", "inputs": []}]
    )
    rows: list[Row] = field(default_factory=lambda: [Row("i1", "mine", "openAIApi")])
    down: bool = False
    calls: list[str] = field(default_factory=list)
    endpoint: str = "http://flowise.test"
    flowise_version: str = "3.1.4"
    late_version: float = 2

    def _answer(self, call: str) -> None:
        self.calls.append(call)
        if self.down:
            raise FlowiseUnreachableError("Flowise cannot be reached.")

    async def version(self) -> str:
        self._answer("version")
        return self.flowise_version

    async def list_nodes(self, etag: str | None = None) -> NodeList:
        self._answer("nodes" if etag is None else "nodes?")
        await asyncio.sleep(0)
        now = str(hash(json.dumps(self.nodes)))
        return NodeList((), etag, unchanged=True) if etag == now else NodeList(tuple(self.nodes), now)

    async def get_node(self, name: str) -> dict[str, Any]:
        self._answer(f"node {name}")
        if name != "late":
            raise FlowiseNotFoundError("no such node")
        return {
            "name": "late",
            "version": self.late_version,
            "baseClasses": ["Tool"],
            "category": "Tools",
            "inputs": [],
        }

    async def list_credentials(self) -> list[Row]:
        self._answer("credentials")
        return self.rows


async def test_a_server_is_asked_once_per_ttl_however_many_ask() -> None:
    clock, server = Clock(), Server()
    knowledge = NodeKnowledge(300, MemoryNodes(clock), clock=clock)

    stores = await asyncio.gather(*(knowledge.store("a", server) for _ in range(5)))
    assert server.calls == ["version", "nodes"]
    assert len({id(store) for store in stores}) == 1
    assert (stores[0].source, list(stores[0].schemas)) == ("live", ["own"])

    clock.now += 301
    again = await knowledge.store("a", server)
    assert server.calls == ["version", "nodes", "version", "nodes?"]
    assert again is stores[0]


async def test_p69_each_instance_has_its_own_catalogue() -> None:
    knowledge = NodeKnowledge(300, MemoryNodes())

    first = await knowledge.store("a", Server())
    second = await knowledge.store("b", Server(nodes=[{"name": "other"}]))

    assert (list(first.schemas), list(second.schemas)) == (["own"], ["other"])


async def test_an_unreadable_server_falls_back_to_the_snapshot_and_is_asked_again_soon() -> None:
    clock, server = Clock(), Server(down=True)
    knowledge = NodeKnowledge(300, MemoryNodes(clock), clock=clock)

    store = await knowledge.store("a", server)
    assert (store.source, "chatOpenAI" in store.schemas) == ("snapshot", True)
    await knowledge.store("a", server)
    assert server.calls == ["version"]

    server.down = False
    clock.now += 31
    assert (await knowledge.store("a", server)).source == "live"


async def test_refresh_asks_at_once_and_says_when_it_cannot() -> None:
    server = Server()
    knowledge = NodeKnowledge(300, MemoryNodes())
    before = await knowledge.store("a", server)
    server.nodes = [*server.nodes, {"name": "added"}]

    after = await knowledge.store("a", server, refresh=True)
    change = await knowledge.changes_since("a", before.fingerprint, after)

    assert (list(after.schemas), change.added, change.removed, change.changed) == (["added", "own"], ("added",), (), ())
    server.down = True
    with pytest.raises(FlowiseUnreachableError):
        await knowledge.store("a", server, refresh=True)


async def test_an_upgraded_server_sends_its_list_even_if_only_the_version_is_new() -> None:
    clock, server = Clock(), Server()
    knowledge = NodeKnowledge(300, MemoryNodes(clock), clock=clock)
    await knowledge.store("a", server)

    server.flowise_version = "3.1.5"
    clock.now += 301

    assert (await knowledge.store("a", server)).flowise_version == "3.1.5"


async def test_another_server_under_the_same_id_is_asked_at_once() -> None:
    cache = MemoryNodes()
    await NodeKnowledge(300, cache).store("a", Server())

    other = await NodeKnowledge(300, cache).store("a", Server(nodes=[{"name": "other"}], endpoint="http://b.test"))

    assert list(other.schemas) == ["other"]


async def test_repair_keeps_what_is_known_in_this_version_and_takes_a_newer_one() -> None:
    server = Server()
    knowledge = NodeKnowledge(300, MemoryNodes())
    await knowledge.repair("a", server, "late")

    again = await knowledge.repair("a", server, "late")
    server.late_version = 3
    newer = await knowledge.repair("a", server, "late")
    absent = await knowledge.repair("a", server, "never")

    assert (again.decision.action, newer.decision.action) == ("skip_same_version", "update_changed_version_or_hash")
    assert (await knowledge.store("a", server)).schemas["late"].version == 3
    assert (absent.schema, absent.decision.action) == (None, "not_found")


async def test_a_list_read_later_replaces_repaired_entries_of_its_types() -> None:
    clock, server = Clock(), Server()
    knowledge = NodeKnowledge(300, MemoryNodes(clock), clock=clock)
    await knowledge.store("a", server)
    await knowledge.repair("a", server, "late")
    server.nodes = [*server.nodes, {"name": "late", "version": 9}]
    clock.now += 301

    store = await knowledge.store("a", server)

    assert (store.repaired, store.schemas["late"].version) == ((), 9)


async def test_repairs_hold_while_the_list_itself_cannot_be_read() -> None:
    class OnlySingles(Server):
        async def list_nodes(self, etag: str | None = None) -> NodeList:
            raise FlowiseUnreachableError("no list")

    server = OnlySingles()
    knowledge = NodeKnowledge(300, MemoryNodes())
    await knowledge.repair("a", server, "late")

    store = await knowledge.store("a", server)

    assert (store.source, store.repaired, "chatOpenAI" in store.schemas) == ("snapshot", ("late",), True)


async def test_credentials_are_read_again_on_request_and_after_the_ttl() -> None:
    clock, server = Clock(), Server()
    knowledge = CredentialKnowledge(60, clock=clock)

    await knowledge.store("a", server)
    await knowledge.store("a", server)
    assert len(server.calls) == 1
    server.rows.append(Row("i2", "second", "openAIApi"))
    assert len(await knowledge.store("a", server, refresh=True)) == 2
    clock.now += 61
    await knowledge.store("a", server)
    assert len(server.calls) == 3


def test_only_id_name_and_type_of_a_credential_are_kept() -> None:
    store = CredentialStore.from_rows([Row("i1", "mine", "openAIApi")])

    assert store.all() == (
        KnownCredential(id="i1", name="mine", type="openAIApi", created_at="2026-01-01T00:00:00.000Z"),
    )
    with pytest.raises(ValidationError):
        KnownCredential.model_validate({"credential_id": "i", "name": "n", "type": "t", "encryptedData": "x"})


@pytest.mark.parametrize(
    ("query", "found"),
    [("i2", "i2"), ("work key", "i2"), ("anthropicApi", "i3"), ("openAIApi", None), ("twin", None), ("nothing", None)],
)
def test_credentials_resolve_by_id_then_name_then_sole_type(query: str, found: str | None) -> None:
    store = CredentialStore.from_rows(
        [
            Row("i1", "twin", "openAIApi"),
            Row("i2", "work key", "openAIApi"),
            Row("i3", "claude", "anthropicApi"),
            Row("i4", "twin", "serpApi"),
        ]
    )

    credential = store.resolve(query)

    assert (credential.id if credential else None) == found
    assert [one.id for one in store.by_type("openAIApi")] == ["i1", "i2"]
    assert store.types()["i3"] == "anthropicApi"
