"""Stand-ins beside the nodes that they stand in for, on a real Flowise: the same settings, the same outcome."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.patch import GraphIR, PatchOp, Schemas, SetParam, compile_ops
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.testing.simulation import simulated
from flowise_dev_agent.testing.trials import ConversationRunner, TrialConversation
from tests.fixtures.editor_flows import MODEL, add, bound, connect
from tests.fixtures.outside import Outside

_UUID = "0b5e7a52-8f0b-4d3e-9a37-0d6a4c1f2b90"
#: Messages of a person, as they break what is put together of them.
SAID = {"plain": "hello", "quotes": 'Say "hi", it\'s me', "lines": "one\ntwo", "braces": "a } ] {", "slash": "a \\ b"}
#: Bodies, some that Flowise repairs, some that it cannot read.
BODIES: Mapping[str, Any] = {
    "json": '{"q": "fixed"}',
    "of the message": '{"q": "{{ question }}"}',
    "single quotes": "{'q': 'it'}",
    "message in single quotes": "{'q': '{{ question }}'}",
    "bare keys": "{q: 1, w: .5, h: 0xF, n: +Infinity}",
    "trailing comma": '{"q": [1, 2,], }',
    "comments": '{"q": 1, // one\n /* two */ "w": 2}',
    "cut": '{"q": "a"',
    "two values": '{"q": 1} {"w": 2}',
    "a word": "hello",
    "a word in quotes": '"hello"',
    "bare message": "{{ question }}",
    "message without quotes": '{"q": {{ question }}}',
    "a bad number": '{"q": 01}',
    "escaped brackets": '{"q": "\\[x\\]", "w": \\[1\\]}',
    "a bad escape": '{"q": "\\x1"}',
    "a double comma": '{"q": 1,, "w": 2}',
    "an address": '{"q": "http://x.example/a"}',
    "an address, and a comma too much": "{'q': 'http://x.example/a',}",
    "a list": "[1, 2, 3]",
    "a word of python": '{"q": None}',
}
#: Other settings of an HTTP step.
SETTINGS: Mapping[str, dict[str, Any]] = {
    "no body": {},
    "empty address": {"url": ""},
    "address without a host": {"url": "http://"},
    "address with a space": {"url": "http://exa mple/"},
    "relative address": {"url": "/orders"},
    "ftp": {"url": "ftp://127.0.0.1/x"},
    "header": {"headers": [{"key": "X-Name", "value": "a b"}]},
    "header with a line break": {"headers": [{"key": "X-Name", "value": "a\nb"}]},
    "header with a message": {"headers": [{"key": "X-Name", "value": "{{ question }}"}]},
    "header with an accent": {"headers": [{"key": "X-Name", "value": "né"}]},
    "header beyond Latin": {"headers": [{"key": "X-Name", "value": "你好"}]},
    "header name with a space": {"headers": [{"key": "X Name", "value": "a"}]},
    "query": {"queryParams": [{"key": "q", "value": "{{ question }}"}]},
    "form of a text": {"bodyType": "xWwwFormUrlencoded", "body": "a=b"},
    "form of an object": {"bodyType": "xWwwFormUrlencoded", "body": '{"a": "b"}'},
    "raw": {"bodyType": "raw", "body": '{"a": '},
    "form data of a text": {"bodyType": "formData", "body": "a"},
}


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with Outside() as server:
        yield server


async def outcomes(
    client: FlowiseClient, schemas: Schemas, ops: list[PatchOp], said: str, outside: Outside
) -> tuple[str, str]:
    """Errors of the flow as it is and of its copy, by their first words; empty where it ran."""
    text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    copy = simulated(GraphIR.from_flow_data(text), schemas)
    assert copy.stand_ins
    found: list[str] = []
    for flow_data in (text, copy.flow_data):
        outside.called.clear()
        flow = await client.create_chatflow(ChatflowCreate(name="beside", flow_data=flow_data, type="AGENTFLOW"))
        case = TestCase(id="t1", turns=[said])
        run = await ConversationRunner(client, TrialConversation(flow.id, flow_data, case, 1, f"b-{flow.id}")).run()
        found.append(run.trial.error)
        await client.delete_chatflow(flow.id)
    # Only the copy, which comes last, has to call nobody.
    assert outside.called == []
    return found[0], found[1]


def http(outside: Outside, **settings: Any) -> list[PatchOp]:
    values = {"method": "POST", "url": f"{outside.endpoint}/orders", **settings}
    return [
        add("startAgentflow"),
        add("httpAgentflow"),
        *(SetParam(node_id="httpAgentflow_0", param_name=name, value=value) for name, value in values.items()),
        add("directReplyAgentflow", directReplyMessage="done"),
        connect("startAgentflow_0", "httpAgentflow_0"),
        connect("httpAgentflow_0", "directReplyAgentflow_0"),
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("body", BODIES)
async def test_a_body_is_read_as_by_the_real_step(
    flowise_client: FlowiseClient, schemas: Schemas, outside: Outside, body: str
) -> None:
    for said in SAID if "question" in BODIES[body] else ("plain",):
        ops = http(outside, bodyType="json", body=BODIES[body])
        real, copy = await outcomes(flowise_client, schemas, ops, SAID[said], outside)
        assert bool(real) == bool(copy), (said, real, copy)


@pytest.mark.nightly
@pytest.mark.parametrize("setting", SETTINGS)
async def test_settings_are_read_as_by_the_real_step(
    flowise_client: FlowiseClient, schemas: Schemas, outside: Outside, setting: str
) -> None:
    for said in ("plain", "lines"):
        real, copy = await outcomes(flowise_client, schemas, http(outside, **SETTINGS[setting]), SAID[said], outside)
        assert bool(real) == bool(copy), (said, real, copy)


_SCHEMA = json.dumps(
    [
        {"property": "order", "type": "string", "description": "Number of the order", "required": True},
        {"property": "copies", "type": "number", "description": "Number of copies", "required": False},
    ]
)


@pytest.fixture(scope="module")
def own_tool(flowise: FlowiseAccess) -> str:
    """Id of a tool of the person's own, whose code calls out."""
    body = {
        "name": "print_order",
        "description": "Prints an order",
        "color": "#000000",
        "iconSrc": "",
        "schema": _SCHEMA,
        "func": "throw new Error('the real code ran');",
    }
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    answer = httpx.post(f"{flowise.endpoint}/api/v1/tools", json=body, headers=headers)
    answer.raise_for_status()
    return answer.json()["id"]


def tool_row(type_: str, **settings: Any) -> list[dict[str, Any]]:
    return [{"agentSelectedTool": type_, "agentSelectedToolConfig": {"agentSelectedTool": type_, **settings}}]


def agent(bind: Mapping[str, str], rows: Any) -> list[PatchOp]:
    return [
        add("startAgentflow"),
        add("agentAgentflow", agentModel="chatOpenAI", agentModelConfig=MODEL),
        SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=rows),
        bound(bind, "agentAgentflow_0", "agentModelConfig"),
        connect("startAgentflow_0", "agentAgentflow_0"),
    ]


async def test_a_custom_tool_keeps_its_name_and_its_arguments(
    flowise_client: FlowiseClient,
    flowise: FlowiseAccess,
    schemas: Schemas,
    standin: ModelStandIn,
    outside: Outside,
    own_tool: str,
) -> None:
    offered: list[Any] = []
    given: list[str] = []

    def reply(request: Any) -> Reply:
        offered.append(request.tools)
        given.extend(message.text for message in request.messages if message.role == "tool")
        return Reply("done") if given else Reply(tool_calls=(StandInToolCall("print_order", {"order": "7"}),))

    standin.script("hello", reply)
    try:
        ops = agent(flowise.credentials, tool_row("customTool", selectedTool=own_tool))
        text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
        copy = simulated(GraphIR.from_flow_data(text), schemas)
        flow = await flowise_client.create_chatflow(
            ChatflowCreate(name="own", flow_data=copy.flow_data, type="AGENTFLOW")
        )
        case = TestCase(id="t1", turns=["hello"])
        asked = TrialConversation(flow.id, text, case, 1, f"o-{flow.id}-t1-1", simulation=copy)
        run = await ConversationRunner(flowise_client, asked).run()
    finally:
        standin.reset()
    (tool,) = offered[0]
    assert tool.name == "print_order"
    assert (list(tool.schema["properties"]), tool.schema["required"]) == (["order", "copies"], ["order"])
    assert (run.trial.error, run.trial.used_tools, run.trial.simulated) == ("", ["print_order"], ["Custom Tool"])
    assert "1001" in given[0]


TOOLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "request": ("requestsPost", {}),
    "request with headers": ("requestsPost", {"requestsPostHeaders": '{"X-A": "b"}'}),
    "request with headers in single quotes": ("requestsPost", {"requestsPostHeaders": "{'X-A': 'b'}"}),
    "request with headers that break": ("requestsPost", {"requestsPostHeaders": '{"X-A": "b"'}),
    "request with headers in words": ("requestsPost", {"requestsPostHeaders": "X-A: b"}),
    "request with a body that breaks": ("requestsPost", {"requestPostBody": '{"a": '}),
    "deletion with headers that break": ("requestsDelete", {"requestsDeleteHeaders": "{"}),
    "put with a body": ("requestsPut", {"requestsPutHeaders": '{"X-A": "b",}'}),
    "flow with settings": ("ChatflowTool", {"selectedChatflow": _UUID, "overrideConfig": '{"a": 1}'}),
    "flow with settings that break": ("ChatflowTool", {"selectedChatflow": _UUID, "overrideConfig": "{'a': 1}"}),
    "flow with settings in words": ("ChatflowTool", {"selectedChatflow": _UUID, "overrideConfig": "none"}),
    "own tool that is gone": ("customTool", {"selectedTool": _UUID}),
}


@pytest.mark.nightly
@pytest.mark.parametrize("tool", TOOLS)
async def test_settings_of_a_tool_are_read_as_by_the_real_one(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas, outside: Outside, tool: str
) -> None:
    type_, settings = TOOLS[tool]
    if type_.startswith("requests"):
        named = {f"{type_}Name": "order", f"{type_}Description": "Orders", f"{type_}Url": f"{outside.endpoint}/x"}
    else:
        named = {} if type_ == "customTool" else {"name": "other", "description": "Another flow"}
    ops = agent(flowise.credentials, tool_row(type_, **named, **settings))
    real, copy = await outcomes(flowise_client, schemas, ops, "hello", outside)
    assert bool(real) == bool(copy), (real, copy)


STEPS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "own tool": ("toolAgentflow", {"order": "{{ question }}"}),
    "own tool with another argument": ("toolAgentflow", {"number": "7"}),
    "own tool with a text for a number": ("toolAgentflow", {"order": "7", "copies": "two"}),
    "own tool with a number in a text": ("toolAgentflow", {"order": "7", "copies": "2"}),
    "flow": ("executeFlowAgentflow", {}),
    "flow with settings": ("executeFlowAgentflow", {"executeFlowOverrideConfig": '{"a": "b"}'}),
    "flow with settings that break": ("executeFlowAgentflow", {"executeFlowOverrideConfig": '{"a": "{{ question }}"}'}),
}


@pytest.mark.nightly
@pytest.mark.parametrize("step", STEPS)
async def test_settings_of_a_step_are_read_as_by_the_real_one(
    flowise_client: FlowiseClient, schemas: Schemas, outside: Outside, own_tool: str, step: str
) -> None:
    type_, settings = STEPS[step]
    node = f"{type_}_0"
    fields: dict[str, Any] = settings
    if type_ == "toolAgentflow":
        fields = {
            "toolAgentflowSelectedTool": "customTool",
            "toolAgentflowSelectedToolConfig": {"selectedTool": own_tool, "customToolFunc": "return 'printed';"},
            "toolInputArgs": [{"inputArgName": name, "inputArgValue": value} for name, value in settings.items()],
        }
    else:
        called = [
            add("startAgentflow"),
            add("directReplyAgentflow", directReplyMessage="other"),
            connect("startAgentflow_0", "directReplyAgentflow_0"),
        ]
        text = compile_ops(GraphIR.empty(), called, schemas).flow_data
        other = await flowise_client.create_chatflow(
            ChatflowCreate(name="other", flow_data=text, type="AGENTFLOW", is_public=True)
        )
        fields = {"executeFlowSelectedFlow": other.id, "executeFlowInput": "hi", **settings}
    ops: list[PatchOp] = [
        add("startAgentflow"),
        add(type_),
        *(SetParam(node_id=node, param_name=name, value=value) for name, value in fields.items()),
        connect("startAgentflow_0", node),
    ]
    real, copy = await outcomes(flowise_client, schemas, ops, SAID["quotes"], outside)
    assert bool(real) == bool(copy), (real, copy)
