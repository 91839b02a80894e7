"""Twenty edits of Flowise's own templates on a real server: what the ops say is there, all else is as it was."""

import json
from typing import Any

import pytest

from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.compiler import compile_ops
from flowise_dev_agent.patch.graph import FlowNode, GraphIR
from flowise_dev_agent.patch.ops import PatchOp, RemoveNode, SetLabel, SetParam
from flowise_dev_agent.runtime.transfer import replace_flow

EDITS = 20


def an_edit(graph: GraphIR, number: int) -> tuple[list[PatchOp], set[str]]:
    """One or two ops for this flow, and the nodes that they may touch."""
    nodes = [node for node in graph.nodes if not node.is_note]
    texts = [(node, name) for node in nodes if (name := _text_field(node))]
    if number % 3 == 0 or not texts:
        return [SetLabel(node_id=nodes[0].id, label="Renamed by an edit")], {nodes[0].id}
    node, name = texts[number % len(texts)]
    if number % 3 == 1:
        return [SetParam(node_id=node.id, param_name=name, value='A text, with "quotes" and ümlauts')], {node.id}
    sources = {edge.source for edge in graph.edges}
    leaf = next((item for item in nodes if item.id in sources and item.category == "Tools"), None)
    if leaf is None:
        return [SetParam(node_id=node.id, param_name=name, value="other")], {node.id}
    takers = {edge.target for edge in graph.edges if edge.source == leaf.id}
    return [RemoveNode(node_id=leaf.id)], {leaf.id, *takers}


def _text_field(node: FlowNode) -> str | None:
    names = [entry["name"] for entry in node.params if entry.get("type") == "string" and not entry.get("show")]
    return next((name for name in names if isinstance(node.inputs.get(name), str)), None)


async def test_p13_twenty_edits_of_templates_read_back_as_the_ops_say_and_leave_the_rest(
    flowise_client: FlowiseClient, catalogue: NodeStore
) -> None:
    done: list[str] = []
    for template in await flowise_client.list_templates():
        kind = {"Chatflow": "CHATFLOW", "AgentflowV2": "AGENTFLOW"}.get(str(template.get("type")))
        if kind is None or len(done) == EDITS:
            continue
        document = json.loads(template["flowData"])
        document |= {"viewport": {"x": 3, "y": 4, "zoom": 0.7}, "somethingOfTheirs": {"a": [1, "ü"]}}
        row = await flowise_client.create_chatflow(
            ChatflowCreate(name=f"Edit {len(done)}", flow_data=json.dumps(document), type=kind)
        )
        before = GraphIR.from_flow_data(row.flow_data)
        ops, touched = an_edit(before, len(done))
        result = compile_ops(before, ops, catalogue.schemas)
        stored = await replace_flow(flowise_client, row, flow_data=result.flow_data, sha256=result.sha256)
        after = json.loads(stored.flow_data)
        _check_ops(ops, after)
        _check_rest(json.loads(row.flow_data), after, touched)
        await flowise_client.delete_chatflow(row.id)
        done.append(template["templateName"])
    assert len(done) == EDITS, done


def _check_ops(ops: list[PatchOp], after: dict[str, Any]) -> None:
    nodes = {node["id"]: node for node in after["nodes"]}
    for op in ops:
        match op:
            case SetLabel():
                assert nodes[op.node_id]["data"]["label"] == op.label
            case SetParam():
                assert nodes[op.node_id]["data"]["inputs"][op.param_name] == op.value
            case RemoveNode():
                assert op.node_id not in nodes
                assert op.node_id not in {end for edge in after["edges"] for end in (edge["source"], edge["target"])}
                assert f"{{{{{op.node_id}." not in json.dumps(after)
            case _:
                pytest.fail(f"no check for {op.op_type}")


def _check_rest(before: dict[str, Any], after: dict[str, Any], touched: set[str]) -> None:
    for document in (before, after):
        document["nodes"] = [node for node in document["nodes"] if node["id"] not in touched]
        document["edges"] = [edge for edge in document["edges"] if edge["source"] not in touched]
    assert before == after
