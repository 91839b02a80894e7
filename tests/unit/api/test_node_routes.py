"""The routes for node types, and the service behind them on the committed catalogue."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator

from flowise_dev_agent.agent import FlowiseCapability, ToolRegistry
from flowise_dev_agent.agent.domain import Domains, ToolScope
from flowise_dev_agent.errors import (
    FlowiseServerError,
    FlowiseUnreachableError,
    InvalidInputError,
    NodeTypeNotFoundError,
)
from flowise_dev_agent.ops.node_form import node_form
from flowise_dev_agent.ops.node_types import NodeTypes
from tests.unit.agent.rig import OPENAI, OTHER_OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops


class AgentDouble:
    """What `NodeTypes` asks of an agent."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.instances = self.lookups = self

    def resolve(self, name: str | None) -> str:
        return name or "default"

    def client(self, name: str | None) -> Any:
        return self._bench.context().flowise

    async def schemas(self, instance_id: str) -> Any:
        return self._bench.knowledge.store.schemas

    def tools(self, instance_id: str, chosen: Mapping[str, str], /) -> ToolRegistry:
        context = self._bench.context()
        scope = ToolScope(flowise=context.flowise, knowledge=context.knowledge, chosen=chosen)
        return Domains([FlowiseCapability()]).registry(scope)


@pytest.fixture
def bench() -> Bench:
    return Bench(ops(), credentials(OPENAI, OTHER_OPENAI))


@pytest.fixture
def node_types(bench: Bench) -> NodeTypes:
    agent: Any = AgentDouble(bench)
    return NodeTypes(agent)


async def test_routes_answer_from_the_runtime(http: httpx2.AsyncClient) -> None:
    listed = await http.get("/nodes", params={"query": "chat", "limit": 5})
    details = await http.get("/nodes/chatOpenAI")
    options = await http.post("/nodes/chatOpenAI/options", json={"param": "modelName", "credential_id": "c"})
    unknown = await http.get("/nodes/chatOpenAl")
    wrong = await http.post("/nodes/chatOpenAI/options", json={"param": "modelName", "inputs": {"basepath": "x"}})

    assert listed.json()["nodes"][0]["name"] == "chatOpenAI"
    assert details.json()["card"] == "### chatOpenAI"
    assert options.json()["options"] == [{"name": "gpt-4o", "label": "c"}]
    assert unknown.json()["hint"] == "Close names: chatOpenAI."
    assert (unknown.status_code, unknown.json()["code"]) == (404, "node_type_not_found")
    assert wrong.status_code == 422


async def test_pages_hold_every_node_type_once(bench: Bench, node_types: NodeTypes) -> None:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await node_types.list(None, query="", category=None, limit=120, cursor=cursor)
        names += [node.name for node in page.nodes]
        cursor = page.next_cursor
        if cursor is None:
            break

    assert sorted(names) == sorted(bench.knowledge.store.schemas)
    assert page.total == len(names)
    models = await node_types.list(None, query="openai", category="Chat Models", limit=3, cursor=None)
    assert {node.category for node in models.nodes} == {"Chat Models"}


async def test_what_fits_an_input_is_found_with_the_most_used_types_first(node_types: NodeTypes) -> None:
    page = await node_types.fitting(None, "BaseChatModel | BaseLanguageModel", query="", limit=200)
    names = [node.name for node in page.nodes]
    assert names[0] == "chatOpenAI"
    assert {"chatAnthropic", "chatOllama"} <= set(names)
    assert not {"calculator", "bufferMemory"} & set(names)
    assert [node.deprecated for node in page.nodes] == sorted(node.deprecated for node in page.nodes)


@pytest.mark.parametrize("cursor", ["x", "LTE", "OTk5OTk"])
async def test_a_foreign_cursor_is_refused(node_types: NodeTypes, cursor: str) -> None:
    with pytest.raises(InvalidInputError, match="cursor"):
        await node_types.list(None, query="", category=None, limit=10, cursor=cursor)


async def test_details_name_inputs_options_and_outputs(node_types: NodeTypes) -> None:
    found = await node_types.details(None, "chatOpenAI")
    inputs = {one.name: one for one in found.inputs}

    assert inputs["modelName"].lists_options
    assert inputs["reasoningEffort"].options == ["low", "medium", "high", "xhigh"]
    assert inputs["cache"].type == "BaseCache"
    assert found.card.startswith("### chatOpenAI")
    with pytest.raises(NodeTypeNotFoundError, match="no node type") as unknown:
        await node_types.details(None, "chatOpenAl")
    assert "chatOpenAI" in unknown.value.details["close"]


async def test_options_are_asked_with_the_credential_that_the_person_names(bench: Bench, node_types: NodeTypes) -> None:
    bench.flowise.options = [{"name": "gpt-4o", "label": "GPT-4o"}]

    found = await node_types.options(None, "chatOpenAI", "modelName", credential_id=OTHER_OPENAI)
    with pytest.raises(InvalidInputError, match="no credential"):
        await node_types.options(None, "chatOpenAI", "modelName", credential_id="other")

    assert [option.label for option in found.options] == ["GPT-4o"]
    assert [call["credential_id"] for call in bench.flowise.option_calls] == [OTHER_OPENAI]


async def test_a_server_that_does_not_answer_is_its_own_error(bench: Bench, node_types: NodeTypes) -> None:
    async def lost(*_: Any, **__: Any) -> Any:
        raise FlowiseUnreachableError("Flowise does not answer.")

    bench.flowise.node_options = lost  # type: ignore[method-assign]

    with pytest.raises(FlowiseUnreachableError):
        await node_types.options(None, "chatOpenAI", "modelName")


async def test_a_node_type_has_a_form_with_its_fields_and_their_conditions(node_types: NodeTypes) -> None:
    form: Any = (await node_types.details(None, "chatOpenAI")).form
    fields = form["properties"]
    assert fields["temperature"] == {"title": "Temperature", "type": "number", "default": 0.9, **_rest(fields)}
    assert "credential" not in fields
    assert "memory" not in fields
    assert fields["modelName"]["x-lists-options"] is True
    assert "x-options" not in fields["modelName"]
    agent: Any = (await node_types.details(None, "agentAgentflow")).form
    assert agent["properties"]["agentModel"]["x-config"] == "agentModelConfig"
    assert agent["properties"]["agentMessages"]["items"]["properties"]["content"]["x-variables"] is True
    assert "agentModel" in agent["required"]
    # Chosen from the flow itself: the server has nothing to list.
    loop: Any = (await node_types.details(None, "loopAgentflow")).form["properties"]
    assert loop["loopBackToNode"]["x-from-flow"] == "steps"
    assert "x-lists-options" not in loop["loopBackToNode"]
    assert loop["loopUpdateState"]["items"]["properties"]["key"]["x-from-flow"] == "state"


async def test_variables_of_a_server_are_named_without_their_values(bench: Bench, node_types: NodeTypes) -> None:
    async def rows() -> Any:
        return [{"name": "shop", "type": "static", "value": "secret"}, {"name": "city"}, {"type": "static"}]

    bench.flowise.list_variables = rows  # type: ignore[method-assign]

    found = await node_types.variables(None)

    assert [(one.name, one.type) for one in found.variables] == [("city", ""), ("shop", "static")]
    assert "secret" not in found.model_dump_json()


def _rest(fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields["temperature"].items() if name not in ("title", "type", "default")}


async def test_a_form_has_the_options_of_the_server_where_they_are_asked_for(
    bench: Bench, node_types: NodeTypes
) -> None:
    bench.flowise.options = [{"name": f"model-{number}", "label": f"Model {number}"} for number in range(500)]
    form: Any = (await node_types.details(None, "chatOpenAI", with_options=True)).form
    options = form["properties"]["modelName"]["x-options"]
    assert (len(options), options[0]) == (300, {"const": "model-0", "title": "Model 0"})
    asked = len(bench.flowise.option_calls)
    await node_types.details(None, "chatOpenAI")
    assert len(bench.flowise.option_calls) == asked


async def test_options_that_cannot_be_listed_leave_the_form_as_it_is(
    bench: Bench, node_types: NodeTypes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: Any, **__: Any) -> Any:
        raise FlowiseUnreachableError("down")

    monkeypatch.setattr(bench.flowise, "node_options", down)
    form: Any = (await node_types.details(None, "chatOpenAI", with_options=True)).form
    assert form["properties"]["modelName"]["type"] == "string"


def test_the_form_of_every_node_type_is_a_json_schema(bench: Bench) -> None:
    for schema in bench.knowledge.store.schemas.values():
        form = node_form(schema, {})
        Draft202012Validator.check_schema(form)
        assert len(json.dumps(form)) < 120_000


@pytest.mark.parametrize(
    ("path", "former"),
    [("/nodes", "q"), ("/patterns", "q"), ("/sessions", "text"), ("/memories", "query_text")],
)
async def test_words_of_a_search_are_called_query(http: httpx2.AsyncClient, path: str, former: str) -> None:
    found = [(await http.get(path, params={name: "chat"})).status_code for name in ("query", former)]
    assert found == [200, 200]


async def test_icons_are_read_once_and_only_images_of_known_types_are_shown(
    bench: Bench, node_types: NodeTypes
) -> None:
    asked: list[str] = []
    icons: dict[str, Any] = {
        "chatOpenAI": ("image/svg+xml", b"<svg/>"),
        "bufferMemory": ("text/html", b"<script>"),
        "calculator": ("image/png", b"x" * 32_001),
        "serpAPI": FlowiseServerError("no icon", hint="-"),
        "pinecone": FlowiseUnreachableError("away", hint="-"),
    }

    async def node_icon(name: str) -> tuple[str, bytes]:
        asked.append(name)
        if isinstance(found := icons[name], Exception):
            raise found
        return found

    bench.flowise.node_icon = node_icon  # type: ignore[attr-defined]
    names = [*icons, "llmAgentflow", "../chatflows"]
    first = (await node_types.icons(None, names)).icons
    assert first == {"chatOpenAI": "data:image/svg+xml;base64,PHN2Zy8+", **dict.fromkeys([*icons][1:], "")}
    assert (await node_types.icons(None, names)).icons == first
    # Asked again is only for the one that could not be read.
    assert sorted(asked) == sorted([*icons, "pinecone"])
