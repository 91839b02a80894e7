"""Flows of the types that are carried through (MULTIAGENT, ASSISTANT), the keys of tabs, and laws of editing."""
# pyright: reportTypedDictNotRequiredAccess=false

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetParam,
    UpgradeNode,
    compile_ops,
    decompile,
    diff,
    validate_flow,
)
from tests.fixtures.editor_flows import AGENTFLOWS, CHATFLOWS, MODEL, add, connect
from tests.fixtures.golden_flows import GOLDEN, NOWHERE, agentflow

BIND = {**NOWHERE, "tool": NOWHERE["openAIApi"]}


def sequence(bind: Mapping[str, str] = NOWHERE) -> list[PatchOp]:
    """Sequential agents with a state kept by code in a tab, and a fork whose two ways are both taken."""
    return [
        add("chatOpenAI", **MODEL),
        BindCredential(node_id="chatOpenAI_0", credential_id=bind["openAIApi"]),
        add("seqStart"),
        add(
            "seqAgent",
            agentName="Writer",
            updateStateMemory="updateStateMemoryCode",
            selectedUpdateStateMemoryTab_seqAgent_0="updateStateMemoryCode",
            updateStateMemoryCode="return { draft: $flow.output.content }",
        ),
        add("seqConditionAgent", conditionAgentName="Good?", condition=""),
        add("seqLLMNode", llmNodeName="Polish"),
        add("seqEnd"),
        add("seqEnd", 1),
        connect("chatOpenAI_0", "seqStart_0", "model"),
        connect("seqStart_0", "seqAgent_0", "sequentialNode"),
        connect("seqAgent_0", "seqConditionAgent_0", "sequentialNode"),
        connect("seqConditionAgent_0", "seqLLMNode_0", "sequentialNode", "next"),
        connect("seqConditionAgent_0", "seqEnd_0", "sequentialNode", "end"),
        connect("seqLLMNode_0", "seqEnd_1", "sequentialNode"),
    ]


def team(bind: Mapping[str, str] = NOWHERE) -> list[PatchOp]:
    """A supervisor with two workers, one of them with a tool."""
    return [
        add("chatOpenAI", **MODEL),
        BindCredential(node_id="chatOpenAI_0", credential_id=bind["openAIApi"]),
        add("supervisor", supervisorName="Head"),
        add("worker", workerName="Reader", workerPrompt="Read."),
        add("worker", 1, workerName="Counter", workerPrompt="Count."),
        add("calculator"),
        connect("chatOpenAI_0", "supervisor_0", "model"),
        connect("supervisor_0", "worker_0", "supervisor"),
        connect("supervisor_0", "worker_1", "supervisor"),
        connect("calculator_0", "worker_1", "tools"),
    ]


V2 = {*AGENTFLOWS, "agentflow"}
ALL = {**GOLDEN, **CHATFLOWS, **AGENTFLOWS, "agentflow": agentflow, "sequence": sequence, "team": team}


@pytest.mark.parametrize("build", [sequence, team])
def test_flows_of_type_multiagent_round_trip(schemas: Schemas, build: Any) -> None:
    flow = compile_ops(GraphIR.empty(), build(), schemas)
    again = compile_ops(GraphIR.empty(), decompile(flow.flow_data, schemas), schemas)

    assert again.flow_data == flow.flow_data
    found = validate_flow(flow.flow_data, schemas=schemas, credentials=None, kind="MULTIAGENT")
    assert [one.code for one in found] == ["NOT_CHECKED"]


def test_the_keys_of_a_tab_are_set_and_kept(schemas: Schemas) -> None:
    flow = compile_ops(GraphIR.empty(), sequence(), schemas)
    node = flow.graph.node("seqAgent_0")
    assert node is not None
    assert node.inputs["selectedUpdateStateMemoryTab_seqAgent_0"] == "updateStateMemoryCode"
    assert node.inputs["updateStateMemoryCode"].startswith("return { draft")

    prompt = "{{history}}"
    chat = [add("chatPromptTemplate", systemMessagePrompt="Be brief.", humanMessagePrompt="{x}")]
    tab = SetParam(node_id="chatPromptTemplate_0", param_name="messageHistoryCode", value=prompt)
    stored = compile_ops(GraphIR.empty(), [*chat, tab], schemas)
    again = compile_ops(GraphIR.empty(), decompile(stored.flow_data, schemas), schemas)
    assert json.loads(again.flow_data)["nodes"][0]["data"]["inputs"]["messageHistoryCode"] == prompt


@pytest.mark.parametrize("build", [sequence, team])
def test_an_edit_of_a_multiagent_flow_touches_nothing_else(schemas: Schemas, build: Any) -> None:
    document = json.loads(compile_ops(GraphIR.empty(), build(), schemas).flow_data)
    document |= {"viewport": {"x": 5, "y": -1.5, "zoom": 0.4}, "theirs": [1, None]}
    document["nodes"][-1]["data"]["unknown"] = {"kept": True}
    base = GraphIR(document)
    change = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)

    edited = json.loads(compile_ops(base, [change], schemas).flow_data)

    model = next(node for node in edited["nodes"] if node["id"] == "chatOpenAI_0")
    assert model["data"]["inputs"].pop("temperature") == 0.1
    before = json.loads(base.to_flow_data())
    next(node for node in before["nodes"] if node["id"] == "chatOpenAI_0")["data"]["inputs"].pop("temperature")
    assert edited == before


def test_a_flow_of_an_assistant_is_carried_through_as_it_is(schemas: Schemas) -> None:
    """What Flowise itself puts together for an assistant: few keys, none of the editor's."""
    document = {
        "nodes": [
            {
                "id": "openAIAssistant_0",
                "position": {"x": 649.7, "y": 241.1},
                "type": "customNode",
                "data": {"id": "openAIAssistant_0", "name": "openAIAssistant", "inputs": {"selectedAssistant": "a-b"}},
            },
            {"id": "plugin", "data": {"odd": [1.5, 1e21, "ä"]}},
        ],
        "edges": [],
    }
    graph = GraphIR.from_flow_data(json.dumps(document))

    assert json.loads(graph.to_flow_data()) == document
    found = validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None, kind="ASSISTANT")
    assert [one.code for one in found] == ["NOT_CHECKED"]
    grown = compile_ops(graph, [AddNode(node_name="calculator", node_id="calculator_0")], schemas)
    assert json.loads(grown.flow_data)["nodes"][:2] == document["nodes"]
    back = compile_ops(grown.graph, [RemoveNode(node_id="calculator_0")], schemas)
    assert back.flow_data == graph.to_flow_data()


@pytest.mark.parametrize("name", ALL)
def test_upgrading_nodes_of_today_changes_no_byte(schemas: Schemas, name: str) -> None:
    flow = compile_ops(GraphIR.empty(), ALL[name](BIND), schemas)
    upgrades: list[PatchOp] = [UpgradeNode(node_id=node.id) for node in flow.graph.nodes if not node.is_note]

    assert compile_ops(flow.graph, upgrades, schemas).flow_data == flow.flow_data


def test_a_tab_goes_along_to_a_new_id(schemas: Schemas) -> None:
    flow = compile_ops(GraphIR.empty(), sequence(), schemas).graph
    moved = compile_ops(flow, [ReplaceNode(node_id="seqAgent_0", node_name="seqAgent", new_node_id="writer")], schemas)

    node = moved.graph.node("writer")
    assert node is not None
    assert node.inputs["selectedUpdateStateMemoryTab_writer"] == "updateStateMemoryCode"
    assert "selectedUpdateStateMemoryTab_seqAgent_0" not in node.inputs
    old = flow.node("seqAgent_0")
    assert old is not None
    assert {name.replace("_seqAgent_0", "_writer"): value for name, value in old.inputs.items()} == node.inputs


@pytest.mark.parametrize("name", ALL)
def test_an_upgraded_old_flow_has_the_same_fields_and_connections(schemas: Schemas, name: str) -> None:
    document = json.loads(compile_ops(GraphIR.empty(), ALL[name](BIND), schemas).flow_data)
    for node in document["nodes"]:
        node["data"]["version"] = 0.5
        anchor = next(iter(node["data"].get("outputAnchors") or ()), {})
        if node["type"] == "customNode" and "options" not in anchor and anchor:
            old, anchor["id"] = anchor["id"], f"{anchor['id']}|Former"
            for edge in document["edges"]:
                edge["sourceHandle"] = anchor["id"] if edge["sourceHandle"] == old else edge["sourceHandle"]
    old_flow = GraphIR(document)
    upgrades: list[PatchOp] = [UpgradeNode(node_id=node.id) for node in old_flow.nodes if not node.is_note]

    upgraded = compile_ops(old_flow, upgrades, schemas).graph

    told = diff(old_flow, upgraded)
    assert (told.added, told.removed, told.connected, told.disconnected) == ((), (), (), ())
    assert all("|Former" not in edge.source_handle for edge in upgraded.edges)
    assert all(node.data["version"] == schemas[node.name].version for node in upgraded.nodes if not node.is_note)


@pytest.mark.parametrize("name", ALL)
def test_order_of_ops_changes_no_byte_of_any_kind_of_flow(schemas: Schemas, name: str) -> None:
    ops = ALL[name](BIND)
    flow = compile_ops(GraphIR.empty(), ops, schemas)
    chance = random.Random(7)  # noqa: S311 - a shuffle
    # The order of tools on a list anchor, and of the steps behind a step, is what was asked for.
    lists = [
        op
        for op in ops
        if isinstance(op, Connect) and (op.target_anchor == "tools" or (name in V2 and op.target_anchor == ""))
    ]

    for _ in range(5):
        others = [op for op in ops if op not in lists]
        chance.shuffle(others)
        assert compile_ops(GraphIR.empty(), [*others, *lists], schemas).flow_data == flow.flow_data


@pytest.mark.parametrize("kind", ["MULTIAGENT", "ASSISTANT", "AGENT", ""])
def test_p115_a_kind_without_rules_is_not_called_valid(kind: str, schemas: Schemas) -> None:
    flow = compile_ops(GraphIR.empty(), GOLDEN["chat"](BIND), schemas).flow_data
    codes = {one.code for one in validate_flow(flow, schemas=schemas, credentials=None, kind=kind)}
    assert codes & {"NOT_CHECKED", "KIND_UNKNOWN"}
