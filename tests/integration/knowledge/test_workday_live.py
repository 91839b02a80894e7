"""The Workday blueprint on a real Flowise and a real MCP server."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.knowledge.refresh import Refresh
from flowise_dev_agent.knowledge.snapshot import schemas_dir
from flowise_dev_agent.knowledge.workday import MCP_FILE, WorkdayMcpStore, check_tools, meta_file
from flowise_dev_agent.patch import GraphIR, Schemas, compile_ops, validate_flow
from tests.fixtures.editor_flows import MODEL, add, bound, connect
from tests.fixtures.workday import TOKEN, WorkdayServer


@pytest.fixture
async def client(flowise: FlowiseAccess, workday: WorkdayServer) -> AsyncIterator[FlowiseClient]:
    """A client of a Flowise whose variables say where Workday's server is and how to be let in."""
    with httpx2.Client(
        base_url=f"{flowise.endpoint}/api/v1",
        headers={"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"},
        trust_env=False,
    ) as http:
        ids = [
            http.post("/variables", json={"name": name, "value": value, "type": "static"})
            .raise_for_status()
            .json()["id"]
            for name, value in (("workdayMcpUrl", workday.url), ("workdayToken", TOKEN))
        ]
        async with FlowiseClient(flowise.endpoint, flowise.api_key) as client:
            yield client
        for one in ids:
            http.delete(f"/variables/{one}").raise_for_status()


async def test_a_flow_of_the_blueprint_calls_workdays_tools_and_no_others(
    client: FlowiseClient, flowise: FlowiseAccess, workday: WorkdayServer, standin: ModelStandIn, schemas: Schemas
) -> None:
    blueprint = WorkdayMcpStore.from_snapshot().get()
    bind = flowise.credentials
    ops = [
        add("chatOpenAI", **MODEL),
        bound(bind, "chatOpenAI_0"),
        add("toolAgent"),
        add("bufferMemory"),
        connect("chatOpenAI_0", "toolAgent_0", "model"),
        connect("bufferMemory_0", "toolAgent_0", "memory"),
        *blueprint.ops("toolAgent_0"),
    ]
    result = compile_ops(GraphIR.empty(), ops, schemas)
    assert validate_flow(result.flow_data, schemas=schemas, credentials=None) == []
    call = StandInToolCall("searchForWorker", {"name": "Grace Hopper"})
    standin.script("Where is Grace?", Reply(tool_calls=(call,)), times=1)

    flow = await client.create_chatflow(ChatflowCreate(name="workday", flow_data=result.flow_data))
    prediction = await client.predict(flow.id, "Where is Grace?", session_id="workday")

    assert workday.called == [("searchForWorker", {"name": "Grace Hopper"})]
    assert "worker 21042 in Zurich" in prediction.answer
    assert {tool.name for tool in standin.requests[0].tools} == set(blueprint.selectedToolConfig.mcpActions)


async def test_refresh_asks_flowise_whether_the_blueprints_tools_are_there(
    client: FlowiseClient, flowise: FlowiseAccess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLOWISE_API_ENDPOINT", flowise.endpoint)
    monkeypatch.setenv("FLOWISE_API_KEY", flowise.api_key.get_secret_value())
    (tmp_path / "schemas").mkdir()
    for file in (MCP_FILE, meta_file(MCP_FILE)):
        shutil.copy(schemas_dir() / file, tmp_path / "schemas")

    told = await Refresh(tmp_path, from_server=True).workday_mcp()

    assert told.endswith("is offered getMyInfo, getWorkers, searchForWorker, terminateWorker.")
    snapshot = tmp_path / "schemas" / MCP_FILE
    snapshot.write_text(snapshot.read_text().replace("searchForWorker", "findWorker"))
    with pytest.raises(ConfigurationError, match=r"no tool findWorker\. It offers getMyInfo, getWorkers, searchForW"):
        await Refresh(tmp_path, from_server=True).workday_mcp()


async def test_a_flowise_that_reaches_no_server_is_told_with_what_to_set(flowise_client: FlowiseClient) -> None:
    blueprint = WorkdayMcpStore.from_snapshot().get()

    with pytest.raises(ConfigurationError, match="gets no tools") as caught:
        await check_tools(blueprint, flowise_client)

    for said in ("workdayMcpUrl", "workdayToken", "HTTP_SECURITY_CHECK=false"):
        assert said in str(caught.value)
