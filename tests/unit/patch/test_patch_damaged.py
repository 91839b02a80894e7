"""Flows that somebody damaged: whatever stands where, there are findings and no crash."""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetParam,
    UpgradeNode,
    compile_ops,
    decompile,
    diff,
    summarize,
    validate_flow,
)

SCHEMAS = NodeStore.from_snapshot().schemas
ODD: list[Any] = [
    *(None, 1, -1.5, True, "x", "{", ""),
    *([], {}, [1], ["a"], [None], [[]], [{}]),
    *({"a": 1}, {"name": 1}, {"output": 1}),
]
AGENT, MODEL, STEP = "toolAgent_0", "chatOpenAI_0", "agentAgentflow_0"
FLOWS: dict[str, list[PatchOp]] = {
    "CHATFLOW": [
        AddNode(node_name="toolAgent", node_id=AGENT),
        AddNode(node_name="chatOpenAI", node_id=MODEL),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        Connect(source_node_id=MODEL, target_node_id=AGENT, target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id=AGENT, target_anchor="memory"),
    ],
    "AGENTFLOW": [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="agentAgentflow", node_id=STEP),
        AddNode(node_name="conditionAgentflow", node_id="conditionAgentflow_0"),
        Connect(source_node_id="startAgentflow_0", target_node_id=STEP),
        Connect(source_node_id=STEP, target_node_id="conditionAgentflow_0"),
    ],
}
EDITS: dict[str, list[list[PatchOp]]] = {
    "CHATFLOW": [
        [SetParam(node_id=MODEL, param_name="temperature", value=1)],
        [RemoveNode(node_id=AGENT)],
        [ReplaceNode(node_id=MODEL, node_name="chatAnthropic")],
        [UpgradeNode(node_id=MODEL)],
        [
            AddNode(node_name="calculator", node_id="calculator_0"),
            Connect(source_node_id="calculator_0", target_node_id=AGENT, target_anchor="tools"),
        ],
    ],
    "AGENTFLOW": [
        [SetParam(node_id=STEP, param_name="agentUserMessage", value="Hello")],
        [RemoveNode(node_id="conditionAgentflow_0")],
        [ReplaceNode(node_id=STEP, node_name="llmAgentflow")],
        [UpgradeNode(node_id=STEP)],
        [
            AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0"),
            Connect(source_node_id=STEP, target_node_id="llmAgentflow_0"),
        ],
    ],
}
SOUND = {kind: compile_ops(GraphIR.empty(), ops, SCHEMAS).graph for kind, ops in FLOWS.items()}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _paths(item, (*path, key))


PATHS = {kind: list(_paths(json.loads(graph.to_flow_data()))) for kind, graph in SOUND.items()}


@st.composite
def damaged(draw: Callable[..., Any]) -> tuple[str, str]:
    """The kind of a flow, and its text with something odd in up to three places."""
    kind = draw(st.sampled_from(sorted(FLOWS)))
    document = copy.deepcopy(json.loads(SOUND[kind].to_flow_data()))
    for path in draw(st.lists(st.sampled_from(PATHS[kind]), min_size=1, max_size=3)):
        around = document
        with suppress(KeyError, IndexError, TypeError):  # an earlier place held this one
            for key in path[:-1]:
                around = around[key]
            around[path[-1]] = draw(st.sampled_from(ODD))
    return kind, json.dumps(document)


@given(damaged())
def test_a_damaged_flow_is_refused_or_read_but_never_a_crash(flow: tuple[str, str]) -> None:
    kind, text = flow
    findings = validate_flow(text, schemas=SCHEMAS, credentials={}, kind=kind)
    try:
        graph = GraphIR.from_flow_data(text)
    except PatchError:
        assert {finding.code for finding in findings} == {"SHAPE"}
        return
    decompile(graph, SCHEMAS)
    summarize(graph)
    assert isinstance(diff(SOUND[kind], graph).text, str)
    for ops in EDITS[kind]:
        with suppress(PatchError):
            compile_ops(graph, ops, SCHEMAS).graph.to_flow_data()


@pytest.mark.parametrize(
    ("where", "value", "field"),
    [
        (("position",), "left", "position"),
        (("position", "x"), [], "x"),
        (("height",), "tall", "height"),
        (("type",), [1], "type"),
        (("data", "inputParams"), 7, "inputParams"),
        (("data", "inputParams", 0), None, "inputParams"),
        (("data", "inputAnchors", 0, "name"), None, "inputAnchors"),
        (("data", "inputParams", 1, "show"), "yes", "inputParams"),
    ],
)
def test_what_the_editor_cannot_draw_is_said_with_its_node_and_field(
    where: tuple[Any, ...], value: Any, field: str
) -> None:
    document = json.loads(SOUND["CHATFLOW"].to_flow_data())
    around = node = document["nodes"][1]
    for key in where[:-1]:
        around = around[key]
    around[where[-1]] = value
    findings = validate_flow(json.dumps(document), schemas=SCHEMAS, credentials={})
    assert [(finding.code, finding.where, finding.field) for finding in findings] == [("SHAPE", node["id"], field)]


def test_what_reads_as_absent_is_left_alone() -> None:
    document = json.loads(SOUND["CHATFLOW"].to_flow_data())
    for node in document["nodes"]:
        node["width"] = node["height"] = None
        node["data"]["inputParams"][0]["show"] = None
    findings = validate_flow(json.dumps(document), schemas=SCHEMAS, credentials={})
    assert "SHAPE" not in {finding.code for finding in findings}
