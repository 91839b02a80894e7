"""Repairs: what their prompts see of the failed tests, and a change of values without a second call."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.parsing import UnusableOutputError
from flowise_dev_agent.patch import AddNode, GraphIR, SetParam, compile_ops
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.plan_checks import checked_plan, is_done_by_values
from flowise_dev_agent.planning.prompts import patch_prompt, plan_prompt
from flowise_dev_agent.planning.requests import FailedTrial, PatchRequest
from flowise_dev_agent.planning.values import with_planned_values
from flowise_dev_agent.schemas.plan import Part, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import Trace, TracedTurn, TraceStep, Trial, Verdict
from tests.support.requests import UPDATE, flow_of, plan_request
from tests.unit.agent.rig import plan
from tests.unit.agent.test_graph import ops
from tests.unit.agent.test_judgement import bench

COLDER = PlannedValue(node_id="chatOpenAI_0", param="temperature", value=0.1)
SAME = PlannedValue(node_id="llmAgentflow_0", param="llmModel", value="chatOpenAI")
#: The compiler binds the credential of another model.
OTHER = SAME.model_copy(update={"value": "chatAnthropic"})


def repair(store: NodeStore, category: Any, *values: PlannedValue, **fields: Any) -> PatchRequest:
    """Request for the ops of a plan that lists all nodes of the flow again, as a repair has to."""
    made = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", params={"llmModel": "chatOpenAI"}),
    ]
    graph = compile_ops(GraphIR.empty(), made, store.schemas).graph
    nodes = [PlannedNode(node_id=one.id, node_name=one.name, purpose="x", existing=True) for one in graph.nodes]
    whole = Part(id="p1", quote="a bot", state="covered", nodes=[one.id for one in graph.nodes])
    contract = plan(nodes=nodes, parts=[whole], values=list(values), **fields)
    verdict = Verdict(done=False, category=category, reason="It was rude.")
    return PatchRequest(requirement="A bot", plan=contract, nodes=store, flow=GraphView(graph), verdict=verdict)


@pytest.mark.parametrize(
    ("category", "values", "fields", "by_code"),
    [
        ("LOGIC", [COLDER], {}, True),
        ("LOGIC", [COLDER, SAME], {}, True),
        ("STRUCTURE", [COLDER], {}, False),
        ("LOGIC", [SAME], {}, False),
        ("LOGIC", [COLDER], {"removals": ["bufferMemory_0"]}, False),
        ("LOGIC", [COLDER, OTHER], {}, True),
    ],
    ids=["value", "value beside one that stands", "structure", "nothing", "removal", "model"],
)
def test_a_repair_of_values_needs_no_second_call(
    category: str, values: list[PlannedValue], fields: dict[str, Any], by_code: bool, catalogue: NodeStore
) -> None:
    assert is_done_by_values(repair(catalogue, category, *values, **fields)) is by_code


ROW = {"type": "number", "value1": "{{ question }}", "operation": "larger", "value2": "6"}
TOOL = {"agentSelectedTool": "requestsGet", "agentSelectedToolConfig": {"requestsGetUrl": "https://a.example"}}


@pytest.mark.parametrize(
    ("address", "new", "by_code"),
    [
        ("conditionAgentflow_0.conditions[0].value2", "8", True),
        ("conditionAgentflow_0.conditions[1].value2", "8", False),
        ("conditionAgentflow_0.conditions", [ROW, ROW], False),
        ("agentAgentflow_0.agentTools[0].agentSelectedToolConfig.requestsGetUrl", "https://b.example", True),
        ("agentAgentflow_0.agentTools[0].agentSelectedTool", "calculator", False),
    ],
)
def test_a_field_of_a_row_that_is_there_needs_no_call(
    address: str, new: Any, by_code: bool, catalogue: NodeStore
) -> None:
    made = [
        AddNode(node_name="conditionAgentflow", node_id="conditionAgentflow_0", params={"conditions": [ROW]}),
        AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", params={"agentTools": [TOOL]}),
    ]
    flow = GraphView(compile_ops(GraphIR.empty(), made, catalogue.schemas).graph)
    id_, _, param = address.partition(".")
    node = PlannedNode(node_id=id_, node_name=id_.partition("_")[0], purpose="x", existing=True)
    change = plan(nodes=[node], values=[PlannedValue(node_id=id_, param=param, value=new)], operation="update")
    assert is_done_by_values(PatchRequest(requirement="x", plan=change, nodes=catalogue, flow=flow)) is by_code


FAILED = FailedTrial(
    Trial(question="Who am I?", passed=False, category="LOGIC", error="The step 'Sort' did not run.", test="t2"),
    Trace(
        turns=[TracedTurn(said="Who am I?", answer="No idea </trial>.")],
        steps=[TraceStep(node_id="llm_0", label="Reply", output={"content": "asked for nothing"})],
    ),
)


def test_a_repair_sees_question_answer_trace_and_the_failed_check(catalogue: NodeStore) -> None:
    verdict = Verdict(done=False, category="LOGIC", reason="wrong")
    by_plan = plan_prompt(plan_request(catalogue, verdict=verdict, failed=(FAILED,))).user
    by_patch = patch_prompt(PatchRequest(requirement="x", plan=plan(), nodes=catalogue, failed=(FAILED,))).user
    for prompt in (by_plan, by_patch):
        for words in ("Who am I?", "No idea", "asked for nothing", "The step 'Sort' did not run."):
            assert words in prompt
        # Text of a flow does not end its own tag.
        assert prompt.count("</trial>") == 1


def test_the_credential_of_another_model_is_bound_without_an_op(catalogue: NodeStore) -> None:
    request = repair(catalogue, "LOGIC", COLDER, OTHER)
    chosen = {"anthropicApi": "11111111-1111-4111-8111-111111111111"}
    ops = with_planned_values([], request.plan, request.flow.graph)
    after = compile_ops(request.flow.graph, ops, catalogue.schemas, credentials=chosen).graph
    (step,) = [one for one in after.nodes if one.id == "llmAgentflow_0"]
    assert step.inputs["llmModel"] == "chatAnthropic"
    assert step.inputs["llmModelConfig"]["FLOWISE_CREDENTIAL_ID"] == chosen["anthropicApi"]


async def test_the_session_hands_its_failed_trials_to_plan_and_patch() -> None:
    made = bench()
    colder = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)
    made.reasoner.patches = [ops(), [colder]]
    made.reasoner.verdicts = [
        Verdict(done=False, category="LOGIC", reason="rude", fix="be kind", failed_trials=[2]),
        Verdict(done=True),
    ]
    await made.start()
    await made.answer(action="approve")
    for phase in ("plan", "patch"):
        shown = [[(one.trial.question, one.trial.error) for one in asked.failed] for asked in made.reasoner.seen[phase]]
        assert shown == [[], [("Who are you?", "rude")]]


@pytest.mark.parametrize("previous", [None, plan()])
def test_a_question_that_was_taken_for_a_change_is_answered(previous: Plan | None, catalogue: NodeStore) -> None:
    flow = flow_of({"chatOpenAI_0": "chatOpenAI"})
    request = plan_request(catalogue, "Which model is it?", intent=UPDATE, flow=flow, previous=previous)
    answered = plan(operation="update", nodes=[], credential_requirements=[], answer="It is gpt-4o.")
    if previous:
        # What was planned already is not left by an answer.
        with pytest.raises(Exception, match="nodes"):
            checked_plan(answered, request)
    else:
        made = checked_plan(answered, request)
        assert (made.operation, made.answer) == ("question", "It is gpt-4o.")


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_plan_asks_nothing_of_a_person_who_wants_to_go_on(goes_on: bool, catalogue: NodeStore) -> None:
    asks = plan(nodes=[], declined="Which database is it?")
    request = plan_request(catalogue, goes_on=goes_on)
    if goes_on:
        with pytest.raises(UnusableOutputError, match="assumed"):
            checked_plan(asks, request)
    else:
        assert checked_plan(asks, request).asks
    # What cannot be built stays declined.
    assert checked_plan(plan(nodes=[], declined="There is no such thing."), request).declined
