"""The client against a real Flowise whose models are the stand-in."""

import json
import uuid

import pytest
from pydantic import SecretStr

from flowise_dev_agent.devkit.flowise import FLOWISE_VERSION, FlowiseAccess, LocalFlowise
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInFailure
from flowise_dev_agent.errors import (
    FlowiseAuthError,
    FlowiseNotFoundError,
    FlowiseRejectedError,
    FlowiseServerError,
    FlowiseTimeoutError,
    FlowiseUnexpectedResponseError,
)
from flowise_dev_agent.flowise import Chatflow, ChatflowCreate, FlowiseClient

EMPTY = '{ "nodes": [],\n "edges": [] , "ü":"✓"}'
NOBODY = "00000000-0000-4000-8000-000000000000"


async def new_flow(client: FlowiseClient, flow_data: str = EMPTY, category: str | None = None) -> Chatflow:
    return await client.create_chatflow(ChatflowCreate(name="t", flow_data=flow_data, category=category))


async def template_flow(client: FlowiseClient, access: FlowiseAccess, name: str, *, streaming: bool) -> str:
    """The marketplace template with dummy credentials bound."""
    (template,) = [row for row in await client.list_templates() if row["templateName"] == name]
    flow = json.loads(template["flowData"])
    for node in flow["nodes"]:
        if node["data"]["name"] == "chatOpenAI":
            node["data"]["credential"] = access.credentials["openAIApi"]
            node["data"]["inputs"]["streaming"] = streaming
        if node["data"]["name"] == "serpAPI":
            node["data"]["credential"] = access.credentials["serpApi"]
    return json.dumps(flow)


async def test_server_is_the_pinned_version_and_lists_what_flows_are_made_of(
    flowise_client: FlowiseClient, flowise: FlowiseAccess
) -> None:
    assert await flowise_client.version() == FLOWISE_VERSION
    listed = await flowise_client.list_nodes()
    assert {"chatOpenAI", "bufferMemory", "conversationChain"} <= {node["name"] for node in listed.nodes}
    again = await flowise_client.list_nodes(listed.etag)
    assert (again.unchanged, again.nodes, again.etag) == (True, (), listed.etag)
    assert (await flowise_client.get_node("chatOpenAI"))["name"] == "chatOpenAI"
    with pytest.raises(FlowiseNotFoundError, match="Node chatopenai not found"):
        await flowise_client.get_node("chatopenai")
    types = {row.id: row.credential_name for row in await flowise_client.list_credentials()}
    # Other tests add credentials to the shared server.
    assert types.items() >= {identity: kind for kind, identity in flowise.credentials.items()}.items()
    # Tests of the editor and of stand-ins make these.
    assert {tool["name"] for tool in await flowise_client.list_tools()} <= {"weather", "print_order"}
    assert await flowise_client.list_variables() == []
    models = await flowise_client.node_options("chatOpenAI", "listModels")
    assert "gpt-4o" in {model["name"] for model in models}
    assert await flowise_client.node_options("chatOpenAI", "noSuchMethod") == []


async def test_chatflow_lives_from_create_to_delete(flowise_client: FlowiseClient) -> None:
    made = await new_flow(flowise_client, category="x;fda:1")
    read = await flowise_client.get_chatflow(made.id)
    assert (read.flow_data, read.category, read.type) == (EMPTY, "x;fda:1", "CHATFLOW")
    assert read.updated_date == made.updated_date
    changed = await flowise_client.update_chatflow(made.id, name="new name", deployed=True)
    assert (changed.name, changed.deployed, changed.flow_data) == ("new name", True, EMPTY)
    assert changed.updated_date > made.updated_date
    assert (await flowise_client.get_chatflow(made.id)).updated_date == changed.updated_date
    await flowise_client.delete_chatflow(made.id)
    with pytest.raises(FlowiseNotFoundError):
        await flowise_client.get_chatflow(made.id)
    with pytest.raises(FlowiseNotFoundError):
        await flowise_client.delete_chatflow(made.id)


async def test_chatflow_is_found_by_its_tag_newest_first(flowise_client: FlowiseClient) -> None:
    tag = f"fda:{uuid.uuid4()}"
    before = (await flowise_client.list_chatflows(page=1, limit=1)).total
    older = await new_flow(flowise_client, category=tag)
    await new_flow(flowise_client, category=f"{tag}0")
    newer = await new_flow(flowise_client, category=f"a; {tag}")
    assert [row.id for row in await flowise_client.find_chatflow_by_category_tag(tag)] == [newer.id, older.id]
    page = await flowise_client.list_chatflows(page=2, limit=2)
    assert (page.total, len(page.data)) == (before + 3, min(2, before + 1))


async def test_p12_mistakes_are_told_in_flowises_words(flowise_client: FlowiseClient, flowise: FlowiseAccess) -> None:
    with pytest.raises(FlowiseNotFoundError, match="not found in the database"):
        await flowise_client.get_chatflow(NOBODY)
    with pytest.raises(FlowiseRejectedError, match="Invalid Chatflow ID"):
        await flowise_client.get_chatflow("not-a-uuid")
    with pytest.raises(FlowiseNotFoundError):
        await flowise_client.update_chatflow(NOBODY, name="x")
    with pytest.raises(FlowiseNotFoundError):
        await flowise_client.predict(NOBODY, "hi", session_id="s")
    with pytest.raises(FlowiseServerError):
        await new_flow(flowise_client, flow_data="not json")
    with pytest.raises(FlowiseRejectedError, match="Invalid Chatflow Type"):
        await flowise_client.create_chatflow(ChatflowCreate(name="t", flow_data=EMPTY, type="chatflow"))
    async with FlowiseClient(flowise.endpoint, SecretStr("wrong")) as stranger:
        with pytest.raises(FlowiseAuthError, match="FLOWISE_API_KEY"):
            await stranger.list_credentials()
    async with FlowiseClient(f"{flowise.endpoint}/wrong/path", flowise.api_key) as lost:
        with pytest.raises(FlowiseUnexpectedResponseError, match="FLOWISE_API_ENDPOINT"):
            await lost.list_credentials()


@pytest.mark.parametrize("streaming", [False, True])
async def test_prediction_with_memory_keeps_sessions_apart(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, standin: ModelStandIn, streaming: bool
) -> None:
    data = await template_flow(flowise_client, flowise, "Conversation Chain", streaming=streaming)
    flow = await new_flow(flowise_client, flow_data=data)
    first = await flowise_client.predict(flow.id, "I cannot log in", session_id="one")
    again = await flowise_client.predict(flow.id, "What did I just ask you?", session_id="one", timeout=20)
    other = await flowise_client.predict(flow.id, "What did I just ask you?", session_id="two")
    assert first.session_id == "one"
    assert "stand-in" in first.answer
    assert again.answer == 'You asked: "I cannot log in"'
    assert other.answer == "You have not asked anything before."
    assert {request.stream for request in standin.requests} == {streaming}
    await flowise_client.delete_messages(flow.id, "one")
    forgotten = await flowise_client.predict(flow.id, "What did I just ask you?", session_id="one")
    assert forgotten.answer == "You have not asked anything before."


async def test_tool_agent_calls_its_calculator(flowise_client: FlowiseClient, flowise: FlowiseAccess) -> None:
    data = await template_flow(flowise_client, flowise, "Tool Agent", streaming=False)
    flow = await new_flow(flowise_client, flow_data=data)
    answer = await flowise_client.predict(flow.id, "What is 12 times 14?", session_id="s")
    assert answer.answer == "The result is 168"
    assert [(tool["tool"], tool["toolOutput"]) for tool in answer.used_tools] == [("calculator", "168")]


async def test_provider_faults_come_through_with_their_cause(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, standin: ModelStandIn
) -> None:
    data = await template_flow(flowise_client, flowise, "Conversation Chain", streaming=False)
    flow = await new_flow(flowise_client, flow_data=data)
    standin.script("hello", StandInFailure.http(401, "Incorrect API key provided"))
    with pytest.raises(FlowiseServerError, match="401 Unauthorized"):
        await flowise_client.predict(flow.id, "hello", session_id="s")
    standin.script("slow", Reply("late", delay=5))
    with pytest.raises(FlowiseTimeoutError, match=r"within 0\.5 s"):
        await flowise_client.predict(flow.id, "slow", session_id="s", timeout=0.5)


def test_bootstrap_again_reuses_the_key(flowise: FlowiseAccess, flowise_server: LocalFlowise) -> None:
    again = flowise_server.bootstrap()
    assert again.api_key == flowise.api_key
    assert again.credentials == flowise.credentials
    mode = (flowise_server.data_dir / "access.json").stat().st_mode & 0o777
    assert mode == 0o600
    assert flowise.api_key.get_secret_value() not in repr(flowise)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("return $name.toUpperCase()", "ANA"),
        ("return { total: $rows.length }", {"total": 2}),
        ("return [1, 2]", [1, 2]),
        ("return 7", 7),
    ],
)
async def test_code_runs_on_sample_variables(flowise_client: FlowiseClient, code: str, given: object) -> None:
    assert await flowise_client.run_function(code, {"name": "Ana", "rows": [1, 2]}) == given


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("return $name.nothing.more", "Cannot read properties of undefined"),
        ("return $missing", r"\$missing is not defined"),
        ("throw new Error('too early')", "too early"),
        ("return (", "Unexpected token"),
    ],
)
async def test_code_that_fails_says_why(flowise_client: FlowiseClient, code: str, why: str) -> None:
    with pytest.raises(FlowiseServerError, match=why):
        await flowise_client.run_function(code, {"name": "Ana"})
