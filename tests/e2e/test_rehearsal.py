"""The newest 3.0 and the 3.1 of the devkit side by side: what an upgrade breaks is told, and nothing stays there."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.snapshot import SNAPSHOT_FILE, schemas_dir
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, PatchOp, SetParam, compile_ops
from tests.e2e.people import MakeService, http_of, make_flow, ok, run_command

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]
QUESTION = "Where is my parcel?"


@pytest.fixture
async def old(oldest_flowise: FlowiseAccess) -> AsyncIterator[FlowiseClient]:
    """A client of the old server."""
    async with FlowiseClient(oldest_flowise.endpoint, oldest_flowise.api_key) as client:
        yield client
        for row in [row async for row in client.iter_chatflows()]:
            await client.delete_chatflow(row.id)


async def planted(client: FlowiseClient, access: FlowiseAccess) -> dict[str, Chatflow]:
    """Flows on the old server, by what is wrong with them on the new one."""
    schemas = (await NodeStore.from_server(client)).schemas
    lone = await client.create_credential(name="only here", type_="redisCacheApi", fields={"redisCacheHost": "h"})

    async def made(name: str, *ops: PatchOp) -> Chatflow:
        credentials = {**access.credentials, "redisCacheApi": lone.id}
        flow = compile_ops(GraphIR.empty(), ops, schemas, credentials=credentials)
        return await client.create_chatflow(ChatflowCreate(name=name, flow_data=flow.flow_data, type="CHATFLOW"))

    model = AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o-mini"})
    chain = AddNode(node_name="conversationChain", node_id="conversationChain_0")
    memory = AddNode(node_name="bufferMemory", node_id="bufferMemory_0")

    def connect(source: str, target: str, anchor: str) -> Connect:
        return Connect(source_node_id=f"{source}_0", target_node_id=f"{target}_0", target_anchor=anchor)

    chat = [
        model,
        memory,
        chain,
        connect("chatOpenAI", "conversationChain", "model"),
        connect("bufferMemory", "conversationChain", "memory"),
    ]
    claude = [
        AddNode(node_name="chatAnthropic", node_id="chatAnthropic_0"),
        memory,
        chain,
        connect("chatAnthropic", "conversationChain", "model"),
        connect("bufferMemory", "conversationChain", "memory"),
    ]
    react = AddNode(node_name="reactAgentChat", node_id="reactAgentChat_0")
    tool = AddNode(node_name="calculator", node_id="calculator_0")
    agent: list[PatchOp] = [
        model,
        memory,
        react,
        tool,
        *(
            connect(one, "reactAgentChat", anchor)
            for one, anchor in (("chatOpenAI", "model"), ("bufferMemory", "memory"), ("calculator", "tools"))
        ),
    ]
    proxy = SetParam(node_id="chatOpenAI_0", param_name="proxyUrl", value="http://proxy.example:3128")
    cache = AddNode(node_name="redisCache", node_id="redisCache_0")
    return {
        "fine": await made("Fine", *claude),
        "answer": await made("Other answer", *claude),
        "node": await made("Node that is gone", *agent),
        "param": await made("Field that is gone", *chat, proxy),
        "credential": await made(
            "Credential that is not there", *chat, cache, connect("redisCache", "chatOpenAI", "cache")
        ),
        "version": await make_flow(client, "Simple RAG"),
    }


async def test_each_planted_incompatibility_is_told_and_the_new_server_stays_as_it_was(
    make_service: MakeService,
    oldest_flowise: FlowiseAccess,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
    old: FlowiseClient,
    standin: ModelStandIn,
    tmp_path: Path,
) -> None:
    flows = await planted(old, oldest_flowise)
    before = [row.id async for row in flowise_client.iter_chatflows()]
    replies = ["It is on its way.", "No idea."]
    standin.script(QUESTION, lambda _: Reply(text=replies.pop(0)))
    servers = {"today": oldest_flowise, "next": flowise}
    instances = [
        {"id": id_, "endpoint": one.endpoint, "api_key": one.api_key.get_secret_value()} for id_, one in servers.items()
    ]
    service = make_service(FLOWISE_INSTANCES=json.dumps(instances), FLOWISE_API_ENDPOINT="", FLOWISE_API_KEY="")
    await service.start()
    expect = {"contains": ["on its way"]}
    tests = {"answer": {"turns": [QUESTION], "expect": expect}, "fine": {"turns": ["What can you do?"]}}
    async with http_of(service) as http:
        for name, test in tests.items():
            path = f"/flows/{flows[name].id}/tests?instance=today"
            await ok(await http.put(path, json={"tests": [test]}))

    async def rehearsed(*options: str, code: int = 3) -> dict[str, Any]:
        printed = await run_command(service, tmp_path, "rehearse", "--from", "today", "--json", *options, code=code)
        return json.loads(printed)

    found = await rehearsed("--to", "next", "--tests", "--report", str(tmp_path / "report.md"))
    by_id = {one["id"]: one for one in found["flows"]}
    told = {name: by_id[row.id] for name, row in flows.items()}
    codes = {name: {finding["code"] for finding in one["findings"]} for name, one in told.items()}
    assert not told["fine"]["breaks"]
    assert (told["fine"]["findings"], told["fine"]["asked"], told["fine"]["answers"]) == ([], 1, [])
    assert "UNKNOWN_NODE_NAME" in codes["node"]
    assert "proxyUrl" in {one["field"] for one in told["param"]["findings"]}
    (answer,) = told["answer"]["answers"]
    assert (answer["question"], answer["before"]) == (QUESTION, "It is on its way.")
    assert answer["passed"] == [True, False]
    assert told["credential"]["problem"] or codes["credential"]
    assert told["credential"]["breaks"]
    (start,) = [one for one in told["version"]["versions"] if one["node_type"] == "startAgentflow"]
    assert (start["stored"], start["offered"]) == (1.1, 1.4)
    assert {name for name, one in told.items() if one["breaks"]} == {"node", "credential", "answer"}
    assert found["counts"]["flows"] == len(flows)
    assert "Node that is gone" in (tmp_path / "report.md").read_text()
    assert [row.id async for row in flowise_client.iter_chatflows()] == before

    # Against the node types alone.
    alone = await rehearsed("--catalogue", str(schemas_dir() / SNAPSHOT_FILE))
    by_id = {one["id"]: one for one in alone["flows"]}
    assert by_id[flows["node"].id]["breaks"]
    assert not by_id[flows["fine"].id]["breaks"]
    assert [one["node_type"] for one in by_id[flows["version"].id]["versions"]]
