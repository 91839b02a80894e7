"""Flows of strangers taken apart, built again and upgraded: what people named, chose and ordered stays."""

import json
from collections.abc import Callable

import pytest

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    FlowNode,
    GraphIR,
    Schemas,
    SetParam,
    UpgradeNode,
    compile_ops,
    decompile,
    validate_flow,
)
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.patch.model.values import is_empty
from tests.fixtures.editor_flows import add, connect
from tests.unit.patch.test_cases import EXPECTED, case

#: Cases whose flow has a connection that no node sees: to a node that is gone, or to a text that does not name it.
UNSEEN = {"M1-multiagent-not-checked", "R4-ops-that-do-not-compile"}


def flow(name: str) -> GraphIR:
    return GraphIR.from_flow_data(json.dumps(case(name)["flow_data"]))


def upgraded(graph: GraphIR, schemas: Schemas) -> GraphIR:
    return compile_ops(graph, [UpgradeNode(node_id=node.id) for node in graph.nodes], schemas).graph


def rebuilt(graph: GraphIR, schemas: Schemas) -> GraphIR:
    return compile_ops(GraphIR.empty(), decompile(graph, schemas), schemas).graph


def connections(graph: GraphIR) -> set[tuple[str, str, str, str]]:
    return {(edge.source, edge.output_name, edge.target, edge.input_name) for edge in graph.edges}


def fields(node: FlowNode) -> dict[str, object]:
    """Values by name; anchors as the nodes that they name."""
    return {
        name: referenced(value) if name in node.definitions.anchor_names else value
        for name, value in node.inputs.items()
        if not is_empty(value)
    }


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("change", [rebuilt, upgraded])
def test_a_case_keeps_its_connections_fields_and_branches(
    name: str, change: Callable[[GraphIR, Schemas], GraphIR], schemas: Schemas
) -> None:
    before = flow(name)
    after = change(before, schemas)

    lost = connections(before) - connections(after)
    assert bool(lost) <= (name in UNSEEN)
    gone = {target for _, _, target, _ in lost}
    for node in before.nodes:
        new = after.node(node.id)
        assert new is not None
        assert node.id in gone or fields(new).items() >= fields(node).items()
        assert {output.label for output in new.outputs} >= {
            output.label for output in node.outputs if output.independent and not node.is_agentflow
        }


@pytest.mark.parametrize("name", EXPECTED)
def test_no_text_about_a_case_lacks_a_name(name: str, schemas: Schemas) -> None:
    tried = case(name)
    for one in validate_flow(json.dumps(tried["flow_data"]), schemas=schemas, credentials=None, kind=tried["type"]):
        assert "``" not in f"{one.detail} {one.hint}"
        assert "“”" not in one.message
        assert one.field == "" or one.params["field"]


def test_a_condition_gets_the_branches_that_its_rows_or_its_code_name(schemas: Schemas) -> None:
    rows = '[{"variable":"$flow.state.x","operation":"Is","value":"1","output":"Needs Help"}]'
    code = 'if (1) { return "Good" } return "Bad One"'
    tab = "selectedConditionFunctionTab_seqCondition_1"
    ops = [
        add("seqCondition", conditionUI=rows),
        add("seqCondition", 1, **{tab: "conditionFunction", "conditionFunction": code}),
    ]
    graph = compile_ops(GraphIR.empty(), ops, schemas).graph
    branches = {node.id: [(output.name, output.label) for output in node.outputs] for node in graph.nodes}
    assert branches == {
        "seqCondition_0": [("end", "End"), ("needsHelp", "Needs Help")],
        "seqCondition_1": [("badOne", "Bad One"), ("good", "Good")],
    }


def test_the_order_of_steps_behind_a_step_is_kept(schemas: Schemas) -> None:
    """Flowise runs them in the order of the edges, and answers with the last."""
    steps = ["directReplyAgentflow_1", "directReplyAgentflow_0", "directReplyAgentflow_2"]
    ops = [
        add("startAgentflow"),
        *(add("directReplyAgentflow", number, directReplyMessage=str(number)) for number in range(3)),
        *(connect("startAgentflow_0", step) for step in steps),
    ]
    graph = compile_ops(GraphIR.empty(), ops, schemas).graph
    assert [edge.target for edge in graph.edges] == steps
    assert [edge.target for edge in rebuilt(graph, schemas).edges] == steps


def test_an_old_node_takes_what_the_server_takes_today(schemas: Schemas) -> None:
    graph = flow("E1-model-of-an-old-node")
    changed = compile_ops(
        graph, [SetParam(node_id="chatOpenAI_0", param_name="modelName", value="gpt-4.1-mini")], schemas
    ).graph
    node = changed.node("chatOpenAI_0")
    assert node is not None
    assert node.inputs["modelName"] == "gpt-4.1-mini"
    with pytest.raises(PatchError, match="NOT_A_NUMBER"):
        compile_ops(graph, [SetParam(node_id="chatOpenAI_0", param_name="temperature", value="warm")], schemas)


def test_an_upgrade_that_would_cut_a_connection_is_refused_and_names_it(schemas: Schemas) -> None:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="model"),
        AddNode(node_name="conversationChain", node_id="chain"),
        Connect(source_node_id="model", target_node_id="chain", target_anchor="model"),
    ]
    document = json.loads(compile_ops(GraphIR.empty(), ops, schemas).flow_data)
    chain = document["nodes"][1]["data"]
    chain["inputAnchors"].append({"name": "former", "type": "Former", "id": "chain-input-former-Former"})
    chain["inputs"] |= {"model": "", "former": "{{model.data.instance}}"}
    document["edges"][0]["targetHandle"] = "chain-input-former-Former"
    document["nodes"][0]["data"]["outputAnchors"][0] |= {"type": "Former", "id": "model-output-chatOpenAI-Former"}
    document["edges"][0]["sourceHandle"] = "model-output-chatOpenAI-Former"

    with pytest.raises(PatchError, match="CONNECTION_LOST") as caught:
        compile_ops(GraphIR(document), [UpgradeNode(node_id="chain")], schemas)
    assert "model to `former` of chain" in str(caught.value)
