"""Ops of a model that a closed schema holds: names and values, paths, nulls."""

import json

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops, ops_from_json


def _pairs(**values: object) -> list[dict[str, object]]:
    return [{"name": name.replace("__", "."), "value": value} for name, value in values.items()]


def test_names_and_values_are_the_fields_of_a_node(catalogue: NodeStore) -> None:
    op = {
        "op_type": "AddNode",
        "node_name": "chatOpenAI",
        "node_id": "chatOpenAI_0",
        "label": None,
        "description": None,
        "params": _pairs(modelName="gpt-4o-mini", temperature=0.2, streaming=False),
    }
    result = compile_ops(GraphIR.empty(), ops_from_json(json.dumps({"ops": [op]})), catalogue.schemas)
    node = json.loads(result.flow_data)["nodes"][0]
    assert node["data"]["inputs"]["modelName"] == "gpt-4o-mini"
    assert node["data"]["inputs"]["temperature"] == 0.2
    assert node["data"]["inputs"]["streaming"] is False


def test_paths_make_rows_and_the_settings_of_a_model(catalogue: NodeStore) -> None:
    params = [
        {"name": "llmModel", "value": "chatOpenAI"},
        {"name": "llmModelConfig.modelName", "value": "gpt-4o-mini"},
        {"name": "llmMessages[0].role", "value": "system"},
        {"name": "llmMessages[0].content", "value": "Be brief."},
        {"name": "llmMessages[1].role", "value": "user"},
        {"name": "llmMessages[1].content", "value": "{{ question }}"},
        {"name": "llmStructuredOutput[0].key", "value": "kind"},
        {"name": "llmStructuredOutput[0].type", "value": "enum"},
        {"name": "llmStructuredOutput[0].enumValues", "value": "a, b"},
        {"name": "llmStructuredOutput[0].description", "value": "the kind"},
    ]
    ops = [
        {"op_type": "AddNode", "node_name": "startAgentflow", "node_id": "startAgentflow_0", "params": []},
        {"op_type": "AddNode", "node_name": "llmAgentflow", "node_id": "llmAgentflow_0", "params": params},
    ]
    result = compile_ops(GraphIR.empty(), ops_from_json(json.dumps({"ops": ops})), catalogue.schemas)
    nodes = {node["id"]: node for node in json.loads(result.flow_data)["nodes"]}
    inputs = nodes["llmAgentflow_0"]["data"]["inputs"]
    assert inputs["llmMessages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "{{ question }}"},
    ]
    assert inputs["llmModelConfig"]["modelName"] == "gpt-4o-mini"
    assert inputs["llmStructuredOutput"][0]["key"] == "kind"


def test_null_is_a_field_that_is_left_out_but_a_value_may_be_null() -> None:
    ops = ops_from_json(
        json.dumps(
            {
                "ops": [
                    {
                        "op_type": "Connect",
                        "source_node_id": "a_0",
                        "source_anchor": "",
                        "target_node_id": "b_0",
                        "target_anchor": None,
                    },
                    {"op_type": "SetParam", "node_id": "a_0", "param_name": "x", "value": None},
                ]
            }
        )
    )
    read = ops[0].model_dump()
    assert (read["source_anchor"], read["target_anchor"]) == (None, "")
    assert ops[1].model_dump()["value"] is None
