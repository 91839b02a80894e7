"""Editing a chatflow that exists: taking away, replacing, upgrading, moving, and what is said about it."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    CompileResult,
    Connect,
    Disconnect,
    Finding,
    FlowNode,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetLabel,
    SetOutput,
    SetParam,
    SetPosition,
    UnsetParam,
    UpgradeNode,
    compile_ops,
    decompile,
    diff,
    validate_flow,
)
from tests.fixtures.golden_flows import NOWHERE, agentflow, chat, llm_chain, rag, tool_agent

UUID = NOWHERE["openAIApi"]
OTHER = "22222222-2222-4222-8222-222222222222"


def _build(schemas: Schemas, ops: list[PatchOp]) -> GraphIR:
    return compile_ops(GraphIR.empty(), ops, schemas).graph


def _edit(schemas: Schemas, graph: GraphIR, *ops: PatchOp) -> CompileResult:
    return compile_ops(graph, ops, schemas)


def _node(graph: GraphIR, node_id: str) -> FlowNode:
    node = graph.node(node_id)
    assert node is not None
    return node


def _errors(schemas: Schemas, graph: GraphIR) -> list[str]:
    found = validate_flow(graph.to_flow_data(), schemas=schemas, credentials={UUID: "openAIApi"})
    return [finding.code for finding in found if finding.severity == "error"]


def _finding(schemas: Schemas, graph: GraphIR, op: PatchOp) -> Finding:
    with pytest.raises(PatchError) as caught:
        _edit(schemas, graph, op)
    (raw,) = caught.value.details["findings"]
    return Finding.model_validate(raw)


def test_removing_a_node_takes_its_edges_and_exactly_its_references(schemas: Schemas) -> None:
    more: list[PatchOp] = []
    for node_id in ("requestsGet_1", "requestsGet_10"):
        more += [
            AddNode(node_name="requestsGet", node_id=node_id, params={"requestsGetUrl": "https://example.com"}),
            Connect(source_node_id=node_id, target_node_id="toolAgent_0", target_anchor="tools"),
        ]
    base = _build(schemas, [*tool_agent(NOWHERE), *more])

    graph = _edit(schemas, base, RemoveNode(node_id="requestsGet_1")).graph

    assert graph.node("requestsGet_1") is None
    assert _node(graph, "toolAgent_0").inputs["tools"] == [
        "{{requestsGet_10.data.instance}}",
        "{{calculator_0.data.instance}}",
        "{{currentDateTime_0.data.instance}}",
    ]
    assert not any("requestsGet_1" in (edge.source, edge.target) for edge in graph.edges)
    assert _errors(schemas, graph) == []


def test_removing_and_adding_the_same_id_in_one_batch_is_a_fresh_node(schemas: Schemas) -> None:
    base = _build(schemas, chat(NOWHERE))

    graph = _edit(
        schemas,
        base,
        AddNode(node_name="bufferWindowMemory", node_id="bufferMemory_0"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
        RemoveNode(node_id="bufferMemory_0"),
    ).graph

    assert _node(graph, "bufferMemory_0").name == "bufferWindowMemory"
    assert _errors(schemas, graph) == []


def test_disconnecting_the_last_use_gives_the_output_back(schemas: Schemas) -> None:
    base = _build(schemas, llm_chain(NOWHERE))
    more: list[PatchOp] = [
        AddNode(node_name="promptTemplate", node_id="p", params={"template": "{x}"}),
        SetParam(node_id="p", param_name="promptValues", value={"x": "{{llmChain_0.data.instance}}"}),
        Connect(source_node_id="llmChain_0", target_node_id="p", target_anchor="promptValues"),
    ]
    chained = _edit(schemas, base, *more).graph
    assert _node(chained, "llmChain_0").selected_output == "outputPrediction"

    graph = _edit(schemas, chained, Disconnect(source_node_id="llmChain_0", target_node_id="p")).graph

    assert _node(graph, "llmChain_0").selected_output == "llmChain"
    assert json.loads(_node(graph, "p").inputs["promptValues"]) == {"x": ""}
    assert [edge.target for edge in graph.edges] == [edge.target for edge in base.edges]


def test_disconnect_names_what_is_connected_instead(schemas: Schemas) -> None:
    base = _build(schemas, chat(NOWHERE))

    finding = _finding(schemas, base, Disconnect(source_node_id="conversationChain_0", target_node_id="chatOpenAI_0"))
    other = _finding(
        schemas,
        base,
        Disconnect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="memory"),
    )

    assert (finding.code, finding.where) == ("NOT_CONNECTED", "chatOpenAI_0")
    assert other.allowed == ("chatOpenAI_0 -> conversationChain_0.model",)


def test_a_connection_that_goes_with_its_node_may_be_cut_by_name_too(schemas: Schemas) -> None:
    graph = _build(schemas, tool_agent(NOWHERE))
    agent = next(edge.target for edge in graph.edges if edge.source == "calculator_0")
    cut = Disconnect(source_node_id="calculator_0", target_node_id=agent, target_anchor="tools")
    alone = _edit(schemas, graph, RemoveNode(node_id="calculator_0"))
    assert _edit(schemas, graph, cut, RemoveNode(node_id="calculator_0")).sha256 == alone.sha256


def test_replacing_a_memory_keeps_its_connection_title_and_place(schemas: Schemas) -> None:
    base = _edit(
        schemas, _build(schemas, chat(NOWHERE)), SetLabel(node_id="bufferMemory_0", label="What was said")
    ).graph
    op = ReplaceNode(node_id="bufferMemory_0", node_name="bufferWindowMemory", new_node_id="bufferWindowMemory_0")

    result = _edit(schemas, base, op)

    node = _node(result.graph, "bufferWindowMemory_0")
    assert (node.label, node.raw["position"]) == (
        "What was said",
        _node(base, "bufferMemory_0").raw["position"],
    )
    assert _node(result.graph, "conversationChain_0").inputs["memory"] == "{{bufferWindowMemory_0.data.instance}}"
    assert _errors(schemas, result.graph) == []
    assert [n.id for n in result.graph.nodes] == [
        n.id.replace("bufferMemory", "bufferWindowMemory") for n in base.nodes
    ]


def test_replacing_a_model_keeps_fields_that_fit_and_says_what_is_lost(schemas: Schemas) -> None:
    base = _edit(
        schemas, _build(schemas, chat(NOWHERE)), SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.3)
    ).graph
    assert _node(base, "chatOpenAI_0").inputs["modelName"] == "gpt-4o"

    result = _edit(schemas, base, ReplaceNode(node_id="chatOpenAI_0", node_name="chatAnthropic"))

    node = _node(result.graph, "chatOpenAI_0")
    assert (node.name, node.inputs["temperature"], node.credential) == ("chatAnthropic", 0.3, "")
    told = diff(base, result.graph).text
    assert "    credential: bound -> (none)" in told
    # The model of one provider is none of another's.
    assert node.inputs["modelName"] == "claude-haiku-4-5"
    assert "    modelName: gpt-4o -> claude-haiku-4-5" in told
    assert _node(result.graph, "conversationChain_0").inputs["model"] == "{{chatOpenAI_0.data.instance}}"
    assert _errors(schemas, result.graph) == ["CREDENTIAL_UNBOUND"]


def test_replacing_a_chain_by_an_agent_moves_model_and_memory_over(schemas: Schemas) -> None:
    base = _build(schemas, chat(NOWHERE))

    graph = _edit(
        schemas,
        base,
        ReplaceNode(node_id="conversationChain_0", node_name="toolAgent", new_node_id="toolAgent_0"),
        AddNode(node_name="calculator", node_id="calculator_0"),
        Connect(source_node_id="calculator_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ).graph

    assert {edge.input_name: edge.source for edge in graph.edges} == {
        "model": "chatOpenAI_0",
        "memory": "bufferMemory_0",
        "tools": "calculator_0",
    }
    assert _errors(schemas, graph) == []


def test_a_connection_that_the_new_type_cannot_have_is_cut_where_an_op_says_so(schemas: Schemas) -> None:
    base = _build(schemas, chat(NOWHERE))

    result = _edit(
        schemas,
        base,
        Disconnect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
        ReplaceNode(node_id="bufferMemory_0", node_name="calculator", new_node_id="calculator_0"),
    )

    assert _node(result.graph, "conversationChain_0").inputs["memory"] == ""
    assert [(one.source, one.input) for one in diff(base, result.graph).disconnected] == [("bufferMemory_0", "memory")]
    assert _errors(schemas, result.graph) == ["REQUIRED_ANCHOR_UNCONNECTED"]


def test_a_replacement_that_loses_its_connection_is_a_finding_with_both_types_and_what_fits(schemas: Schemas) -> None:
    base = _build(
        schemas,
        [
            AddNode(node_name="serpAPI", node_id="serpAPI_0"),
            AddNode(node_name="toolAgent", node_id="toolAgent_0"),
            Connect(source_node_id="serpAPI_0", target_node_id="toolAgent_0", target_anchor="tools"),
        ],
    )
    replace = ReplaceNode(node_id="serpAPI_0", node_name="tavilyAPI", new_node_id="tavilyAPI_0")

    finding = _finding(schemas, base, replace)
    assert (finding.code, finding.where, finding.op_index) == ("TYPE_MISMATCH", "tavilyAPI_0", 0)
    assert "`tools` of toolAgent_0" in finding.text
    assert "TavilyAPI | StructuredTool | Runnable" in finding.text
    assert "Tool is needed" in finding.text
    assert "braveSearchAPI" in finding.allowed
    assert _node(base, "toolAgent_0").inputs["tools"] == ["{{serpAPI_0.data.instance}}"]


def test_a_lost_connection_is_no_finding_when_another_op_takes_its_place(schemas: Schemas) -> None:
    base = _build(schemas, chat(NOWHERE))

    graph = _edit(
        schemas,
        base,
        ReplaceNode(node_id="bufferMemory_0", node_name="calculator", new_node_id="calculator_0"),
        AddNode(node_name="bufferWindowMemory", node_id="bufferWindowMemory_0"),
        Connect(source_node_id="bufferWindowMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
    ).graph

    assert _node(graph, "conversationChain_0").inputs["memory"] == "{{bufferWindowMemory_0.data.instance}}"


def test_upgrading_brings_new_anchors_and_carries_everything_else(schemas: Schemas) -> None:
    document = json.loads(_build(schemas, tool_agent(NOWHERE)).to_flow_data())
    agent = next(node for node in document["nodes"] if node["id"] == "toolAgent_0")["data"]
    model = next(node for node in document["nodes"] if node["id"] == "chatOpenAI_0")["data"]
    model |= {"version": 1, "label": "My model"}
    model["inputs"] |= {"temperature": "0.7", "goneField": "x"}
    del model["inputs"]["streaming"]
    old_handle = "chatOpenAI_0-output-chatOpenAI-ChatOpenAI|BaseChatModel"
    model["outputAnchors"][0] |= {"id": old_handle, "type": "ChatOpenAI | BaseChatModel"}
    next(edge for edge in document["edges"] if edge["source"] == "chatOpenAI_0")["sourceHandle"] = old_handle
    agent["version"] = 1
    base = GraphIR(document)

    result = _edit(schemas, base, UpgradeNode(node_id="chatOpenAI_0"), UpgradeNode(node_id="toolAgent_0"))

    node = _node(result.graph, "chatOpenAI_0")
    assert node.data["version"] == schemas["chatOpenAI"].version
    assert (node.label, node.credential, node.inputs["temperature"]) == ("My model", UUID, "0.7")
    assert "goneField" not in node.inputs
    assert "    goneField: x -> (none)" in diff(base, result.graph).text
    assert {edge.source_handle for edge in result.graph.edges if edge.source == "chatOpenAI_0"} == {
        node.outputs[0].handle
    }
    assert _node(result.graph, "toolAgent_0").inputs == _node(base, "toolAgent_0").inputs
    found = validate_flow(result.flow_data, schemas=schemas, credentials=None)
    assert found == []


def test_an_output_that_was_renamed_is_found_by_its_type_when_upgrading(schemas: Schemas) -> None:
    document = json.loads(_build(schemas, rag(NOWHERE)).to_flow_data())
    loader = next(node for node in document["nodes"] if node["id"] == "plainText_0")["data"]
    handle = "plainText_0-output-plainText-Document"
    loader |= {
        "version": 1,
        "outputs": {},
        "outputAnchors": [{"id": handle, "name": "plainText", "label": "Document", "type": "Document"}],
    }
    next(edge for edge in document["edges"] if edge["source"] == "plainText_0")["sourceHandle"] = handle

    graph = _edit(schemas, GraphIR(document), UpgradeNode(node_id="plainText_0")).graph

    assert _node(graph, "plainText_0").selected_output == "document"
    assert _errors(schemas, graph) == []


def test_upgrading_keeps_a_connection_that_leaves_at_an_old_handle(schemas: Schemas) -> None:
    # As in the templates "Query Engine" and "Context Chat Engine": the source gives the same under another name today.
    document = json.loads(_build(schemas, rag(NOWHERE)).to_flow_data())
    edge = next(edge for edge in document["edges"] if edge["source"] == "plainText_0")
    now = edge["sourceHandle"]
    edge["sourceHandle"] = "plainText_0-output-plainText-Document"

    graph = _edit(schemas, GraphIR(document), UpgradeNode(node_id=edge["target"])).graph

    assert [one.source_handle for one in graph.edges if one.source == "plainText_0"] == [now]
    assert _errors(schemas, graph) == []


def test_an_ending_function_is_chosen_by_set_output(schemas: Schemas) -> None:
    base = _build(
        schemas, [AddNode(node_name="customFunction", node_id="f", params={"javascriptFunction": "return 1"})]
    )

    graph = _edit(schemas, base, SetOutput(node_id="f", output="endingnode")).graph
    finding = _finding(schemas, base, SetOutput(node_id="f", output="nothing"))

    assert _node(graph, "f").data["outputs"] == {"output": "EndingNode"}
    assert _errors(schemas, graph) == []
    assert (finding.code, finding.where) == ("UNKNOWN_OUTPUT", "f")


def test_positions_are_set_exactly_and_new_nodes_keep_clear_of_them(schemas: Schemas) -> None:
    base = _build(schemas, chat(NOWHERE))

    graph = _edit(schemas, base, SetPosition(node_id="bufferMemory_0", x=12.5, y=-3)).graph

    raw = _node(graph, "bufferMemory_0").raw
    assert raw["position"] == raw["positionAbsolute"] == {"x": 12.5, "y": -3}
    assert _node(graph, "chatOpenAI_0").raw == _node(base, "chatOpenAI_0").raw


def test_a_field_that_is_unset_is_gone(schemas: Schemas) -> None:
    base = _build(schemas, chat(NOWHERE))

    graph = _edit(schemas, base, UnsetParam(node_id="chatOpenAI_0", param_name="streaming")).graph
    finding = _finding(schemas, base, UnsetParam(node_id="chatOpenAI_0", param_name="nothing"))

    assert "streaming" not in _node(graph, "chatOpenAI_0").inputs
    assert finding.code == "UNKNOWN_PARAM"


def test_an_input_may_be_left_out_where_only_one_fits(schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        AddNode(node_name="toolAgent", node_id="a"),
        AddNode(node_name="bufferMemory", node_id="m"),
        Connect(source_node_id="m", target_node_id="a"),
    ]

    assert _node(_build(schemas, ops), "a").inputs["memory"] == "{{m.data.instance}}"


# --- Taking apart ------------------------------------------------------------------------------------------------


def test_ops_of_a_flow_hold_only_what_differs_from_a_fresh_one(schemas: Schemas) -> None:
    ops = decompile(_build(schemas, chat(NOWHERE)), schemas)

    adds = [op for op in ops if isinstance(op, AddNode)]
    assert {op.node_id: op.params for op in adds} == {
        "chatOpenAI_0": {"modelName": "gpt-4o", "streaming": False},
        "conversationChain_0": {},
        "bufferMemory_0": {},
    }
    assert [op.credential_id for op in ops if isinstance(op, BindCredential)] == [UUID]
    assert {(op.target_anchor, op.source_anchor) for op in ops if isinstance(op, Connect)} == {
        ("model", None),
        ("memory", None),
    }


def test_defaults_that_came_later_are_unset_and_types_that_are_gone_stay_by_name(schemas: Schemas) -> None:
    document = json.loads(_build(schemas, chat(NOWHERE)).to_flow_data())
    model = next(node for node in document["nodes"] if node["id"] == "chatOpenAI_0")["data"]
    del model["inputs"]["temperature"]
    memory = next(node for node in document["nodes"] if node["id"] == "bufferMemory_0")["data"]
    memory["name"] = "someCommunityMemory"

    ops = decompile(GraphIR(document), schemas)

    assert UnsetParam(node_id="chatOpenAI_0", param_name="temperature") in ops
    assert any(isinstance(op, AddNode) and op.node_name == "someCommunityMemory" for op in ops)


# --- What differs ------------------------------------------------------------------------------------------------


def test_differences_are_told_by_name(schemas: Schemas) -> None:
    before = _build(schemas, chat(NOWHERE))
    after = _edit(
        schemas,
        before,
        AddNode(node_name="redisCache", node_id="cache", label="Keeps answers"),
        Connect(source_node_id="cache", target_node_id="chatOpenAI_0", target_anchor="cache"),
        SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1),
        SetLabel(node_id="bufferMemory_0", label="Memory"),
        SetPosition(node_id="bufferMemory_0", x=5000, y=0),
    ).graph

    found = diff(before, after)

    assert found.summary == "1 node added, 1 moved; 2 fields changed; 1 connection made"
    assert found.text.splitlines() == [
        "+ cache (redisCache) 'Keeps answers'",
        "~ chatOpenAI_0 (chatOpenAI)",
        "    temperature: 0.9 -> 0.1",
        "~ bufferMemory_0 (bufferMemory)",
        "    title: Buffer Memory -> Memory",
        "+ cache -> chatOpenAI_0.cache",
        "~ moved: bufferMemory_0",
    ]
    assert json.loads(json.dumps(asdict(found)))["connected"] == [
        {"source": "cache", "output": "", "target": "chatOpenAI_0", "input": "cache"}
    ]
    assert diff(after, before).summary == "1 node removed, 1 moved; 2 fields changed; 1 connection cut"


def test_a_model_that_comes_into_a_step_is_told_setting_by_setting(schemas: Schemas) -> None:
    before = _build(schemas, [AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0")])
    set_ = SetParam(node_id="llmAgentflow_0", param_name="llmModel", value="chatOpenAI")
    bound = BindCredential(node_id="llmAgentflow_0", credential_id=OTHER, path="llmModelConfig")
    (node,) = diff(before, _edit(schemas, before, set_, bound).graph).changed
    fields = {field.name: (field.before, field.after) for field in node.fields}
    assert fields["llmModelConfig.FLOWISE_CREDENTIAL_ID"] == ("", "bound")
    assert fields["llmModelConfig.temperature"] == ("", "0.9")


def test_differences_hide_secrets_and_shorten_texts(schemas: Schemas) -> None:
    before = _build(schemas, agentflow(NOWHERE))
    prompt = "Answer as a pirate. " * 20
    after = _edit(
        schemas,
        before,
        SetParam(node_id="llmAgentflow_0", param_name="llmUserMessage", value=prompt),
        SetParam(
            node_id="llmAgentflow_0", param_name="llmModelConfig.basepath", value="http://x?sk-abcdefghijklmnopqrstuvwx"
        ),
        BindCredential(node_id="llmAgentflow_0", credential_id=OTHER, path="llmModelConfig"),
    ).graph

    found = diff(before, after)

    (node,) = found.changed
    fields = {field.name: (field.before, field.after) for field in node.fields}
    assert fields["llmModelConfig.FLOWISE_CREDENTIAL_ID"] == ("bound", "bound to another")
    assert fields["llmModelConfig.basepath"] == ("", "(hidden)")
    assert len(fields["llmUserMessage"][1]) < 100
    told = found.text + json.dumps(asdict(found))
    assert not any(secret in told for secret in (UUID, OTHER, "sk-abc"))


def test_a_long_text_is_shown_where_it_differs(schemas: Schemas) -> None:
    text = "word " * 100
    before, after = (
        _build(schemas, [AddNode(node_name="plainText", node_id="t", params={"text": text + end})])
        for end in ("one", "two")
    )

    ((field,),) = [node.fields for node in diff(before, after).changed]

    assert field.before.endswith("one")
    assert field.after.endswith("two")
    assert field.after.startswith("…")


def test_a_list_that_differs_late_shows_what_differs(schemas: Schemas) -> None:
    rows: Any = [{"key": f"field{number}", "type": "string", "description": "some words"} for number in range(4)]
    more: Any = [*rows, {"key": "errors", "type": "string", "description": "other words"}]
    add = AddNode(node_name="llmAgentflow", node_id="llm_0", params={"llmStructuredOutput": rows})
    before = _build(schemas, [add])
    after = _edit(schemas, before, SetParam(node_id="llm_0", param_name="llmStructuredOutput", value=more)).graph
    ((field,),) = [node.fields for node in diff(before, after).changed]
    assert "errors" in field.after
    assert "errors" not in field.before


def test_p20_a_field_that_came_later_is_refused_with_the_way_to_have_it(schemas: Schemas) -> None:
    document = json.loads(compile_ops(GraphIR.empty(), llm_chain(NOWHERE), schemas).flow_data)
    model = next(node["data"] for node in document["nodes"] if node["id"] == "chatOpenAI_0")
    model["inputParams"] = [entry for entry in model["inputParams"] if entry["name"] != "reasoningEffort"]
    effort = SetParam(node_id="chatOpenAI_0", param_name="reasoningEffort", value="low")

    with pytest.raises(PatchError, match="UpgradeNode"):
        compile_ops(GraphIR(document), [effort], schemas)
    graph = compile_ops(GraphIR(document), [effort, UpgradeNode(node_id="chatOpenAI_0")], schemas).graph

    node = graph.node("chatOpenAI_0")
    assert node is not None
    assert node.inputs["reasoningEffort"] == "low"
