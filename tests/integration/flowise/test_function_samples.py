"""Custom functions on samples in the sandbox of a real Flowise."""

from typing import Any

import pytest

from flowise_dev_agent.agent.domain import ToolScope
from flowise_dev_agent.agent.domains.function_trials import failing_functions
from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.patch import AddNode, GraphIR, Schemas, compile_ops
from flowise_dev_agent.schemas.plan import FunctionSample, Plan, PlannedNode

ID = "customFunctionAgentflow_0"


@pytest.mark.parametrize(
    ("code", "given", "result", "found"),
    [
        ("return Number($text) + 1;", "2", 3, []),
        ("return Number($text) > 1;", "2", True, []),
        ("return JSON.parse($text).map(one => one.name);", '[{"name": "Eva"}]', ["Eva"], []),
        ("return JSON.parse($text);", '{"a": {"b": 1.5}}', {"a": {"b": 1.5}}, []),
        (r"return JSON.parse($text).a;", '{"a": "one\\ntwo"}', "one\ntwo", []),
        ("return $text.trim();", "  hi ", "hi", []),
        ("return $text + 1;", "2", 3, ["SAMPLE_FAILS"]),
        ("return JSON.parse($text).name;", "no json", "Eva", ["SAMPLE_FAILS"]),
        ("return $text.nothing.name;", "2", None, ["SAMPLE_FAILS"]),
        ("return $txet;", "2", "2", ["FUNCTION_FAILS"]),
    ],
)
async def test_a_function_gives_what_its_sample_says(
    code: str, given: str, result: Any, found: list[str], flowise_client: FlowiseClient, schemas: Schemas
) -> None:
    rows = [{"variableName": "text", "variableValue": "{{ question }}"}]
    params = {"customFunctionJavascriptFunction": code, "customFunctionInputVariables": rows}
    ops = [AddNode(node_name="customFunctionAgentflow", node_id=ID, params=params)]
    node = PlannedNode(node_id=ID, node_name="customFunctionAgentflow", purpose="x")
    plan = Plan(goal="x", operation="create", flow_name="x", flow_kind="AGENTFLOW", nodes=[node])
    plan = plan.model_copy(update={"capability": capability_of(plan, schemas, GraphIR.empty())})
    unused: Any = None
    scope = ToolScope(flowise=flowise_client, knowledge=unused, plan=plan)
    flow = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    samples = [FunctionSample(node_id=ID, variables={"text": given}, result=result)]
    findings = await failing_functions(scope, flow, ops, samples)
    assert [one.code for one in findings] == found, findings
