"""JavaScript in flows, with what Flowise 3.1.4 says to it (measured)."""

import json
import time
from typing import Any

import pytest

from flowise_dev_agent.patch import TOOL, AddNode, GraphIR, PatchOp, Schemas, compile_ops, validate_flow
from flowise_dev_agent.patch.validate.params import TOOL_CODE, TOOL_INPUTS

CODES = {"CODE_SYNTAX", "CODE_VARIABLE_UNKNOWN"}


def found(code: str, schemas: Schemas, node: str = "customFunction", **inputs: Any) -> list[tuple[str, str, object]]:
    flow = compile_ops(GraphIR.empty(), [AddNode(node_name=node, node_id="one")], schemas).flow_data
    field = "customFunctionJavascriptFunction" if node == "customFunctionAgentflow" else "javascriptFunction"
    document = json.loads(flow)
    document["nodes"][0]["data"]["inputs"] |= {field: code, **inputs}
    kind = "AGENTFLOW" if node.endswith("Agentflow") else "CHATFLOW"
    told = validate_flow(json.dumps(document), schemas=schemas, credentials=None, kind=kind)
    return [
        (one.code, one.severity, one.params.get("line") or one.params["variable"]) for one in told if one.code in CODES
    ]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("const words = $input.split(' ';\nreturn words", 1),  # SyntaxError: Unexpected token ';'
        ("const a = 1\nif (a) {\nreturn 'x'", 3),
        ("return 'it's'", 1),
    ],
)
def test_code_that_cannot_be_read_names_its_line(code: str, line: int, schemas: Schemas) -> None:
    assert found(code, schemas) == [("CODE_SYNTAX", "error", line)]


@pytest.mark.parametrize(
    "code",
    [
        "return $input + $flow.sessionId + $vars.tone",
        "const fetch = require('node-fetch'); const r = await fetch('https://x.example'); return r?.ok ?? 'no'",
        "const { $a, b: $b } = JSON.parse($input); return [$a, $b].map($x => `${$x}`).join()",
        "function f($p, [$q]) { return $p + $q }\ntry { return f(1, [2]) } catch ($e) { return $e }",
        "for (const $i of [1]) { $last = $i }\nreturn $last",
        "return {{ $flow.state.count }} + 1",
        "const axios = require('axios'); label: for (;;) { break label }\nreturn /a+/u.test('a') || 08",
    ],
)
def test_what_the_sandbox_runs_has_no_finding(code: str, schemas: Schemas) -> None:
    assert found(code, schemas) == []


@pytest.mark.parametrize("name", ["fetch", "URL", "crypto", "btoa"])
def test_a_name_that_the_sandbox_lacks_is_told(name: str, schemas: Schemas) -> None:
    """500 ReferenceError: fetch is not defined."""
    assert found(f"return typeof {name}(1)", schemas) == [("CODE_VARIABLE_UNKNOWN", "warning", name)]
    assert found(f"const {{ {name} }} = require('x'); return {name}(1)", schemas) == []
    assert found(f"return $input.{name}", schemas) == []


def test_a_variable_that_the_function_is_not_given_is_told(schemas: Schemas) -> None:
    """500 ReferenceError: $name is not defined."""
    told = [("CODE_VARIABLE_UNKNOWN", "error", "$name")]
    assert found("return $name", schemas) == told
    assert found("return $name", schemas, functionInputVariables='{"name": "{{question}}"}') == []
    assert found("return $name", schemas, functionInputVariables="no JSON") == []
    step = "customFunctionAgentflow"
    assert found("return $name", schemas, step) == told
    rows = [{"variableName": "name", "variableValue": "x"}]
    assert found("return $name", schemas, step, customFunctionInputVariables=rows) == []


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        ("const digits = $order-no.replace(/x/, '')\nif (!digits) return ''\nreturn digits", "error"),
        ("if ($order) return 1", "error"),
        ("return `${JSON.parse($order)}`", "error"),
        ("return $order || ''", "error"),
        ("if ($input) return 1\nreturn $order", "warning"),
        ("return $input && $order", "warning"),
        ("return typeof $order", "warning"),
        ("return $input?.x($order)", "warning"),
        ("return [1].map(() => $order)", "warning"),
        ("function late() { return $order }\nreturn 1", "warning"),
        ("try { return $order } catch { return 1 }", "warning"),
    ],
)
def test_an_unknown_variable_is_an_error_only_where_each_run_reads_it(
    code: str, severity: str, schemas: Schemas
) -> None:
    assert found(code, schemas) == [("CODE_VARIABLE_UNKNOWN", severity, "$order")]


TOOL_ID = "11111111-1111-4111-8111-111111111111"


def found_of_tool(code: str, schemas: Schemas, *ops: PatchOp, kind: str = "CHATFLOW") -> list[tuple[str, str, str]]:
    """Findings of a flow with a custom tool that has this code and needs an `order_id`."""
    rows = [{"property": "order_id", "type": "string", "required": True}, {"property": "note", "type": "string"}]
    told = validate_flow(
        compile_ops(GraphIR.empty(), ops, schemas).flow_data,
        schemas=schemas,
        credentials=None,
        kind=kind,
        server={TOOL: {TOOL_ID: "get"}, TOOL_CODE: {TOOL_ID: code}, TOOL_INPUTS: {TOOL_ID: json.dumps(rows)}},
    )
    seen = {*CODES, "SERVER_SETTING_NEEDED", "TOOL_INPUT_MISSING"}
    return [(one.code, one.severity, str(one.params.get("variable", ""))) for one in told if one.code in seen]


def test_the_code_of_a_tool_on_the_server_is_read_and_its_error_stops_no_agent(schemas: Schemas) -> None:
    """200 with the error as the tool's answer: Cannot find module 'fs'."""
    tool = AddNode(node_name="customTool", node_id="tool", params={"selectedTool": TOOL_ID})
    assert found_of_tool("return $order_id + $note", schemas, tool) == []
    assert found_of_tool("return $order", schemas, tool) == [("CODE_VARIABLE_UNKNOWN", "warning", "$order")]
    assert found_of_tool("const fs = require('fs')", schemas, tool) == [("SERVER_SETTING_NEEDED", "warning", "")]


def test_a_step_gives_its_tool_what_it_needs(schemas: Schemas) -> None:
    """500 Received tool input did not match expected schema."""

    def step(*names: str) -> AddNode:
        return AddNode(
            node_name="toolAgentflow",
            node_id="step",
            params={
                "toolAgentflowSelectedTool": "customTool",
                "toolAgentflowSelectedToolConfig": {"selectedTool": TOOL_ID},
                "toolInputArgs": [{"inputArgName": name, "inputArgValue": "1"} for name in names],
            },
        )

    lacking = [("TOOL_INPUT_MISSING", "error", "order_id")]
    assert found_of_tool("return 1", schemas, step("orderId"), kind="AGENTFLOW") == lacking
    assert found_of_tool("return 1", schemas, step("order_id"), kind="AGENTFLOW") == []
    unknown = [("CODE_VARIABLE_UNKNOWN", "error", "$order")]
    assert found_of_tool("return $order", schemas, step("order_id"), kind="AGENTFLOW") == unknown


@pytest.mark.parametrize("text", ["{", "(a=", "`${", "a=>", "'", "[{("])
def test_code_of_strangers_is_read_in_time(text: str, schemas: Schemas) -> None:
    began = time.process_time()
    assert found(text * (90_000 // len(text)), schemas)
    assert time.process_time() - began < 10
