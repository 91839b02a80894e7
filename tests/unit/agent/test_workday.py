"""Workday as a domain: blueprints and API operations become tools, without asking Workday."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.agent.domain import DiscoverRequest
from flowise_dev_agent.agent.domains.flowise import FlowiseCapability
from flowise_dev_agent.agent.domains.workday import WorkdayCapability
from flowise_dev_agent.agent.graph import build_graph
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.knowledge.checks import check_workday_api
from flowise_dev_agent.knowledge.refresh import Refresh
from flowise_dev_agent.knowledge.snapshot import schemas_dir
from flowise_dev_agent.knowledge.workday import API_FILE, MCP_FILE, WorkdayKnowledgeProvider, meta_file
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from tests.unit.agent.rig import Bench
from tests.unit.agent.test_graph import credentials
from tests.unit.agent.test_ready_tools import API, agent_plan, model_ops

OPENAI = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"
SENTENCE = "Build an assistant with GPT-4o that looks up workers in Workday"


def request(text: str) -> DiscoverRequest:
    return DiscoverRequest(text, Bench([], credentials("1")).reasoner.intents[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    for file in (MCP_FILE, API_FILE):
        for one in (file, meta_file(file)):
            shutil.copy(schemas_dir() / one, tmp_path / "schemas")
    return tmp_path


async def test_ac5_discovery_brings_the_blueprint_without_a_call() -> None:
    found = await WorkdayCapability().discover(Bench([], credentials("1")).context(), request(SENTENCE))

    assert [tool.node_id for tool in found.ready_tools] == ["workday__workday_default"]
    assert found.facts == {
        "tools": ["workday__workday_default"],
        "mcp_mode": "customMCP",
        "mcp_actions": ["getMyInfo", "searchForWorker", "getWorkers"],
        "mcp_server_url": "{{$vars.workdayMcpUrl}}",
        "auth_var": "workdayToken",
        "credential_type": "workdayOAuth",
        "oauth_credential_id": None,
    }
    assert "tool of an agent" in found.skill


async def test_a_requirement_that_does_not_name_workday_gets_nothing_of_it() -> None:
    found = await WorkdayCapability().discover(Bench([], credentials("1")).context(), request("A bot for workers"))

    assert (found.ready_tools, found.facts, found.skill) == ((), {}, "")


@pytest.mark.parametrize("design", [None, {"name": "Desk", "model": "gpt-4.1-mini"}])
async def test_a_session_plans_and_writes_the_blueprint_with_its_personal_data_shown(
    design: dict[str, Any] | None,
) -> None:
    bench = Bench(model_ops(), credentials(OPENAI), reasoner=DeterministicReasoner() if design else None)
    bench.graph = build_graph([FlowiseCapability(), WorkdayCapability()], bench.graph.checkpointer)
    bench.reasoner.plans = [agent_plan()]

    question = await bench.start(SENTENCE, design=design)
    assert question["reason"] == "plan_ready", question["message"]
    assert "## Personal data\n- `worker.location`\n- `worker.name`" in question["data"]["plan"]
    await bench.answer(action="approve")

    (flow,) = bench.flowise.flows.values()
    graph = GraphIR.from_flow_data(flow.flow_data)
    node = graph.node("workday__workday_default")
    assert node is not None
    assert (node.name, node.inputs["mcpActions"]) == ("customMCP", '["getMyInfo","searchForWorker","getWorkers"]')
    assert [edge.input_name for edge in graph.edges if edge.source == node.id] == ["tools"]
    assert (await bench.state()).plan.current.domain_targets == ["flowise", "workday"]


async def test_a_refresh_takes_in_a_description_whose_operations_become_tools(folder: Path) -> None:
    (folder / "api.yaml").write_text(API)

    told = await Refresh(folder, openapi=folder / "api.yaml").workday_api()
    again = await Refresh(folder, openapi=folder / "api.yaml").workday_api()

    assert told == again == "Ticket API (4 of 5 operations can be tools)."
    assert check_workday_api(folder / "schemas") == []
    domain = WorkdayCapability(WorkdayKnowledgeProvider.from_snapshot(folder / "schemas"))
    tools = await domain.tools_for(Bench([], credentials("1")).context(), request("The status of a ticket in Workday"))
    assert [tool.node_id for tool in tools] == ["workday__workday_default", "workday__getTicket"]


async def test_without_a_description_the_api_stays_a_stub_that_says_what_to_give(folder: Path) -> None:
    told = await Refresh(folder).workday_api()

    assert "--openapi FILE" in told
    assert check_workday_api(folder / "schemas") == []
    (folder / "api.yaml").write_text("text: no API")
    with pytest.raises(InvalidInputError, match="not an OpenAPI 3 description"):
        await Refresh(folder, openapi=folder / "api.yaml").workday_api()
