"""A workspace, exported by one real Flowise, imported on an empty one, and asked there."""

import json
from pathlib import Path

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import MakeService, run_command
from tests.e2e.test_instances import instances, prod, prod_credentials
from tests.fixtures.fresh_flows import FRESH, Editor, Json

__all__ = ["prod", "prod_credentials"]

pytestmark = pytest.mark.nightly

QUESTION = "What is 12 times 14?"
#: Chatflows, agentflows, a sequence with a condition, one with a state, and a team.
MOVED = (
    *("an old conversation with a note", "documents in memory", "two chains in a row", "a function that counts words"),
    *("a router with two answers", "a state that a step counts up"),
    *("two steps with a condition between", "a state that a function fills", "a team"),
)
LISTS = ("agentflow", "agentflowv2", "chatflow", "document_store", "tool", "variable")


def with_a_tool(canvas: Editor, tool: str) -> None:
    """An agent with a custom tool of the server, which speaks as a variable of the server says."""
    agent = canvas.add("toolAgent", systemMessage="Be {{$vars.tone}}.")
    canvas.join(canvas.chat(), agent, "model")
    canvas.join(canvas.add("bufferMemory"), agent, "memory")
    canvas.join(canvas.add("customTool", selectedTool=tool), agent, "tools")


def caller(canvas: Editor, flow: str) -> None:
    """An agentflow that asks another flow of the server."""
    call = canvas.add("executeFlowAgentflow", executeFlowSelectedFlow=flow, executeFlowInput="{{ question }}")
    canvas.lead(canvas.add("startAgentflow"), call)


async def test_a_workspace_answers_the_same_on_an_empty_server(
    make_service: MakeService,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
    second_flowise: FlowiseAccess,
    prod: FlowiseClient,
    prod_credentials: dict[str, str],
    tmp_path: Path,
) -> None:
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    base = f"{flowise.endpoint}/api/v1"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=60, trust_env=False) as http:

        async def made(path: str, body: Json) -> str:
            return str((await http.post(path, json=body)).raise_for_status().json()["id"])

        types = {entry["name"]: entry for entry in (await http.get("/nodes")).json()}
        own = {"name": "opening_hours", "description": "Hours", "schema": "[]", "func": "return 'nine to five'"}
        tool = await made("/tools", {**own, "color": "#fff", "iconSrc": ""})
        variable = await made("/variables", {"name": "tone", "value": "kind", "type": "static"})

        async def drawn(name: str, kind: str, canvas: Editor) -> str:
            row = {"name": name, "type": kind, "flowData": canvas.text(), "category": "moved", "deployed": True}
            return await made("/chatflows", {**row, "chatbotConfig": '{"starterPrompts":{"0":{"prompt":"Hi"}}}'})

        ids: dict[str, str] = {}
        for name in MOVED:
            kind, draw = FRESH[name]
            draw(canvas := Editor(types, flowise.credentials))
            ids[name] = await drawn(name, kind, canvas)
        with_a_tool(canvas := Editor(types, flowise.credentials), tool)
        ids["with a tool"] = await drawn("with a tool", "CHATFLOW", canvas)
        caller(canvas := Editor(types, flowise.credentials), ids["a function that counts words"])
        ids["a caller"] = await drawn("a caller", "AGENTFLOW", canvas)
        asked = {name: await _answer(flowise_client, id_) for name, id_ in ids.items()}
        exported = await _exported(flowise)
        await http.delete(f"/tools/{tool}")
        await http.delete(f"/variables/{variable}")
    mine = {*ids.values()}
    for kind in ("ChatFlow", "AgentFlow", "AgentFlowV2"):
        exported[kind] = [row for row in exported[kind] if row["id"] in mine]
    (tmp_path / "ExportData.json").write_text(json.dumps(exported))

    service = make_service(FLOWISE_INSTANCES=instances(dev=flowise, prod=second_flowise))
    await service.start()
    checked = await run_command(service, tmp_path, "import", "ExportData.json", "--dry-run", "--instance", "prod")
    assert [row async for row in prod.iter_chatflows()] == [], checked
    said = await run_command(service, tmp_path, "import", "ExportData.json", "--yes", "--instance", "prod")

    rows = {row.name: row async for row in prod.iter_chatflows()}
    assert rows.keys() == ids.keys(), said
    assert {row.type for row in rows.values()} == {"CHATFLOW", "AGENTFLOW", "MULTIAGENT"}
    assert {row.category for row in rows.values()} == {"moved"}
    assert {row.chatbot_config for row in rows.values()} == {'{"starterPrompts":{"0":{"prompt":"Hi"}}}'}
    assert {row.deployed for row in rows.values()} == {False}
    assert not any(
        id_ in row.flow_data for row in rows.values() for id_ in (tool, *flowise.credentials.values(), *mine)
    )
    assert prod_credentials["openAIApi"] in rows["with a tool"].flow_data
    assert [row.get("name") for row in await prod.list_tools()] == ["opening_hours"]
    assert [row.get("name") for row in await prod.list_variables()] == ["tone"]
    assert {name: await _answer(prod, row.id) for name, row in rows.items()} == asked


async def _answer(client: FlowiseClient, flow: str) -> str:
    return (await client.predict(flow, QUESTION, session_id=f"moved-{flow}")).answer


async def _exported(flowise: FlowiseAccess) -> dict[str, list[Json]]:
    """The workspace as Flowise's own page exports it; no API key may."""
    base, headers = f"{flowise.endpoint}/api/v1", {"x-request-from": "internal"}
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=60, trust_env=False) as http:
        person = {"email": flowise.email, "password": flowise.password.get_secret_value()}
        (await http.post("/auth/login", json=person)).raise_for_status()
        wanted = dict.fromkeys(LISTS, True)
        return (await http.post("/export-import/export", json=wanted)).raise_for_status().json()
