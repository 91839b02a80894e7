"""Ops of a chatflow without a call: where its nodes connect in one way, and its values are all that is to be set."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Finding,
    GraphIR,
    SetParam,
    SetParent,
    compile_ops,
    validate_flow,
)
from flowise_dev_agent.patch.model.attached_files import tool_mark
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.planning.ops_by_code import ops_by_code
from flowise_dev_agent.planning.planned_lines import with_following_lines
from flowise_dev_agent.planning.requests import PatchRequest
from flowise_dev_agent.planning.values import with_planned_values
from flowise_dev_agent.schemas.custom_tools import PlannedTool, ToolInput
from flowise_dev_agent.schemas.plan import Approach, NamedConnection, OpsAnswer, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import Verdict
from flowise_dev_agent.settings import ReasoningSettings
from tests.unit.planning.test_llm_reasoner import ScriptedEngine

CHAT = ("chatOpenAI", "bufferMemory", "conversationChain")
AGENT = ("chatOpenAI", "bufferMemory", "calculator", "currentDateTime", "toolAgent")
MILES = PlannedTool(
    name="miles_to_km",
    description="Converts miles to kilometres.",
    inputs=[ToolInput(property="miles", type="number", description="Length in miles")],
    code="return ($miles * 1.609344).toFixed(2);",
)


def request(catalogue: NodeStore, *names: str, values: tuple[PlannedValue, ...] = (), **more: Any) -> PatchRequest:
    count: dict[str, int] = {}
    nodes: list[PlannedNode] = []
    for name in names:
        number = count[name] = count.get(name, -1) + 1
        nodes.append(PlannedNode(node_id=f"{name}_{number}", node_name=name, purpose="x"))
    fields: dict[str, Any] = {"operation": "create", "nodes": nodes, **more.pop("plan", {})}
    plan = Plan(goal="x", flow_name="x", values=list(values), **fields)
    return PatchRequest(requirement="x", plan=plan, nodes=catalogue, **more)


def lines(answer: Any) -> set[tuple[str, str]]:
    return {(op.source_node_id, op.target_node_id) for op in answer if isinstance(op, Connect)}


@pytest.mark.parametrize("names", [CHAT, AGENT])
async def test_a_new_chatflow_that_connects_in_one_way_takes_no_call(
    names: tuple[str, ...], catalogue: NodeStore
) -> None:
    engine = ScriptedEngine({"kind": "nothing_to_change", "reason": "x"})
    model = PlannedValue(node_id="chatOpenAI_0", param="modelName", value="gpt-5.4")
    result = await LlmReasoner(engine, ReasoningSettings()).patch(request(catalogue, *names, values=(model,)))
    assert engine.calls == []
    assert isinstance(result.value, OpsAnswer)
    assert lines(result.value.ops) == {(f"{name}_0", f"{names[-1]}_0") for name in names[:-1]}


def test_a_chatflow_over_a_store_that_is_filled_already_takes_no_call(catalogue: NodeStore) -> None:
    chain = ("chatOpenAI", "openAIEmbeddings", "qdrant", "bufferMemory", "conversationalRetrievalQAChain")
    address = PlannedValue(node_id="qdrant_0", param="qdrantServerUrl", value="https://qdrant.example")
    collection = PlannedValue(node_id="qdrant_0", param="qdrantCollection", value="rules")
    made = ops_by_code(request(catalogue, *chain, values=(address, collection)))
    assert ("qdrant_0", "conversationalRetrievalQAChain_0") in lines(made or [])


def test_a_tool_is_added_to_an_agent_without_a_call(catalogue: NodeStore) -> None:
    made = ops_by_code(request(catalogue, *AGENT))
    assert made
    base = compile_ops(GraphIR.empty(), made, catalogue.schemas).graph
    wanted = request(catalogue, "customTool", plan={"operation": "update"}, flow=GraphView(base))
    assert ops_by_code(wanted) is None  # which tool of the server it is, no plan says
    search = PlannedNode(node_id="serpAPI_0", node_name="serpAPI", purpose="search")
    agent = PlannedNode(node_id="toolAgent_0", node_name="toolAgent", purpose="gets it", existing=True)
    plan = Plan(goal="x", flow_name="x", operation="update", nodes=[search, agent])
    found = ops_by_code(PatchRequest(requirement="x", plan=plan, nodes=catalogue, flow=GraphView(base)))
    assert found
    assert lines(found) == {("serpAPI_0", "toolAgent_0")}


def test_a_new_custom_tool_and_its_agent_take_no_call(catalogue: NodeStore) -> None:
    used = PlannedValue(node_id="customTool_0", param="selectedTool", value=tool_mark(MILES.name))
    names = ("chatOpenAI", "bufferMemory", "customTool", "toolAgent")
    new = request(catalogue, *names, values=(used,), plan={"new_tools": [MILES]})
    assert ("customTool_0", "toolAgent_0") in lines(ops_by_code(new) or ())
    missing = replace(new, plan=new.plan.model_copy(update={"new_tools": []}))
    assert ops_by_code(missing) is None  # the mark of a tool that nobody makes
    base = compile_ops(GraphIR.empty(), ops_by_code(request(catalogue, *AGENT)) or (), catalogue.schemas).graph
    more = request(catalogue, "customTool", values=(used,), plan={"operation": "update", "new_tools": [MILES]})
    made = ops_by_code(replace(more, flow=GraphView(base))) or []
    assert lines(made) == {("customTool_0", "toolAgent_0")}
    assert [op.params for op in made if isinstance(op, AddNode)] == [{"selectedTool": tool_mark(MILES.name)}]


def test_a_step_of_an_agentflow_gets_a_new_custom_tool_without_a_call(catalogue: NodeStore) -> None:
    rows = [{"agentSelectedTool": "customTool", "agentSelectedToolConfig": {"selectedTool": tool_mark(MILES.name)}}]
    said = {"agentModel": "chatOpenAI", "agentModelConfig.modelName": "gpt-5.4", "agentTools": rows}
    said["agentMessages"] = [{"role": "system", "content": "Convert."}]
    start = PlannedValue(node_id="startAgentflow_0", param="startInputType", value="chatInput")
    values = [PlannedValue(node_id="agentAgentflow_0", param=name, value=value) for name, value in said.items()]
    nodes = [
        PlannedNode(node_id=f"{name}_0", node_name=name, purpose="x", label="T")
        for name in ("startAgentflow", "agentAgentflow")
    ]
    line = NamedConnection(source="startAgentflow_0", target="agentAgentflow_0")
    fields: dict[str, Any] = {"flow_kind": "AGENTFLOW", "nodes": nodes, "connections": [line], "new_tools": [MILES]}
    new = request(catalogue, values=(start, *values), plan={**fields, "credential_requirements": ["openAIApi"]})
    assert ops_by_code(new)
    without = [one for one in new.plan.values if one.param != "agentTools"]
    plain = replace(new, plan=new.plan.model_copy(update={"values": without, "new_tools": []}))
    base = compile_ops(GraphIR.empty(), ops_by_code(plain) or (), catalogue.schemas).graph
    there = [nodes[1].model_copy(update={"existing": True})]
    update = {"operation": "update", "flow_kind": "AGENTFLOW", "nodes": there, "new_tools": [MILES]}
    rows = [*rows, {"agentSelectedTool": "calculator", "agentSelectedToolConfig": {}}]
    wanted = PlannedValue(node_id="agentAgentflow_0", param="agentTools", value=rows)
    grown = ops_by_code(replace(request(catalogue, values=(wanted,), plan=update), flow=GraphView(base)))
    assert [op.value for op in grown or () if isinstance(op, SetParam)] == [rows]


def replaced(catalogue: NodeStore, *new: str, gone: tuple[str, ...], kept: tuple[str, ...]) -> Any:
    """The plain chat with new nodes in place of those that go; None where that is left to a model."""
    made = ops_by_code(request(catalogue, *CHAT))
    assert made
    flow = compile_ops(GraphIR.empty(), made, catalogue.schemas).graph
    nodes = [PlannedNode(node_id=f"{name}_9", node_name=name, purpose="x") for name in new]
    nodes += [PlannedNode(node_id=f"{name}_0", node_name=name, purpose="x", existing=True) for name in kept]
    removals = [f"{name}_0" for name in gone]
    plan = Plan(goal="x", flow_name="x", operation="update", nodes=nodes, removals=removals)
    ops = ops_by_code(PatchRequest(requirement="x", plan=plan, nodes=catalogue, flow=GraphView(flow)))
    return ops and compile_ops(flow, with_planned_values(ops, plan, flow), catalogue.schemas).graph


def test_a_node_that_takes_the_place_of_another_takes_no_call(catalogue: NodeStore) -> None:
    new = ("chatAnthropic", "bufferWindowMemory")
    chat = replaced(catalogue, *new, gone=CHAT[:2], kept=CHAT[2:])
    assert {(edge.source, edge.target) for edge in chat.edges} == {(f"{name}_9", "conversationChain_0") for name in new}
    agent = ("calculator", "toolAgent")
    grown = replaced(catalogue, *agent, gone=("conversationChain",), kept=CHAT[:2])
    assert {(edge.source, edge.target) for edge in grown.edges} == {
        *((f"{name}_0", "toolAgent_9") for name in CHAT[:2]),
        ("calculator_9", "toolAgent_9"),
    }


def test_a_tool_goes_without_a_call(catalogue: NodeStore) -> None:
    flow = compile_ops(GraphIR.empty(), ops_by_code(request(catalogue, *AGENT)) or [], catalogue.schemas).graph
    plan = Plan(goal="x", flow_name="x", operation="update", removals=["calculator_0"])
    ops = ops_by_code(PatchRequest(requirement="x", plan=plan, nodes=catalogue, flow=GraphView(flow)))
    assert [(op.op_type, getattr(op, "node_id", "")) for op in ops or ()] == [("RemoveNode", "calculator_0")]
    last = plan.model_copy(update={"removals": ["calculator_0", "currentDateTime_0"]})
    assert ops_by_code(PatchRequest(requirement="x", plan=last, nodes=catalogue, flow=GraphView(flow))) is None


def test_what_takes_the_place_of_a_node_is_the_models_to_say_where_it_is_open(catalogue: NodeStore) -> None:
    two = ("bufferWindowMemory", "conversationSummaryMemory")
    assert replaced(catalogue, *two, gone=("bufferMemory",), kept=CHAT[2:]) is None
    assert replaced(catalogue, "calculator", gone=("bufferMemory",), kept=CHAT[2:]) is None


def in_a_row(catalogue: NodeStore, *more: str, texts: bool = True, titles: bool = True) -> PatchRequest:
    """Request for a new agentflow of a model step and more steps."""
    names = ("startAgentflow", "llmAgentflow", *more)
    nodes = [
        PlannedNode(
            node_id=f"{name}_{names[:at].count(name)}", node_name=name, purpose="x", label="T" if titles else ""
        )
        for at, name in enumerate(names)
    ]
    said: dict[str, Any] = {"startAgentflow_0.startInputType": "chatInput"}
    for node in nodes:
        if node.node_name == "llmAgentflow":
            said |= {f"{node.node_id}.llmModel": "chatOpenAI", f"{node.node_id}.llmModelConfig.modelName": "gpt-5.4"}
            said |= {f"{node.node_id}.llmMessages": [{"role": "system", "content": "Do it."}]} if texts else {}
        if node.node_name == "directReplyAgentflow":
            said[f"{node.node_id}.directReplyMessage"] = "{{ llmAgentflow_0 }}"
        if node.node_name == "conditionAgentflow":
            row = {"type": "string", "value1": "{{ question }}", "operation": "equal", "value2": "x"}
            said[f"{node.node_id}.conditions"] = [row]
    values = [
        PlannedValue(node_id=place.partition(".")[0], param=place.partition(".")[2], value=value)
        for place, value in said.items()
    ]
    plan = Plan(
        goal="x", flow_name="x", operation="create", flow_kind="AGENTFLOW", nodes=nodes, values=values,
        credential_requirements=["openAIApi"],
    )  # fmt: skip
    return completed(PatchRequest(requirement="x", plan=plan, nodes=catalogue))


def test_steps_in_a_row_take_no_call(catalogue: NodeStore) -> None:
    given = in_a_row(catalogue, "llmAgentflow", "directReplyAgentflow")
    made = ops_by_code(given)
    assert made
    assert lines(made) == {
        ("startAgentflow_0", "llmAgentflow_0"),
        ("llmAgentflow_0", "llmAgentflow_1"),
        ("llmAgentflow_1", "directReplyAgentflow_0"),
    }
    bound = {(op.node_id, op.path) for op in made if isinstance(op, BindCredential)}
    assert bound == {("llmAgentflow_0", "llmModelConfig"), ("llmAgentflow_1", "llmModelConfig")}
    whole = with_planned_values(made, given.plan, GraphIR.empty())
    credential = {"openAIApi": "11111111-1111-4111-8111-111111111111"}
    flow = compile_ops(GraphIR.empty(), whole, catalogue.schemas, credentials=credential).flow_data
    assert validate_flow(flow, schemas=catalogue.schemas, credentials=None, kind="AGENTFLOW") == []


def test_steps_that_leave_a_choice_are_the_models(catalogue: NodeStore) -> None:
    assert ops_by_code(in_a_row(catalogue, "conditionAgentflow")) is None  # no line says where its branches lead
    assert ops_by_code(in_a_row(catalogue, "customFunctionAgentflow")) is None
    assert ops_by_code(in_a_row(catalogue, "directReplyAgentflow", "llmAgentflow")) is None
    assert ops_by_code(in_a_row(catalogue, texts=False)) is None
    assert ops_by_code(in_a_row(catalogue, titles=False)) is None
    assert ops_by_code(in_a_row(catalogue)) is not None


#: Lines of a flow with each kind of step that chooses, repeats, reaches out or runs code, as source, branch and target.
BRANCHES = [
    ("startAgentflow_0", "", "conditionAgentflow_0"),
    ("conditionAgentflow_0", "0", "iterationAgentflow_0"),
    ("conditionAgentflow_0", "1", "humanInputAgentflow_0"),
    ("iterationAgentflow_0", "each", "httpAgentflow_0"),
    ("iterationAgentflow_0", "", "directReplyAgentflow_0"),
    ("humanInputAgentflow_0", "0", "customFunctionAgentflow_0"),
    ("humanInputAgentflow_0", "1", "loopAgentflow_0"),
    ("customFunctionAgentflow_0", "", "executeFlowAgentflow_0"),
]
ROW: dict[str, JsonValue] = {"type": "string", "value1": "{{ question }}", "operation": "startsWith", "value2": "order"}
VALUES: dict[str, Any] = {
    "startAgentflow_0.startInputType": "chatInput",
    "conditionAgentflow_0.conditions": [ROW],
    "iterationAgentflow_0.iterationInput": "{{ question }}",
    "httpAgentflow_0.method": "GET",
    "httpAgentflow_0.url": "https://shop.example/orders/{{ $iteration }}",
    "directReplyAgentflow_0.directReplyMessage": "Done.",
    "humanInputAgentflow_0.humanInputDescriptionType": "fixed",
    "humanInputAgentflow_0.humanInputDescription": "Shall it go on?",
    "humanInputAgentflow_0.humanInputEnableFeedback": False,
    "customFunctionAgentflow_0.customFunctionJavascriptFunction": "return 'yes';",
    "loopAgentflow_0.loopBackToNode": "humanInputAgentflow_0-Ask",
    "loopAgentflow_0.maxLoopCount": 3,
    "executeFlowAgentflow_0.executeFlowSelectedFlow": "11111111-1111-4111-8111-111111111111",
    "executeFlowAgentflow_0.executeFlowInput": "{{ customFunctionAgentflow_0 }}",
}


def with_branches(catalogue: NodeStore, *, without: str = "") -> PatchRequest:
    """Request for a new agentflow with all lines and values, but for the values and lines of one name."""
    ids = dict.fromkeys(end for source, _, target in BRANCHES for end in (source, target))
    nodes = [PlannedNode(node_id=id_, node_name=id_.partition("_")[0], purpose="x", label="Ask") for id_ in ids]
    values = [
        PlannedValue(node_id=place.partition(".")[0], param=place.partition(".")[2], value=value)
        for place, value in VALUES.items()
        if place != without
    ]
    drawn = [NamedConnection(source=one, output=branch, target=two) for one, branch, two in BRANCHES if two != without]
    plan = Plan(
        goal="x", flow_name="x", operation="create", flow_kind="AGENTFLOW", nodes=nodes, values=values,
        connections=drawn,
    )  # fmt: skip
    return PatchRequest(requirement="x", plan=plan, nodes=catalogue)


async def test_branches_whose_plan_says_all_lines_and_values_take_no_call(catalogue: NodeStore) -> None:
    engine = ScriptedEngine({"kind": "nothing_to_change", "reason": "x"})
    given = with_branches(catalogue)
    result = await LlmReasoner(engine, ReasoningSettings()).patch(given)
    assert engine.calls == []
    assert isinstance(result.value, OpsAnswer)
    whole = with_planned_values(result.value.ops, given.plan, GraphIR.empty())
    flow = compile_ops(GraphIR.empty(), whole, catalogue.schemas)
    assert {(edge.source, edge.target) for edge in flow.graph.edges} == {
        (one, two) for one, branch, two in BRANCHES if branch != "each"
    }
    assert {node.id: node.parent for node in flow.graph.nodes if node.parent} == {
        "httpAgentflow_0": "iterationAgentflow_0"
    }
    found = validate_flow(flow.flow_data, schemas=catalogue.schemas, credentials=None, kind="AGENTFLOW")
    assert [one.code for one in found if one.severity == "error"] == []


def test_branches_may_be_said_row_by_row(catalogue: NodeStore) -> None:
    given = with_branches(catalogue, without="conditionAgentflow_0.conditions")
    fields = [
        PlannedValue(node_id="conditionAgentflow_0", param=f"conditions[0].{name}", value=value)
        for name, value in ROW.items()
    ]
    plan = given.plan.model_copy(update={"values": [*given.plan.values, *fields]})
    assert ops_by_code(given) is None
    assert ops_by_code(replace(given, plan=plan)) is not None


#: Values that a default stands in for.
BY_DEFAULT = {
    "startAgentflow_0.startInputType",
    "humanInputAgentflow_0.humanInputDescriptionType",
    "humanInputAgentflow_0.humanInputEnableFeedback",
    "loopAgentflow_0.maxLoopCount",
}


@pytest.mark.parametrize("lacking", [*(place for place in VALUES if place not in BY_DEFAULT), "loopAgentflow_0"])
def test_a_value_or_line_that_the_plan_lacks_is_the_models(lacking: str, catalogue: NodeStore) -> None:
    assert ops_by_code(with_branches(catalogue, without=lacking)) is None


def test_a_request_that_sends_something_says_what(catalogue: NodeStore) -> None:
    given = with_branches(catalogue)
    sent = [one if one.param != "method" else one.model_copy(update={"value": "POST"}) for one in given.plan.values]
    posted = replace(given, plan=given.plan.model_copy(update={"values": sent}))
    assert ops_by_code(posted) is None
    body = PlannedValue(node_id="httpAgentflow_0", param="body", value='{"state": "sent"}')
    assert ops_by_code(replace(given, plan=given.plan.model_copy(update={"values": [*sent, body]})))


#: A flow that chooses between two ways, which come together again where `JOINS` is added.
CHOICE = [("startAgentflow_0", "", "conditionAgentflow_0"), *(
    ("conditionAgentflow_0", str(at), f"customFunctionAgentflow_{at + 1}") for at in range(2)
)]  # fmt: skip
JOINS = [(f"customFunctionAgentflow_{at + 1}", "", "customFunctionAgentflow_3") for at in range(2)]


CODE = "customFunctionJavascriptFunction"


def changed(catalogue: NodeStore, drawn: list[tuple[str, str, str]], **fields: Any) -> PatchRequest:
    """Request for a change of the flow with these lines."""
    ids = dict.fromkeys(end for source, _, target in drawn for end in (source, target))
    ops: list[Any] = [AddNode(node_id=id_, node_name=id_.partition("_")[0], label=id_) for id_ in ids]
    ops += [SetParam(node_id="conditionAgentflow_0", param_name="conditions", value=[ROW])]
    ops += [SetParam(node_id=id_, param_name=CODE, value="return 'a';") for id_ in ids if id_[1] == "u"]
    ops += [
        SetParent(node_id=two, parent_id=one)
        if out == "each"
        else Connect(source_node_id=one, source_anchor=out or None, target_node_id=two)
        for one, out, two in drawn
    ]
    base = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    more: dict[str, Any] = {"flow_kind": "AGENTFLOW", "operation": "update", **fields}
    return PatchRequest(
        requirement="x", plan=Plan(goal="x", flow_name="x", **more), nodes=catalogue, flow=GraphView(base)
    )


def step(id_: str, *, existing: bool = False) -> PlannedNode:
    return PlannedNode(node_id=id_, node_name=id_.partition("_")[0], purpose="x", existing=existing, label="A step")


def reads(id_: str, other: int) -> PlannedValue:
    row: JsonValue = {"variableName": "a", "variableValue": f"{{{{ customFunctionAgentflow_{other} }}}}"}
    return PlannedValue(node_id=id_, param="customFunctionInputVariables", value=[row])


def completed(given: PatchRequest) -> PatchRequest:
    """Request whose plan has the lines that follow."""
    return replace(given, plan=with_following_lines(given.plan, given.flow.graph, given.nodes.schemas))


def after(given: PatchRequest) -> set[tuple[str, str, str]] | None:
    """Lines of the changed flow, with the number of the branch; None where the ops are left to a model."""
    given = completed(given)
    if (ops := ops_by_code(given)) is None:
        return None
    base, schemas = given.flow.graph, given.nodes.schemas
    flow = compile_ops(base, with_planned_values(ops, given.plan, base), schemas).graph
    return {
        (edge.source, edge.output_name if edge.output_name.isdigit() else "", edge.target)
        for edge in flow.edges
        if edge.source != "startAgentflow_0"
    }


CODE_OF = [PlannedValue(node_id="customFunctionAgentflow_0", param=CODE, value="return 'a';")]


def test_a_step_between_two_others_takes_no_call(catalogue: NodeStore) -> None:
    cut = NamedConnection(source="conditionAgentflow_0", output="1", target="customFunctionAgentflow_2")
    nodes = [step("customFunctionAgentflow_0"), *(step(id_, existing=True) for id_ in (cut.source, cut.target))]
    given = changed(catalogue, CHOICE, nodes=nodes, disconnections=[cut], values=[*CODE_OF, reads(cut.target, 0)])
    assert after(given) == {
        CHOICE[1],
        ("conditionAgentflow_0", "1", "customFunctionAgentflow_0"),
        ("customFunctionAgentflow_0", "", "customFunctionAgentflow_2"),
    }


@pytest.mark.parametrize(("drawn", "by_code"), [(CHOICE, True), ([*CHOICE, *JOINS], False)])
def test_a_step_behind_a_new_branch_takes_no_call_unless_others_come_together(
    drawn: list[tuple[str, str, str]], by_code: bool, catalogue: NodeStore
) -> None:
    rows = PlannedValue(node_id="conditionAgentflow_0", param="conditions", value=[ROW, {**ROW, "value2": "bill"}])
    nodes = [step("customFunctionAgentflow_0"), step("conditionAgentflow_0", existing=True)]
    # The branch of all else is the last one, and moves.
    given = changed(catalogue, drawn, nodes=nodes, values=[rows, *CODE_OF])
    assert (after(given) is not None) == by_code


def test_a_new_step_before_a_branch_that_moves_does_not_lead_on_to_it(catalogue: NodeStore) -> None:
    cut, moved = (
        NamedConnection(source="conditionAgentflow_0", output=branch, target="llmAgentflow_1") for branch in "12"
    )
    message: dict[str, JsonValue] = {"role": "system", "content": "Answer."}
    values = [
        *(
            PlannedValue(node_id="conditionAgentflow_0", param=f"conditions[1].{name}", value=value)
            for name, value in ROW.items()
        ),
        PlannedValue(node_id="llmAgentflow_2", param="llmModel", value="chatOpenAI"),
        PlannedValue(node_id="llmAgentflow_2", param="llmMessages", value=[message]),
    ]
    given = changed(
        catalogue,
        [
            ("startAgentflow_0", "", "conditionAgentflow_0"),
            ("conditionAgentflow_0", "0", "llmAgentflow_0"),
            (cut.source, cut.output, cut.target),
        ],
        nodes=[step("llmAgentflow_2"), *(step(id_, existing=True) for id_ in (cut.source, cut.target))],
        disconnections=[cut],
        connections=[moved],
        values=values,
    )
    assert after(given) == {
        ("conditionAgentflow_0", "0", "llmAgentflow_0"),
        ("conditionAgentflow_0", "1", "llmAgentflow_2"),
        ("conditionAgentflow_0", "2", "llmAgentflow_1"),
    }


EACH, INNER, ADDED = "iterationAgentflow_0", "customFunctionAgentflow_1", "customFunctionAgentflow_0"
LIST = [("startAgentflow_0", "", EACH), (EACH, "", "conditionAgentflow_0"), (EACH, "each", INNER)]


def test_a_step_behind_one_inside_an_iteration_is_inside_it(catalogue: NodeStore) -> None:
    behind = NamedConnection(source=INNER, target=ADDED)
    nodes = [step(ADDED), step(INNER, existing=True)]
    values = [*CODE_OF, reads(ADDED, 1)]
    given = completed(changed(catalogue, LIST, nodes=nodes, connections=[behind], values=values))
    assert [(one.source, one.output, one.target) for one in given.plan.connections] == [
        (INNER, "", ADDED),
        (EACH, "each", ADDED),
    ]
    ops = ops_by_code(given)
    assert ops is not None
    graph = compile_ops(given.flow.graph, with_planned_values(ops, given.plan, given.flow.graph), catalogue.schemas)
    assert (new := graph.graph.node(ADDED))
    assert new.parent == EACH


@pytest.mark.parametrize("across", [(EACH, ADDED), (ADDED, "conditionAgentflow_0")])
def test_a_step_with_neighbours_on_both_sides_of_an_iteration_is_not_put_into_it(
    across: tuple[str, str], catalogue: NodeStore
) -> None:
    drawn = [NamedConnection(source=one, target=two) for one, two in ((INNER, ADDED), across)]
    nodes = [step(ADDED), step(INNER, existing=True)]
    given = completed(changed(catalogue, LIST, nodes=nodes, connections=drawn, values=CODE_OF))
    assert "each" not in {one.output for one in given.plan.connections}


def test_lines_that_move_take_no_call(catalogue: NodeStore) -> None:
    old = NamedConnection(source="customFunctionAgentflow_1", target="customFunctionAgentflow_3")
    new = NamedConnection(source="customFunctionAgentflow_2", target="customFunctionAgentflow_3")
    nodes = [step(f"customFunctionAgentflow_{at}", existing=True) for at in (1, 2, 3)]
    more = {"connections": [new], "disconnections": [old], "values": [reads(new.target, 2)]}
    given = changed(catalogue, [*CHOICE, JOINS[0]], nodes=nodes, **more)
    assert after(given) == {*CHOICE[1:], JOINS[1]}
    lost = changed(catalogue, [*CHOICE, JOINS[0]], nodes=nodes[::2], disconnections=[old])
    assert after(lost) is None  # nothing leads to the last step any more


def test_a_last_step_goes_without_a_call(catalogue: NodeStore) -> None:
    drawn = [*CHOICE, JOINS[0]]
    assert after(changed(catalogue, drawn, removals=["customFunctionAgentflow_3"])) == {*CHOICE[1:]}
    closed = [CHOICE[2], ("conditionAgentflow_0", "0", "customFunctionAgentflow_3")]
    assert after(changed(catalogue, drawn, removals=["customFunctionAgentflow_1"])) == {*closed}


TWO = ("chatOpenAI", "chatOpenAI", "bufferMemory", "conversationChain")
FINDING = Finding(code="X", severity="error", detail="x")


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (TWO, {}),
        (("chatOpenAI", "conversationChain"), {}),
        ((*CHAT, "calculator"), {}),
        (("chatOpenAI", "llmChain", "promptTemplate"), {}),
        (("groqChat", "bufferMemory", "conversationChain"), {}),
        (CHAT, {"findings": (FINDING,)}),
        (CHAT, {"plan": {"approaches": [Approach(label="Small", description="x")]}}),
        (CHAT, {"verdict": Verdict(done=False, category="STRUCTURE", reason="x", fix="y")}),
        (CHAT, {"plan": {"operation": "copy"}}),
        (("startAgentflow", "llmAgentflow"), {"plan": {"flow_kind": "AGENTFLOW"}}),
    ],
    ids=[
        "two models",
        "no memory",
        "loose tool",
        "prompt",
        "no model name",
        "finding",
        "approach",
        "repair",
        "copy",
        "steps",
    ],
)
def test_where_a_choice_is_left_the_model_writes_the_ops(
    names: tuple[str, ...], more: dict[str, Any], catalogue: NodeStore
) -> None:
    assert ops_by_code(request(catalogue, *names, **more)) is None
