"""Flows of strangers, the smallest of each kind: what the validator says, with what Flowise 3.1.4 did beside it.

Each file of `tests/fixtures/cases` says what was tried and measured. Cases about import, edits and round trips have
their tests where that is done.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, PatchOp, Schemas, compile_ops, validate_flow
from flowise_dev_agent.patch.model.attached_files import stand_in_id
from flowise_dev_agent.patch.model.json_text import JsonValue
from tests.fixtures.golden_flows import GOLDEN, NOWHERE

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
CREDENTIALS = {
    "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee": "openAIApi",
    "9c79bf01-a3e8-5187-8b84-ec3fbcd7e918": "tavilyApi",
}
#: Nothing of what a flow may refer to is there.
EMPTY_SERVER = {"document store": {}, "flow": {}, "custom tool": {}, "assistant": {}, "variable": {}}

#: Case -> its errors and its warnings.
EXPECTED: dict[str, tuple[set[str], set[str]]] = {
    "A1-dead-end-nodes": (
        set(),
        {
            "CREDENTIAL_UNBOUND",
            "DEAD_END",
            "ISOLATED_NODE",
            "REQUIRED_PARAM_MISSING",
            "VECTOR_STORE_WITHOUT_DOCUMENT",
        },
    ),
    "A2-document-as-text": (set(), set()),
    "A3-loader-file-before-a-lasting-store": (set(), {"REQUIRED_PARAM_MISSING", "UPSERT_DOUBLES"}),
    "A4-upsert-only-flow": (set(), {"ONLY_INDEXES", "UPSERT_LOST"}),
    "A6-surplus-branch-handle": (set(), {"BRANCHES_OUTDATED"}),
    "A7-variables-as-examples": (set(), {"UNKNOWN_VARIABLE"}),
    "A8-secret-placeholder": (set(), set()),
    "E1-model-of-an-old-node": (set(), {"VERSION_DRIFT"}),
    "I1-import-without-credentials": ({"CREDENTIAL_UNBOUND"}, set()),
    "I4-sequential-flow-read-as-chatflow": (set(), {"NOT_CHECKED"}),
    "M1-multiagent-not-checked": ({"DANGLING_EDGE", "REF_TO_MISSING_NODE"}, {"NOT_CHECKED"}),
    "M10-empty-braces": ({"PROMPT_VALUE_MISSING"}, set()),
    "M11-http-body-not-json": ({"BAD_JSON"}, {"SERVER_SETTING_NEEDED", "ANSWER_EMPTY"}),
    "M14-tavily-3.1.4": (set(), {"SERVER_SETTING_NEEDED"}),
    "M2-document-store-gone-chain": ({"NOT_ON_SERVER"}, set()),
    "M5-optional-credential": (set(), {"CREDENTIAL_MAY_LACK"}),
    "M6-start-type-absent": ({"REQUIRED_PARAM_MISSING"}, set()),
    "M7-mcp-command-not-permitted": (set(), {"SERVER_SETTING_NEEDED"}),
    "R1-branches-of-seqCondition": (set(), {"NOT_CHECKED"}),
    # A fragment: what it lacks to be a flow is no matter of the links.
    "R2-selected-links": ({"ENDING_NODE_KIND"}, set()),
    "R4-ops-that-do-not-compile": ({"OUTPUT_SELECTION_MISMATCH", "SHARED_MODEL"}, {"EDGE_WITHOUT_REF"}),
}
#: Cases that are not about a flow's text: their tests are in test_changes_in_words.py, test_update.py and
#: test_flow_exports.py.
ELSEWHERE = {
    "E3-scope-of-a-change",
    "E5-target-of-another-kind",
    "I2-workspace-export",
    "I3-settings-of-a-row-dropped",
}


def case(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def test_every_case_has_its_expectation() -> None:
    assert {path.stem for path in CASES.iterdir()} == EXPECTED.keys() | ELSEWHERE


@pytest.mark.parametrize("name", EXPECTED)
def test_a_case_gets_the_findings_that_fit_what_flowise_did(name: str, schemas: Schemas) -> None:
    tried = case(name)
    found = validate_flow(
        json.dumps(tried["flow_data"]),
        schemas=schemas,
        credentials=CREDENTIALS,
        kind=tried["type"],
        server=EMPTY_SERVER,
    )
    got = tuple({one.code for one in found if one.severity == severity} for severity in ("error", "warning"))
    assert got == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_type_of_a_flow_follows_from_its_nodes(name: str) -> None:
    tried = case(name)
    assert GraphIR(tried["flow_data"]).kind == tried["type"]


def test_what_a_tool_or_a_text_takes_from_the_server_is_looked_up(schemas: Schemas) -> None:
    """Measured: the two tools answer all the same, with an error of theirs in the place of a result."""
    gone = "11111111-2222-4333-8444-555555555555"
    ops = [
        *GOLDEN["tool_agent"](NOWHERE),
        AddNode(
            node_name="ChatflowTool",
            node_id="other",
            params={"selectedChatflow": gone, "name": "x", "description": "{{$vars.tone}}"},
        ),
        Connect(source_node_id="other", target_node_id="toolAgent_0", target_anchor="tools"),
    ]
    flow = compile_ops(GraphIR.empty(), ops, schemas).flow_data

    def found(**server: dict[str, str]) -> list[tuple[str, str, str]]:
        told = validate_flow(flow, schemas=schemas, credentials=None, server=server)
        return [(one.code, one.severity, one.field) for one in told]

    assert found() == found(flow={gone: "Other"}, variable={"tone": "static"}) == []
    assert found(flow={}, variable={}) == [
        ("NOT_ON_SERVER", "warning", "selectedChatflow"),
        ("VARIABLE_NOT_ON_SERVER", "warning", "description"),
    ]


def test_a_store_that_is_gone_is_an_error_where_each_question_asks_it(schemas: Schemas) -> None:
    """Measured: a question that takes the other branch is answered."""
    gone: JsonValue = {"documentStore": "11111111-2222-4333-8444-555555555555:Parcels"}
    fields: dict[str, JsonValue] = {"retrieverKnowledgeDocumentStores": [gone], "retrieverQuery": "x"}
    compare: JsonValue = {"type": "string", "value1": "a", "operation": "equal", "value2": "a"}

    def severity(*between: PatchOp, after: str, anchor: str = "output") -> set[str]:
        ops: list[PatchOp] = [
            AddNode(node_name="startAgentflow", node_id="start"),
            *between,
            AddNode(node_name="retrieverAgentflow", node_id="ask", params=fields),
            Connect(source_node_id=after, target_node_id="ask", source_anchor=anchor),
        ]
        flow = compile_ops(GraphIR.empty(), ops, schemas).flow_data
        found = validate_flow(flow, schemas=schemas, credentials=None, kind="AGENTFLOW", server={"document store": {}})
        return {one.severity for one in found if one.code == "NOT_ON_SERVER"}

    fork = [
        AddNode(node_name="conditionAgentflow", node_id="fork", params={"conditions": [compare]}),
        Connect(source_node_id="start", target_node_id="fork"),
    ]
    assert severity(after="start") == {"error"}
    assert severity(*fork, after="fork", anchor="0") == {"warning"}


def test_a_reference_to_a_node_that_is_gone_is_an_error_in_an_input_and_a_warning_in_a_text(schemas: Schemas) -> None:
    """Measured: the model of the chain reads the reference itself."""
    ops = [
        AddNode(node_name="promptTemplate", node_id="ask", params={"template": "Shorten: {x}", "promptValues": "{}"}),
        AddNode(node_name="llmChain", node_id="chain"),
        Connect(source_node_id="ask", target_node_id="chain", target_anchor="prompt"),
    ]
    graph = compile_ops(GraphIR.empty(), ops, schemas).graph
    ask, chain = graph.nodes
    ask.inputs["promptValues"] = '{"x":"{{gone_0.data.instance}}"}'
    chain.inputs["model"] = "{{gone_0.data.instance}}"
    found = validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None)
    told = {(one.where, one.severity) for one in found if one.code == "REF_TO_MISSING_NODE"}
    assert told == {("ask", "warning"), ("chain", "error")}


def test_a_store_that_a_session_makes_before_it_writes_is_not_missing(schemas: Schemas) -> None:
    to_come = "[PLACEHOLDER: choose the store]"
    for store, code in (
        (stand_in_id("Notes"), []),
        (to_come, []),
        ("11111111-2222-4333-8444-555555555555", ["NOT_ON_SERVER"]),
    ):
        node = AddNode(node_name="documentStore", node_id="store", params={"selectedStore": store})
        flow = compile_ops(GraphIR.empty(), [node], schemas).flow_data
        found = validate_flow(flow, schemas=schemas, credentials=None, server={"document store": {}})
        assert [one.code for one in found if one.field == "selectedStore"] == code


@pytest.mark.parametrize(
    ("node", "fields", "setting"),
    [
        ("chatOllama", {"baseUrl": "http://localhost:11434", "modelName": "llama3"}, "HTTP_SECURITY_CHECK"),
        ("chatOpenAI", {"basepath": "http://localhost:1234/v1"}, ""),
        ("chatOllama", {"baseUrl": "https://ollama.example.com", "modelName": "llama3"}, ""),
        ("customFunction", {"javascriptFunction": "const fs = require('fs'); return 1"}, "TOOL_FUNCTION_BUILTIN_DEP"),
        ("customFunction", {"javascriptFunction": "import x from 'typeorm'; return 1"}, "TOOL_FUNCTION_EXTERNAL_DEP"),
        ("customFunction", {"javascriptFunction": "const a = require('axios'); return 1"}, ""),
        ("faiss", {"basePath": "../vectors"}, "PATH_TRAVERSAL_SAFETY"),
        ("faiss", {"basePath": "vectors"}, ""),
        ("faiss", {"basePath": "/data/vectors"}, "BLOB_STORAGE_PATH"),
        ("faiss", {"basePath": "/srv/.flowise/vectors"}, ""),
        ("sqlDatabaseChain", {"database": "sqlite", "url": "/data/recipes.db"}, "DATABASE_PATH"),
        ("sqlDatabaseChain", {"database": "postgres", "url": "postgresql://db.example.com/x"}, ""),
    ],
)
def test_what_flowise_refuses_as_installed_names_its_setting(
    schemas: Schemas, node: str, fields: dict[str, JsonValue], setting: str
) -> None:
    flow = compile_ops(GraphIR.empty(), [AddNode(node_name=node, node_id="one", params=fields)], schemas).flow_data
    found = validate_flow(flow, schemas=schemas, credentials=None)
    assert [one.params["setting"] for one in found if one.code == "SERVER_SETTING_NEEDED"] == [setting] * bool(setting)


@pytest.mark.parametrize(("value", "severity"), [("0,7", "warning"), ("400 chars", "warning"), ("many", "error")])
def test_a_text_that_begins_with_a_number_is_no_error(schemas: Schemas, value: str, severity: str) -> None:
    """Measured: the server reads 0 and 400, and asks the model without a number for the last one."""
    node = AddNode(node_name="chatOpenAI", node_id="model")
    flow = compile_ops(GraphIR.empty(), [node], schemas).flow_data
    document = json.loads(flow)
    document["nodes"][0]["data"]["inputs"]["maxTokens"] = value
    found = validate_flow(json.dumps(document), schemas=schemas, credentials=None)
    assert [one.severity for one in found if one.code == "NOT_A_NUMBER"] == [severity]


@pytest.mark.parametrize(
    ("node", "field", "value", "severity"),
    [
        ("requestsPost", "requestsPostHeaders", '{"Authorization": Bearer x', "error"),  # 500 Invalid JSON format
        ("requestsGet", "requestsGetHeaders", "{'Accept': 'text/csv',}", ""),  # read as JSON5
        ("customMCP", "mcpServerConfig", '{"url": "https://mcp.example.com"', "error"),  # 500 Unexpected end of JSON
        ("requestsGet", "requestsGetQueryParamsSchema", '{"id": {', "warning"),  # 200, without the argument
    ],
)
def test_json_that_a_tool_cannot_read_is_found(
    schemas: Schemas, node: str, field: str, value: str, severity: str
) -> None:
    flow = compile_ops(GraphIR.empty(), [AddNode(node_name=node, node_id="tool")], schemas).flow_data
    document = json.loads(flow)
    document["nodes"][0]["data"]["inputs"][field] = value
    found = validate_flow(json.dumps(document), schemas=schemas, credentials=None)
    assert [one.severity for one in found if one.code == "BAD_JSON" and one.field == field] == [severity] * bool(
        severity
    )


def test_a_schema_of_an_answer_that_is_no_json_is_told(schemas: Schemas) -> None:
    """Measured: 200, and the items are empty."""
    row: JsonValue = {"key": "items", "type": "jsonArray", "jsonSchema": '{"a": ', "description": "all of them"}
    node = AddNode(node_name="llmAgentflow", node_id="llm", params={"llmStructuredOutput": [row]})
    flow = compile_ops(GraphIR.empty(), [node], schemas).flow_data
    found = validate_flow(flow, schemas=schemas, credentials=None, kind="AGENTFLOW")
    assert [(one.severity, one.field) for one in found if one.code == "BAD_JSON"] == [
        ("warning", "llmStructuredOutput[0].jsonSchema")
    ]
