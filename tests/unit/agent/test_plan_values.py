"""What the plan names is set by code, whatever the op writer leaves out or writes instead."""

import json
from typing import Any

import pytest

from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.approval.ops_in_plan import outside_plan
from flowise_dev_agent.approval.promises import not_met
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetParam,
    UnsetParam,
    compile_ops,
)
from flowise_dev_agent.patch.model.equal_values import same_value
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.planning.added_text import with_added_text
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.values import with_files_to_come, with_planned_values
from flowise_dev_agent.schemas.plan import Plan, PlannedNode
from flowise_dev_agent.testing.plan_change import holds
from tests.unit.agent.rig import plan
from tests.unit.agent.test_plan_binding import CHAT, contract, planned, value
from tests.unit.agent.test_update import add_flow, drafts, inputs_of, made_for

AGENT = planned("toolAgent_0")
HOT = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.9)


def built(
    ops: list[PatchOp], wanted: Plan, catalogue: NodeStore, base: list[PatchOp] = CHAT
) -> tuple[GraphIR, list[PatchOp]]:
    """The compiled flow and the completed ops; what the plan says always holds."""
    before = compile_ops(GraphIR.empty(), base, catalogue.schemas).graph if base else GraphIR.empty()
    completed = with_planned_values(ops, wanted, before)
    after = compile_ops(before, completed, catalogue.schemas).graph if completed else before
    assert not_met(wanted, before, after) == []
    return after, completed


def stored(graph: GraphIR, node_id: str, path: str) -> Any:
    node, steps = graph.node(node_id), parse_path(path)
    assert node
    assert steps
    return value_at(node.inputs, steps)


@pytest.mark.parametrize(
    "ops",
    [
        [],
        [HOT],
        [UnsetParam(node_id="chatOpenAI_0", param_name="temperature")],
        [SetParam(node_id="chatOpenAI_0", param_name="maxTokens", value=100), HOT],
    ],
    ids=["left out", "another value", "taken away", "beside others"],
)
def test_a_planned_value_of_a_node_in_the_flow_holds(ops: list[PatchOp], catalogue: NodeStore) -> None:
    wanted = contract(planned("chatOpenAI_0"), values=[value("chatOpenAI_0", "temperature", 0.2)])
    after, _ = built(ops, wanted, catalogue)
    assert stored(after, "chatOpenAI_0", "temperature") == 0.2


def test_p110_true_is_not_the_text_true(catalogue: NodeStore) -> None:
    assert not same_value([{"value2": "true"}], [{"value2": True}])
    row: dict[str, Any] = {"type": "string", "value1": "{{ $form.rush }}", "operation": "equal", "value2": "true"}
    base = compile_ops(
        GraphIR.empty(),
        [AddNode(node_name="conditionAgentflow", node_id="conditionAgentflow_0", params={"conditions": [row]})],
        catalogue.schemas,
    ).graph
    wanted = contract(
        planned("conditionAgentflow_0"),
        values=[value("conditionAgentflow_0", "conditions", [{**row, "type": "boolean", "value2": True}])],
    )
    completed = with_planned_values([], wanted, base)
    assert len(completed) == 1
    after = compile_ops(base, completed, catalogue.schemas).graph
    assert stored(after, "conditionAgentflow_0", "conditions[0].value2") is True


@pytest.mark.parametrize("ops", [[], [HOT]], ids=["left out", "another value"])
def test_a_planned_null_takes_a_value_away(ops: list[PatchOp], catalogue: NodeStore) -> None:
    wanted = contract(planned("chatOpenAI_0"), values=[value("chatOpenAI_0", "temperature", None)])
    after, completed = built(ops, wanted, catalogue)
    assert completed == [UnsetParam(node_id="chatOpenAI_0", param_name="temperature")]
    assert stored(after, "chatOpenAI_0", "temperature") is None
    before = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    assert [one.where for one in not_met(wanted, before, before)] == ["chatOpenAI_0"]
    assert holds(after, wanted.values[0])
    assert not holds(before, wanted.values[0])
    (shown,) = plan_details(wanted, before, schemas=catalogue.schemas).values
    assert (shown.old, shown.new) == (0.9, None)
    allowed = capability_of(wanted, catalogue.schemas, before)
    assert outside_plan(completed, wanted, allowed, catalogue.schemas, before) == []
    new = contract(planned("chatOpenAI_1", existing=False), values=[value("chatOpenAI_1", "temperature", None)])
    after_new, _ = built([AddNode(node_name="chatOpenAI", node_id="chatOpenAI_1")], new, catalogue)
    assert stored(after_new, "chatOpenAI_1", "temperature") is None
    assert with_planned_values([], wanted, after) == []


def test_a_planned_value_that_holds_already_needs_no_op(catalogue: NodeStore) -> None:
    wanted = contract(AGENT, values=[value("toolAgent_0", "systemMessage", "Help with orders.")])
    assert built([], wanted, catalogue)[1] == []


def test_planned_values_of_a_new_node_go_into_its_op(catalogue: NodeStore) -> None:
    new = [planned("llmAgentflow_0", existing=False), planned("startAgentflow_0", existing=False)]
    prompt = [{"role": "system", "content": "Be kind."}]
    wanted = contract(
        *new,
        values=[
            value("llmAgentflow_0", "llmModelConfig.modelName", "gpt-4o"),
            value("llmAgentflow_0", "llmModel", "chatOpenAI"),
            value("llmAgentflow_0", "llmMessages", prompt),
        ],
    )
    ops: list[PatchOp] = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", params={"llmMessages": []}),
        Connect(source_node_id="startAgentflow_0", target_node_id="llmAgentflow_0"),
    ]
    after, completed = built(ops, wanted, catalogue, base=[])
    assert [op.op_type for op in completed] == ["AddNode", "AddNode", "SetParam", "Connect"]
    assert stored(after, "llmAgentflow_0", "llmMessages") == prompt
    assert stored(after, "llmAgentflow_0", "llmModelConfig.modelName") == "gpt-4o"


def test_planned_branches_are_there_before_they_are_connected(catalogue: NodeStore) -> None:
    names = ("startAgentflow", "conditionAgentAgentflow", "directReplyAgentflow")
    base: list[PatchOp] = [AddNode(node_name=name, node_id=f"{name}_0") for name in names]
    scenarios = [{"scenario": "billing"}, {"scenario": "technical"}, {"scenario": "other"}]
    field = "conditionAgentScenarios"
    wanted = contract(planned(f"{names[1]}_0"), values=[value(f"{names[1]}_0", field, scenarios)])
    third: PatchOp = Connect(source_node_id=f"{names[1]}_0", source_anchor="2", target_node_id=f"{names[2]}_0")
    after, _ = built([third], wanted, catalogue, base=base)
    assert stored(after, f"{names[1]}_0", field) == scenarios


@pytest.mark.parametrize(
    "swap",
    [
        ReplaceNode(node_id="chatOpenAI_0", node_name="chatAnthropic"),
        ReplaceNode(node_id="chatOpenAI_0", node_name="chatAnthropic", new_node_id="chatAnthropic_0"),
    ],
    ids=["same id", "planned id"],
)
def test_a_replacement_gets_the_values_of_the_planned_node(swap: PatchOp, catalogue: NodeStore) -> None:
    wanted = contract(
        planned("chatAnthropic_0", existing=False),
        removals=["chatOpenAI_0"],
        values=[value("chatAnthropic_0", "temperature", 0.3)],
    )
    after, completed = built([swap], wanted, catalogue)
    assert isinstance(completed[1], SetParam)
    assert stored(after, completed[1].node_id, "temperature") == 0.3


def test_a_node_that_goes_gets_no_value(catalogue: NodeStore) -> None:
    gone = RemoveNode(node_id="calculator_0")
    wanted = contract(removals=["calculator_0"], values=[value("calculator_0", "x", 1)])
    assert built([gone], wanted, catalogue)[1] == [gone]


def test_p84_a_requirement_about_behaviour_is_added_to_the_prompt_whatever_the_ops_say(catalogue: NodeStore) -> None:
    requirements = [
        value("toolAgent_0", "systemMessage", text, mode="append") for text in ("Answer in French.", "Never guess.")
    ]
    wanted = contract(AGENT, values=requirements)
    lost: PatchOp = SetParam(node_id="toolAgent_0", param_name="systemMessage", value="You are a tell the agent.")
    text = "Help with orders.\nAnswer in French.\nNever guess."
    (after, _), (other, _) = built([], wanted, catalogue), built([lost], wanted, catalogue)
    assert [stored(one, "toolAgent_0", "systemMessage") for one in (after, other)] == [text, text]
    again = with_planned_values([], wanted, after)
    assert again == []


def test_p84_an_added_text_stands_at_the_end_with_its_line_breaks() -> None:
    assert with_added_text("Dear {{ $form.name }}", ["\n\nKind regards"]) == "Dear {{ $form.name }}\n\nKind regards"
    assert with_added_text("Use this:\n{context}", ["Be brief."]) == "Use this:\n{context}\nBe brief."


async def test_p94_the_draft_holds_what_the_plan_says_although_the_ops_leave_it_out() -> None:
    bench = made_for("update")
    wanted = [value("chatOpenAI_0", "temperature", 0.3), value("chatOpenAI_0", "modelName", "gpt-4.1")]
    bench.reasoner.plans = [plan(operation="update", nodes=[planned("chatOpenAI_0")], values=wanted)]
    bench.reasoner.patches = [[SetParam(node_id="chatOpenAI_0", param_name="modelName", value="gpt-4o")]]
    row = await add_flow(bench)
    await bench.start("make it colder", target=row.id)
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    assert len(bench.reasoner.seen["patch"]) == 1
    inputs = inputs_of(drafts(bench)[0], "chatOpenAI_0")
    assert (inputs["temperature"], inputs["modelName"]) == (0.3, "gpt-4.1")


def test_a_file_that_is_still_to_come_is_stood_in_for_by_a_marked_one(catalogue: NodeStore) -> None:
    loader = planned("docxFile_0", existing=False)
    wanted = with_files_to_come(
        contract(loader, placeholders=["The Word file with the house rules"]), catalogue.schemas
    )
    assert [(one.param, one.value) for one in wanted.values] == [
        ("docxFile", "[PLACEHOLDER: The Word file with the house rules]")
    ]
    graph, _ = built([AddNode(node_name="docxFile", node_id="docxFile_0")], wanted, catalogue, base=[])
    file = stored(graph, "docxFile_0", "docxFile")
    assert file.startswith("data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,")
    assert file.endswith(",filename:placeholder.docx")
    given = contract(loader, values=[value("docxFile_0", "docxFile", "data:text/plain;base64,aGk=,filename:a.docx")])
    assert with_files_to_come(given, catalogue.schemas) == given


def test_a_file_that_nobody_spoke_of_is_named_as_still_to_come(catalogue: NodeStore) -> None:
    wanted = with_files_to_come(contract(planned("pdfFile_0", existing=False)), catalogue.schemas)
    assert wanted.placeholders == ["Pdf File"]


@pytest.mark.parametrize(("planned_title", "title"), [("Sum up", "Sum up"), ("", "Draft")])
def test_a_new_node_gets_the_title_of_the_plan(planned_title: str, title: str) -> None:
    node = PlannedNode(node_id="llmAgentflow_0", node_name="llmAgentflow", purpose="x", label=planned_title)
    wanted = plan(nodes=[node], flow_kind="AGENTFLOW")
    (op,) = with_planned_values(
        [AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", label="Draft")], wanted, GraphIR.empty()
    )
    assert isinstance(op, AddNode)
    assert op.label == title


@pytest.mark.parametrize(("kind", "described"), [("AGENTFLOW", "Sorts the mail by topic."), ("CHATFLOW", None)])
def test_a_new_step_is_described_by_its_purpose(kind: Any, described: str | None) -> None:
    node = PlannedNode(node_id="x_0", node_name="llmAgentflow", purpose="Sorts the mail\nby topic.")
    wanted = plan(nodes=[node], flow_kind=kind)
    (op,) = with_planned_values([AddNode(node_name="llmAgentflow", node_id="x_0")], wanted, GraphIR.empty())
    assert isinstance(op, AddNode)
    assert op.description == described


def condition(**row: Any) -> list[PatchOp]:
    rows: Any = [{"type": "boolean", "value1": True, "operation": "equal", **row}]
    return [AddNode(node_name="conditionAgentflow", node_id="if_0", params={"conditions": rows})]


def test_true_takes_the_place_of_a_text_that_says_true(catalogue: NodeStore) -> None:
    rows = [{"type": "boolean", "value1": "yes", "operation": "equal", "value2": "true"}]
    base = compile_ops(GraphIR.empty(), condition(), catalogue.schemas).graph
    older = json.loads(base.to_flow_data())
    older["nodes"][0]["data"]["inputs"]["conditions"] = rows
    base = GraphIR(older)
    right = [{**rows[0], "value2": True}]
    (op,) = with_planned_values([], contract(values=[value("if_0", "conditions", right)]), base)
    assert isinstance(op, SetParam)
    assert stored(compile_ops(base, [op], catalogue.schemas).graph, "if_0", "conditions[0].value2") is True


@pytest.mark.parametrize("path", ["conditions", "conditions[0].value2"])
def test_a_switch_in_a_row_is_stored_as_a_boolean(path: str, catalogue: NodeStore) -> None:
    row = {"type": "boolean", "value1": "{{ question }}", "operation": "equal", "value2": "true"}
    given: Any = [row] if path == "conditions" else "true"
    wanted = contract(planned("if_0"), values=[value("if_0", path, given)])
    after, _ = built([], wanted, catalogue, base=condition(value2=False))
    assert stored(after, "if_0", "conditions[0].value2") is True


def test_a_repeated_model_keeps_its_credential(catalogue: NodeStore) -> None:
    key = "11111111-1111-4111-8111-111111111111"
    config = {"modelName": "gpt-4o-mini", "temperature": 0.2}
    base: list[PatchOp] = [
        AddNode(
            node_name="llmAgentflow",
            node_id="llm_0",
            params={"llmModel": "chatOpenAI", "llmModelConfig": {**config, "FLOWISE_CREDENTIAL_ID": key}},
        )
    ]

    def planned_config(**more: Any) -> Plan:
        return contract(planned("llm_0"), values=[value("llm_0", "llmModelConfig", {**config, **more})])

    assert built([], planned_config(), catalogue, base=base)[1] == []
    after, _ = built([], planned_config(temperature=0.9), catalogue, base=base)
    assert stored(after, "llm_0", "llmModelConfig.FLOWISE_CREDENTIAL_ID") == key
    assert stored(after, "llm_0", "llmModelConfig.temperature") == 0.9
    other = [
        value("llm_0", "llmModel", "chatAnthropic"),
        value("llm_0", "llmModelConfig", {"modelName": "claude-sonnet-4-5"}),
    ]
    after, _ = built([], contract(planned("llm_0"), values=other), catalogue, base=base)
    assert stored(after, "llm_0", "llmModelConfig.FLOWISE_CREDENTIAL_ID") in (None, "")


def test_two_nodes_replaced_by_one_type_keep_values_of_their_own(catalogue: NodeStore) -> None:
    base: list[PatchOp] = [AddNode(node_name="pinecone", node_id=f"pinecone_{n}") for n in (0, 1)]
    wanted = contract(
        *(planned(f"chroma_{n}", existing=False).model_copy(update={"node_name": "chroma"}) for n in (0, 1)),
        removals=["pinecone_0", "pinecone_1"],
        values=[value(f"chroma_{n}", "collectionName", f"part {n}") for n in (0, 1)],
    )
    swaps: list[PatchOp] = [ReplaceNode(node_id=f"pinecone_{n}", node_name="chroma") for n in (1, 0)]
    after, _ = built(swaps, wanted, catalogue, base=base)
    assert [stored(after, f"pinecone_{n}", "collectionName") for n in (0, 1)] == ["part 0", "part 1"]


def test_an_empty_value_of_the_state_is_set_by_code(catalogue: NodeStore) -> None:
    """A row fails without its value: one that the plan leaves empty is written, and a state begins empty."""
    flow: list[PatchOp] = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0"),
        Connect(source_node_id="startAgentflow_0", target_node_id="llmAgentflow_0"),
    ]
    rows = {"startAgentflow_0": "startState", "llmAgentflow_0": "llmUpdateState"}
    wanted = contract(
        *(planned(id_) for id_ in rows),
        values=[
            *(value(id_, f"{name}[0].key", "remark") for id_, name in rows.items()),
            value("llmAgentflow_0", "llmUpdateState[0].value", ""),
        ],
    )
    after, _ = built([], wanted, catalogue, flow)
    assert [stored(after, id_, name) for id_, name in rows.items()] == [[{"key": "remark", "value": ""}]] * 2
