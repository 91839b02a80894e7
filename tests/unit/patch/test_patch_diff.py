"""Differences between two flows, as values before and after."""

from typing import Any

from flowise_dev_agent.patch import AddNode, GraphIR, Schemas, SetParam, compile_ops, diff


def test_a_list_that_differs_late_shows_what_differs(schemas: Schemas) -> None:
    rows: Any = [{"key": f"field{number}", "type": "string", "description": "some words"} for number in range(4)]
    more: Any = [*rows, {"key": "errors", "type": "string", "description": "other words"}]
    add = AddNode(node_name="llmAgentflow", node_id="llm_0", params={"llmStructuredOutput": rows})
    base = compile_ops(GraphIR.empty(), [add], schemas).graph
    op = SetParam(node_id="llm_0", param_name="llmStructuredOutput", value=more)
    (node,) = diff(base, compile_ops(base, [op], schemas).graph).changed
    (field,) = node.fields
    assert field.before != field.after
    assert "errors" in field.after
