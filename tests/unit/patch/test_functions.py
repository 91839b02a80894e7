"""JavaScript in flows, with what Flowise 3.1.4 says to it (measured)."""

import json
import time
from typing import Any

import pytest

from flowise_dev_agent.patch import AddNode, GraphIR, Schemas, compile_ops, validate_flow

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
    told = [("CODE_VARIABLE_UNKNOWN", "warning", "$name")]
    assert found("return $name", schemas) == told
    assert found("return $name", schemas, functionInputVariables='{"name": "{{question}}"}') == []
    assert found("return $name", schemas, functionInputVariables="no JSON") == []
    step = "customFunctionAgentflow"
    assert found("return $name", schemas, step) == told
    rows = [{"variableName": "name", "variableValue": "x"}]
    assert found("return $name", schemas, step, customFunctionInputVariables=rows) == []


@pytest.mark.parametrize("text", ["{", "(a=", "`${", "a=>", "'", "[{("])
def test_code_of_strangers_is_read_in_time(text: str, schemas: Schemas) -> None:
    began = time.process_time()
    assert found(text * (90_000 // len(text)), schemas)
    assert time.process_time() - began < 10
