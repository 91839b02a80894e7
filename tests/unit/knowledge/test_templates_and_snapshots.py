"""Templates, Workday blueprints and the credential snapshot."""
# pyright: reportArgumentType=false

import json
import logging
import math
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.errors import FlowiseUnreachableError, InvalidInputError
from flowise_dev_agent.knowledge.credential_store import (
    CredentialKnowledge,
    CredentialStore,
    KnownCredential,
    write_credentials,
)
from flowise_dev_agent.knowledge.templates import TemplateKnowledge, TemplateStore
from flowise_dev_agent.knowledge.workday import WorkdayMcpStore
from flowise_dev_agent.patch import Schemas
from tests.unit.knowledge.memory_caches import MemoryTemplates

ROOT = Path(__file__).parents[3]
ENDPOINT = "http://flowise.test"
FLOW = '{"nodes": [{"data": {"name": "toolAgent"}}],\n "edges": []}'


class Market:
    """A server with one flow and one tool."""

    endpoint = ENDPOINT

    def __init__(self) -> None:
        self.calls = 0
        self.rows: list[dict[str, Any]] = [
            {
                "id": "random",
                "templateName": "Own Flow",
                "type": "Chatflow",
                "flowData": FLOW,
                "usecases": ["Basic"],
                "categories": "Agents,Tools",
                "description": "Answers questions about penguins. " * 9,
            },
            {"templateName": "Own Tool", "type": "Tool", "name": "own", "func": "return 1", "schema": "[]"},
        ]

    async def list_templates(self) -> list[dict[str, Any]]:
        self.calls += 1
        return self.rows


def test_committed_templates_are_slim() -> None:
    store = TemplateStore.from_snapshot()
    by_type = [template.type for template in store.all()]

    assert {kind: by_type.count(kind) for kind in set(by_type)} == {"Chatflow": 24, "AgentflowV2": 13, "Tool": 13}
    assert not any(template.description for template in store.all())
    assert {"bufferMemory", "calculator", "chatOpenAI", "toolAgent"} <= set(store.get("tool agent").nodes)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a tool agent that can calculate", "Tool Agent"),
        ("structured output parser", "Structured Output"),
        ("chat with a sql database", "SQL DB Chain"),
        ("deep research", "Deep Research With Subagents"),
        ("translate a text", "Translator"),
        ("ask a human for approval", "Human In The Loop"),
        ("conversational retrieval over documents", "Conversational Retrieval QA Chain"),
    ],
)
def test_find_gives_three_that_fit(text: str, name: str) -> None:
    found = TemplateStore.from_snapshot().find(text)

    assert len(found) <= 3
    assert name in [template.name for template in found]


def test_flows_made_of_the_same_types_are_found_without_the_other_ones(schemas: Schemas) -> None:
    store = TemplateStore.from_snapshot()
    rag = ["conversationalRetrievalQAChain", "chatOpenAI", "openAIEmbeddings", "memoryVectorStore", "github"]
    assert [one.name for one in store.made_of(rag, schemas)] == ["Github Docs QnA"]
    assert store.made_of(["chatOpenAI", "toolAgent", "serpAPI", "arxiv", "redisCache"], schemas) == []
    assert store.made_of([], schemas) == []


def test_find_by_type_and_for_nothing() -> None:
    store = TemplateStore.from_snapshot()

    assert {template.type for template in store.find("agent", 20, type_="AgentflowV2")} == {"AgentflowV2"}
    assert store.find("xylophone") == []
    with pytest.raises(InvalidInputError, match="Tool Agent"):
        store.get("Tol Agent")


async def test_flows_are_fetched_on_demand_and_once() -> None:
    market, cache = Market(), MemoryTemplates()
    knowledge = TemplateKnowledge(60, cache)
    assert len(await knowledge.store("a", ENDPOINT)) == 50
    assert market.calls == 0

    assert await knowledge.content("a", market, "own flow") == FLOW
    assert await TemplateKnowledge(60, cache).content("a", market, "Own Flow", "Chatflow") == FLOW
    tool = json.loads(await knowledge.content("a", market, "Own Tool"))

    assert (market.calls, tool) == (1, {"func": "return 1", "name": "own", "schema": "[]"})
    listed = await knowledge.store("a", ENDPOINT)
    assert [template.name for template in listed.find("penguins")] == ["Own Flow"]
    flow = listed.get("Own Flow")
    assert (flow.categories, len(flow.description)) == (("Agents", "Tools"), 120)
    assert len(await knowledge.store("b", ENDPOINT)) == 50


@pytest.mark.parametrize("age", [59.0, 61.0])
async def test_a_stale_list_stays_in_use_with_a_line_in_the_debug_log(
    caplog: pytest.LogCaptureFixture, age: float
) -> None:
    caplog.set_level(logging.DEBUG, "flowise_dev_agent.knowledge.templates")
    now, market = [0.0], Market()
    knowledge = TemplateKnowledge(60, MemoryTemplates(lambda: now[0]))
    await knowledge.refresh("a", market)
    now[0] = age

    assert [template.name for template in (await knowledge.store("a", ENDPOINT)).find("penguins")] == ["Own Flow"]
    assert market.calls == 1
    stale = ["templates of instance a are stale: 61 seconds old"] if age > 60 else []
    assert [record.message for record in caplog.records] == stale


async def test_a_list_is_read_from_the_cache_once_until_the_server_was_read_again() -> None:
    market, now = Market(), [0.0]
    cache = MemoryTemplates(lambda: now[0])
    knowledge, other = TemplateKnowledge(60, cache), TemplateKnowledge(60, cache)
    await other.refresh("a", market)
    first = await knowledge.store("a", ENDPOINT)
    assert (await knowledge.store("a", ENDPOINT) is first, cache.lists) == (True, 1)
    now[0] = 1.0
    market.rows.pop()
    await other.refresh("a", market)
    assert (len(await knowledge.store("a", ENDPOINT)), cache.lists) == (len(first) - 1, 2)


async def test_the_committed_list_is_as_old_as_its_meta_file_says(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "flowise_dev_agent.knowledge.templates")
    cache = MemoryTemplates()

    assert len(await TemplateKnowledge(math.inf, cache).store("a", ENDPOINT)) == 50
    assert caplog.records == []
    assert len(await TemplateKnowledge(0, cache).store("a", ENDPOINT)) == 50
    assert "templates of instance a are stale" in caplog.text


async def test_a_changed_marketplace_is_read_again_after_the_ttl() -> None:
    market = Market()
    knowledge = TemplateKnowledge(0, MemoryTemplates())
    await knowledge.content("a", market, "Own Flow")
    market.rows[0]["flowData"] = '{"nodes": []}'

    assert await knowledge.content("a", market, "Own Flow") == '{"nodes": []}'
    with pytest.raises(InvalidInputError, match="no template"):
        await knowledge.content("a", market, "Someone else's")


def test_the_workday_blueprint_is_a_custom_mcp_node_with_its_config_as_text() -> None:
    blueprint = WorkdayMcpStore.from_snapshot().get()

    config = json.loads(blueprint.selectedToolConfig.mcpServerConfig)
    assert blueprint.selectedTool == "customMCP"
    assert blueprint.chatflow_only
    assert blueprint.credential_type == "workdayOAuth"
    assert blueprint.selectedToolConfig.mcpActions == ("getMyInfo", "searchForWorker", "getWorkers")
    assert config["headers"]["Authorization"] == f"Bearer {{{{$vars.{blueprint.auth_var}}}}}"
    assert config["url"] == blueprint.selectedToolConfig.server_url
    with pytest.raises(InvalidInputError, match="workday_default"):
        WorkdayMcpStore.from_snapshot().get("other")


class Down:
    endpoint = ENDPOINT

    async def list_credentials(self) -> list[Any]:
        raise FlowiseUnreachableError("Flowise cannot be reached.")


async def test_the_credential_snapshot_stands_in_for_its_own_server_only(tmp_path: Path) -> None:
    store = CredentialStore([KnownCredential(id="i1", name="mine", type="openAIApi")])
    write_credentials(store, ENDPOINT, datetime.now(UTC), tmp_path)
    knowledge = CredentialKnowledge(60, folder=lambda: tmp_path)

    assert (await knowledge.store("a", Down())).all() == store.all()
    with pytest.raises(FlowiseUnreachableError):
        await knowledge.store("a", Down(), refresh=True)
    write_credentials(store, "http://elsewhere", datetime.now(UTC), tmp_path)
    with pytest.raises(FlowiseUnreachableError):
        await knowledge.store("a", Down())


async def test_a_credential_snapshot_with_more_than_the_allowlist_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_credentials(CredentialStore([]), ENDPOINT, datetime.now(UTC), tmp_path)
    entry = {"credential_id": "i", "name": "n", "type": "t", "plainDataObj": {"key": "s3cr3t"}}
    (tmp_path / "flowise_credentials.snapshot.json").write_text(json.dumps([entry]))

    with caplog.at_level(logging.ERROR):
        assert CredentialStore.from_snapshot(tmp_path, ENDPOINT) is None
    assert "plainDataObj" in caplog.text
    assert "s3cr3t" not in caplog.text


def test_p81_the_wheel_takes_every_committed_snapshot_and_no_credentials() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    committed = {path.name for path in (ROOT / "schemas").iterdir() if not path.name.startswith("flowise_credentials.")}

    assert included == {f"schemas/{name}": f"flowise_dev_agent/knowledge/snapshots/{name}" for name in committed}
