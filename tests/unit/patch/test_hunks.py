"""Differences as git prints them."""

from typing import Any

from flowise_dev_agent.patch import AddNode, GraphIR, PatchOp, Schemas, SetParam, compile_ops, hunks


def build(schemas: Schemas, ops: list[PatchOp]) -> GraphIR:
    return compile_ops(GraphIR.empty(), ops, schemas).graph


def edit(schemas: Schemas, graph: GraphIR, *ops: PatchOp) -> GraphIR:
    return compile_ops(graph, list(ops), schemas).graph


def test_a_long_text_and_a_list_are_compared_by_line_and_what_stays_is_folded(schemas: Schemas) -> None:
    policy = [f"Rule {number}: as it was." for number in range(30)]
    before = build(
        schemas, [AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "\n".join(policy)})]
    )
    policy[15] = "Rule 15: 45 days."
    text = SetParam(node_id="toolAgent_0", param_name="systemMessage", value="\n".join(policy))
    after = edit(schemas, before, text, SetParam(node_id="toolAgent_0", param_name="maxIterations", value=3))
    shown = hunks(before, after).splitlines()
    assert "      -Rule 15: as it was." in shown
    assert "      +Rule 15: 45 days." in shown
    assert "       Rule 14: as it was." in shown
    assert not [line for line in shown if "Rule 3:" in line]
    assert "    maxIterations: (none) -> 3" in shown
    # A row more: the rows that stay are not said again.
    rows: list[Any] = [{"key": f"k{number}", "value": str(number)} for number in range(9)]
    state = AddNode(node_name="startAgentflow", node_id="start_0", params={"startState": rows})
    before = build(schemas, [state])
    more = SetParam(node_id="start_0", param_name="startState", value=[*rows, {"key": "new", "value": "x"}])
    shown = hunks(before, edit(schemas, before, more)).splitlines()
    assert [line for line in shown if "+" in line and '"key": "new"' in line]
    assert not [line for line in shown if '"k2"' in line]
