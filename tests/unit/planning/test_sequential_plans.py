"""Plans for sequential flows and teams: their prompt, their checks, their outline, and what an approval covers."""

from dataclasses import replace

import pytest

from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.approval.lines import rerouted
from flowise_dev_agent.flowise.models import Prediction
from flowise_dev_agent.forms.wiring import wire_plan
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.parsing import UnusableOutputError
from flowise_dev_agent.patch import Connect, GraphIR, RemoveNode, SetParam, compile_ops, ops_from_list, summarize
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.passes.target import BUILT_AS_AGENTFLOW
from flowise_dev_agent.planning.pipeline import Review
from flowise_dev_agent.planning.plan_checks import checked_plan
from flowise_dev_agent.planning.prompt_room import room_in
from flowise_dev_agent.planning.prompts import plan_prompt
from flowise_dev_agent.planning.requests import PlanRequest
from flowise_dev_agent.schemas.plan import Intent, NamedConnection, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.testing.judging import unreached_steps
from flowise_dev_agent.testing.traces import Exchange, trace_of
from tests.fixtures.fresh_flows import FRESH, Editor

STORE = NodeStore.from_snapshot()
SCHEMAS = STORE.schemas


def drawn(name: str) -> GraphIR:
    draw = FRESH[name][1]
    draw(canvas := Editor({type_: dict(schema.raw) for type_, schema in SCHEMAS.items()}, {}))
    return GraphIR.from_flow_data(canvas.text())


BRANCHED, TEAM = drawn("two steps with a condition between"), drawn("a team")


def asked(graph: GraphIR, kind: str | None = "MULTIAGENT", operation: str = "update") -> PlanRequest:
    return PlanRequest(
        requirement="Make it kinder.",
        intent=Intent(operation=operation, ambiguity=0, title="Kinder"),
        nodes=STORE,
        target="Steps" if kind else None,
        target_kind=kind,
        flow=GraphView(graph),
    )


def planned(*nodes: PlannedNode, **fields: object) -> Plan:
    given = {"operation": "update", "flow_kind": "MULTIAGENT", **fields}
    return Plan.model_validate({"goal": "Change it.", "flow_name": "Steps", "nodes": [*nodes], **given})


def new(node_id: str) -> PlannedNode:
    return PlannedNode(node_id=node_id, node_name=node_id.rpartition("_")[0], purpose="new")


def of(node_id: str) -> PlannedNode:
    return new(node_id).model_copy(update={"existing": True})


def test_the_chapter_and_the_types_of_sequential_flows_stand_in_their_prompt_only() -> None:
    prompt = plan_prompt(asked(BRANCHED))
    assert "# Sequential flows" in prompt.system
    assert "- seqLLMNode" in prompt.system
    assert "- sqliteAgentMemory" in prompt.system
    assert "startAgentflow" not in prompt.system
    others = (asked(GraphIR.empty(), None, "create"), asked(BRANCHED, "CHATFLOW"), asked(BRANCHED, "AGENTFLOW"))
    assert not any("Sequential flows" in plan_prompt(one).system for one in others)


@pytest.mark.parametrize("window", [8_192, 32_768])
def test_the_prompt_for_a_sequential_flow_fits_into_small_windows(window: int) -> None:
    room = room_in(window)
    prompt = plan_prompt(asked(BRANCHED), room=room)
    assert "# Sequential flows" in prompt.system
    assert (len(prompt.system) + len(prompt.user)) / 4 <= room


@pytest.mark.parametrize(
    ("name", "kind", "fits"),
    [
        ("worker_9", "MULTIAGENT", True),
        ("calculator_9", "MULTIAGENT", True),
        ("llmAgentflow_9", "MULTIAGENT", False),
        ("seqAgent_9", "CHATFLOW", False),
    ],
)
def test_nodes_of_another_kind_go_back_to_the_model(name: str, kind: str, fits: bool) -> None:
    plan, request = planned(new(name), flow_kind=kind), asked(TEAM, kind)
    if fits:
        assert checked_plan(plan, request).flow_kind == "MULTIAGENT"
    else:
        with pytest.raises(UnusableOutputError, match="FLOW_KIND_MIX"):
            checked_plan(plan, request)


async def test_a_new_flow_is_no_sequential_one_and_that_is_said() -> None:
    request = replace(asked(GraphIR.empty(), None, "create"), requirement="Build me sequential agents for support")
    with pytest.raises(UnusableOutputError, match="Plan an agentflow"):
        checked_plan(planned(new("seqStart_0"), operation="create", flow_kind="CHATFLOW"), request)
    plan = planned(new("startAgentflow_0"), operation="create", flow_kind="AGENTFLOW")
    reviewed = await Review()(plan, request)
    assert BUILT_AS_AGENTFLOW in {one.code for one in reviewed.plan.findings}
    other = await Review()(plan, replace(request, requirement="Build me an agent for support"))
    assert BUILT_AS_AGENTFLOW not in {one.code for one in other.plan.findings}


def test_fields_of_tabs_are_fields_of_the_plan_and_choose_their_tab() -> None:
    value = PlannedValue(node_id="seqCondition_0", param="conditionFunction", value='return "Yes"')
    plan = checked_plan(planned(of("seqCondition_0"), values=[value]), asked(BRANCHED))
    assert capability_of(plan, SCHEMAS, BRANCHED).code == ["seqCondition_0"]
    op = SetParam(node_id="seqCondition_0", param_name="conditionFunction", value='return "Yes"')
    node = compile_ops(BRANCHED, [op], SCHEMAS).graph.node("seqCondition_0")
    assert node
    assert node.inputs["selectedConditionFunctionTab_seqCondition_0"] == "conditionFunction"


def test_the_outline_has_the_steps_with_their_branches_and_models_below() -> None:
    plan = planned(of("seqLLMNode_0"), values=[PlannedValue(node_id="seqLLMNode_0", param="llmNodeName", value="bye")])
    lines = {one.node_id: one for one in plan_details(plan, BRANCHED, schemas=SCHEMAS).outline}
    assert [*lines][:3] == ["seqStart_0", "chatOpenAI_0", "seqAgent_0"]
    assert (lines["chatOpenAI_0"].depth, lines["seqAgent_0"].depth) == (1, 0)
    assert [way.name for way in lines["seqCondition_0"].leads_to] == ["Yes", "End"]
    assert [way.to for way in lines["seqAgent_0"].leads_to] == ["more"]
    assert {id_ for id_, one in lines.items() if one.state == "changed"} == {"seqLLMNode_0"}
    assert "branches yes (Yes), end (End)" in summarize(BRANCHED)


def test_a_loop_leads_back_to_the_step_of_its_name() -> None:
    graph = drawn("a loop to a step with another name")
    fixed = compile_ops(graph, [SetParam(node_id="seqLoop_0", param_name="loopToName", value="Writer")], SCHEMAS).graph
    plan = planned(of("seqAgent_0"), values=[PlannedValue(node_id="seqAgent_0", param="maxIterations", value=3)])
    lines = {one.node_id: one for one in plan_details(plan, fixed, schemas=SCHEMAS).outline}
    assert [way.to for way in lines["seqLoop_0"].leads_to] == ["writer"]
    jump = planned(of("seqLoop_0"), values=[PlannedValue(node_id="seqLoop_0", param="loopToName", value="Writer")])
    (line,) = capability_of(jump, SCHEMAS, graph).lines
    assert (line.source, line.target, line.change) == ("seqLoop_0", "seqAgent_0", "add")


def test_a_step_is_not_led_around_the_branch_of_a_condition() -> None:
    line = {"source_node_id": "seqAgent_0", "target_node_id": "seqLLMNode_0", "target_anchor": "sequentialNode"}
    after = compile_ops(BRANCHED, ops_from_list([{"op_type": "Connect", **line}]), SCHEMAS).graph
    value = PlannedValue(node_id="seqLLMNode_0", param="systemMessagePrompt", value="Bye.")
    plan = planned(of("seqLLMNode_0"), values=[value])
    found = rerouted(plan, capability_of(plan, SCHEMAS, BRANCHED), BRANCHED, after, SCHEMAS)
    assert any("around 'seqCondition_0', branch yes" in one.detail for one in found)
    said = NamedConnection(source="seqAgent_0", target="seqLLMNode_0", input="sequentialNode")
    open_ = planned(of("seqLLMNode_0"), values=[value], connections=[said])
    assert rerouted(open_, capability_of(open_, SCHEMAS, BRANCHED), BRANCHED, after, SCHEMAS) == []


def test_only_what_leaves_no_choice_is_wired_by_code() -> None:
    there = {node.id: SCHEMAS[node.name] for node in TEAM.nodes}
    added = {"worker_2": SCHEMAS["worker"], "calculator_0": SCHEMAS["calculator"]}
    plan = planned(new("worker_2"), new("calculator_0"))
    ops = wire_plan(plan, there, added, {}, GraphView(TEAM).connected_inputs).ops
    ends = {(op.source_node_id, op.target_node_id) for op in ops if isinstance(op, Connect)}
    assert ends == {("supervisor_0", "worker_2")}


def test_steps_of_a_conversation_are_traced_and_those_that_no_test_reached_are_named() -> None:
    spoke = {"agentName": "greeter", "messages": ["Hi"], "nodeName": "seqAgent", "nodeId": "seqAgent_0", "state": {}}
    trace = trace_of([Exchange(["Hello"], Prediction.model_validate({"text": "Hi", "agentReasoning": [spoke]}))])
    (step,) = trace.steps
    assert (step.node_id, step.name, step.label, step.output) == (
        "seqAgent_0",
        "seqAgent",
        "greeter",
        {"messages": ["Hi"]},
    )
    assert unreached_steps(BRANCHED, [trace]) == ["seqLLMNode_0"]


def test_a_removed_step_takes_its_branch_along() -> None:
    rows = SetParam(node_id="seqCondition_0", param_name="conditionUI", value='[{"variable": "$x", "output": "No"}]')
    after = compile_ops(BRANCHED, [rows, RemoveNode(node_id="seqLLMNode_0")], SCHEMAS).graph
    node = after.node("seqCondition_0")
    assert node
    assert [output.label for output in node.outputs] == ["End", "No"]
    assert not any(edge.output_name == "yes" for edge in after.edges)
