"""Each node type that reaches out of Flowise, in a flow of its own: simulated on a real server, it answers."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.devkit.standin.behaviour import sample
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, PatchOp, Schemas, SetParam, compile_ops
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.testing import effects
from flowise_dev_agent.testing.simulation import simulated
from flowise_dev_agent.testing.trials import ConversationRunner, TrialConversation
from tests.fixtures.editor_flows import MODEL, add, bound, connect

_SCHEMAS = NodeStore.from_snapshot().schemas
TOOLS = sorted(
    name
    for name, one in _SCHEMAS.items()
    if one.category in effects.TOOL_CATEGORIES and effects.tool_effect(name) != "none"
)
_UUID = "0b5e7a52-8f0b-4d3e-9a37-0d6a4c1f2b90"
STEPS: Mapping[str, dict[str, Any]] = {
    "httpAgentflow": {"method": "POST", "url": "http://nowhere.invalid/x"},
    "executeFlowAgentflow": {
        "executeFlowSelectedFlow": "0b5e7a52-8f0b-4d3e-9a37-0d6a4c1f2b90",
        "executeFlowInput": "hi",
    },
    "toolAgentflow": {"toolAgentflowSelectedTool": "requestsPost"},
    "customFunctionAgentflow": {"customFunctionJavascriptFunction": "return fetch('http://nowhere.invalid');"},
}
#: Types that no stand-in takes the place of: tests of a flow with one are not run, and the result says so.
NOT_SIMULATED = frozenset({"postApiChain", "openApiChain"})
#: A field of each kind that chooses what a toolkit does.
_KINDS = {"gmailType": "messages", "calendarType": "event", "driveType": "file", "sheetsType": "values"} | {
    "jiraType": "issues",
    "outlookType": "message",
    "teamsType": "channel",
}


def settings(type_: str) -> dict[str, Any]:
    """Settings with two actions where the type has actions."""
    schema = _SCHEMAS[type_]
    fields = {one["name"]: one for one in schema.input_definitions}
    chosen: dict[str, Any] = {name: kind for name, kind in _KINDS.items() if name in fields}
    if type_ == "openAPIToolkit":
        document: Any = {
            "openapi": "3.0.0",
            "info": {"title": "x", "version": "1"},
            "servers": [{"url": "http://x.invalid"}],
        }
        document["paths"] = {"/things": {"post": {"operationId": "make_thing", "description": "Makes a thing"}}}
        encoded = base64.b64encode(json.dumps(document).encode()).decode()
        chosen |= {"inputType": "file", "openApiFile": f"data:application/json;base64,{encoded},filename:x.json"}
    for entry in schema.definitions.visible_params(chosen):
        if entry["name"].casefold().endswith("actions"):
            names = [str(one["name"]) for one in entry.get("options") or ()][:2] or ["create_thing", "send_thing"]
            chosen[entry["name"]] = json.dumps(names)
    return chosen


def agent(bind: Mapping[str, str], type_: str) -> list[PatchOp]:
    rows: Any = [{"agentSelectedTool": type_, "agentSelectedToolConfig": {"agentSelectedTool": type_}}]
    return [
        add("startAgentflow"),
        add("agentAgentflow", agentModel="chatOpenAI", agentModelConfig=MODEL),
        SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=rows),
        bound(bind, "agentAgentflow_0", "agentModelConfig"),
        connect("startAgentflow_0", "agentAgentflow_0"),
    ]


def with_settings(flow_data: str, type_: str) -> GraphIR:
    flow = json.loads(flow_data)
    for node in flow["nodes"]:
        for row in node["data"]["inputs"].get("agentTools") or ():
            row["agentSelectedToolConfig"] |= settings(type_)
    return GraphIR.from_flow_data(json.dumps(flow))


def test_38_of_40_types_that_reach_out_have_a_stand_in(schemas: Schemas) -> None:
    found = {*TOOLS, *STEPS, *NOT_SIMULATED}
    assert len(found) >= 40
    assert len(found - NOT_SIMULATED) >= 38
    acting = [add("chatOpenAI"), add("postApiChain"), connect("chatOpenAI_0", "postApiChain_0", "model")]
    graph = compile_ops(GraphIR.empty(), acting, schemas).graph
    assert list(simulated(graph, schemas).acting) == ["POST API Chain"]


#: A custom tool has to be there: `test_stand_ins_live.py` makes one.
@pytest.mark.nightly
@pytest.mark.parametrize("type_", [*(one for one in TOOLS if one != "customTool"), *STEPS])
async def test_a_type_that_reaches_out_answers_from_its_stand_in(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas, standin: ModelStandIn, type_: str
) -> None:
    if type_ in STEPS:
        ops: list[PatchOp] = [
            add("startAgentflow"),
            add(type_, **STEPS[type_]),
            add("directReplyAgentflow", directReplyMessage="done"),
            connect("startAgentflow_0", f"{type_}_0"),
            connect(f"{type_}_0", "directReplyAgentflow_0"),
        ]
        answers: Any = None
    else:
        ops, answers = agent(flowise.credentials, type_), {type_: "from the stand-in"}
    text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    graph = GraphIR.from_flow_data(text) if type_ in STEPS else with_settings(text, type_)
    case = TestCase(id="t1", turns=["Go"], answers=answers)
    copy = simulated(graph, schemas, [case])
    assert len(copy.stand_ins) == 1

    def reply(request: RecordedRequest) -> Reply:
        given = [message.text for message in request.messages if message.role == "tool"]
        if given or not request.tools:
            return Reply(f"The tool said: {given}")
        calls = (StandInToolCall(tool.name, sample(tool.schema, "x")) for tool in request.tools)
        return Reply(tool_calls=tuple(calls))

    standin.script(lambda request: request.kind == "chat", reply)
    flow = await flowise_client.create_chatflow(ChatflowCreate(name=type_, flow_data=copy.flow_data, type="AGENTFLOW"))
    try:
        conversation = TrialConversation(flow.id, text, case, 1, f"t-{flow.id}-t1-1", simulation=copy)
        run = await ConversationRunner(flowise_client, conversation).run()
    finally:
        standin.reset()
    assert (run.trial.error, len(run.trial.simulated)) == ("", 1)
    assert type_ in STEPS or "from the stand-in" in run.trial.answer
