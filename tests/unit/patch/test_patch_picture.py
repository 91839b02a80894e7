"""A flow as it is drawn: what shows, and what never does."""

import dataclasses
import json
from typing import Any

import pytest

from flowise_dev_agent.patch import (
    AddNode,
    CanvasView,
    Connect,
    GraphIR,
    PatchOp,
    Schemas,
    SetParam,
    canvas_view,
    compile_ops,
    diff,
    public_op,
    summarize,
)
from flowise_dev_agent.patch.views.canvas_view import HIDDEN, public_value
from tests.fixtures.golden_flows import NOWHERE, chat, rag

KEY = "sk-abcdefghijklmnopqrstuvwx"


def drawn(schemas: Schemas, *ops: PatchOp) -> CanvasView:
    return canvas_view(compile_ops(GraphIR.empty(), ops, schemas).graph)


def test_each_edge_ends_at_ports_of_its_nodes(schemas: Schemas) -> None:
    shown = drawn(schemas, *rag(NOWHERE))
    nodes = {node.id: node for node in shown.nodes}
    assert len(shown.edges) >= 5
    for edge in shown.edges:
        assert edge.source_handle in {port.id for port in nodes[edge.source].outputs}
        assert edge.target_handle in {port.id for port in nodes[edge.target].inputs}
    store = nodes["memoryVectorStore_0"]
    assert [port.name for port in store.outputs] == ["retriever"]
    assert (store.category, store.kind) == ("Vector Stores", "node")


def test_edges_carry_the_names_that_differences_use(schemas: Schemas) -> None:
    before = GraphIR.empty()
    after = compile_ops(before, rag(NOWHERE), schemas).graph
    by_names = {(edge.source, edge.output, edge.target, edge.input) for edge in canvas_view(after).edges}
    assert by_names == {dataclasses.astuple(edge) for edge in diff(before, after).connected}


def test_p70_neither_credentials_nor_secrets_are_drawn(schemas: Schemas) -> None:
    shown = drawn(
        schemas,
        *chat(NOWHERE),
        SetParam(node_id="chatOpenAI_0", param_name="basepath", value=f"http://x/?key={KEY}"),
        SetParam(node_id="chatOpenAI_0", param_name="baseOptions", value=json.dumps({"apiKey": "hunter2", "a": 1})),
    )
    text = json.dumps(dataclasses.asdict(shown))
    assert NOWHERE["openAIApi"] not in text
    assert KEY not in text
    assert "hunter2" not in text
    (model,) = [node for node in shown.nodes if node.name == "chatOpenAI"]
    assert model.credential == "bound"
    values = {param.name: param.value for param in model.params}
    assert values["basepath"] == HIDDEN
    assert json.loads(values["baseOptions"]) == {"apiKey": HIDDEN, "a": 1}


#: Values of one field of a flow, with the part of each that nobody may see.
PLANTED = {
    "address": ("postgres://bot:hunter2pass@db.example/main", "hunter2pass"),
    "header row": ([{"key": "X-Api-Key", "value": "abc-planted"}], "abc-planted"),
    "header in a text": (json.dumps({"X-Api-Key": "abc-planted"}), "abc-planted"),
    "header text": (json.dumps({"Authorization": "Basic cGxhbnRlZDEyMw=="}), "cGxhbnRlZDEyMw"),
    "query": ("https://api.example/v1?api_key=planted12345", "planted12345"),
    "jwt": (f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{'aB3' * 10}", "aB3" * 10),
    "slack": ("https://hooks.slack.com/services/T00000000/B00000000/plantedplantedplanted", "plantedplanted"),
    "stripe": ("sk_live_plantedplanted12345", "plantedplanted"),
    "telegram": (f"123456789:AA{'aB3' * 11}", "aB3aB3"),
    "azure": ("4f2a9c1b7e8d3f6a5b0c9d8e7f6a5b4c", "4f2a9c1b7e8d"),
    "in a prompt": (f"You are a bot. Use {KEY} to log in.", "abcdefghijklmnopqrstuvwx"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_p102_a_planted_secret_is_in_no_view_of_a_flow(schemas: Schemas, kind: str) -> None:
    value, marked = PLANTED[kind]
    plain = compile_ops(GraphIR.empty(), chat(NOWHERE), schemas).graph
    flow = json.loads(plain.to_flow_data())
    model = next(node for node in flow["nodes"] if node["id"] == "chatOpenAI_0")
    model["data"]["inputs"]["basepath"] = value
    graph = GraphIR.from_flow_data(json.dumps(flow))
    op = SetParam(node_id="chatOpenAI_0", param_name="basepath", value=value)
    views = {
        "graph": json.dumps(dataclasses.asdict(canvas_view(graph))),
        "summary": summarize(graph),
        "diff": json.dumps(dataclasses.asdict(diff(plain, graph))),
        "op": json.dumps(public_op(op.model_dump(mode="json"))),
    }
    assert [name for name, text in views.items() if marked in text] == []


def test_p102_a_changed_header_shows_neither_value(schemas: Schemas) -> None:
    graphs: list[GraphIR] = []
    for secret in ("old-planted", "new-planted"):
        flow = json.loads(compile_ops(GraphIR.empty(), chat(NOWHERE), schemas).graph.to_flow_data())
        inputs = next(node for node in flow["nodes"] if node["id"] == "chatOpenAI_0")["data"]["inputs"]
        inputs["headers"] = [{"key": "X-Api-Key", "value": secret}]
        graphs.append(GraphIR.from_flow_data(json.dumps(flow)))
    assert "planted" not in json.dumps(dataclasses.asdict(diff(*graphs)))


def test_values_are_public_whatever_they_are_nested_in() -> None:
    value: Any = {"modelConfig": {"FLOWISE_CREDENTIAL_ID": "id", "credential": "", "apiKey": KEY, "n": [1, KEY]}}
    assert public_value("agent", value) == {
        "modelConfig": {"FLOWISE_CREDENTIAL_ID": "bound", "credential": "", "apiKey": HIDDEN, "n": [1, HIDDEN]}
    }
    assert public_value("password", "x", hidden=True) == HIDDEN
    assert public_value("prompt", "[not json") == "[not json"


def test_p70_ops_are_shown_without_what_they_must_not_hold() -> None:
    key = "sk-" + "a1" * 20
    assert (
        public_op({"op_type": "SetParam", "node_id": "a", "param_name": "x.openAIApiKey", "value": "abc"})["value"]
        == HIDDEN
    )
    added = public_op(
        {"op_type": "AddNode", "node_name": "b", "params": {"text": f"use {key}", "credential": "an-id", "k": 4}}
    )
    assert added["params"] == {"text": HIDDEN, "credential": "bound", "k": 4}
    plain = {"op_type": "Connect", "source": "a", "target": "b"}
    assert public_op(plain) == plain


def test_agentflows_have_branches_labels_and_notes(schemas: Schemas) -> None:
    shown = drawn(
        schemas,
        AddNode(node_name="startAgentflow", node_id="start"),
        AddNode(node_name="humanInputAgentflow", node_id="ask"),
        AddNode(node_name="directReplyAgentflow", node_id="reply"),
        AddNode(node_name="stickyNoteAgentflow", node_id="note", params={"note": "mind the gap"}),
        Connect(source_node_id="start", target_node_id="ask"),
        Connect(source_node_id="ask", source_anchor="0", target_node_id="reply"),
    )
    nodes = {node.id: node for node in shown.nodes}
    assert shown.kind == "AGENTFLOW"
    assert (nodes["note"].kind, nodes["note"].note, nodes["note"].inputs) == ("note", "mind the gap", ())
    assert [port.label for port in nodes["ask"].outputs] == ["proceed", "reject"]
    assert [edge.label for edge in shown.edges if edge.source == "ask"] == ["proceed"]


def test_a_thumbnail_leaves_values_out(schemas: Schemas) -> None:
    graph = compile_ops(GraphIR.empty(), chat(NOWHERE), schemas).graph
    small = canvas_view(graph, params=False)
    assert all(node.params == () for node in small.nodes)
    assert len(small.edges) == 2


def test_flows_of_odd_shape_are_drawn_and_long_values_bounded() -> None:
    document = {
        "nodes": [
            {"id": "a", "data": {"name": "x", "inputs": {"text": "y" * 10_000}}, "position": {"x": "left"}},
            {"id": "b", "data": {}},
        ],
        "edges": [{"source": "a", "target": "b", "sourceHandle": "out", "targetHandle": "in"}, {"source": "a"}],
    }
    shown = canvas_view(GraphIR(document))
    assert len(shown.nodes[0].params[0].value) == 4_000
    assert [port.id for port in shown.nodes[1].inputs] == ["in"]
    assert len(shown.edges) == 1
