"""The validator on flows at the edge of what runs; `tests/integration/patch` asks a real Flowise about the same."""

import json
from typing import Any

import pytest

from flowise_dev_agent.patch import AddNode, GraphIR, Schemas, compile_ops, errors, validate_flow
from tests.fixtures.golden_flows import NOWHERE
from tests.fixtures.trial_flows import TRIAL_FLOWS, TrialFlow


@pytest.mark.parametrize("flow", TRIAL_FLOWS, ids=lambda flow: flow.name[:48])
def test_p27_refused_exactly_when_failing(schemas: Schemas, flow: TrialFlow) -> None:
    result = compile_ops(GraphIR.empty(), flow.build(NOWHERE), schemas)

    found = validate_flow(result.flow_data, schemas=schemas, credentials=None, kind=flow.kind)

    said = [(flow.code, flow.where)] if flow.code else []
    assert [(one.code, one.where) for one in errors(found)] == ([] if flow.advice else said)
    if flow.advice:
        assert said[0] in [(one.code, one.where) for one in found]


def test_rows_that_are_no_objects_are_refused(schemas: Schemas) -> None:
    flow = next(flow for flow in TRIAL_FLOWS if flow.name == "an answer's field without a description")
    document = json.loads(compile_ops(GraphIR.empty(), flow.build(NOWHERE), schemas).flow_data)
    document["nodes"][1]["data"]["inputs"]["llmMessages"] = ["Be kind"]

    found = errors(validate_flow(json.dumps(document), schemas=schemas, credentials=None, kind="AGENTFLOW"))

    assert [(one.code, one.field) for one in found] == [("NOT_A_LIST", "llmMessages")]


def test_a_state_that_a_node_sets_is_declared_and_an_iteration_without_nodes_is_told(schemas: Schemas) -> None:
    flow = next(flow for flow in TRIAL_FLOWS if flow.name == "a list in the server's own JSON")
    text = compile_ops(GraphIR.empty(), flow.build(NOWHERE), schemas).flow_data
    (told,) = validate_flow(text, schemas=schemas, credentials=None, kind="AGENTFLOW")
    assert (told.code, told.severity, told.where) == ("EMPTY_ITERATION", "warning", "iterationAgentflow_0")

    kept = next(flow for flow in TRIAL_FLOWS if flow.name == "an empty state").build(NOWHERE)
    document = json.loads(compile_ops(GraphIR.empty(), kept, schemas).flow_data)
    start, llm = document["nodes"][0]["data"]["inputs"], document["nodes"][1]["data"]["inputs"]
    start["startState"] = ""
    llm["llmUpdateState"] = [{"key": "a", "value": "1"}]
    (early,) = validate_flow(json.dumps(document), schemas=schemas, credentials=None, kind="AGENTFLOW")
    assert (early.code, early.severity) == ("UNDECLARED_STATE", "warning")
    assert "which only llmAgentflow_0 sets, perhaps later" in early.detail
    start["startState"] = [{"key": "a", "value": ""}]
    assert validate_flow(json.dumps(document), schemas=schemas, credentials=None, kind="AGENTFLOW") == []


@pytest.mark.parametrize("kind", ["llm", "agent"])
def test_an_answer_in_fields_is_not_streamed_by_a_model_that_loses_it(schemas: Schemas, kind: str) -> None:
    fields = [{"key": "name", "type": "string", "description": "The name"}]
    for model, rows, streamed in (
        ("chatAnthropic", fields, False),
        ("chatAnthropic", [], True),
        ("chatOpenAI", fields, True),
    ):
        params: dict[str, Any] = {f"{kind}Model": model, f"{kind}StructuredOutput": rows}
        step = AddNode(node_name=f"{kind}Agentflow", node_id=f"{kind}Agentflow_0", params=params)
        (node,) = compile_ops(GraphIR.empty(), [step], schemas).graph.nodes
        assert node.inputs[f"{kind}ModelConfig"]["streaming"] is streamed
