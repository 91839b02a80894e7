"""Simulated copies of flows: what is replaced, what a sample answer holds, what a claim is worth."""

import base64
import json
from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, GraphIR, compile_ops
from flowise_dev_agent.patch.model.addresses import named_origin
from flowise_dev_agent.patch.model.ops import PatchOp, SetParam
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.plan import Criterion, Part, TestCase
from flowise_dev_agent.schemas.verdict import CriterionVote, Evidence, Trace, TracedTool, TraceStep, Trial, Verdict
from flowise_dev_agent.testing.answers import sample_answer
from flowise_dev_agent.testing.cases import cases_for, why_not_testable
from flowise_dev_agent.testing.effects import step_effect, tool_effect
from flowise_dev_agent.testing.judging import judged
from flowise_dev_agent.testing.simulation import simulated
from tests.fixtures.editor_flows import add, connect
from tests.unit.agent.rig import plan


def graph(catalogue: NodeStore, *ops: PatchOp) -> GraphIR:
    return GraphIR.from_flow_data(compile_ops(GraphIR.empty(), list(ops), catalogue.schemas).flow_data)


def test_each_tool_of_the_catalogue_has_an_effect_and_only_known_ones_are_called_for_real(catalogue: NodeStore) -> None:
    tools = [name for name, one in catalogue.schemas.items() if one.category in ("Tools", "Tools (MCP)")]
    real = {name for name in tools if tool_effect(name) != "changes"}
    assert {"calculator", "currentDateTime", "retrieverTool", "requestsGet"} <= real
    assert not real & {"requestsPost", "gmail", "customTool", "customMCP", "stripeAgentTool", "chatflowTool"}
    assert tool_effect("a type of tomorrow") == "changes"


@pytest.mark.parametrize(
    ("actions", "effect"),
    [
        ('["getMyInfo", "searchForWorker"]', "reads"),
        (["listMessages"], "changes"),
        ('["getMessage", "sendMessage"]', "changes"),
        ('["gettogether"]', "changes"),
        ("[]", "changes"),
    ],
)
def test_a_toolkit_whose_actions_only_read_is_called(actions: object, effect: str) -> None:
    assert tool_effect("customMCP", {"mcpActions": actions}) == effect


@pytest.mark.parametrize(("code", "effect"), [("return $a + 1;", "none"), ("return fetch($url);", "changes")])
def test_code_that_calls_out_changes_the_world(code: str, effect: str) -> None:
    inputs = {"customFunctionJavascriptFunction": code}
    assert step_effect("customFunctionAgentflow", "Agent Flows", inputs) == effect


def test_a_step_keeps_its_place_and_its_readers_get_the_sample(catalogue: NodeStore) -> None:
    flow = graph(
        catalogue,
        add("startAgentflow"),
        add("httpAgentflow", method="POST", url="https://api.example.com/orders"),
        add("directReplyAgentflow", directReplyMessage="{{ httpAgentflow_0.output.http.data.items[0].name }}!"),
        connect("startAgentflow_0", "httpAgentflow_0"),
        connect("httpAgentflow_0", "directReplyAgentflow_0"),
    )
    made = simulated(flow, catalogue.schemas)
    assert made.actions() == ["POST https://api.example.com/orders"]
    copy = GraphIR.from_flow_data(made.flow_data)
    assert [one.ends for one in copy.edges] == [one.ends for one in flow.edges]
    stand_in, reply = copy.node("httpAgentflow_0"), copy.node("directReplyAgentflow_0")
    assert stand_in is not None
    assert reply is not None
    assert stand_in.name == "customFunctionAgentflow"
    assert reply.inputs["directReplyMessage"] == "{{ $flow.state.simulated_0 }}!"


def test_a_credential_of_what_is_replaced_is_not_in_the_copy(catalogue: NodeStore) -> None:
    secret = "0b5e7a52-8f0b-4d3e-9a37-0d6a4c1f2b90"
    rows: Any = [
        {
            "agentSelectedTool": "gmail",
            "agentSelectedToolConfig": {
                "agentSelectedTool": "gmail",
                "FLOWISE_CREDENTIAL_ID": secret,
                "gmailType": "messages",
                "messageActions": '["sendMessage","listMessages"]',
            },
        }
    ]
    flow = graph(
        catalogue,
        add("startAgentflow"),
        add("agentAgentflow", agentModel="chatOpenAI"),
        SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=rows),
        connect("startAgentflow_0", "agentAgentflow_0"),
    )
    made = simulated(flow, catalogue.schemas)
    assert secret not in made.flow_data
    assert made.actions() == ["sendMessage, listMessages"]
    # Its model sees the fields that the real actions take.
    (node,) = [one for one in GraphIR.from_flow_data(made.flow_data).nodes if one.name == "agentAgentflow"]
    _, encoded, _ = node.inputs["agentTools"][0]["agentSelectedToolConfig"]["openApiFile"].split(",")
    paths = json.loads(base64.b64decode(encoded))["paths"]
    body = paths["/sendMessage"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"messageTo", "messageSubject", "messageBody"} <= set(body["properties"])


def test_a_flow_that_changes_nothing_is_tested_as_it_is(catalogue: NodeStore) -> None:
    flow = graph(
        catalogue,
        add("startAgentflow"),
        add("httpAgentflow", method="GET", url="https://api.shop.org/list"),
        connect("startAgentflow_0", "httpAgentflow_0"),
    )
    made = simulated(flow, catalogue.schemas)
    assert (made.flow_data, list(made.stand_ins), list(made.acting)) == (flow.to_flow_data(), [], [])


@pytest.mark.parametrize(
    ("url", "is_called"),
    [
        ("https://api.example.com/list", False),
        ("https://weather.example/stations/{{ question }}", False),
        ("http://shop.test", False),
        ("http://192.0.2.7/list", False),
        ("http://127.0.0.1:9/list", False),
        ("http://127.0.0.1:8080/list", True),
        ("https://example.community/list", True),
        ("https://api.test.org/list", True),
    ],
)
def test_what_reads_where_nothing_can_be_is_simulated_and_told(url: str, is_called: bool, catalogue: NodeStore) -> None:
    flow = graph(
        catalogue,
        add("startAgentflow"),
        add("httpAgentflow", method="GET", url=url),
        connect("startAgentflow_0", "httpAgentflow_0"),
    )
    # Variables are said by their last name.
    said = url.replace("{{ question }}", "{question}")
    assert simulated(flow, catalogue.schemas).actions() == ([] if is_called else [f"GET {said}"])
    # A person who names it has it called.
    origin = url.partition("/list")[0].partition("/stations")[0]
    assert simulated(flow, catalogue.schemas, real=[origin]).actions() == []


def test_of_two_tools_only_that_with_the_named_address_stays(catalogue: NodeStore) -> None:
    rows: Any = [
        {"agentSelectedTool": type_, "agentSelectedToolConfig": {"agentSelectedTool": type_, **fields}}
        for type_, fields in (
            ("requestsPost", {"requestsPostUrl": "https://one.example/a", "requestsPostName": "one"}),
            ("requestsGet", {"requestsGetUrl": "https://two.example/b", "requestsGetName": "two"}),
            ("requestsPut", {"requestsPutUrl": "https://one.example{{ question }}", "requestsPutName": "three"}),
            ("customTool", {"customToolName": "https://one.example"}),
            ("calculator", {}),
        )
    ]
    flow = graph(
        catalogue,
        add("startAgentflow"),
        add("agentAgentflow", agentModel="chatOpenAI"),
        SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=rows),
        connect("startAgentflow_0", "agentAgentflow_0"),
    )
    made = simulated(flow, catalogue.schemas, real=["https://one.example"])
    assert [(one.tool, one.address) for one in made.named] == [("requestsPost", "https://one.example")]
    assert [one.tool for one in made.stand_ins] == ["requestsGet", "requestsPut", "customTool"]
    (node,) = [one for one in GraphIR.from_flow_data(made.flow_data).nodes if one.name == "agentAgentflow"]
    kept = [row["agentSelectedTool"] for row in node.inputs["agentTools"]]
    assert (kept[0], kept[1], kept[4]) == ("requestsPost", "openAPIToolkit", "calculator")
    called = Trace(used_tools=[TracedTool(tool="one")])
    assert (made.called_in(called), made.used_in(called)) == (["one"], [])


@pytest.mark.parametrize(
    ("said", "origin"),
    [
        ("https://Hooks.Example.com", "https://hooks.example.com"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
        *(
            (wrong, None)
            for wrong in ("hooks.example.com", "https://a.example/path", "https://a.example?x", "file:///x")
        ),
        *(
            (wrong, None)
            for wrong in ("https://{{ x }}", "https://a@b.example", "https://a.example https://b.example", "")
        ),
    ],
)
def test_an_address_is_named_by_scheme_host_and_port(said: str, origin: str | None) -> None:
    if origin is None:
        with pytest.raises(ValueError, match="give scheme, host and port"):
            named_origin(said)
    else:
        assert named_origin(said) == origin


def test_a_sample_has_the_fields_that_the_flow_reads() -> None:
    fields = ("data.order.id", "data.rows[2].title", "status")
    reads = " ".join(f"{{{{ http_0.output.http.{one} }}}}" for one in fields)
    assert sample_answer("http_0", reads) == {"order": {"id": 1001}, "rows": [{"title": "sample title"}]}


def test_p113_a_claim_that_rests_on_a_simulated_trial_says_so() -> None:
    """A simulated conversation shows no more than that, whatever a judge says."""
    agreed = plan(
        tests=[TestCase(id="t1", turns=["Order two"]), TestCase(id="t2", turns=["Hello"])],
        criteria=[
            Criterion(id="c1", text="It places the order.", part="p1", tests=["t1"]),
            Criterion(id="c2", text="It greets.", part="p2", tests=["t2"]),
        ],
        parts=[Part(id="p1", quote="places orders", state="covered"), Part(id="p2", quote="greets", state="covered")],
    )
    trials = [
        Trial(question="Order two", passed=True, answer="Ordered.", test="t1", simulated=["place_order"]),
        Trial(question="Hello", passed=True, answer="Hello!", test="t2"),
    ]
    votes = [
        CriterionVote(id="c1", state="shown", evidence=[Evidence(trial=1, quote="Ordered.")]),
        CriterionVote(id="c2", state="shown", evidence=[Evidence(trial=2, quote="Hello!")]),
    ]
    given = Verdict.model_validate({"done": True, "criteria": [vote.model_dump(exclude={"sure"}) for vote in votes]})
    empty = json.dumps({"nodes": [], "edges": []})
    verdict = judged(given, agreed, trials, [Trace(), Trace()], empty, by_model=True)
    assert [one.level for one in verdict.criteria] == ["simulated", "verified"]
    assert [one.level for one in verdict.parts] == ["simulated", "verified"]
    assert verdict.simulated == ["place_order"]


def test_what_was_simulated_is_told_from_the_trace(catalogue: NodeStore) -> None:
    flow = graph(
        catalogue,
        add("startAgentflow"),
        add("httpAgentflow", method="DELETE", url="https://api.example.com/orders/7"),
        connect("startAgentflow_0", "httpAgentflow_0"),
    )
    made = simulated(flow, catalogue.schemas)
    given: Any = {"inputVariables": [{"variableName": "url", "variableValue": "https://api.example.com/orders/7"}]}
    ran = Trace(steps=[TraceStep(node_id="httpAgentflow_0", name="customFunctionAgentflow", input=given)])
    assert made.used_in(ran) == ["DELETE https://api.example.com/orders/7"]
    assert made.used_in(Trace(used_tools=[TracedTool(tool="other")])) == []
    (told,) = made.told(ran).steps
    assert (told.name, told.simulated, told.input) == (
        "httpAgentflow",
        True,
        {"url": "https://api.example.com/orders/7"},
    )


def test_the_copy_of_a_scheduled_flow_is_started_by_a_message(catalogue: NodeStore) -> None:
    flow = graph(
        catalogue,
        add("startAgentflow", startInputType="scheduleInput", scheduleInputMode="text", scheduleDefaultInput="Report."),
        add("directReplyAgentflow", directReplyMessage="Done."),
        connect("startAgentflow_0", "directReplyAgentflow_0"),
    )
    made = simulated(flow, catalogue.schemas)
    start = GraphIR.from_flow_data(made.flow_data).node("startAgentflow_0")
    assert start is not None
    assert (made.by_message, start.inputs["startInputType"]) == (True, "chatInput")
    (case,) = cases_for([TestCase(id="t1", turns=["Hello"])], flow)
    assert (case.input, case.turns) == ("schedule", ["Report."])
    assert why_not_testable(case, flow, in_copy=True) is None
    assert why_not_testable(case, flow) is not None


@pytest.mark.parametrize(
    ("type_", "field", "part"),
    [
        ("requestsGet", "requestsGetQueryParamsSchema", "queryParams"),
        ("requestsDelete", "requestsDeleteQueryParamsSchema", "queryParams"),
        ("requestsPost", "requestsPostBodySchema", "body"),
        ("requestsPut", "requestsPutBodySchema", "body"),
    ],
)
def test_a_request_tool_takes_the_parameters_that_it_declares(
    type_: str, field: str, part: str, catalogue: NodeStore
) -> None:
    fields = {"format": {"type": "string", "required": True, "description": "A4 or A5"}, "copies": {"type": "number"}}
    flow = graph(catalogue, add(type_, **{f"{type_}Name": "order", field: json.dumps(fields)}))
    made = simulated(flow, catalogue.schemas, real=())
    (node,) = GraphIR.from_flow_data(made.flow_data).nodes
    _, encoded, _ = node.inputs["openApiFile"].split(",")
    (path,) = json.loads(base64.b64decode(encoded))["paths"].values()
    properties = path["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert [*properties] == [part]
    properties = properties[part]["properties"]
    assert {name: one["type"] for name, one in properties.items()} == {
        "format": "string",
        "copies": "number" if part == "body" else "string",
    }
    # A trace shows the call as the tool itself takes it.
    given: JsonObject = {part: {"format": "A4"}}
    told = made.told(Trace(used_tools=[TracedTool(tool="order", input={"RequestBody": given})]))
    assert [(one.input, one.simulated) for one in told.used_tools] == [(given, True)]


def test_code_and_flows_of_other_kinds_of_nodes_act_too() -> None:
    calls = {"javascriptFunction": "return await fetch($flow.url);"}
    assert step_effect("seqCustomFunction", "Sequential Agents", calls) == "changes"
    assert step_effect("seqExecuteFlow", "Sequential Agents", {}) == "changes"
    assert step_effect("seqCustomFunction", "Sequential Agents", {"javascriptFunction": "return 1;"}) == "none"


def test_a_tool_without_a_stand_in_keeps_the_flow_from_being_tested(catalogue: NodeStore) -> None:
    config = {"agentSelectedTool": "requestsPost", "requestsPostUrl": "https://api.example.com"}
    rows: Any = [{"agentSelectedTool": "requestsPost", "agentSelectedToolConfig": config}]
    flow = graph(catalogue, add("agentAgentflow", agentModel="chatOpenAI", agentTools=rows))
    without = {name: one for name, one in catalogue.schemas.items() if name != "openAPIToolkit"}
    made = simulated(flow, without)
    assert (len(made.acting), list(made.stand_ins), made.flow_data) == (1, [], flow.to_flow_data())


def test_a_list_of_actions_gives_no_tool_as_on_the_server(catalogue: NodeStore) -> None:
    config = {"agentSelectedTool": "gmail", "gmailType": "messages", "messageActions": '["sendMessage"]'}
    rows: Any = [{"agentSelectedTool": "gmail", "agentSelectedToolConfig": config}]
    flow = graph(catalogue, add("agentAgentflow", agentModel="chatOpenAI", agentTools=rows))
    listed = GraphIR.from_flow_data(flow.to_flow_data().replace('"[\\"sendMessage\\"]"', '["sendMessage"]'))
    assert listed.to_flow_data() != flow.to_flow_data()
    (node,) = GraphIR.from_flow_data(simulated(listed, catalogue.schemas).flow_data).nodes
    _, encoded, _ = node.inputs["agentTools"][0]["agentSelectedToolConfig"]["openApiFile"].split(",")
    assert json.loads(base64.b64decode(encoded))["paths"] == {}


def test_people_read_titles_of_what_was_simulated_and_no_names_of_types(catalogue: NodeStore) -> None:
    rows: Any = [
        {"agentSelectedTool": "customTool", "agentSelectedToolConfig": {"selectedTool": "id"}},
        {"agentSelectedTool": "requestsPost", "agentSelectedToolConfig": {"requestsPostUrl": "https://a.example"}},
    ]
    flow = graph(
        catalogue,
        add("startAgentflow"),
        add("agentAgentflow", agentModel="chatOpenAI"),
        SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=rows),
        AddNode(
            node_name="toolAgentflow",
            node_id="toolAgentflow_0",
            label="Book the table",
            params={"toolAgentflowSelectedTool": "customTool"},
        ),
        connect("startAgentflow_0", "agentAgentflow_0"),
        connect("agentAgentflow_0", "toolAgentflow_0"),
    )
    told = simulated(flow, catalogue.schemas).actions()
    assert sorted(told) == ["Book the table", "Custom Tool", "Requests Post"]
