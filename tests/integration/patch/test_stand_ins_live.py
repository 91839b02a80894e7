"""Stand-ins beside the nodes that they stand in for, on a real Flowise: the same settings, the same outcome."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.patch import GraphIR, PatchOp, Schemas, SetParam, compile_ops
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.testing.simulation import simulated
from flowise_dev_agent.testing.trials import ConversationRunner, TrialConversation
from tests.fixtures.editor_flows import add, connect
from tests.fixtures.outside import Outside

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
