"""Compiling ops: what is written together, what is refused, what is left alone."""

import json
from typing import Any

import pytest

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Finding,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    SetOutput,
    SetParam,
    UnsetParam,
    compile_ops,
    ops_from_json,
)
from tests.fixtures.golden_flows import NOWHERE, llm_chain, rag, tool_agent

UUID = NOWHERE["openAIApi"]


def _add(name: str, node_id: str, **params: Any) -> AddNode:
    return AddNode(node_name=name, node_id=node_id, params=params)


def _connect(source: str, target: str, anchor: str, output: str | None = None) -> Connect:
    return Connect(source_node_id=source, source_anchor=output, target_node_id=target, target_anchor=anchor)


def _findings(ops: list[PatchOp], schemas: Schemas, base: GraphIR | None = None) -> list[Finding]:
    with pytest.raises(PatchError) as caught:
        compile_ops(base or GraphIR.empty(), ops, schemas)
    return [Finding.model_validate(raw) for raw in caught.value.details["findings"]]


def _data(graph: GraphIR, node_id: str) -> dict[str, Any]:
    node = graph.node(node_id)
    assert node is not None
    return node.data


@pytest.mark.parametrize("given", [0, 0.0, "0"])
def test_a_zero_is_stored_as_the_text_that_flowise_reads(given: object, schemas: Schemas) -> None:
    made = compile_ops(GraphIR.empty(), [_add("recursiveCharacterTextSplitter", "s_0", chunkOverlap=given)], schemas)
    assert _data(made.graph, "s_0")["inputs"]["chunkOverlap"] == "0"
    changed = compile_ops(made.graph, [SetParam(node_id="s_0", param_name="chunkOverlap", value=20)], schemas)
    assert _data(changed.graph, "s_0")["inputs"]["chunkOverlap"] == 20


def test_connect_writes_reference_edge_and_output_selection_together(schemas: Schemas) -> None:
    result = compile_ops(GraphIR.empty(), rag(NOWHERE), schemas)

    store = _data(result.graph, "memoryVectorStore_0")
    assert store["inputs"]["document"] == ["{{plainText_0.data.instance}}"]
    assert store["inputs"]["embeddings"] == "{{openAIEmbeddings_0.data.instance}}"
    assert store["outputs"] == {"output": "retriever"}
    assert _data(result.graph, "plainText_0")["outputs"] == {"output": "document"}
    edge = next(edge for edge in result.graph.edges if edge.source == "memoryVectorStore_0")
    assert edge.raw == {
        "source": "memoryVectorStore_0",
        "sourceHandle": "memoryVectorStore_0-output-retriever-Memory|VectorStoreRetriever|BaseRetriever",
        "target": "conversationalRetrievalQAChain_0",
        "targetHandle": "conversationalRetrievalQAChain_0-input-vectorStoreRetriever-BaseRetriever",
        "type": "buttonedge",
        "id": "memoryVectorStore_0-memoryVectorStore_0-output-retriever-Memory|VectorStoreRetriever|BaseRetriever"
        "-conversationalRetrievalQAChain_0-conversationalRetrievalQAChain_0-input-vectorStoreRetriever-BaseRetriever",
    }


def test_p14_list_anchor_collects_every_tool_in_order(schemas: Schemas) -> None:
    result = compile_ops(GraphIR.empty(), tool_agent(NOWHERE), schemas)

    assert _data(result.graph, "toolAgent_0")["inputs"]["tools"] == [
        "{{calculator_0.data.instance}}",
        "{{currentDateTime_0.data.instance}}",
    ]
    assert sum(edge.target == "toolAgent_0" and edge.input_name == "tools" for edge in result.graph.edges) == 2


def test_tools_that_read_come_before_tools_that_write_and_both_before_others(schemas: Schemas) -> None:
    ops: list[PatchOp] = [_add("toolAgent", "a")]
    for name in ("calculator", "requestsPost", "requestsGet"):
        ops += [_add(name, f"{name}_0"), _connect(f"{name}_0", "a", "tools")]

    tools = _data(compile_ops(GraphIR.empty(), ops, schemas).graph, "a")["inputs"]["tools"]

    assert [tool[2:].partition("_")[0] for tool in tools] == ["requestsGet", "requestsPost", "calculator"]


def test_p06_adding_an_existing_id_names_it_and_changes_nothing(schemas: Schemas) -> None:
    base = compile_ops(GraphIR.empty(), llm_chain(NOWHERE), schemas).graph
    before = base.to_flow_data()

    (finding,) = _findings([_add("chatAnthropic", "chatOpenAI_0")], schemas, base)

    assert (finding.code, finding.where, finding.op_index) == ("NODE_EXISTS", "chatOpenAI_0", 0)
    assert "chatOpenAI_1" in finding.hint
    assert base.to_flow_data() == before


def test_p06_adding_an_id_twice_in_one_batch_is_an_error_too(schemas: Schemas) -> None:
    findings = _findings([_add("calculator", "x"), _add("calculator", "x")], schemas)

    assert [(finding.code, finding.where, finding.op_index) for finding in findings] == [("NODE_EXISTS", "x", 1)]


@pytest.mark.parametrize("name", ["chatopenai", "ChatOpenAI", "chat_open_ai", "Chat OpenAI"])
def test_p25_wrong_case_of_a_node_name_resolves_by_itself(schemas: Schemas, name: str) -> None:
    graph = compile_ops(GraphIR.empty(), [_add(name, "m")], schemas).graph

    assert _data(graph, "m")["name"] == "chatOpenAI"


def test_p25_misspelt_node_name_is_reported_once_with_the_closest_names(schemas: Schemas) -> None:
    findings = _findings(
        [
            _add("chatOpenIA", "m"),
            SetParam(node_id="m", param_name="x", value=1),
            _add("llmChain", "c"),
            _connect("m", "c", "model"),
        ],
        schemas,
    )

    assert [(finding.code, finding.op_index) for finding in findings] == [("UNKNOWN_NODE_NAME", 0)]
    assert findings[0].allowed[0] == "chatOpenAI"
    assert len(findings[0].allowed) == 3


@pytest.mark.parametrize(
    ("op", "code", "field"),
    [
        (SetParam(node_id="nobody", param_name="x", value=1), "UNKNOWN_NODE", "node_id"),
        (SetParam(node_id="chatOpenAI_0", param_name="temprature", value=1), "UNKNOWN_PARAM", "temprature"),
        (SetParam(node_id="llmChain_0", param_name="model", value="x"), "PARAM_IS_ANCHOR", "model"),
        (SetParam(node_id="chatOpenAI_0", param_name="credential", value="x"), "PARAM_IS_CREDENTIAL", "credential"),
        (SetParam(node_id="chatOpenAI_0", param_name="temperature", value="hot"), "NOT_A_NUMBER", "temperature"),
        (SetParam(node_id="chatOpenAI_0", param_name="temperature", value=True), "NOT_A_NUMBER", "temperature"),
        (SetParam(node_id="chatOpenAI_0", param_name="streaming", value="maybe"), "NOT_A_BOOLEAN", "streaming"),
        (SetParam(node_id="chatOpenAI_0", param_name="reasoningEffort", value="huge"), "BAD_OPTION", "reasoningEffort"),
        (SetParam(node_id="chatOpenAI_0", param_name="baseOptions", value="{oops"), "BAD_JSON", "baseOptions"),
        (SetParam(node_id="promptTemplate_0", param_name="template", value={"a": 1}), "NOT_A_TEXT", "template"),
        (SetParam(node_id="promptTemplate_0", param_name="template", value=None), "NOT_A_VALUE", "template"),
        (_add("calculator", "tool-1"), "BAD_NODE_ID", "node_id"),
        (_connect("chatOpenAI_0", "llmChain_0", "modell"), "UNKNOWN_ANCHOR", "modell"),
        (_connect("chatOpenAI_0", "llmChain_0", "outputParser"), "TYPE_MISMATCH", "outputParser"),
        (_connect("llmChain_0", "chatOpenAI_0", "cache", "prediction"), "UNKNOWN_OUTPUT", "source_anchor"),
        (BindCredential(node_id="llmChain_0", credential_id=UUID), "NO_CREDENTIAL_FIELD", "credential_id"),
        (
            BindCredential(node_id="chatOpenAI_0", credential_id=UUID, credential_type="anthropicApi"),
            "CREDENTIAL_TYPE_MISMATCH",
            "credential_type",
        ),
    ],
)
def test_refusals_name_op_field_and_what_is_allowed(schemas: Schemas, op: PatchOp, code: str, field: str) -> None:
    base = compile_ops(GraphIR.empty(), llm_chain(NOWHERE), schemas).graph

    (finding,) = _findings([SetParam(node_id="chatOpenAI_0", param_name="topP", value=1), op], schemas, base)

    assert (finding.code, finding.field, finding.op_index) == (code, field, 1)
    assert finding.op_type == op.op_type
    assert finding.hint


@pytest.mark.parametrize(
    ("op", "right"),
    [
        (_add("chatOpenIA", "m"), {"node_name": "chatOpenAI", "node_id": "m"}),
        (_add("chatOpenAI", "m", temprature=0.5), {"params": [{"name": "temperature", "value": 0.5}]}),
        (SetParam(node_id="chatOpenAI_0", param_name="temprature", value=1), {"param_name": "temperature", "value": 1}),
        (SetParam(node_id="chatOpenIA_0", param_name="temperature", value=1), {"node_id": "chatOpenAI_0", "value": 1}),
        (_connect("chatOpenAI_0", "llmChain_0", "modell"), {"target_anchor": "model"}),
        (
            BindCredential(node_id="chatOpenAI_0", credential_id=UUID, credential_type="openAIapi"),
            {"credential_type": "openAIApi", "credential_id": UUID},
        ),
        (SetOutput(node_id="llmChain_0", output="outputPredicton"), {"output": "outputPrediction"}),
        (ReplaceNode(node_id="llmChain_0", node_name="conversationChian"), {"node_name": "conversationChain"}),
        (UnsetParam(node_id="chatOpenAI_0", param_name="maxTokns"), {"param_name": "maxTokens"}),
        (RemoveNode(node_id="llmChian_0"), {"node_id": "llmChain_0"}),
    ],
)
def test_a_refusal_shows_the_op_as_it_would_be_right(schemas: Schemas, op: PatchOp, right: dict[str, Any]) -> None:
    base = compile_ops(GraphIR.empty(), llm_chain(NOWHERE), schemas).graph

    (finding,) = _findings([op], schemas, base)

    example = finding.hint[finding.hint.index('{"op_type"') :]
    (corrected,) = ops_from_json(f"[{example}]")
    shown = json.loads(example)
    assert {name: shown.get(name) for name in ("op_type", *right)} == {"op_type": op.op_type, **right}
    compile_ops(base, [corrected], schemas)


@pytest.mark.parametrize(
    "op",
    [
        BindCredential(node_id="chatOpenIA_0", credential_id="hunter2-hunter2"),
        SetParam(node_id="chatOpenAI_0", param_name="apiKey", value="hunter2-hunter2"),
        _add("calculator", "c", api_key="hunter2-hunter2"),
    ],
)
def test_p10_the_corrected_op_repeats_nothing_that_may_be_secret(schemas: Schemas, op: PatchOp) -> None:
    base = compile_ops(GraphIR.empty(), llm_chain(NOWHERE), schemas).graph

    (finding,) = _findings([op], schemas, base)

    assert "hunter2" not in finding.text


@pytest.mark.parametrize("value", ["my openai key", "openAIApi", "sk-abcdefghijklmnopqrstuvwxyz", UUID[:-1]])
def test_p10_credential_given_by_anything_but_its_id_is_refused_unquoted(schemas: Schemas, value: str) -> None:
    (finding,) = _findings([_add("chatOpenAI", "m"), BindCredential(node_id="m", credential_id=value)], schemas)

    assert (finding.code, finding.where) == ("CREDENTIAL_NOT_UUID", "m")
    assert value not in finding.text


def test_credential_goes_to_data_credential_and_nowhere_else(schemas: Schemas) -> None:
    graph = compile_ops(
        GraphIR.empty(), [_add("chatOpenAI", "m"), BindCredential(node_id="m", credential_id=UUID)], schemas
    ).graph

    data = _data(graph, "m")
    assert data["credential"] == UUID
    assert data["inputParams"][0]["id"] == "m-input-credential-credential"
    assert UUID not in json.dumps(data["inputs"])


def test_second_node_on_a_single_anchor_is_refused(schemas: Schemas) -> None:
    ops: list[PatchOp] = [_add("llmChain", "c"), _add("chatOpenAI", "a"), _add("chatOpenAI", "b")]

    (finding,) = _findings([*ops, _connect("a", "c", "model"), _connect("b", "c", "model")], schemas)

    assert (finding.code, finding.where, finding.field, finding.op_index) == ("ANCHOR_OCCUPIED", "c", "model", 4)
    assert "'a'" in finding.detail


def test_one_node_cannot_give_two_outputs_at_once(schemas: Schemas) -> None:
    (finding,) = _findings(
        [
            *rag(NOWHERE),
            _add("vectorStoreRetriever", "r"),
            _connect("memoryVectorStore_0", "r", "vectorStore"),
        ],
        schemas,
    )

    assert (finding.code, finding.where) == ("OUTPUT_CONFLICT", "memoryVectorStore_0")
    assert "memoryVectorStore_1" in finding.hint


def test_both_branches_of_an_if_else_can_be_used(schemas: Schemas) -> None:
    ops: list[PatchOp] = [_add("ifElseFunction", "i")]
    for number, output in enumerate(("returnTrue", "returnFalse")):
        ops += [
            _add("promptTemplate", f"p{number}", template="{x}", promptValues={"x": "{{i.data.instance}}"}),
            _connect("i", f"p{number}", "promptValues", output),
        ]

    graph = compile_ops(GraphIR.empty(), ops, schemas).graph

    assert [edge.output_name for edge in graph.edges] == ["returnTrue", "returnFalse"]


def test_prediction_of_a_chain_goes_into_a_prompt_where_the_text_says(schemas: Schemas) -> None:
    more: list[PatchOp] = [_add("promptTemplate", "p", template="{x}"), _connect("llmChain_0", "p", "promptValues")]

    (finding,) = _findings([*llm_chain(NOWHERE), *more], schemas)
    assert finding.code == "REFERENCE_MISSING"
    assert "{{llmChain_0.data.instance}}" in finding.hint

    value = SetParam(node_id="p", param_name="promptValues", value={"x": "{{llmChain_0.data.instance}}"})
    graph = compile_ops(GraphIR.empty(), [*llm_chain(NOWHERE), *more, value], schemas).graph
    assert _data(graph, "llmChain_0")["outputs"] == {"output": "outputPrediction"}
    assert json.loads(_data(graph, "p")["inputs"]["promptValues"]) == {"x": "{{llmChain_0.data.instance}}"}


def test_repeated_connect_is_one_connection(schemas: Schemas) -> None:
    again = _connect("chatOpenAI_0", "llmChain_0", "model")

    once = compile_ops(GraphIR.empty(), llm_chain(NOWHERE), schemas)
    twice = compile_ops(GraphIR.empty(), [*llm_chain(NOWHERE), again], schemas)

    assert once.flow_data == twice.flow_data


def test_setting_a_field_updates_what_the_editor_shows(schemas: Schemas) -> None:
    def display(graph: GraphIR) -> bool:
        return next(p for p in _data(graph, "m")["inputParams"] if p["name"] == "reasoningEffort")["display"]

    assert not display(compile_ops(GraphIR.empty(), [_add("chatOpenAI", "m")], schemas).graph)
    assert display(compile_ops(GraphIR.empty(), [_add("chatOpenAI", "m", reasoning=True)], schemas).graph)


def test_values_take_the_form_that_flowise_stores(schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        _add("chatOpenAI", "m", Reasoning="TRUE", reasoningeffort="High", baseOptions={"a": "ä"}, temperature="0.2")
    ]

    inputs = _data(compile_ops(GraphIR.empty(), ops, schemas).graph, "m")["inputs"]

    assert (inputs["reasoning"], inputs["reasoningEffort"]) == (True, "high")
    assert (inputs["baseOptions"], inputs["temperature"]) == ('{"a":"ä"}', "0.2")


def test_p13_what_no_op_touches_is_carried_through(schemas: Schemas) -> None:
    base = json.loads(compile_ops(GraphIR.empty(), llm_chain(NOWHERE), schemas).flow_data)
    base["viewport"] = {"x": -12.5, "y": 3, "zoom": 0.75}
    base["custom"] = {"kept": [1, None, "ü"]}
    base["nodes"][0] |= {"parentNode": "group", "extent": "parent", "position": {"x": 1.25, "y": -7}}
    base["nodes"].append(
        {"id": "stickyNote_0", "type": "stickyNote", "position": {"x": 0, "y": 0}, "data": {"inputs": {"note": "hi"}}}
    )
    base["edges"][0]["data"] = {"label": "feeds"}
    text = json.dumps(base)

    graph = GraphIR.from_flow_data(text)
    assert json.loads(graph.to_flow_data()) == base
    result = compile_ops(graph, [SetParam(node_id="llmChain_0", param_name="chainName", value="x")], schemas)

    after = json.loads(result.flow_data)
    changed = next(node for node in after["nodes"] if node["id"] == "llmChain_0")
    assert changed["data"]["inputs"].pop("chainName") == "x"
    original = next(node for node in base["nodes"] if node["id"] == "llmChain_0")
    original["data"]["inputs"].pop("chainName")
    assert after == base


def test_p13_handles_of_an_old_node_come_from_its_own_anchors(schemas: Schemas) -> None:
    ops: list[PatchOp] = [_add("toolAgent", "a"), _add("chatOpenAI", "m")]
    base = json.loads(compile_ops(GraphIR.empty(), ops, schemas).flow_data)
    model = next(node for node in base["nodes"] if node["id"] == "m")["data"]
    model["version"] = 1
    model["outputAnchors"] = [
        {
            "id": "m-output-chatOpenAI-ChatOpenAI|BaseChatModel",
            "name": "chatOpenAI",
            "label": "ChatOpenAI",
            "type": "ChatOpenAI | BaseChatModel",
        }
    ]

    result = compile_ops(GraphIR.from_flow_data(json.dumps(base)), [_connect("m", "a", "model")], schemas)

    assert result.graph.edges[0].source_handle == "m-output-chatOpenAI-ChatOpenAI|BaseChatModel"


def test_all_findings_come_at_once_and_in_the_order_of_the_ops(schemas: Schemas) -> None:
    findings = _findings(
        [_connect("a", "b", "model"), SetParam(node_id="c", param_name="x", value=1), _add("nope nope", "n")], schemas
    )

    assert [finding.op_index for finding in findings] == [0, 0, 1, 2]


def test_p05_an_empty_patch_is_refused(schemas: Schemas) -> None:
    assert [finding.code for finding in _findings([], schemas)] == ["EMPTY_PATCH"]


def test_text_that_is_no_valid_unicode_still_gives_writable_bytes(schemas: Schemas) -> None:
    result = compile_ops(GraphIR.empty(), [_add("promptTemplate", "p", template="broken \ud800 half")], schemas)

    assert json.loads(result.flow_data.encode())["nodes"][0]["data"]["inputs"]["template"] == "broken \ud800 half"


@pytest.mark.parametrize(
    ("output", "anchor"), [("text", "document"), ("nothing", "document"), ("document", "documents"), ("text", "loader")]
)
def test_an_anchor_with_one_possible_partner_is_completed(schemas: Schemas, output: str, anchor: str) -> None:
    ops = [
        AddNode(node_name="plainText", node_id="plainText_0"),
        AddNode(node_name="memoryVectorStore", node_id="memoryVectorStore_0"),
        Connect(
            source_node_id="plainText_0",
            source_anchor=output,
            target_node_id="memoryVectorStore_0",
            target_anchor=anchor,
        ),
    ]
    (edge,) = compile_ops(GraphIR.empty(), ops, schemas).graph.edges
    assert (edge.output_name, edge.input_name) == ("document", "document")


def test_options_of_a_tool_inside_a_step_are_stored_as_text(schemas: Schemas) -> None:
    """Flowise parses them; a list would be no option at all, so that the agent had no tool."""
    config = {"calendarType": "event", "eventActions": ["listEvents", "getEvent"]}
    rows = [{"agentSelectedTool": "googleCalendarTool", "agentSelectedToolConfig": config}]
    graph = compile_ops(GraphIR.empty(), [_add("agentAgentflow", "a", agentTools=rows)], schemas).graph
    node = graph.node("a")
    assert node is not None
    assert node.inputs["agentTools"][0]["agentSelectedToolConfig"]["eventActions"] == '["listEvents","getEvent"]'


def test_what_a_condition_compares_as_text_is_stored_as_text(schemas: Schemas) -> None:
    """The server calls methods of a text on it, and fails on anything else."""
    rows = [
        {"type": "string", "value1": "{{ $form.cracked }}", "operation": "equal", "value2": True},
        {"type": "number", "value1": "{{ $form.age }}", "operation": "larger", "value2": 5},
    ]
    graph = compile_ops(GraphIR.empty(), [_add("conditionAgentflow", "c", conditions=rows)], schemas).graph
    node = graph.node("c")
    assert node is not None
    assert [row["value2"] for row in node.inputs["conditions"]] == ["true", 5]


def test_settings_of_a_tool_follow_its_choice_in_the_same_patch(schemas: Schemas) -> None:
    chosen: dict[str, Any] = {
        "agentTools[0].agentSelectedToolConfig.calendarType": "event",
        "agentTools[0].agentSelectedToolConfig.eventActions": ["listEvents"],
        "agentTools[0].agentSelectedTool": "googleCalendarTool",
    }
    for ops in (
        [_add("agentAgentflow", "a", **chosen)],
        [
            _add("agentAgentflow", "a"),
            *(SetParam(node_id="a", param_name=name, value=chosen[name]) for name in reversed(chosen)),
        ],
    ):
        node = compile_ops(GraphIR.empty(), ops, schemas).graph.node("a")
        assert node is not None
        config = node.inputs["agentTools"][0]["agentSelectedToolConfig"]
        assert (config["calendarType"], config["eventActions"]) == ("event", '["listEvents"]')


def test_another_tool_of_a_row_keeps_the_settings_of_the_same_patch(schemas: Schemas) -> None:
    base = compile_ops(
        GraphIR.empty(),
        [_add("agentAgentflow", "a", agentTools=[{"agentSelectedTool": "calculator"}])],
        schemas,
    ).graph
    server = '{"url": "https://tickets.example/mcp"}'
    ops: list[PatchOp] = [
        SetParam(node_id="a", param_name="agentTools[0].agentSelectedTool", value="customMCP"),
        SetParam(node_id="a", param_name="agentTools[0].agentSelectedToolConfig.mcpServerConfig", value=server),
    ]
    for order in (ops, ops[::-1]):
        node = compile_ops(base, order, schemas).graph.node("a")
        assert node is not None
        [row] = node.inputs["agentTools"]
        assert row["agentSelectedTool"] == row["agentSelectedToolConfig"]["agentSelectedTool"] == "customMCP"
        assert row["agentSelectedToolConfig"]["mcpServerConfig"] == server
