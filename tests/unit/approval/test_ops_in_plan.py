"""An op that the approved plan does not cover is refused, whatever its type and wherever it points."""

from typing import Any

import pytest

from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.approval.manual_edits import with_ops
from flowise_dev_agent.approval.ops import PatchScope, completed
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Disconnect,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetLabel,
    SetParam,
    UnsetParam,
    compile_ops,
)
from flowise_dev_agent.patch.model.ops import OP_TYPES, SetOutput, SetParent, SetPosition, UpgradeNode
from tests.unit.agent.test_plan_binding import CHAT, contract, planned, value

MODEL, OTHER, NEW = "chatOpenAI_0", "toolAgent_0", "calculator_7"
#: Changes the temperature of a model, adds a calculator and takes the memory out.
PLAN = contract(
    planned(MODEL),
    planned(NEW, existing=False),
    values=[value(MODEL, "temperature", 0.2)],
    removals=["bufferMemory_0"],
    credential_requirements=["openAIApi"],
)


def on(node_id: str) -> list[PatchOp]:
    """Every op on a node; a line leads to another one that the plan does not have."""
    return [
        AddNode(node_name=node_id.rpartition("_")[0], node_id=node_id),
        SetParam(node_id=node_id, param_name="temperature", value=0.2),
        UnsetParam(node_id=node_id, param_name="temperature"),
        Connect(source_node_id="calculator_0", target_node_id=node_id, target_anchor="tools"),
        Disconnect(source_node_id="calculator_0", target_node_id=node_id, target_anchor="tools"),
        BindCredential(node_id=node_id, credential_type="openAIApi"),
        RemoveNode(node_id=node_id),
        ReplaceNode(node_id=node_id, node_name="requestsGet", new_node_id="requestsGet_0"),
        UpgradeNode(node_id=node_id),
        SetLabel(node_id=node_id, label="Another"),
        SetOutput(node_id=node_id, output="EndingNode"),
        SetPosition(node_id=node_id, x=1, y=1),
        SetParent(node_id=node_id, parent_id="iterationAgentflow_0"),
    ]


def codes(ops: list[PatchOp], catalogue: NodeStore, *, by_model: bool = True) -> list[set[str]]:
    """The codes of the findings on each op alone."""
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    plan = PLAN.model_copy(update={"capability": capability_of(PLAN, catalogue.schemas, base)})
    found = [completed([op], plan, base, catalogue.schemas, by_model=by_model) for op in ops]
    assert all(
        (one.severity, one.op_type) == ("error", whole[one.op_index or 0].op_type)
        for whole, some in found
        for one in some
    )
    return [{one.code for one in some} for _, some in found]


def test_p85_every_op_on_a_node_that_the_plan_does_not_have_is_refused(catalogue: NodeStore) -> None:
    assert {op.op_type for op in on(OTHER)} == {*OP_TYPES}
    for node_id in (OTHER, "calculator_0", "requestsGet_9"):
        for op, found in zip(on(node_id), codes(on(node_id), catalogue), strict=True):
            removal = isinstance(op, RemoveNode)
            gone = removal and node_id == "requestsGet_9"  # nothing is there to be removed
            assert found & {"REMOVAL_NOT_PLANNED" if removal else "OUTSIDE_PLAN"} or gone, op


def test_p85_ops_of_the_plan_are_covered_and_those_of_a_person_bind_nobody(catalogue: NodeStore) -> None:
    mine: list[PatchOp] = [
        SetParam(node_id=MODEL, param_name="temperature", value=0.2),
        AddNode(node_name="calculator", node_id=NEW, label="Any title"),
        Connect(source_node_id=NEW, target_node_id=OTHER, target_anchor="tools"),
        SetLabel(node_id=NEW, label="Another title"),
        RemoveNode(node_id="bufferMemory_0"),
        BindCredential(node_id=MODEL, credential_type="openAIApi"),
        BindCredential(node_id=MODEL),
    ]
    assert codes(mine, catalogue) == [set()] * len(mine)
    outside: list[PatchOp] = [SetParam(node_id=OTHER, param_name="systemMessage", value="x"), RemoveNode(node_id=OTHER)]
    assert codes(outside, catalogue) == [{"OUTSIDE_PLAN"}, {"REMOVAL_NOT_PLANNED"}]
    assert codes(outside, catalogue, by_model=False) == [set(), {"REMOVAL_NOT_PLANNED"}]


REQUEST = {"agentSelectedTool": "requestsGet", "agentSelectedToolConfig": {"requestsGetUrl": "https://evil.example"}}


@pytest.mark.parametrize(
    "op",
    [
        SetParam(node_id=MODEL, param_name="temperatureX", value="0.5 or so"),
        UnsetParam(node_id=MODEL, param_name="modelName"),
        AddNode(node_name="calculator", node_id=NEW, params={"basepath": "https://evil.example"}),
        AddNode(node_name="calculator", node_id=NEW, params={"basepath": "http://a.example@evil.example/"}),
        AddNode(node_name="calculator", node_id=NEW, params={"basepath": [REQUEST]}),
        SetParam(node_id=MODEL, param_name="FLOWISE_CREDENTIAL_ID", value="7c1a7f0e-3c62-4f6c-9a53-0d5f3c8d1b11"),
        SetParam(node_id=MODEL, param_name="credential", value="7c1a7f0e-3c62-4f6c-9a53-0d5f3c8d1b11"),
        BindCredential(node_id=MODEL, credential_type="awsApi"),
        SetLabel(node_id=MODEL, label="Another title"),
        AddNode(node_name="chatAnthropic", node_id=NEW),
        AddNode(node_name="chatOpenAI", node_id=MODEL),
        ReplaceNode(node_id="bufferMemory_0", node_name="requestsGet", new_node_id=NEW),
        ReplaceNode(node_id="bufferMemory_0", node_name="calculator", new_node_id="calculator_8"),
    ],
)
def test_p85_an_op_on_a_node_of_the_plan_that_does_more_than_it_says_is_refused(
    op: PatchOp, catalogue: NodeStore
) -> None:
    assert codes([op], catalogue) == [{"OUTSIDE_PLAN"}]


def test_limits_of_a_patch_are_ceilings(catalogue: NodeStore) -> None:
    base = GraphIR.empty()

    def found(ops: int, nodes: int) -> list[str]:
        given = [AddNode(node_name="calculator", node_id=NEW)] * nodes
        rest = [SetParam(node_id=NEW, param_name="x", value=1)] * (ops - nodes)
        scope = PatchScope(nodes=[], max_ops=4, max_new_nodes=2)
        return [one.code for one in completed([*given, *rest], contract(), base, catalogue.schemas, scope=scope)[1]]

    assert [found(4, 2), found(5, 2), found(4, 3)] == [[], ["TOO_MANY_OPS"], ["TOO_MANY_NODES"]]


def test_what_a_person_changes_takes_the_place_of_what_was_planned(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(
        planned(MODEL),
        planned(OTHER),
        values=[
            value(MODEL, "temperature", 0.2),
            value(MODEL, "topP", "<phone>"),
            value("chatOpenAI_1", "temperature", 1),
            value(OTHER, "systemMessage", "Help for <shop> and <town>."),
            value("bufferMemory_0", "memoryKey", "chat"),
        ],
        kept=["bufferMemory_0", OTHER, "calculator_0", MODEL, "stays_0"],
        placeholders=["<shop>", "<phone>"],
    )
    ops: list[PatchOp] = [
        UnsetParam(node_id=MODEL, param_name="temperature"),
        SetParam(node_id=OTHER, param_name="systemMessage", value="Help for Kim's."),
        RemoveNode(node_id="bufferMemory_0"),
        AddNode(node_name="calculator", node_id=NEW, label="Sums", description="It adds."),
        ReplaceNode(node_id="calculator_0", node_name="serpAPI"),
        Connect(source_node_id=NEW, target_node_id=OTHER, target_anchor="tools"),
        Disconnect(source_node_id=MODEL, target_node_id=OTHER, target_anchor="model"),
    ]
    changed = with_ops(wanted, ops, base, catalogue.schemas)
    assert {(one.node_id, one.param): one.value for one in changed.values} == {
        (MODEL, "topP"): "<phone>",
        ("chatOpenAI_1", "temperature"): 1,
        (OTHER, "systemMessage"): "Help for Kim's.",
    }
    assert (changed.kept, changed.placeholders) == (["stays_0"], ["<phone>"])
    assert changed.removals == ["bufferMemory_0", "calculator_0"]
    added: list[Any] = [
        (one.node_id, one.node_name, one.purpose, one.label) for one in changed.nodes if not one.existing
    ]
    assert added == [(NEW, "calculator", "It adds.", "Sums"), ("calculator_0", "serpAPI", "", "")]
    ends = [
        [(one.source, one.target, one.input) for one in lines]
        for lines in (changed.connections, changed.disconnections)
    ]
    assert ends == [[(NEW, OTHER, "tools")], [(MODEL, OTHER, "model")]]
    assert changed.capability == capability_of(changed, catalogue.schemas, base)
    assert "serpApi" in changed.credential_requirements
