"""The index of an instance's flows: what is found by which words, and that 10 000 flows cost what a hundred do."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flowise_dev_agent.agent.targets import FoundTargets, find_targets
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow, ChatflowPage
from flowise_dev_agent.flows.search import FlowSearch
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.persistence import Database

SECRET = "sk-abcdefghijklmnopqrstuvwx"


def flow(name: str, *nodes: str, number: int = 0, **columns: Any) -> Chatflow:
    data = [{"id": node, "data": {"name": node, "inputs": {"prompt": f"All about {name}"}}} for node in nodes]
    columns = {"id": name, "updated_date": f"2026-01-01T00:00:{number:05}Z", **columns}
    return Chatflow(name=name, flow_data=json.dumps({"nodes": data, "edges": []}), **columns)


class Server:
    """Lists flows, last changed first."""

    def __init__(self, *rows: Chatflow, endpoint: str = "http://flowise.test") -> None:
        self.endpoint = endpoint
        self.rows = sorted(rows, key=lambda row: row.updated_date, reverse=True)
        self.lists = 0

    async def list_chatflows(self, page: int, limit: int) -> ChatflowPage:
        self.lists += 1
        return ChatflowPage(data=list(self.rows[(page - 1) * limit : page * limit]), total=len(self.rows))


@pytest.fixture
def index(database: Database) -> FlowIndex:
    return FlowIndex(database)


@pytest.fixture
def search(index: FlowIndex) -> FlowSearch:
    return FlowSearch(index, lambda instance, id_: f"http://{instance}/{id_}")


async def names(search: FlowSearch, server: Server, query: str, **options: Any) -> list[str]:
    options = {"limit": 20, "drafts": False, "cursor": None} | options
    page = await search.find("main", cast(Any, server), query, **options)
    return [row.name for row in page.flows]


async def targets(index: FlowIndex, server: Server, text: str, **said: str) -> FoundTargets:
    given = {"target": None, "hint": None, **said}
    return await find_targets(index.of("main"), cast(Any, server), text=text, **given)


async def test_flows_are_found_by_beginnings_of_words_names_first(search: FlowSearch) -> None:
    server = Server(
        flow("Orders", "conversationChain", "bufferMemory", number=3),
        flow("Memory lane", "chatOpenAI", number=2),
        flow("Support", "chatAnthropic", category="team;fda:1:flow", number=1),
    )
    assert await names(search, server, "mem") == ["Memory lane", "Orders"]
    assert await names(search, server, "buffer mem") == ["Orders"]
    assert await names(search, server, "anthro") == ["Support"]
    assert await names(search, server, "TEAM") == ["Support"]
    assert await names(search, server, "all about lane") == ["Memory lane"]
    assert await names(search, server, "emory") == []
    assert await names(search, server, "it's \\ & | ' :* <->") == []
    assert await names(search, server, "") == ["Orders", "Memory lane", "Support"]


async def test_drafts_of_sessions_are_found_only_when_asked_for(search: FlowSearch) -> None:
    server = Server(flow("Orders (draft)", category="fda:1:draft", number=2), flow("Orders", number=1))
    assert await names(search, server, "orders") == ["Orders"]
    assert await names(search, server, "orders", drafts=True) == ["Orders (draft)", "Orders"]
    assert await names(search, server, "") == ["Orders"]


async def test_typing_asks_the_server_once_and_facts_are_bounded(search: FlowSearch) -> None:
    server = Server(*(flow(f"Flow {number:02}", "chatOpenAI", number=number) for number in range(30)))
    for query in ("f", "fl", "flo"):
        page = await search.find("main", cast(Any, server), query, limit=5, drafts=False, cursor=None)
        assert (len(page.flows), page.total, page.searched) == (5, 30, 30)
    assert server.lists == 1
    assert page.flows[0].url == "http://main/Flow 29"
    assert (page.flows[0].nodes, page.flows[0].node_types) == (1, ["chatOpenAI"])


async def test_a_flow_that_is_created_while_the_list_is_read_is_found_at_the_next_search(
    search: FlowSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 100.0

    class Slow(Server):
        async def list_chatflows(self, page: int, limit: int) -> ChatflowPage:
            nonlocal passed
            listed = await super().list_chatflows(page, limit)
            passed += 3
            self.rows.insert(0, flow("Orders new", number=9))
            return listed

    monkeypatch.setattr("flowise_dev_agent.knowledge.flow_index.time", SimpleNamespace(monotonic=lambda: passed))
    server = Slow(flow("Orders", number=1))
    assert await names(search, server, "orders") == ["Orders"]
    assert await names(search, server, "orders") == ["Orders new", "Orders"]


@pytest.mark.parametrize("query", ["", "flow", "chat"])
async def test_pages_go_on_after_the_last_flow_also_when_others_come_before_it(
    query: str, search: FlowSearch, index: FlowIndex
) -> None:
    # Two of each moment, so that the id decides.
    rows = [flow(f"Flow {number:03}", "chatOpenAI", number=number // 2) for number in range(100)]
    rows += [flow(f"Bot {number:03}", "chatOpenAI", number=number) for number in range(20)]
    server = Server(*rows)
    shown: list[str] = []
    cursor: str | None = None
    while True:
        page = await search.find("main", cast(Any, server), query, limit=7, drafts=False, cursor=cursor)
        shown += [row.name for row in page.flows]
        if not shown[7:]:
            server.rows.insert(0, flow("Flow new", "chatOpenAI", number=500))
            await index.current("main", cast(Any, server))
        if (cursor := page.next_cursor) is None:
            break
    assert sorted(shown) == sorted(row.name for row in rows if query != "flow" or row.name.startswith("Flow"))
    for foreign in ("mine", "NQ", "W10"):
        with pytest.raises(InvalidInputError):
            await search.find("main", cast(Any, server), query, limit=7, drafts=False, cursor=foreign)


async def test_another_process_searches_without_reading_what_the_first_has_read(
    search: FlowSearch, index: FlowIndex, database: Database
) -> None:
    server = Server(*(flow(f"Flow {number:03}", number=number) for number in range(300)))
    await names(search, server, "")
    assert server.lists == 6
    server.rows.insert(0, flow("Flow new", number=500))
    assert (await targets(FlowIndex(database), server, "change it", hint="Flow new")).exact == "Flow new"
    assert server.lists == 7
    # At another address it is another server.
    other = Server(flow("Elsewhere"), endpoint="http://other.test")
    assert await names(FlowSearch(FlowIndex(database), lambda *_: None), other, "") == ["Elsewhere"]


async def test_secrets_in_prompts_and_names_are_not_kept(search: FlowSearch, database: Database) -> None:
    data = [{"id": "a", "data": {"name": "llmChain", "inputs": {"prompt": f"Say {SECRET} to {SECRET}"}}}]
    row = flow(f"Bot {SECRET}", id="bot").model_copy(update={"flow_data": json.dumps({"nodes": data, "edges": []})})
    assert await names(search, Server(row), "bot") == ["Bot [secret]"]
    stored = await database.fetch_one("SELECT instance_flows::text AS row FROM instance_flows")
    assert stored is not None
    assert "abcdefghijklmnopqrstuvwx" not in stored["row"]


async def test_a_flow_of_hostile_text_is_kept_as_far_as_text_can_be(search: FlowSearch) -> None:
    wild = "NUL \0, half a pair \ud800, a word " + "x" * 10_000 + " ' \\ :* & "
    data = [{"id": "a", "data": {"name": wild, "label": wild, "inputs": {"prompt": wild, "list": [wild]}}}]
    row = flow("Wild", number=1).model_copy(
        update={"name": wild, "category": wild, "flow_data": json.dumps({"nodes": data, "edges": []})}
    )
    assert len(await names(search, Server(row, flow("Tame")), "half")) == 1


async def test_a_name_said_in_the_text_wins_over_flows_that_have_its_words(index: FlowIndex) -> None:
    rows = [flow(f"Support bot {number:04}", "chatOpenAI", number=number + 10) for number in range(1_500)]
    server = Server(*rows, flow("Support bot", number=1), flow("Refunds", "vectara", number=0))
    found = await targets(index, server, "Make the support bot answer in Spanish", hint="the support bot")
    assert (found.exact, found.search.named, found.search.total) == ("Support bot", True, 1_502)
    assert found.candidates[0].name == "Support bot"
    assert (await targets(index, server, "", target="support BOT 0007")).exact == "Support bot 0007"
    # By a rare word of what it is made of, and by what all have the ones that were changed last.
    assert (await targets(index, server, "Look into Vectara first")).candidates[0].name == "Refunds"
    assert (await targets(index, server, "")).candidates[0].name == "Support bot 1499"


async def test_p46_10_000_flows_are_searched_with_one_request_and_the_statements_of_a_few(
    index: FlowIndex, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def counted(count: int, instance: str) -> tuple[int, int]:
        server = Server(
            *(flow(f"Flow {number:05}", "chatOpenAI", "toolAgent", number=number) for number in range(count)),
            endpoint=f"http://{instance}.test",
        )
        await index.current(instance, cast(Any, server))
        lists, statements = server.lists, len(asked)
        found = await find_targets(index.of(instance), cast(Any, server), target=None, hint="flow 00042", text="x")
        assert found.exact == "Flow 00042"
        return server.lists - lists, len(asked) - statements

    asked: list[Any] = []
    pool = database.pool
    taken = pool.getconn
    monkeypatch.setattr(pool, "getconn", lambda *a, **k: asked.append(1) or taken(*a, **k))
    assert await counted(10_000, "many") == await counted(100, "few") == (1, 3)
