"""Each rule: a flow that is good but for one thing, and exactly the code for that thing."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    Finding,
    GraphIR,
    PatchOp,
    Schemas,
    SetParam,
    compile_ops,
    validate_flow,
)
from flowise_dev_agent.patch.model.json_text import JsonValue
from flowise_dev_agent.patch.validate.context import RULES
from tests.fixtures.editor_flows import functions
from tests.fixtures.golden_flows import GOLDEN, NOWHERE
from tests.fixtures.trial_flows import TRIAL_FLOWS

Flow = dict[str, Any]
Mutation = Callable[[Flow], None]

UUID = NOWHERE["openAIApi"]
CREDENTIALS = {UUID: "openAIApi", "22222222-2222-4222-8222-222222222222": "anthropicApi"}


def _build(schemas: Schemas, name: str) -> Flow:
    return json.loads(compile_ops(GraphIR.empty(), GOLDEN[name](NOWHERE), schemas).flow_data)


def _validate(flow: Flow | str, schemas: Schemas, **options: Any) -> list[Finding]:
    text = flow if isinstance(flow, str) else json.dumps(flow)
    given: dict[str, Any] = {"credentials": CREDENTIALS, **options}
    return validate_flow(text, schemas=schemas, **given)


def _node(flow: Flow, node_id: str) -> Flow:
    return next(node for node in flow["nodes"] if node["id"] == node_id)


def _data(flow: Flow, node_id: str) -> Flow:
    return _node(flow, node_id)["data"]


def _edge(flow: Flow, source: str) -> Flow:
    return next(edge for edge in flow["edges"] if edge["source"] == source)


def _drop_edge(flow: Flow, source: str) -> None:
    flow["edges"].remove(_edge(flow, source))


def _disconnect(flow: Flow, source: str) -> None:
    edge = _edge(flow, source)
    flow["edges"].remove(edge)
    name = edge["targetHandle"].split("-")[2]
    inputs = _data(flow, edge["target"])["inputs"]
    inputs[name] = [] if isinstance(inputs[name], list) else ""


def _add(flow: Flow, schemas: Schemas, *ops: PatchOp) -> None:
    """Continue with the compiler what a mutation began."""
    flow.update(json.loads(compile_ops(GraphIR.from_flow_data(json.dumps(flow)), ops, schemas).flow_data))


MUTATIONS: list[tuple[str, str, str, Callable[[Flow, Schemas], None]]] = []


def _case(code: str, flow: str, where: str) -> Callable[[Callable[[Flow, Schemas], None]], None]:
    def register(mutate: Callable[[Flow, Schemas], None]) -> None:
        MUTATIONS.append((code, flow, where, mutate))

    return register


def _simple(code: str, flow: str, where: str, mutate: Mutation) -> None:
    MUTATIONS.append((code, flow, where, lambda built, _: mutate(built)))


for _field in ("inputAnchors", "inputParams", "outputAnchors", "inputs", "category", "name"):
    _simple(
        "DATA_FIELD_MISSING", "chat", "bufferMemory_0", lambda f, field=_field: _data(f, "bufferMemory_0").pop(field)
    )
for _field in ("position", "type"):
    _simple("DATA_FIELD_MISSING", "chat", "bufferMemory_0", lambda f, key=_field: _node(f, "bufferMemory_0").pop(key))
_simple("DATA_FIELD_MISSING", "rag", "plainText_0", lambda f: _data(f, "plainText_0").pop("outputs"))
_simple("BAD_SOURCE_HANDLE", "chat", "bufferMemory_0", lambda f: _edge(f, "bufferMemory_0").update(sourceHandle="x"))
_simple(
    "BAD_TARGET_HANDLE",
    "chat",
    "conversationChain_0",
    lambda f: _edge(f, "bufferMemory_0").update(targetHandle="conversationChain_0-input-memory-Old"),
)
_simple(
    "DANGLING_EDGE",
    "chat",
    "conversationChain_0",
    lambda f: f["edges"].append({**_edge(f, "bufferMemory_0"), "source": "ghost_0"}),
)
_simple(
    "TEXT_STALLS_SERVER",
    "chat",
    "conversationChain_0",
    lambda f: _data(f, "conversationChain_0")["inputs"].update(systemMessagePrompt="{{" * 16_384),
)
_simple("DUPLICATE_EDGE", "chat", "conversationChain_0", lambda f: f["edges"].append(dict(f["edges"][0])))
_simple("REF_WITHOUT_EDGE", "tool_agent", "toolAgent_0", lambda f: _drop_edge(f, "calculator_0"))
_simple(
    "EDGE_WITHOUT_REF",
    "chat",
    "conversationChain_0",
    lambda f: _data(f, "conversationChain_0")["inputs"].update(memory=""),
)
_simple(
    "REF_TO_MISSING_NODE",
    "chat",
    "conversationChain_0",
    lambda f: _data(f, "conversationChain_0")["inputs"].update(memory="{{ghost_0.data.instance}}"),
)


def _without_memory(flow: Flow) -> None:
    _disconnect(flow, "bufferMemory_0")
    flow["nodes"].remove(_node(flow, "bufferMemory_0"))


_simple("REQUIRED_ANCHOR_UNCONNECTED", "chat", "conversationChain_0", _without_memory)
_simple(
    "SINGLE_ANCHOR_IS_LIST",
    "chat",
    "conversationChain_0",
    lambda f: _data(f, "conversationChain_0")["inputs"].update(memory=["{{bufferMemory_0.data.instance}}"]),
)
_simple(
    "BAD_REFERENCE",
    "tool_agent",
    "toolAgent_0",
    lambda f: _data(f, "toolAgent_0")["inputs"]["tools"].append(None),
)
_simple("UNKNOWN_OUTPUT", "rag", "plainText_0", lambda f: _data(f, "plainText_0")["outputs"].update(output="nope"))
_simple(
    "OUTPUT_SELECTION_MISMATCH",
    "rag",
    "plainText_0",
    lambda f: _data(f, "plainText_0")["outputs"].update(output="text"),
)
_simple("CREDENTIAL_UNBOUND", "chat", "chatOpenAI_0", lambda f: _data(f, "chatOpenAI_0").update(credential=""))
_simple("CREDENTIAL_UNBOUND", "chat", "chatOpenAI_0", lambda f: _data(f, "chatOpenAI_0").pop("credential"))
_simple("CREDENTIAL_NOT_UUID", "chat", "chatOpenAI_0", lambda f: _data(f, "chatOpenAI_0").update(credential="my key"))
_simple(
    "CREDENTIAL_UNKNOWN",
    "chat",
    "chatOpenAI_0",
    lambda f: _data(f, "chatOpenAI_0").update(credential="33333333-3333-4333-8333-333333333333"),
)
_simple(
    "CREDENTIAL_TYPE_MISMATCH",
    "chat",
    "chatOpenAI_0",
    lambda f: _data(f, "chatOpenAI_0").update(credential="22222222-2222-4222-8222-222222222222"),
)
_simple("UNKNOWN_NODE_NAME", "chat", "bufferMemory_0", lambda f: _data(f, "bufferMemory_0").update(name="BufferMemory"))
_simple("VERSION_DRIFT", "chat", "bufferMemory_0", lambda f: _data(f, "bufferMemory_0").update(version=1))
_simple("UNKNOWN_PARAM", "chat", "bufferMemory_0", lambda f: _data(f, "bufferMemory_0")["inputs"].update(colour="red"))
_simple("NOT_A_NUMBER", "chat", "chatOpenAI_0", lambda f: _data(f, "chatOpenAI_0")["inputs"].update(temperature="hot"))
_simple(
    "NOT_A_BOOLEAN", "chat", "chatOpenAI_0", lambda f: _data(f, "chatOpenAI_0")["inputs"].update(streaming="perhaps")
)
_simple(
    "NOT_A_TEXT",
    "chat",
    "conversationChain_0",
    lambda f: _data(f, "conversationChain_0")["inputs"].update(systemMessagePrompt={"a": 1}),
)
_simple("BAD_JSON", "chat", "chatOpenAI_0", lambda f: _data(f, "chatOpenAI_0")["inputs"].update(baseOptions="{oops"))
_simple(
    "BAD_OPTION",
    "chat",
    "chatOpenAI_0",
    lambda f: _data(f, "chatOpenAI_0")["inputs"].update(
        reasoning=True, reasoningEffort="huge", reasoningSummary="auto"
    ),
)
_simple(
    "REQUIRED_PARAM_MISSING", "chat", "chatOpenAI_0", lambda f: _data(f, "chatOpenAI_0")["inputs"].update(modelName="")
)
_simple(
    "REQUIRED_PARAM_MISSING",
    "llm_chain",
    "promptTemplate_0",
    lambda f: _data(f, "promptTemplate_0")["inputs"].update(template="  "),
)
_simple("NODE_ID_MISMATCH", "chat", "bufferMemory_0", lambda f: _data(f, "bufferMemory_0").update(id="other"))
_simple(
    "ENDING_NODE_OUTPUT", "llm_chain", "llmChain_0", lambda f: _data(f, "llmChain_0")["outputs"].update(
        output="outputPrediction"))  # fmt: skip
_simple(
    "ENDING_NODE_KIND",
    "chat",
    "conversationChain_0",
    lambda f: _data(f, "conversationChain_0").update(category="Tools"),
)
_simple("KIND_MISMATCH", "chat", "bufferMemory_0", lambda f: _data(f, "bufferMemory_0").update(category="Agent Flows"))


@_case("TYPE_MISMATCH", "chat", "conversationChain_0")
def _memory_as_model(flow: Flow, _: Schemas) -> None:
    anchor = next(a for a in _data(flow, "conversationChain_0")["inputAnchors"] if a["name"] == "memory")
    anchor["type"] = "BaseRetriever"


@_case("LIST_ANCHOR_NOT_LIST", "tool_agent", "toolAgent_0")
def _tools_as_text(flow: Flow, _: Schemas) -> None:
    _disconnect(flow, "currentDateTime_0")
    flow["nodes"].remove(_node(flow, "currentDateTime_0"))
    _data(flow, "toolAgent_0")["inputs"]["tools"] = "{{calculator_0.data.instance}}"


@_case("REQUIRED_ANCHOR_UNCONNECTED", "tool_agent", "toolAgent_0")
def _agent_without_tools(flow: Flow, _: Schemas) -> None:
    for tool in ("calculator_0", "currentDateTime_0"):
        _disconnect(flow, tool)
        flow["nodes"].remove(_node(flow, tool))


@_case("ANCHOR_OCCUPIED", "chat", "conversationChain_0")
def _second_memory(flow: Flow, schemas: Schemas) -> None:
    _add(flow, schemas, AddNode(node_name="bufferMemory", node_id="bufferMemory_1"))
    other = _edge(flow, "bufferMemory_0")
    flow["edges"].append(json.loads(json.dumps(other).replace("bufferMemory_0", "bufferMemory_1")))


@_case("CREDENTIAL_MISPLACED", "chat", "chatOpenAI_0")
def _credential_in_inputs(flow: Flow, _: Schemas) -> None:
    data = _data(flow, "chatOpenAI_0")
    data["inputs"]["FLOWISE_CREDENTIAL_ID"] = data["credential"]
    data["credential"] = ""


@_case("SECRET_IN_INPUTS", "chat", "chatOpenAI_0")
def _key_in_a_declared_field(flow: Flow, _: Schemas) -> None:
    _data(flow, "chatOpenAI_0")["inputs"]["baseOptions"] = '{"Authorization": "Bearer sk-abcdefghijklmnopqrstuvwx"}'


@_case("SECRET_IN_INPUTS", "chat", "conversationChain_0")
def _key_in_a_prompt(flow: Flow, _: Schemas) -> None:
    _data(flow, "conversationChain_0")["inputs"]["systemMessagePrompt"] = "Use ghp_" + "a1B2" * 9


@_case("CYCLE", "chat", "conversationChain_0")
def _chain_feeds_its_own_model(flow: Flow, schemas: Schemas) -> None:
    _add(
        flow,
        schemas,
        AddNode(node_name="chainTool", node_id="t", params={"name": "a", "description": "b"}),
        Connect(source_node_id="conversationChain_0", target_node_id="t", target_anchor="baseChain"),
        AddNode(node_name="toolAgent", node_id="a"),
        Connect(source_node_id="t", target_node_id="a", target_anchor="tools"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="a", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="a", target_anchor="memory"),
    )
    # The agent poses as what the chain takes its model from.
    agent, chain = _data(flow, "a"), _data(flow, "conversationChain_0")
    agent["outputAnchors"][0]["type"] = "BaseMemory"
    edge = _edge(flow, "bufferMemory_0")
    edge |= {"source": "a", "sourceHandle": agent["outputAnchors"][0]["id"]}
    chain["inputs"]["memory"] = "{{a.data.instance}}"


@_case("NO_ENDING_NODE", "chat", "")
def _nothing_connected(flow: Flow, _: Schemas) -> None:
    flow["nodes"] = [_node(flow, "bufferMemory_0"), json.loads(json.dumps(_node(flow, "bufferMemory_0")).replace(
        "bufferMemory_0", "bufferMemory_1"))]  # fmt: skip
    flow["edges"] = []


@_case("MULTIPLE_ENDING_NODES", "chat", "conversationChain_1")
def _two_chains(flow: Flow, schemas: Schemas) -> None:
    _add(
        flow,
        schemas,
        AddNode(node_name="conversationChain", node_id="conversationChain_1"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_1", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_1", target_anchor="memory"),
    )


@_case("DEAD_END", "rag", "embeddings_cache")
def _loose_branch(flow: Flow, schemas: Schemas) -> None:
    _add(
        flow,
        schemas,
        AddNode(node_name="inMemoryEmbeddingCache", node_id="embeddings_cache", params={"namespace": "n"}),
        Connect(source_node_id="openAIEmbeddings_0", target_node_id="embeddings_cache", target_anchor="embeddings"),
    )


@_case("ISOLATED_NODE", "chat", "calculator_0")
def _loose_tool(flow: Flow, schemas: Schemas) -> None:
    _add(flow, schemas, AddNode(node_name="calculator", node_id="calculator_0"))


@_case("VECTOR_STORE_WITHOUT_DOCUMENT", "rag", "memoryVectorStore_0")
def _store_without_loader(flow: Flow, _: Schemas) -> None:
    _disconnect(flow, "plainText_0")
    gone = ("plainText_0", "recursiveCharacterTextSplitter_0")
    flow["nodes"] = [node for node in flow["nodes"] if node["id"] not in gone]
    _drop_edge(flow, "recursiveCharacterTextSplitter_0")


@_case("EMPTY_FLOW", "chat", "")
def _no_nodes(flow: Flow, _: Schemas) -> None:
    flow.update(nodes=[], edges=[])


@_case("DUPLICATE_NODE_ID", "chat", "bufferMemory_0")
def _same_node_twice(flow: Flow, _: Schemas) -> None:
    flow["nodes"].append(json.loads(json.dumps(_node(flow, "bufferMemory_0"))))


@_case("BAD_NODE_ID", "chat", "buffer-memory")
def _dash_in_id(flow: Flow, _: Schemas) -> None:
    flow.update(json.loads(json.dumps(flow).replace("bufferMemory_0", "buffer-memory")))


@_case("BAD_TOOL_ID", "tool_agent", "customTool_0")
def _tool_by_name(flow: Flow, schemas: Schemas) -> None:
    _add(
        flow,
        schemas,
        AddNode(node_name="customTool", node_id="customTool_0", params={"selectedTool": "weather"}),
        Connect(source_node_id="customTool_0", target_node_id="toolAgent_0", target_anchor="tools"),
    )


@_case("REQUIRED_PARAM_MISSING", "tool_agent", "customTool_0")
def _tool_not_chosen(flow: Flow, schemas: Schemas) -> None:
    """P27: Flowise asks its database for the tool '' and fails."""
    _add(
        flow,
        schemas,
        AddNode(node_name="customTool", node_id="customTool_0"),
        Connect(source_node_id="customTool_0", target_node_id="toolAgent_0", target_anchor="tools"),
    )


_WARNINGS = {
    *("VERSION_DRIFT", "UNKNOWN_PARAM", "ISOLATED_NODE", "DEAD_END"),
    *("BAD_SOURCE_HANDLE", "BAD_TARGET_HANDLE", "DUPLICATE_EDGE"),
}
#: Codes whose flows have their own tests, below or in `test_model_uses.py`.
_ELSEWHERE = {
    *("UNVERIFIED_NODE", "UNKNOWN_TOOL", "PROMPT_BRACES", "NOT_A_LIST", "PROMPT_VALUE_MISSING", "NOT_AN_ID"),
    *("MODEL_ENDED", "MODEL_ENDS", "TOOL_INPUT_MISSING"),
    # In tests/integration/flowise/test_document_stores.py.
    "UPSERT_DOUBLES",
    # In test_cases.py.
    *(
        "ONLY_INDEXES",
        "UPSERT_LOST",
        "CREDENTIAL_MAY_LACK",
        "SERVER_SETTING_NEEDED",
        "NOT_ON_SERVER",
        "VARIABLE_NOT_ON_SERVER",
    ),
    # In test_functions.py.
    *("CODE_SYNTAX", "CODE_VARIABLE_UNKNOWN"),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_good_flows_have_no_findings(schemas: Schemas, name: str) -> None:
    assert _validate(_build(schemas, name), schemas) == []


@pytest.mark.parametrize(
    ("code", "name", "where", "mutate"), MUTATIONS, ids=[f"{n}-{case[0]}-{case[1]}" for n, case in enumerate(MUTATIONS)]
)
def test_one_mistake_gives_exactly_its_code_at_its_node(
    schemas: Schemas, code: str, name: str, where: str, mutate: Callable[[Flow, Schemas], None]
) -> None:
    flow = _build(schemas, name)
    mutate(flow, schemas)

    findings = [f for f in _validate(flow, schemas) if f.severity == "error" or f.code == code]
    if code == "NO_ENDING_NODE":
        findings = [f for f in findings if f.code != "ISOLATED_NODE"]

    assert {(f.code, f.where) for f in findings} == {(code, where)}
    assert {f.severity for f in findings} == {"warning" if code in _WARNINGS else "error"}


def test_every_registered_code_has_a_mutation() -> None:
    registered = {code for rule in RULES if "CHATFLOW" in rule.kinds for code in rule.codes}

    tried = {flow.code for flow in TRIAL_FLOWS if flow.kind == "CHATFLOW"} - {""}
    assert registered == {case[0] for case in MUTATIONS} | _ELSEWHERE | tried


def test_an_openapi_toolkit_takes_the_first_server_and_each_endpoint_by_itself(schemas: Schemas) -> None:
    flow = _build(schemas, "tool_agent")
    toolkit = AddNode(node_name="openAPIToolkit", node_id="toolkit", params={"openApiFile": "FILE-STORAGE::api.yaml"})
    _add(flow, schemas, toolkit, Connect(source_node_id="toolkit", target_node_id="toolAgent_0", target_anchor="tools"))
    found = {(one.code, one.field, one.severity) for one in _validate(flow, schemas) if one.where == "toolkit"}
    assert found == {("REQUIRED_PARAM_MISSING", name, "warning") for name in ("selectedServer", "selectedEndpoints")}


def test_a_tool_to_come_is_no_wrong_id(schemas: Schemas) -> None:
    flow = _build(schemas, "tool_agent")
    later = AddNode(node_name="customTool", node_id="customTool_0", params={"selectedTool": "[PLACEHOLDER: get_kpi]"})
    to_agent = Connect(source_node_id="customTool_0", target_node_id="toolAgent_0", target_anchor="tools")
    _add(flow, schemas, later, to_agent)
    assert [one for one in _validate(flow, schemas) if one.severity == "error"] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        '{"nodes": []}',
        '{"edges": []}',
        '{"nodes": {}, "edges": []}',
        '{"nodes": [1], "edges": []}',
        '{"nodes": [{"id": "a"}], "edges": []}',
        '{"nodes": [{"id": 1, "data": {}}], "edges": []}',
        '{"nodes": [], "edges": ["x"]}',
        '{"nodes": [], "edges": [], "x": NaN}',
    ],
)
def test_text_that_flowise_refuses_to_save_is_a_shape_error(schemas: Schemas, text: str) -> None:
    assert {finding.code for finding in _validate(text, schemas)} == {"SHAPE"}


def test_sticky_notes_are_no_part_of_the_flow(schemas: Schemas) -> None:
    flow = _build(schemas, "chat")
    flow["nodes"].append({"id": "note-1", "type": "stickyNote", "position": {"x": 0, "y": 0}, "data": {"id": "note-1"}})

    assert [f.code for f in _validate(flow, schemas) if f.where != "note-1"] == []
    assert {f.code for f in _validate(flow, schemas)} <= {"BAD_NODE_ID"}


def test_unknown_type_that_was_there_before_is_a_warning_and_a_new_one_an_error(schemas: Schemas) -> None:
    flow = _build(schemas, "chat")
    _data(flow, "bufferMemory_0")["name"] = "someCommunityMemory"

    update = _validate(flow, schemas, base_flow_data=json.dumps(flow))
    create = _validate(flow, schemas, base_flow_data=json.dumps(_build(schemas, "chat")))

    assert [(f.code, f.severity) for f in update] == [("UNVERIFIED_NODE", "warning")]
    assert [(f.code, f.severity) for f in create] == [("UNKNOWN_NODE_NAME", "error")]


def test_p25_wrong_case_stays_an_error_and_names_the_right_one(schemas: Schemas) -> None:
    flow = _build(schemas, "chat")
    _data(flow, "chatOpenAI_0")["name"] = "ChatOpenAi"

    (finding,) = _validate(flow, schemas, base_flow_data=json.dumps(flow))

    assert (finding.code, finding.allowed) == ("UNKNOWN_NODE_NAME", ("chatOpenAI",))


def test_p10_unresolved_credential_never_passes_even_when_the_instance_is_unknown(schemas: Schemas) -> None:
    flow = _build(schemas, "rag")
    _data(flow, "chatOpenAI_0")["credential"] = ""
    _data(flow, "openAIEmbeddings_0")["credential"] = "my openai key"

    findings = _validate(flow, schemas, credentials=None)

    assert [(f.code, f.where) for f in findings] == [
        ("CREDENTIAL_NOT_UUID", "openAIEmbeddings_0"),
        ("CREDENTIAL_UNBOUND", "chatOpenAI_0"),
    ]


def test_optional_credential_may_stay_unbound(schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        *GOLDEN["chat"](NOWHERE),
        AddNode(node_name="redisCache", node_id="cache"),
        Connect(source_node_id="cache", target_node_id="chatOpenAI_0", target_anchor="cache"),
    ]

    assert _validate(compile_ops(GraphIR.empty(), ops, schemas).flow_data, schemas) == []


def test_secrets_are_found_without_being_quoted(schemas: Schemas) -> None:
    flow = _build(schemas, "chat")
    _data(flow, "chatOpenAI_0")["inputs"]["openAIApiKey"] = "not-even-a-known-format"

    findings = [f for f in _validate(flow, schemas) if f.severity == "error"]

    assert [(f.code, f.field) for f in findings] == [("SECRET_IN_INPUTS", "openAIApiKey")]
    assert "not-even" not in findings[0].model_dump_json()


@pytest.mark.parametrize(
    ("headers", "secret"),
    [
        ({"X-API-Key": "hunter2"}, True),
        ({"Authorization": "Basic aHVudGVyMg=="}, True),
        ({"deep": {"client-secret": "hunter2"}}, True),
        ({"X-API-Key": "{{$vars.key}}", "Authorization": "Bearer {{ $vars.key }}"}, False),
        ({"Accept": "text/plain", "api_key": ""}, False),
    ],
)
def test_headers_with_a_secret_in_clear_are_found_in_json_and_in_rows(
    schemas: Schemas, headers: dict[str, Any], secret: bool
) -> None:
    flow = _build(schemas, "chat")
    _data(flow, "chatOpenAI_0")["inputs"]["baseOptions"] = json.dumps({"headers": headers})
    rows: JsonValue = [{"key": key, "value": value} for key, value in headers.items()]
    http = AddNode(node_name="httpAgentflow", node_id="http", params={"url": "https://example.com", "headers": rows})
    steps = [
        AddNode(node_name="startAgentflow", node_id="start"),
        http,
        Connect(source_node_id="start", target_node_id="http"),
    ]
    other = json.loads(compile_ops(GraphIR.empty(), steps, schemas).flow_data)

    found = [
        f for f in [*_validate(flow, schemas), *_validate(other, schemas, kind="AGENTFLOW")] if f.severity == "error"
    ]

    assert [(f.code, f.where) for f in found] == [
        ("SECRET_IN_INPUTS", "chatOpenAI_0"),
        ("SECRET_IN_INPUTS", "http"),
    ] * secret
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("value", "codes"),
    # The provider has an effort of its own.
    [("", set()), ("High", set()), ("{{$vars.effort}}", set()), ("enormous", {"BAD_OPTION"})],
)
def test_hidden_fields_are_not_checked_and_shown_ones_are(schemas: Schemas, value: str, codes: set[str]) -> None:
    flow = _build(schemas, "chat")
    inputs = _data(flow, "chatOpenAI_0")["inputs"]
    inputs["reasoningEffort"] = value
    assert _validate(flow, schemas) == []

    inputs["reasoning"] = True
    assert {f.code for f in _validate(flow, schemas)} == codes


def test_p27_stores_that_keep_their_vectors_only_warn_without_a_loader(schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        op
        for op in GOLDEN["rag"](NOWHERE)
        if not any("plainText_0" in str(v) or "TextSplitter_0" in str(v) for v in op.model_dump().values())
    ]
    text = compile_ops(GraphIR.empty(), ops, schemas).flow_data.replace("memoryVectorStore", "faiss")
    flow = json.loads(text)
    _data(flow, "faiss_0")["inputs"]["basePath"] = "/data"

    findings = [f for f in _validate(flow, schemas) if f.code == "VECTOR_STORE_WITHOUT_DOCUMENT"]

    assert [f.severity for f in findings] == ["warning"]


def test_p27_if_else_that_ends_the_flow_is_refused(schemas: Schemas) -> None:
    ops: list[PatchOp] = [
        *GOLDEN["llm_chain"](NOWHERE),
        AddNode(node_name="ifElseFunction", node_id="i"),
        SetParam(node_id="i", param_name="functionInputVariables", value={"x": "{{llmChain_0.data.instance}}"}),
        Connect(source_node_id="llmChain_0", target_node_id="i", target_anchor="functionInputVariables"),
    ]

    findings = _validate(compile_ops(GraphIR.empty(), ops, schemas).flow_data, schemas)

    assert [(f.code, f.where) for f in findings] == [("ENDING_NODE_KIND", "i")]


def test_assistants_are_checked_by_shape_alone_and_say_so(schemas: Schemas) -> None:
    flow = _build(schemas, "chat")
    flow["edges"] = []

    assert [f.code for f in _validate(flow, schemas, kind="ASSISTANT")] == ["NOT_CHECKED"]
    assert [f.code for f in _validate("{}", schemas, kind="ASSISTANT")] == ["SHAPE", "SHAPE"]
    assert [f.code for f in _validate(flow, schemas, kind="WORKFLOW")] == ["KIND_UNKNOWN"]


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("Translate {text}.", True),
        ('Answer {x} as {"name": "x"}.', True),
        ("{{ literal }} and {x}", True),
        ("{{$vars.tone}} {x}", True),
        ("Use {text", False),
        ("Use text}", False),
        ('{"a": {"b": 1}}', False),
    ],
)
def test_templates_are_read_as_the_server_reads_them(schemas: Schemas, text: str, good: bool) -> None:
    flow = _build(schemas, "llm_chain")
    _data(flow, "promptTemplate_0")["inputs"]["template"] = text

    assert [f.code for f in _validate(flow, schemas)] == ([] if good else ["PROMPT_BRACES"])


def test_two_functions_behind_the_two_ways_of_a_fork_both_may_end_the_flow(schemas: Schemas) -> None:
    """The server runs one of them; measured on 3.1.4."""
    flow = json.loads(compile_ops(GraphIR.empty(), functions(NOWHERE), schemas).flow_data)
    assert _validate(flow, schemas) == []

    wrong = _data(flow, "ifElseFunction_0")["outputAnchors"][0]["options"][0]["id"]
    for edge in flow["edges"]:
        edge["sourceHandle"] = wrong
    assert [f.code for f in _validate(flow, schemas)] == ["MULTIPLE_ENDING_NODES"]


@pytest.mark.parametrize("text", ["{{" * 4_096, "{{ question }} " * 20_000, "{{\n" * 60_000])
def test_long_texts_that_the_server_reads_quickly_are_not_refused(schemas: Schemas, text: str) -> None:
    flow = _build(schemas, "chat")
    _data(flow, "conversationChain_0")["inputs"]["systemMessagePrompt"] = text
    assert "TEXT_STALLS_SERVER" not in {finding.code for finding in _validate(flow, schemas)}
