"""What passes from one domain to another is in the plan, field by field. What does not fit is said, and what a model
made up instead fails the test."""

import json
from dataclasses import replace

import pytest
from pydantic import JsonValue

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.planning.passes.mappings import kept_to, with_mappings, with_sources
from flowise_dev_agent.planning.passes.ready_tools import with_ready_tools
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.planning.requests import ReadyTool, ToolField
from flowise_dev_agent.schemas.plan import FieldMapping, Plan, PlannedNode
from flowise_dev_agent.schemas.verdict import Trace, TracedTool, TracedTurn, Trial
from tests.unit.agent.rig import plan

SCHEMAS = NodeStore.from_snapshot().schemas
PEOPLE = ("worker.id:number", "worker.name:string", "worker.location")


def tool(domain: str, *takes: ToolField, gives: tuple[str, ...] = (), pii: tuple[str, ...] = ()) -> ReadyTool:
    return ReadyTool(
        domain=domain,
        name="get",
        title=domain,
        about="",
        node_name="requestsGet",
        values={},
        data_fields=gives,
        pii_fields=pii,
        takes=takes,
    )


def mapped(
    *takes: ToolField, gives: tuple[str, ...] = PEOPLE, pii: tuple[str, ...] = ("worker.name",)
) -> tuple[Plan, list[tuple[str, str | None]]]:
    tools = [tool("workday", gives=gives, pii=pii), tool("tickets", *takes)]
    made = with_mappings(plan(domain_targets=["flowise", "workday", "tickets"]), tools)
    return made, [(one.code, one.where) for one in made.findings]


@pytest.mark.parametrize("name", ["workerId", "worker_id", "worker.id", "WorkerID"])
def test_an_input_with_the_name_of_a_field_gets_it(name: str) -> None:
    made, findings = mapped(ToolField(name, "number", required=True))
    assert made.mappings == [FieldMapping(source="workday.worker.id", target=f"tickets__get.{name}")]
    assert findings == []


def test_personal_data_that_becomes_an_input_is_shown_as_such() -> None:
    made, _ = mapped(ToolField("workerName", "string"))
    assert [one.personal for one in made.mappings] == [True]
    shown = plan_markdown(made)
    assert "## Data that passes\n- `workday.worker.name` → `tickets__get.workerName` (personal data)\n" in shown


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        (ToolField("workerId", "string", required=True), "DATA_MAPPING_TYPE", "type number, and tickets__get.workerId"),
        (ToolField("workerEmail", "string", required=True), "DATA_MAPPING_MISSING", "only workday.worker.id, workday"),
    ],
    ids=["mistyped", "missing"],
)
def test_an_input_that_no_field_fits_is_a_finding(wanted: ToolField, code: str, said: str) -> None:
    made, findings = mapped(wanted)
    assert findings == [(code, "tickets__get")]
    assert said in made.findings[0].detail
    assert "findings" in with_mappings(made, []).model_fields_set
    assert with_mappings(made, []).findings == []


@pytest.mark.parametrize(
    "wanted",
    [
        ToolField("id", "string", required=True),
        ToolField("workerEmail", "string"),
        ToolField("worker", "string", required=True),
        ToolField("workerLocation", "array"),
    ],
    ids=["a name that says nothing", "optional", "the thing itself", "a field without a type"],
)
def test_an_input_that_the_person_gives_is_no_finding(wanted: ToolField) -> None:
    assert mapped(wanted)[1] == []


def test_two_domains_with_the_same_field_are_asked_about() -> None:
    tools = [
        tool("workday", gives=("worker.id",)),
        tool("payroll", gives=("worker.id",)),
        tool("tickets", ToolField("workerId", "string")),
    ]
    made = with_mappings(plan(domain_targets=["flowise", "workday", "payroll", "tickets"]), tools)
    assert ([one.code for one in made.findings], made.mappings) == (["DATA_MAPPING_UNCLEAR"], [])
    assert "payroll.worker.id or workday.worker.id" in made.findings[0].detail


def test_within_one_domain_nothing_passes() -> None:
    tools = [tool("workday", ToolField("workerId", "number"), gives=PEOPLE)]
    assert with_mappings(plan(domain_targets=["flowise", "workday"]), tools).mappings == []


INPUTS = {
    "workerId": {"type": "number", "required": True, "description": "Whose tickets."},
    "state": {"type": "string", "required": False, "description": "Open or done."},
}


def test_the_agent_of_the_flow_reads_where_a_mapped_input_comes_from() -> None:
    target = tool("tickets", ToolField("workerId", "number"), ToolField("state", "string"))
    target = replace(target, values={"requestsGetName": "get", "requestsGetQueryParamsSchema": json.dumps(INPUTS)})
    people, told = with_sources([tool("workday", gives=PEOPLE), target])
    schema = json.loads(str(told.values["requestsGetQueryParamsSchema"]))
    assert schema["workerId"]["description"] == "Whose tickets. The worker.id that get of workday gives."
    assert (schema["state"], told.values["requestsGetName"]) == (INPUTS["state"], "get")
    assert people == tool("workday", gives=PEOPLE)
    assert with_sources([target]) == (target,)
    twice = [tool("workday", gives=PEOPLE), tool("payroll", gives=PEOPLE), target]
    assert with_sources(twice)[-1] == target


def test_a_tool_of_an_agentflow_is_not_added_again_when_it_tells_more_of_its_inputs() -> None:
    target = tool("tickets", ToolField("workerId", "number"), ToolField("state", "string"))
    target = replace(target, values={"requestsGetName": "get", "requestsGetQueryParamsSchema": json.dumps(INPUTS)})
    agent = PlannedNode(node_id="agentAgentflow_0", node_name="agentAgentflow", purpose="answers")
    made = with_ready_tools(plan(flow_kind="AGENTFLOW", nodes=[agent]), [target], GraphIR.empty(), SCHEMAS)
    _, told = with_sources([tool("workday", gives=PEOPLE), target])
    assert told != target
    assert with_ready_tools(made, [told], GraphIR.empty(), SCHEMAS).values == made.values
    other = replace(target, values={**target.values, "requestsGetName": "getOther"})
    assert with_ready_tools(made, [other], GraphIR.empty(), SCHEMAS).values != made.values


MAPPED = [FieldMapping(source="workday.worker.id", target="openapi__getTickets.workerId")]


@pytest.mark.parametrize(
    ("asked", "held", "kept"),
    [
        ("Which tickets does Grace have?", "21042", True),
        ("Which tickets does worker 77 have?", "77", True),
        ("Which tickets does Grace have?", "99", False),
        ("Which tickets does Grace have?", "", True),
    ],
    ids=["from the tool", "from the person", "made up", "empty"],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_a_mapped_input_that_nobody_gave_fails_the_trial(asked: str, held: str, kept: bool, as_text: bool) -> None:
    given: JsonValue = {"queryParams": {"workerId": held}}
    trace = Trace(
        turns=[TracedTurn(said=asked, answer="None.")],
        used_tools=[
            TracedTool(tool="searchForWorker", input={"name": "Grace"}, output="Grace is worker 21042"),
            TracedTool(tool="gettickets", input=json.dumps(given) if as_text else given, output="none"),
        ],
    )
    trial = Trial(question=asked, passed=True, answer="None.")
    found = kept_to(trial, trace, MAPPED)
    assert (found.passed, found.category) == ((True, None) if kept else (False, "LOGIC"))
    assert ("got a workerId that is neither workday.worker.id nor in the question" in found.error) is not kept
    assert "99" not in found.error
    assert kept_to(trial, trace, []) is trial
    assert kept_to(trial, trace.model_copy(update={"cut": True}), MAPPED) is trial


def test_an_input_of_that_name_of_another_tool_may_be_anything() -> None:
    calls = [TracedTool(tool="getpayslips", input={"workerId": "99"})]
    assert kept_to(Trial(question="Whose?", passed=True), Trace(used_tools=calls), MAPPED).passed is True


def test_what_a_tool_gives_later_does_not_count() -> None:
    calls = [
        TracedTool(tool="gettickets", input={"queryParams": {"workerId": "21042"}}),
        TracedTool(tool="searchForWorker", output="Grace is worker 21042"),
    ]
    trial = Trial(question="Whose?", passed=True)
    assert kept_to(trial, Trace(used_tools=calls), MAPPED).passed is False
    assert kept_to(trial, Trace(used_tools=calls[::-1]), MAPPED).passed is True


@pytest.mark.parametrize(
    ("given", "held", "kept"),
    [
        ('{"worker": {"id": "a\\"b\\u00e9"}}', {"workerId": 'a"bé'}, True),
        ([{"id": 21042}], {"wanted": [{"workerId": 21042}]}, True),
        ({"21042": "Grace"}, {"workerId": ["21042"]}, True),
        ([{"id": 21042}], {"wanted": [{"workerId": 99}]}, False),
        ([{"id": 21042}], {"workerId": ["21042", "99"]}, False),
        ("[" * 100_000, {"workerId": "99"}, False),
    ],
    ids=["escaped", "in a list", "a list of plain values", "made up in a list", "one of two made up", "deep"],
)
def test_what_tools_gave_and_got_is_read_through_json_and_lists(given: JsonValue, held: JsonValue, kept: bool) -> None:
    calls = [TracedTool(tool="searchForWorker", output=given), TracedTool(tool="gettickets", input=held)]
    assert kept_to(Trial(question="Whose?", passed=True), Trace(used_tools=calls), MAPPED).passed is kept
