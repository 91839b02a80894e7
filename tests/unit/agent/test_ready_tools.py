"""Tools that domains bring: in the plan before the approval, in the ops without a model, one owner for each node."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from flowise_dev_agent.agent.domain import DiscoverRequest, Domains, EvaluateRequest
from flowise_dev_agent.agent.domains.flowise import FlowiseCapability
from flowise_dev_agent.agent.domains.openapi import OpenApiCapability, chosen
from flowise_dev_agent.agent.graph import build_graph
from flowise_dev_agent.knowledge.openapi import read_openapi
from flowise_dev_agent.patch import AddNode, BindCredential, Connect, GraphIR, SetParam
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.passes.ready_tools import NO_AGENT, merged, with_ready_tools
from flowise_dev_agent.planning.requests import ReadyTool
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.plan import PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import Trace, TracedTool, Trial
from tests.unit.agent.rig import Bench, _snapshot, plan
from tests.unit.agent.test_graph import credentials

SCHEMAS = _snapshot().schemas
API = """
openapi: 3.0.3
info: {title: Ticket API, version: "1"}
servers: [{url: "https://tickets.example.com/v1/"}]
components: {securitySchemes: {key: {type: http, scheme: bearer}}}
paths:
  /tickets:
    get:
      operationId: listTickets
      summary: List the open tickets
      parameters: [{name: status, in: query, schema: {type: string, enum: [open, closed]}}]
    post:
      operationId: createTicket
      summary: Create a ticket
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Ticket"}}}}
  /tickets/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    get: {operationId: getTicket, summary: Status of one ticket}
    delete: {operationId: deleteTicket, summary: Delete a ticket}
    put: {operationId: updateTicket, summary: Change a ticket}
""".replace(
    "components: {",
    "components: {schemas: {Ticket: {type: object, required: [title], properties: "
    "{title: {type: string}, urgent: {type: boolean}}}}, ",
)
FACTS = AttachmentFacts(name="api.yaml", kind="openapi", size=1, title="Ticket API")
TOOL = ReadyTool(
    domain="openapi",
    name="getTicket",
    title="Tickets",
    about="Status of a ticket",
    node_name="requestsGet",
    values={"requestsGetUrl": "https://tickets.example.com/v1/tickets/:id"},
    question="What is the status of ticket 7?",
    data_fields=("id",),
    pii_fields=("reporter",),
)


class ApiFile:
    async def facts(self) -> Sequence[AttachmentFacts]:
        return (FACTS,)

    async def content(self, name: str) -> tuple[str, bytes, str] | None:
        return ("application/yaml", API.encode(), API)


def agent_plan(**values: Any) -> Any:
    names = ["toolAgent", "chatOpenAI", "bufferMemory"]
    return plan(nodes=[PlannedNode(node_id=f"{n}_0", node_name=n, purpose=n) for n in names], **values)


# --- an API as tools --------------------------------------------------------------------------------------------------


def test_operations_become_request_nodes_with_typed_inputs() -> None:
    api = read_openapi(API)
    name, values = api.node(next(one for one in api.tools if one.operation_id == "getTicket"))

    assert (name, values["requestsGetUrl"]) == ("requestsGet", "https://tickets.example.com/v1/tickets/:id")
    assert json.loads(str(values["requestsGetQueryParamsSchema"])) == {
        "id": {"type": "number", "required": True, "description": "", "in": "path"}
    }
    assert json.loads(str(values["requestsGetHeaders"])) == {"Authorization": "Bearer {{$vars.ticketApiToken}}"}
    name, values = api.node(next(one for one in api.tools if one.operation_id == "createTicket"))
    assert (name, values["requestsPostUrl"]) == ("requestsPost", "https://tickets.example.com/v1/tickets")
    assert json.loads(str(values["requestsPostBodySchema"])) == {
        "title": {"type": "string", "required": True, "description": ""},
        "urgent": {"type": "boolean", "required": False, "description": ""},
    }


def test_an_operation_that_flowise_cannot_call_says_why() -> None:
    lacking = {one.operation_id: one.lacks for one in read_openapi(API).operations if one.lacks}

    assert lacking == {"updateTicket": "Flowise's PUT node fills in no path parameter (id)"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A bot that knows our tickets", ["getTicket", "listTickets"]),
        ("A bot that tells the status of a ticket", ["getTicket"]),
        ("A bot that can create a ticket and list them", ["createTicket", "listTickets"]),
        ("A bot that deletes a ticket", ["deleteTicket", "getTicket", "listTickets"]),
    ],
)
def test_only_operations_that_are_asked_for_become_tools(text: str, names: list[str]) -> None:
    assert sorted(one.operation_id for one in chosen(read_openapi(API), text)) == names


# --- in the plan ------------------------------------------------------------------------------------------------------


def test_a_ready_tool_is_in_the_plan_with_its_values_test_and_data() -> None:
    made = with_ready_tools(agent_plan(), [TOOL], GraphIR.empty(), SCHEMAS)

    assert [(node.node_id, node.node_name) for node in made.nodes][-1] == ("openapi__getTicket", "requestsGet")
    assert [(one.node_id, one.param) for one in made.values] == [("openapi__getTicket", "requestsGetUrl")]
    assert (made.tests[-1].turns, made.tests[-1].expect.tools) == ([TOOL.question], ["openapi__getTicket"])
    assert (made.domain_targets, made.data_fields, made.pii_fields) == (["flowise", "openapi"], ["id"], ["reporter"])
    assert with_ready_tools(made, [TOOL], GraphIR.empty(), SCHEMAS) == made


def test_a_twin_that_the_planner_made_gives_way() -> None:
    twin = PlannedNode(node_id="requestsGet_0", node_name="requestsGet", purpose="tickets")
    guess = PlannedValue(node_id="requestsGet_0", param="requestsGetUrl", value="https://guessed.example.com")
    proposed = agent_plan(values=[guess])
    proposed = proposed.model_copy(update={"nodes": [*proposed.nodes, twin]})

    made = with_ready_tools(proposed, [TOOL], GraphIR.empty(), SCHEMAS)

    assert "requestsGet_0" not in {node.node_id for node in made.nodes}
    assert "https://guessed.example.com" not in made.model_dump_json()


def test_a_flow_without_an_agent_is_said_to_have_none() -> None:
    made = with_ready_tools(plan(), [TOOL], GraphIR.empty(), SCHEMAS)

    assert [(one.code, one.severity) for one in made.findings] == [(NO_AGENT, "warning")]
    assert made.domain_targets == ["flowise"]


def test_in_an_agentflow_the_tool_is_a_row_of_the_agent() -> None:
    rows = [{"agentSelectedTool": "calculator", "agentSelectedToolConfig": {}}]
    proposed = plan(
        flow_kind="AGENTFLOW",
        nodes=[PlannedNode(node_id="agentAgentflow_0", node_name="agentAgentflow", purpose="answers")],
        values=[PlannedValue(node_id="agentAgentflow_0", param="agentTools", value=rows)],
    )

    made = with_ready_tools(proposed, [TOOL], GraphIR.empty(), SCHEMAS)

    (value,) = made.values
    assert value.value == [*rows, {"agentSelectedTool": "requestsGet", "agentSelectedToolConfig": dict(TOOL.values)}]
    assert with_ready_tools(made, [TOOL], GraphIR.empty(), SCHEMAS) == made


# --- in the ops -------------------------------------------------------------------------------------------------------


def test_a_node_has_one_owner() -> None:
    own = AddNode(node_name="requestsGet", node_id="openapi__getTicket", params=dict(TOOL.values))
    foreign = [
        AddNode(node_name="toolAgent", node_id="toolAgent_0"),
        AddNode(node_name="requestsGet", node_id="openapi__getTicket"),
        SetParam(node_id="openapi__getTicket", param_name="requestsGetUrl", value="https://other.example.com"),
        Connect(source_node_id="openapi__getTicket", target_node_id="toolAgent_0", target_anchor="tools"),
    ]

    assert merged(foreign, {"openapi": [own]}) == [foreign[0], own]
    assert merged(foreign, {}) == foreign


def model_ops() -> list[Any]:
    return [
        AddNode(node_name="toolAgent", node_id="toolAgent_0"),
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="toolAgent_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="toolAgent_0", target_anchor="memory"),
        BindCredential(node_id="chatOpenAI_0", credential_type="openAIApi"),
    ]


@pytest.mark.parametrize("design", [None, {"name": "Desk", "model": "gpt-4.1-mini"}])
async def test_a_described_api_becomes_a_tool_of_the_written_flow(design: dict[str, Any] | None) -> None:
    reasoner = DeterministicReasoner() if design else None
    bench = Bench(model_ops(), credentials("0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"), reasoner=reasoner)
    bench.graph = build_graph([FlowiseCapability(), OpenApiCapability()], bench.graph.checkpointer)
    bench.files = ApiFile()
    bench.reasoner.plans = [agent_plan()]

    question = await bench.start(
        "Build a bot with GPT-4o that calls our ticket API to tell the status of a ticket", design=design
    )
    assert question["type"] == "plan_approval", question
    assert question["reason"] == "plan_ready", question["message"]
    assert "https://tickets.example.com" in question["data"]["capability"]["hosts"]
    await bench.answer(action="approve")

    (flow,) = bench.flowise.flows.values()
    graph = GraphIR.from_flow_data(flow.flow_data)
    tool = graph.node("openapi__getTicket")
    assert tool is not None
    assert tool.inputs["requestsGetUrl"] == "https://tickets.example.com/v1/tickets/:id"
    assert [(e.source, e.input_name) for e in graph.edges if e.source == tool.id] == [(tool.id, "tools")]
    assert (await bench.state()).plan.current.domain_targets == ["flowise", "openapi"]
    assert (await bench.state()).facts["openapi"] == {"tools": ["openapi__getTicket"]}


# --- tests and verdict ------------------------------------------------------------------------------------------------


def test_the_suite_names_its_domains_and_the_tests_that_show_them_together() -> None:
    made = with_ready_tools(agent_plan(), [TOOL], GraphIR.empty(), SCHEMAS)
    domains = Domains([FlowiseCapability(), OpenApiCapability()])

    suite = domains.tests(made, '{"nodes": [], "edges": []}', trials=1)

    assert (suite.domain_scopes, suite.integration_tests) == (("flowise", "openapi"), ("t3",))
    assert domains.tests(agent_plan(), '{"nodes": [], "edges": []}', trials=1).domain_scopes == ("flowise",)


@pytest.mark.parametrize(
    ("output", "category"),
    [
        ("Failed to make GET request: HTTP Error 401: Unauthorized", "CREDENTIAL"),
        ("Failed to make GET request: fetch failed", "EXTERNAL"),
        ('{"status": "open"}', None),
    ],
)
async def test_a_tool_whose_system_did_not_answer_fails_the_test(output: str, category: str | None) -> None:
    request = EvaluateRequest(
        requirement="",
        plan=agent_plan(),
        results=(Trial(question="?", trial=1, passed=True, answer="I am sorry"),),
        traces=(Trace(used_tools=[TracedTool(tool="getticket", output=output)]),),
        flow_data="{}",
    )

    verdict = (await OpenApiCapability().evaluate(Bench([], credentials("1")).context(), request)).value

    assert (verdict.done, verdict.category) == (category is None, category)


async def test_a_requirement_without_a_description_has_no_tools() -> None:
    bench = Bench([], credentials("1"))
    request = DiscoverRequest("Call our ticket API", bench.reasoner.intents[0])

    found = await OpenApiCapability().discover(bench.context(), request)

    assert (found.ready_tools, found.facts) == ((), {})
