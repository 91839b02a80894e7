"""Flows of type AGENTFLOW (V2): what the compiler writes, and each thing that can be wrong with them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Finding,
    GraphIR,
    NodeSchema,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetLabel,
    SetParam,
    SetParent,
    UnsetParam,
    UpgradeNode,
    compile_ops,
    decompile,
    diff,
    summarize,
    validate_flow,
)
from flowise_dev_agent.patch.layout.columns import GAP, Box
from flowise_dev_agent.patch.model.equal_values import same_value
from flowise_dev_agent.patch.validate.context import RULES
from tests.fixtures.editor_flows import connect
from tests.fixtures.golden_flows import NOWHERE, agentflow
from tests.fixtures.trial_flows import TRIAL_FLOWS
from tests.unit.patch.boxes import overlap

Flow = dict[str, Any]

UUID = NOWHERE["openAIApi"]
OTHER = "22222222-2222-4222-8222-222222222222"
CREDENTIALS = {UUID: "openAIApi", OTHER: "anthropicApi"}


def _add(name: str, number: int = 0, **params: Any) -> AddNode:
    return AddNode(node_name=name, node_id=f"{name}_{number}", params=params)


def _step(source: str, target: str, branch: str | None = None) -> Connect:
    return Connect(source_node_id=source, source_anchor=branch, target_node_id=target)


def _graph(schemas: Schemas, *more: PatchOp) -> GraphIR:
    return compile_ops(GraphIR.empty(), [*agentflow(NOWHERE), *more], schemas).graph


def _data(graph: GraphIR, node_id: str) -> Flow:
    node = graph.node(node_id)
    assert node is not None
    return node.data


def _problems(schemas: Schemas, *ops: PatchOp) -> list[Finding]:
    with pytest.raises(PatchError) as caught:
        compile_ops(_graph(schemas), ops, schemas)
    return [Finding.model_validate(raw) for raw in caught.value.details["findings"]]


# --- What is written ---------------------------------------------------------------------------------------------


def test_nodes_and_edges_are_those_of_the_agentflow_canvas(schemas: Schemas) -> None:
    graph = _graph(schemas)

    kinds = {node.id: node.raw["type"] for node in graph.nodes}
    assert kinds["llmAgentflow_0"] == "agentFlow"
    assert kinds["iterationAgentflow_0"] == "iteration"
    assert kinds["stickyNoteAgentflow_0"] == "stickyNote"
    edge = next(edge.raw for edge in graph.edges if edge.source == "startAgentflow_0")
    assert edge == {
        "source": "startAgentflow_0",
        "sourceHandle": "startAgentflow_0-output-startAgentflow",
        "target": "conditionAgentflow_0",
        "targetHandle": "conditionAgentflow_0",
        "data": {"sourceColor": "#7EE787", "targetColor": "#FFB938", "isHumanInput": False},
        "type": "agentFlow",
        "id": "startAgentflow_0-startAgentflow_0-output-startAgentflow-conditionAgentflow_0-conditionAgentflow_0",
    }
    assert graph.kind == "AGENTFLOW"


def test_branches_follow_from_the_conditions_and_are_named_by_number_or_word(schemas: Schemas) -> None:
    graph = _graph(schemas)

    anchors = _data(graph, "conditionAgentflow_0")["outputAnchors"]
    assert [(anchor["id"], anchor["description"]) for anchor in anchors] == [
        ("conditionAgentflow_0-output-0", "Condition 0"),
        ("conditionAgentflow_0-output-1", "Condition 1"),
        ("conditionAgentflow_0-output-2", "Else"),
    ]
    handles = {edge.target: edge.source_handle for edge in graph.edges if edge.source == "conditionAgentflow_0"}
    assert handles["iterationAgentflow_0"] == "conditionAgentflow_0-output-2"
    human = {edge.target: edge.raw["data"] for edge in graph.edges if edge.source == "humanInputAgentflow_0"}
    assert human["directReplyAgentflow_0"]["edgeLabel"] == "proceed"
    assert human["loopAgentflow_0"] | {"sourceColor": "", "targetColor": ""} == {
        "sourceColor": "",
        "targetColor": "",
        "edgeLabel": "reject",
        "isHumanInput": True,
    }


def test_another_number_of_conditions_keeps_else_and_cuts_what_is_gone(schemas: Schemas) -> None:
    row = {"type": "string", "value1": "a", "operation": "equal", "value2": "b"}
    one = compile_ops(
        _graph(schemas), [SetParam(node_id="conditionAgentflow_0", param_name="conditions", value=[row])], schemas
    )
    three = compile_ops(
        _graph(schemas), [SetParam(node_id="conditionAgentflow_0", param_name="conditions", value=[row] * 3)], schemas
    )

    def branches(graph: GraphIR) -> dict[str, str]:
        return {edge.target: edge.output_name for edge in graph.edges if edge.source == "conditionAgentflow_0"}

    assert branches(one.graph) == {"llmAgentflow_0": "0", "iterationAgentflow_0": "1"}
    assert branches(three.graph) == {
        "llmAgentflow_0": "0",
        "agentAgentflow_0": "1",
        "iterationAgentflow_0": "3",
    }
    labels = {
        edge.target: edge.raw["data"]["edgeLabel"] for edge in three.graph.edges if "edgeLabel" in edge.raw["data"]
    }
    assert labels["iterationAgentflow_0"] == "3"


def test_model_and_tools_get_the_config_that_the_editor_would_make(schemas: Schemas) -> None:
    graph = _graph(schemas)

    inputs = _data(graph, "llmAgentflow_0")["inputs"]
    config = inputs["llmModelConfig"]
    assert (config["llmModel"], config["modelName"], config["temperature"]) == ("chatOpenAI", "gpt-4o", 0.9)
    assert config["FLOWISE_CREDENTIAL_ID"] == UUID
    assert "reasoningEffort" not in config  # hidden while reasoning is off
    (tool,) = _data(graph, "agentAgentflow_0")["inputs"]["agentTools"]
    assert tool["agentSelectedToolConfig"]["agentSelectedTool"] == "calculator"


def test_fields_inside_a_model_are_set_and_unset_by_path(schemas: Schemas) -> None:
    graph = compile_ops(
        _graph(schemas),
        [
            SetParam(node_id="llmAgentflow_0", param_name="llmModelConfig.temperature", value=0.1),
            UnsetParam(node_id="llmAgentflow_0", param_name="llmModelConfig.streaming"),
        ],
        schemas,
    ).graph

    config = _data(graph, "llmAgentflow_0")["inputs"]["llmModelConfig"]
    assert config["temperature"] == 0.1
    assert "streaming" not in config


def test_another_model_gets_a_fresh_config(schemas: Schemas) -> None:
    graph = compile_ops(
        _graph(schemas), [SetParam(node_id="llmAgentflow_0", param_name="llmModel", value="chatAnthropic")], schemas
    ).graph

    config = _data(graph, "llmAgentflow_0")["inputs"]["llmModelConfig"]
    assert config["llmModel"] == "chatAnthropic"
    assert "FLOWISE_CREDENTIAL_ID" not in config


def test_an_iteration_holds_its_children_and_grows_around_them(schemas: Schemas) -> None:
    graph = _graph(schemas)

    child, box = graph.node("llmAgentflow_1"), graph.node("iterationAgentflow_0")
    assert child is not None
    assert box is not None
    assert (child.raw["parentNode"], child.raw["extent"]) == ("iterationAgentflow_0", "parent")
    assert child.raw["position"]["x"] + child.raw["width"] <= box.raw["width"]
    assert child.raw["position"]["y"] + child.raw["height"] <= box.raw["height"]
    assert child.raw["positionAbsolute"]["x"] == box.raw["position"]["x"] + child.raw["position"]["x"]
    inner = next(edge.raw for edge in graph.edges if edge.source == "llmAgentflow_1")
    assert inner["zIndex"] == 9999
    order = [node.id for node in graph.nodes]
    assert order.index("iterationAgentflow_0") < order.index("llmAgentflow_1")


def test_nothing_covers_the_title_above_an_iteration(schemas: Schemas) -> None:
    flow = compile_ops(GraphIR.empty(), agentflow(NOWHERE), schemas).graph
    more = compile_ops(
        flow,
        [
            AddNode(node_name="directReplyAgentflow", node_id="late", params={"directReplyMessage": "x"}),
            Connect(source_node_id="iterationAgentflow_0", target_node_id="late"),
        ],
        schemas,
    ).graph
    for graph in (flow, more):
        boxes = {
            node.id: Box(**node.raw["position"], width=node.raw["width"], height=node.raw["height"])
            for node in graph.nodes
            if not node.parent
        }
        frame = boxes.pop("iterationAgentflow_0")
        title = Box(frame.x, frame.y - 72, frame.width, 72 - GAP)
        assert not any(overlap(box, title) for box in boxes.values())


def test_taking_a_node_out_of_an_iteration_lowers_its_edges(schemas: Schemas) -> None:
    graph = compile_ops(_graph(schemas), [SetParent(node_id="llmAgentflow_1", parent_id=None)], schemas).graph

    node = graph.node("llmAgentflow_1")
    assert node is not None
    assert not {"parentNode", "extent"} & set(node.raw)
    assert all("zIndex" not in edge.raw for edge in graph.edges)


def test_removing_an_iteration_removes_what_it_holds_and_nothing_like_it(schemas: Schemas) -> None:
    graph = compile_ops(_graph(schemas), [RemoveNode(node_id="iterationAgentflow_0")], schemas).graph

    ids = {node.id for node in graph.nodes}
    assert not ids & {"iterationAgentflow_0", "llmAgentflow_1", "llmAgentflow_2"}
    assert "llmAgentflow_0" in ids
    assert all({edge.source, edge.target} <= ids for edge in graph.edges)


def test_a_new_title_is_what_the_loop_says(schemas: Schemas) -> None:
    graph = compile_ops(_graph(schemas), [SetLabel(node_id="llmAgentflow_0", label="Writer")], schemas).graph

    assert _data(graph, "loopAgentflow_0")["inputs"]["loopBackToNode"] == "llmAgentflow_0-Writer"


def test_replacing_under_a_new_id_renames_it_everywhere_and_exactly(schemas: Schemas) -> None:
    op = ReplaceNode(node_id="llmAgentflow_0", node_name="agentAgentflow", new_node_id="agentAgentflow_7")
    also = SetParam(
        node_id="directReplyAgentflow_0",
        param_name="directReplyMessage",
        value="{{ llmAgentflow_0 }} {{llmAgentflow_0.output.x}} {{ llmAgentflow_01 }}",
    )
    graph = compile_ops(compile_ops(_graph(schemas), [also], schemas).graph, [op], schemas).graph

    assert _data(graph, "directReplyAgentflow_0")["inputs"]["directReplyMessage"] == (
        "{{ agentAgentflow_7 }} {{agentAgentflow_7.output.x}} {{ llmAgentflow_01 }}"
    )
    assert _data(graph, "loopAgentflow_0")["inputs"]["loopBackToNode"].startswith("agentAgentflow_7-")
    ends = {(edge.source, edge.target) for edge in graph.edges}
    assert ("conditionAgentflow_0", "agentAgentflow_7") in ends
    assert ("agentAgentflow_7", "humanInputAgentflow_0") in ends
    assert not any("llmAgentflow_0" in end for end in ends)


def test_a_step_that_leads_to_itself_can_be_upgraded_replaced_and_removed(schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0"),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0"),
        Connect(source_node_id="llmAgentflow_0", target_node_id="llmAgentflow_0"),
        Connect(source_node_id="llmAgentflow_0", target_node_id="directReplyAgentflow_0"),
    ]
    base = compile_ops(GraphIR.empty(), ops, schemas)

    upgraded = compile_ops(base.graph, [UpgradeNode(node_id="llmAgentflow_0")], schemas)
    replaced = compile_ops(
        base.graph,
        [ReplaceNode(node_id="llmAgentflow_0", node_name="agentAgentflow", new_node_id="agentAgentflow_0")],
        schemas,
    )
    removed = compile_ops(base.graph, [RemoveNode(node_id="llmAgentflow_0")], schemas)

    assert upgraded.flow_data == base.flow_data
    assert [(edge.source, edge.target) for edge in replaced.graph.edges] == [
        ("agentAgentflow_0", "agentAgentflow_0"),
        ("agentAgentflow_0", "directReplyAgentflow_0"),
    ]
    assert removed.graph.edges == ()
    assert len(diff(base.graph, removed.graph).disconnected) == 2


def test_a_field_inside_a_model_of_a_node_that_was_replaced_at_once_is_refused_by_name(schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        AddNode(
            node_name="llmAgentflow",
            node_id="llmAgentflow_0",
            params={"llmModel": "chatOpenAI", "llmModelConfig.temperature": 0.3},
        ),
        ReplaceNode(node_id="llmAgentflow_0", node_name="agentAgentflow", new_node_id="agentAgentflow_0"),
    ]

    with pytest.raises(PatchError) as caught:
        compile_ops(GraphIR.empty(), ops, schemas)

    assert [(f["code"], f["op_index"]) for f in caught.value.details["findings"]] == [("UNKNOWN_NODE", 0)]


@pytest.mark.parametrize(
    ("op", "code", "where"),
    [
        (_step("conditionAgentflow_0", "directReplyAgentflow_0"), "UNKNOWN_OUTPUT", "conditionAgentflow_0"),
        (_step("conditionAgentflow_0", "directReplyAgentflow_0", "7"), "UNKNOWN_OUTPUT", "conditionAgentflow_0"),
        (_step("directReplyAgentflow_0", "llmAgentflow_0"), "UNKNOWN_OUTPUT", "directReplyAgentflow_0"),
        (_step("llmAgentflow_0", "startAgentflow_0"), "UNKNOWN_ANCHOR", "startAgentflow_0"),
        (_step("llmAgentflow_0", "stickyNoteAgentflow_0"), "KIND_MISMATCH", "stickyNoteAgentflow_0"),
        (SetParent(node_id="llmAgentflow_0", parent_id="agentAgentflow_0"), "BAD_PARENT", "llmAgentflow_0"),
        (ReplaceNode(node_id="llmAgentflow_0", node_name="toolAgent"), "KIND_MISMATCH", "llmAgentflow_0"),
        (
            BindCredential(node_id="directReplyAgentflow_0", credential_id=UUID),
            "NO_CREDENTIAL_FIELD",
            "directReplyAgentflow_0",
        ),
        (
            BindCredential(node_id="llmAgentflow_0", credential_id=UUID, path="llmToolConfig"),
            "NO_CREDENTIAL_FIELD",
            "llmAgentflow_0",
        ),
        (
            SetParam(node_id="llmAgentflow_0", param_name="llmModelConfig.temprature", value=1),
            "UNKNOWN_PARAM",
            "llmAgentflow_0",
        ),
        (
            SetParam(node_id="llmAgentflow_0", param_name="llmModelConfig.temperature", value="hot"),
            "NOT_A_NUMBER",
            "llmAgentflow_0",
        ),
        (SetParam(node_id="llmAgentflow_0", param_name="llmMessages", value="hello"), "NOT_A_LIST", "llmAgentflow_0"),
        (
            SetParam(node_id="agentAgentflow_0", param_name="agentTools[7].agentSelectedTool", value="calculator"),
            "UNKNOWN_PARAM",
            "agentAgentflow_0",
        ),
        (UnsetParam(node_id="agentAgentflow_0", param_name="agentTools[0]"), "UNKNOWN_PARAM", "agentAgentflow_0"),
    ],
)
def test_refusals_in_agentflows(schemas: Schemas, op: PatchOp, code: str, where: str) -> None:
    (finding,) = _problems(schemas, op)

    assert (finding.code, finding.where) == (code, where)
    assert finding.message
    assert finding.hint


def test_summary_shows_branches_models_and_iterations_but_no_credential(schemas: Schemas) -> None:
    text = summarize(_graph(schemas), 20_000)

    assert "branches 0 (condition 0), 1 (condition 1), 2 (else)" in text
    assert "llmModelConfig={modelName='gpt-4o'" in text
    assert "- llmAgentflow_1 (llmAgentflow) 'LLM' inside iterationAgentflow_0" in text
    assert "- conditionAgentflow_0.2 -> iterationAgentflow_0" in text.splitlines()
    assert UUID not in text


# --- What is found -----------------------------------------------------------------------------------------------


def _validate(flow: Flow, schemas: Schemas, **options: Any) -> list[Finding]:
    given = {"credentials": CREDENTIALS, "kind": "AGENTFLOW"} | options
    return validate_flow(json.dumps(flow), schemas=schemas, **given)


def _inputs(flow: Flow, node_id: str) -> Flow:
    return _node(flow, node_id)["data"]["inputs"]


def _node(flow: Flow, node_id: str) -> Flow:
    return next(node for node in flow["nodes"] if node["id"] == node_id)


def _edge(flow: Flow, source: str, target: str) -> Flow:
    return next(edge for edge in flow["edges"] if (edge["source"], edge["target"]) == (source, target))


def _config(flow: Flow) -> Flow:
    return _inputs(flow, "llmAgentflow_0")["llmModelConfig"]


def _remove(flow: Flow, node_id: str) -> None:
    flow["nodes"].remove(_node(flow, node_id))
    flow["edges"] = [edge for edge in flow["edges"] if node_id not in (edge["source"], edge["target"])]


def _second_start(flow: Flow) -> None:
    copy = json.loads(json.dumps(_node(flow, "startAgentflow_0")).replace("startAgentflow_0", "startAgentflow_1"))
    flow["nodes"].append(copy)


def _chatflow_node(flow: Flow) -> None:
    _node(flow, "agentAgentflow_0")["data"]["category"] = "Agents"


def _cycle(flow: Flow) -> None:
    edge = dict(_edge(flow, "llmAgentflow_0", "humanInputAgentflow_0"))
    flow["edges"].append(edge | {"target": "conditionAgentflow_0", "targetHandle": "conditionAgentflow_0"})


MUTATIONS: list[tuple[str, str, Callable[[Flow], object]]] = [
    ("NESTED_CONFIG_MISSING", "llmAgentflow_0", lambda f: _inputs(f, "llmAgentflow_0").pop("llmModelConfig")),
    (
        "NESTED_CONFIG_MISSING",
        "llmAgentflow_0",
        lambda f: _inputs(f, "llmAgentflow_0").update(llmModelConfig=json.dumps(_config(f))),
    ),
    (
        "NESTED_CONFIG_MISSING",
        "agentAgentflow_0",
        lambda f: _inputs(f, "agentAgentflow_0")["agentTools"][0].pop("agentSelectedToolConfig"),
    ),
    ("NESTED_NODE_UNKNOWN", "llmAgentflow_0", lambda f: _inputs(f, "llmAgentflow_0").update(llmModel="chatOpenIA")),
    (
        "NESTED_NODE_MISSING",
        "agentAgentflow_0",
        lambda f: _inputs(f, "agentAgentflow_0")["agentTools"].append({"agentSelectedTool": ""}),
    ),
    ("NESTED_CREDENTIAL_UNBOUND", "llmAgentflow_0", lambda f: _config(f).pop("FLOWISE_CREDENTIAL_ID")),
    (
        "CREDENTIAL_MISPLACED",
        "llmAgentflow_0",
        lambda f: _config(f).update(credential=_config(f).pop("FLOWISE_CREDENTIAL_ID")),
    ),
    ("CREDENTIAL_NOT_UUID", "llmAgentflow_0", lambda f: _config(f).update(FLOWISE_CREDENTIAL_ID="my key")),
    ("CREDENTIAL_TYPE_MISMATCH", "llmAgentflow_0", lambda f: _config(f).update(FLOWISE_CREDENTIAL_ID=OTHER)),
    (
        "CREDENTIAL_UNKNOWN",
        "llmAgentflow_0",
        lambda f: _config(f).update(FLOWISE_CREDENTIAL_ID="33333333-3333-4333-8333-333333333333"),
    ),
    ("REQUIRED_PARAM_MISSING", "llmAgentflow_0", lambda f: _config(f).update(modelName="")),
    ("NOT_A_NUMBER", "llmAgentflow_0", lambda f: _config(f).update(temperature="hot")),
    ("SECRET_IN_INPUTS", "llmAgentflow_0", lambda f: _config(f).update(openAIApiKey="sk-abcdefghijklmnopqrstuvwx")),
    ("NO_START_NODE", "", lambda f: _node(f, "startAgentflow_0")["data"].update(name="customFunctionAgentflow")),
    ("MULTIPLE_START_NODES", "startAgentflow_1", _second_start),
    (
        "UNREACHED_NODE",
        "agentAgentflow_0",
        lambda f: f["edges"].remove(_edge(f, "conditionAgentflow_0", "agentAgentflow_0")),
    ),
    ("CYCLE", "conditionAgentflow_0", _cycle),
    ("KIND_MISMATCH", "agentAgentflow_0", _chatflow_node),
    (
        "BAD_SOURCE_HANDLE",
        "conditionAgentflow_0",
        lambda f: _edge(f, "conditionAgentflow_0", "agentAgentflow_0").update(
            sourceHandle="conditionAgentflow_0-output-9"
        ),
    ),
    (
        "BAD_SOURCE_HANDLE",
        "conditionAgentflow_0",
        lambda f: _edge(f, "conditionAgentflow_0", "agentAgentflow_0").pop("sourceHandle"),
    ),
    (
        "BAD_TARGET_HANDLE",
        "agentAgentflow_0",
        lambda f: _edge(f, "conditionAgentflow_0", "agentAgentflow_0").update(targetHandle="x"),
    ),
    (
        "BRANCHES_OUTDATED",
        "conditionAgentflow_0",
        lambda f: _inputs(f, "conditionAgentflow_0")["conditions"].append({"type": "string", "operation": "isEmpty"}),
    ),
    ("BAD_PARENT", "llmAgentflow_1", lambda f: _node(f, "llmAgentflow_1").pop("extent")),
    (
        "EDGE_ACROSS_ITERATION",
        "llmAgentflow_2",
        lambda f: [_node(f, "llmAgentflow_2").pop(key) for key in ("parentNode", "extent")],
    ),
    ("LOOP_TARGET_UNKNOWN", "loopAgentflow_0", lambda f: _inputs(f, "loopAgentflow_0").update(loopBackToNode="x_0-X")),
    (
        "UNKNOWN_VARIABLE",
        "directReplyAgentflow_0",
        lambda f: _inputs(f, "directReplyAgentflow_0").update(directReplyMessage="{{ llmAgentflow_9.output.x }}"),
    ),
    (
        "UNDECLARED_STATE",
        "directReplyAgentflow_0",
        lambda f: _inputs(f, "directReplyAgentflow_0").update(directReplyMessage="{{ $flow.state.nothing }}"),
    ),
    (
        "BAD_TOOL_ID",
        "agentAgentflow_0",
        lambda f: _inputs(f, "agentAgentflow_0").update(
            agentTools=[{"agentSelectedTool": "customTool", "agentSelectedToolConfig": {"selectedTool": "weather"}}]
        ),
    ),
    (
        "UNKNOWN_PARAM",
        "agentAgentflow_0",
        lambda f: _inputs(f, "agentAgentflow_0")["agentTools"][0].update(name="calculator"),
    ),
    ("DANGLING_EDGE", "startAgentflow_0", lambda f: f["edges"][0].update(target="ghost", targetHandle="ghost")),
    (
        "NOT_A_LIST",
        "agentAgentflow_0",
        lambda f: _inputs(f, "agentAgentflow_0").update(agentTools="calculator"),
    ),
]
#: What a mutation brings along: a node that nothing leads to any more.
_ALONG = {
    "DANGLING_EDGE": {"UNREACHED_NODE"},
    "BAD_PARENT": {"UNREACHED_NODE"},
    "NO_START_NODE": {"UNREACHED_NODE", "REQUIRED_PARAM_MISSING"},
}


@pytest.mark.parametrize(
    ("code", "where", "mutate"), MUTATIONS, ids=[f"{number}-{case[0]}" for number, case in enumerate(MUTATIONS)]
)
def test_one_mistake_in_an_agentflow_gives_its_code_at_its_node(
    schemas: Schemas, code: str, where: str, mutate: Callable[[Flow], object]
) -> None:
    flow = json.loads(_graph(schemas).to_flow_data())
    mutate(flow)

    findings = [f for f in _validate(flow, schemas) if f.severity == "error" or f.code == code]

    assert {(f.code, f.where) for f in findings if f.code not in _ALONG.get(code, set())} == {(code, where)}


@pytest.mark.parametrize(
    ("code", "severity", "mutate"),
    [
        # Measured: 200 as before, but every branch runs, or a step twice.
        (
            "BAD_SOURCE_HANDLE",
            "error",
            lambda f: _edge(f, "conditionAgentflow_0", "agentAgentflow_0").update(sourceHandle="x"),
        ),
        ("DUPLICATE_EDGE", "error", lambda f: f["edges"].append(dict(f["edges"][0]))),
        # Measured: 200 as before.
        (
            "BAD_SOURCE_HANDLE",
            "warning",
            lambda f: _edge(f, "startAgentflow_0", "conditionAgentflow_0").update(sourceHandle="x"),
        ),
        (
            "BAD_TARGET_HANDLE",
            "warning",
            lambda f: _edge(f, "startAgentflow_0", "conditionAgentflow_0").update(targetHandle="x"),
        ),
        ("DANGLING_EDGE", "warning", lambda f: f["edges"].append({**f["edges"][0], "target": "ghost"})),
        ("DANGLING_EDGE", "warning", lambda f: f["edges"].append({**f["edges"][0], "source": "ghost"})),
    ],
)
def test_a_wrong_line_is_an_error_only_where_it_changes_the_run(
    schemas: Schemas, code: str, severity: str, mutate: Callable[[Flow], object]
) -> None:
    flow = json.loads(_graph(schemas).to_flow_data())
    mutate(flow)

    assert {f.severity for f in _validate(flow, schemas) if f.code == code} == {severity}


@pytest.mark.parametrize(
    ("text", "said"), [("{{ customFunctionAgentflow_0 }}", ["VARIABLE_NOT_SET"]), ("{{ $iteration }}", [])]
)
def test_a_step_inside_an_iteration_reads_no_answer_of_a_step_outside(
    schemas: Schemas, text: str, said: list[str]
) -> None:
    """200 with `{{ customFunctionAgentflow_0 }}` in the text."""
    ops: list[PatchOp] = [
        _add("startAgentflow"),
        _add("customFunctionAgentflow", customFunctionJavascriptFunction="return 'Best regards'"),
        _add("iterationAgentflow", iterationInput="[1, 2]"),
        _add("directReplyAgentflow", directReplyMessage=text),
        SetParent(node_id="directReplyAgentflow_0", parent_id="iterationAgentflow_0"),
        connect("startAgentflow_0", "customFunctionAgentflow_0"),
        connect("customFunctionAgentflow_0", "iterationAgentflow_0"),
    ]
    found = validate_flow(
        compile_ops(GraphIR.empty(), ops, schemas).flow_data, schemas=schemas, credentials=None, kind="AGENTFLOW"
    )
    assert [f.code for f in found if f.code == "VARIABLE_NOT_SET"] == said


def test_a_good_agentflow_has_no_findings(schemas: Schemas) -> None:
    assert _validate(json.loads(_graph(schemas).to_flow_data()), schemas) == []


def test_every_code_of_agentflows_alone_has_a_mutation() -> None:
    registered = {code for rule in RULES if rule.kinds == ("AGENTFLOW",) for code in rule.codes}
    tried = {flow.code for flow in TRIAL_FLOWS if flow.kind == "AGENTFLOW"}
    tried |= {"EMPTY_ITERATION", "NO_USER_MESSAGE", "HTTP_BODY_LOST", "ANSWER_EMPTY", "ONE_STORE_ASKED"}

    assert registered <= {case[0] for case in MUTATIONS} | tried


def test_a_model_of_a_community_is_unverified_when_it_was_there_before(schemas: Schemas) -> None:
    flow = json.loads(_graph(schemas).to_flow_data())
    _inputs(flow, "llmAgentflow_0")["llmModel"] = "someCommunityModel"

    update = _validate(flow, schemas, base_flow_data=json.dumps(flow))

    assert [(f.code, f.severity) for f in update] == [("UNVERIFIED_NODE", "warning")]


def test_a_model_that_is_hidden_needs_no_credential_and_is_not_read(schemas: Schemas) -> None:
    flow = json.loads(_graph(schemas).to_flow_data())
    _inputs(flow, "humanInputAgentflow_0").update(humanInputModel="chatOpenAI", humanInputModelConfig={})

    assert [one.code for one in _validate(flow, schemas)] == ["VALUE_IGNORED"]


@pytest.mark.parametrize("target", ["agentAgentflow_0", "agentAgentflow_0-Another title"])
def test_a_loop_names_its_target_by_id_and_title_whatever_an_op_says(target: str, schemas: Schemas) -> None:
    again = SetParam(node_id="loopAgentflow_0", param_name="loopBackToNode", value=target)
    graph = _graph(schemas, again)
    title = _data(graph, "agentAgentflow_0")["label"]
    assert _data(graph, "loopAgentflow_0")["inputs"]["loopBackToNode"] == f"agentAgentflow_0-{title}"


@pytest.mark.parametrize(
    ("operation", "text", "told"),
    [
        ("contains", "", True),
        ("regex", "<p></p>", True),
        ("contains", "refund", False),
        ("contains", "{{question}}", False),
        ("equal", "", False),
        ("isEmpty", "", False),
    ],
)
def test_a_condition_that_looks_for_nothing_in_a_text_is_told(
    operation: str, text: str, told: bool, schemas: Schemas
) -> None:
    row = {"type": "string", "value1": "{{question}}", "operation": operation, "value2": text}
    ops = [_add("startAgentflow"), _add("conditionAgentflow", conditions=[row])]
    flow = compile_ops(GraphIR.empty(), ops, schemas).flow_data

    found = {
        (one.code, one.field, one.severity)
        for one in validate_flow(flow, schemas=schemas, credentials=None, kind="AGENTFLOW")
    }

    assert (("REQUIRED_PARAM_MISSING", "conditions[0].value2", "warning") in found) is told


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"humanInputDescription": "Send it?"}, "fixed"),
        ({"humanInputModel": "chatOpenAI"}, "dynamic"),
        ({"humanInputDescription": "Send it?", "humanInputModel": "chatOpenAI"}, ""),
        ({"humanInputEnableFeedback": False}, ""),
    ],
)
def test_an_empty_field_gets_the_only_choice_with_which_what_is_said_counts(
    said: Flow, kind: str, schemas: Schemas
) -> None:
    flow = compile_ops(GraphIR.empty(), [_add("humanInputAgentflow", **said)], schemas).graph

    assert _data(flow, "humanInputAgentflow_0")["inputs"]["humanInputDescriptionType"] == kind


def test_a_stored_value_that_counts_for_nothing_chooses_nothing(schemas: Schemas) -> None:
    step = _add("humanInputAgentflow", humanInputDescription="Send it?")
    none = UnsetParam(node_id="humanInputAgentflow_0", param_name="humanInputDescriptionType")
    base = compile_ops(compile_ops(GraphIR.empty(), [step], schemas).graph, [none], schemas).graph
    named = SetLabel(node_id="humanInputAgentflow_0", label="Ask")

    inputs = _data(compile_ops(base, [named], schemas).graph, "humanInputAgentflow_0")["inputs"]

    assert "humanInputDescriptionType" not in inputs
    assert inputs["humanInputDescription"] == "Send it?"


def test_a_field_of_the_row_behind_the_last_adds_that_row(schemas: Schemas) -> None:
    path = "conditionAgentScenarios"
    add = AddNode(
        node_name="conditionAgentAgentflow",
        node_id="conditionAgentAgentflow_0",
        params={path: [{"scenario": "billing"}, {"scenario": "orders"}]},
    )
    more = SetParam(node_id=add.node_id, param_name=f"{path}[2].scenario", value="anything else")
    graph = compile_ops(GraphIR.empty(), [add, more], schemas).graph
    node = graph.nodes[0]
    assert [row["scenario"] for row in node.inputs[path]] == ["billing", "orders", "anything else"]
    assert len(node.outputs) == 3


def test_a_step_keeps_its_description_through_ops_and_other_nodes_that_of_their_type(schemas: Schemas) -> None:
    # The committed snapshot has no texts of types.
    schemas = {
        name: NodeSchema.from_raw({**schemas[name].raw, "description": f"About {name}"})
        for name in ("llmAgentflow", "agentAgentflow", "calculator")
    }
    added = [
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", description="Sorts the mail by topic."),
        AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0"),
    ]
    graph = compile_ops(GraphIR.empty(), added, schemas).graph
    step, other = graph.node("llmAgentflow_0"), graph.node("agentAgentflow_0")
    assert step
    assert other
    assert step.data.get("description") == "Sorts the mail by topic."
    assert (other.data.get("description") or "") == schemas["agentAgentflow"].description

    ops = {op.node_id: op for op in decompile(graph, schemas) if isinstance(op, AddNode)}
    assert ops["llmAgentflow_0"].description == "Sorts the mail by topic."
    assert ops["agentAgentflow_0"].description is None

    plain = compile_ops(GraphIR.empty(), [AddNode(node_name="calculator", node_id="c_0", description="x")], schemas)
    node = plain.graph.node("c_0")
    assert node
    assert (node.data.get("description") or "") == schemas["calculator"].description


def test_a_node_that_takes_the_place_of_a_step_has_the_description_of_its_own_type(schemas: Schemas) -> None:
    added = [AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", description="Sorts the mail by topic.")]
    replaced = [*added, ReplaceNode(node_id="llmAgentflow_0", node_name="agentAgentflow")]
    (node,) = compile_ops(GraphIR.empty(), replaced, schemas).graph.nodes
    assert (node.data.get("description") or "") == schemas["agentAgentflow"].description


@pytest.mark.parametrize(("start", "codes"), [("chatInput", {"0", "1"}), ("scheduleInput", set[str]())])
def test_a_condition_may_end_a_flow_that_nobody_waits_for(start: str, codes: set[str], schemas: Schemas) -> None:
    row = {"type": "string", "value1": "a", "operation": "equal", "value2": "b"}
    ops = [_add("startAgentflow", startInputType=start), _add("conditionAgentflow", conditions=[row])]
    graph = compile_ops(GraphIR.empty(), [*ops, _step("startAgentflow_0", "conditionAgentflow_0")], schemas).graph
    found = validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None, kind="AGENTFLOW")
    assert {one.field for one in found if one.code == "BRANCH_LEADS_NOWHERE"} == codes


SYSTEM = {"role": "system", "content": "Write the letter."}


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({}, True),
        ({"llmMessages": [SYSTEM, {"role": "user", "content": "{{ llmAgentflow_0 }}"}]}, False),
        ({"llmMessages": [SYSTEM, {"role": "user", "content": ""}]}, True),
        ({"llmEnableMemory": True, "llmMemoryType": "allMessages"}, False),
        ({"llmModel": "chatOpenAI"}, False),
    ],
)
def test_a_later_step_on_anthropic_says_something_to_the_model(
    changed: dict[str, Any], refused: bool, schemas: Schemas
) -> None:
    """The stand-in of Anthropic refuses such a request, as Anthropic does."""
    inputs: dict[str, Any] = {"llmModel": "chatAnthropic", "llmEnableMemory": False, "llmMessages": [SYSTEM]}
    ops = [
        _add("startAgentflow", startInputType="chatInput"),
        _add("llmAgentflow", **inputs),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_1", params=inputs | changed),
        _step("startAgentflow_0", "llmAgentflow_0"),
        _step("llmAgentflow_0", "llmAgentflow_1"),
    ]
    graph = compile_ops(GraphIR.empty(), ops, schemas).graph
    found = validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None, kind="AGENTFLOW")
    # The first model of a run gets the person's message.
    assert [one.where for one in found if one.code == "NO_USER_MESSAGE"] == ["llmAgentflow_1"] * refused


def _of_request(schemas: Schemas, **params: Any) -> tuple[GraphIR, set[str]]:
    """A request at the end of a flow, and the codes found."""
    request = _add("httpAgentflow", url="https://api.example.com", **params)
    ops = [_add("startAgentflow", startInputType="chatInput"), request, _step("startAgentflow_0", "httpAgentflow_0")]
    compiled = compile_ops(GraphIR.empty(), ops, schemas)
    found = validate_flow(compiled.flow_data, schemas=schemas, credentials=None, kind="AGENTFLOW")
    return compiled.graph, {one.code for one in found}


@pytest.mark.parametrize(
    ("params", "codes"),
    [
        ({"method": "POST", "bodyType": "json", "body": '{"a": 1}'}, set()),
        ({"method": "POST", "body": '{"a": 1}'}, set()),
        ({"method": "POST", "body": "{{ question }}"}, {"HTTP_BODY_LOST"}),
        ({"method": "GET", "bodyType": "json", "body": '{"a": 1}'}, {"HTTP_BODY_LOST"}),
        ({"method": "POST", "bodyType": "formData", "body": [{"key": "a", "value": "b"}]}, set()),
        (
            {"method": "POST", "bodyType": "xWwwFormUrlencoded", "body": [{"key": "a", "value": "b"}]},
            {"HTTP_BODY_LOST"},
        ),
    ],
)
def test_a_body_that_is_not_sent_is_told(params: dict[str, Any], codes: set[str], schemas: Schemas) -> None:
    graph, found = _of_request(schemas, **params)
    # The answer of a request is no text.
    assert found == {"ANSWER_EMPTY", *codes}
    if str(params["body"]).startswith('{"'):
        assert _data(graph, "httpAgentflow_0")["inputs"]["bodyType"] == "json"


@pytest.mark.parametrize("start", ["chatInput", "formInput", "scheduleInput", "webhookTrigger"])
def test_a_flow_that_people_start_does_not_end_with_a_request(start: str, schemas: Schemas) -> None:
    request = _add("httpAgentflow", url="https://api.example.com", method="GET")
    ops = [_add("startAgentflow", startInputType=start), request, _step("startAgentflow_0", "httpAgentflow_0")]
    text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    found = validate_flow(text, schemas=schemas, credentials=None, kind="AGENTFLOW")
    assert ("ANSWER_EMPTY" in {one.code for one in found}) is (start in ("chatInput", "formInput"))


@pytest.mark.parametrize(("ids", "codes"), [(1, set[str]()), (2, {"ONE_STORE_ASKED"})])
def test_a_retriever_asks_one_store(ids: int, codes: set[str], schemas: Schemas) -> None:
    rows = [{"documentStore": UUID}] * ids
    store = _add("retrieverAgentflow", retrieverKnowledgeDocumentStores=rows, retrieverQuery="{{ question }}")
    ops = [_add("startAgentflow", startInputType="chatInput"), store, _step("startAgentflow_0", "retrieverAgentflow_0")]
    text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    found = validate_flow(text, schemas=schemas, credentials=None, kind="AGENTFLOW")
    assert {one.code for one in found} == codes


@pytest.mark.parametrize(
    "given",
    [
        '{"name": {"type": "string"}, "count": {"type": "integer"}}',
        '{"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}',
        '{"type": "array", "items": {"type": "object", "properties": '
        '{"name": {"type": "string"}, "count": {"type": "integer"}}, "required": ["name"]}}',
        '[{"name": "string", "count": "number"}]',
    ],
)
def test_the_items_of_a_list_have_the_fields_of_their_schema(given: str, schemas: Schemas) -> None:
    row = {"key": "items", "type": "jsonArray", "description": "x", "jsonSchema": given}
    graph = compile_ops(GraphIR.empty(), [_add("llmAgentflow", llmStructuredOutput=[row])], schemas).graph
    stored = _data(graph, "llmAgentflow_0")["inputs"]["llmStructuredOutput"]
    assert json.loads(stored[0]["jsonSchema"]) == {"name": {"type": "string"}, "count": {"type": "number"}}
    assert same_value(stored, [row])


def test_code_that_ends_in_a_comment_is_closed(schemas: Schemas) -> None:
    function = _add("customFunctionAgentflow", customFunctionJavascriptFunction="return 'a' // done")
    graph = compile_ops(GraphIR.empty(), [function], schemas).graph
    assert _data(graph, function.node_id)["inputs"]["customFunctionJavascriptFunction"].endswith("// done\n")
