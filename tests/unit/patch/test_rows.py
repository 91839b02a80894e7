"""Rows of agentflow steps as models write them."""

from typing import Any

from flowise_dev_agent.patch import AddNode, GraphIR, PatchOp, Schemas, SetParam, compile_ops


def test_rows_of_one_field_may_be_given_as_texts(schemas: Schemas) -> None:
    kinds: Any = ["billing", "orders"]
    field: Any = {"type": "options", "label": "Kind", "name": "kind"}
    start, sort = "startAgentflow_0", "conditionAgentAgentflow_0"
    form: Any = {"startInputType": "formInput", "formInputTypes": [field]}
    ops: list[PatchOp] = [
        AddNode(node_name="startAgentflow", node_id=start, params=form),
        SetParam(node_id=start, param_name="formInputTypes[0].addOptions", value=kinds),
        AddNode(node_name="conditionAgentAgentflow", node_id=sort, params={"conditionAgentScenarios": kinds}),
    ]
    inputs = {node.id: node.inputs for node in compile_ops(GraphIR.empty(), ops, schemas).graph.nodes}
    assert inputs[start]["formInputTypes"][0]["addOptions"] == [{"option": kind} for kind in kinds]
    assert inputs[sort]["conditionAgentScenarios"] == [{"scenario": kind} for kind in kinds]
