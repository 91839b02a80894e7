"""The compiler's work grows with the size of the flow, not with its square; counted in steps of the interpreter."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    Disconnect,
    GraphIR,
    PatchOp,
    Schemas,
    SetParam,
    UpgradeNode,
    compile_ops,
    decompile,
    validate_flow,
)

_SMALL, _FACTOR = 6, 6


def _team(number: int) -> list[PatchOp]:
    """An agent with model, memory and a tool."""
    agent, model, memory, tool = (
        f"{name}_{number}" for name in ("toolAgent", "chatOpenAI", "bufferMemory", "calculator")
    )
    return [
        AddNode(node_name="toolAgent", node_id=agent, params={"systemMessage": "You are brief."}),
        AddNode(node_name="chatOpenAI", node_id=model, params={"modelName": "gpt-4o"}),
        AddNode(node_name="bufferMemory", node_id=memory),
        AddNode(node_name="calculator", node_id=tool),
        Connect(source_node_id=model, target_node_id=agent, target_anchor="model"),
        Connect(source_node_id=memory, target_node_id=agent, target_anchor="memory"),
        Connect(source_node_id=tool, target_node_id=agent, target_anchor="tools"),
    ]


def _steps(run: Callable[[], object]) -> int:
    """Bytecode instructions that a call takes."""
    count = 0

    def traced(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return traced

    before = sys.gettrace()
    gc.disable()  # a collection may run finalizers of other tests' objects here
    sys.settrace(traced)
    try:
        run()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def _add(flow: GraphIR, ops: list[PatchOp], schemas: Schemas) -> object:
    del flow
    return compile_ops(GraphIR.empty(), ops, schemas).sha256


def _set_a_field_of_each_model(flow: GraphIR, ops: list[PatchOp], schemas: Schemas) -> object:
    del ops
    models = [node.id for node in flow.nodes if node.name == "chatOpenAI"]
    change: list[PatchOp] = [SetParam(node_id=model, param_name="temperature", value=0.7) for model in models]
    return compile_ops(flow, change, schemas).sha256


def _upgrade_every_node(flow: GraphIR, ops: list[PatchOp], schemas: Schemas) -> object:
    del ops
    return compile_ops(flow, [UpgradeNode(node_id=node.id) for node in flow.nodes], schemas).sha256


def _cut_every_connection(flow: GraphIR, ops: list[PatchOp], schemas: Schemas) -> object:
    del ops
    cuts = [Disconnect(source_node_id=edge.source, target_node_id=edge.target) for edge in flow.edges]
    return compile_ops(flow, cuts, schemas).sha256


def _take_apart(flow: GraphIR, ops: list[PatchOp], schemas: Schemas) -> object:
    del ops
    return decompile(flow, schemas)


def _check(flow: GraphIR, ops: list[PatchOp], schemas: Schemas) -> object:
    del ops
    return validate_flow(flow.to_flow_data(), schemas=schemas, credentials=None)


@pytest.mark.parametrize(
    "work", [_add, _set_a_field_of_each_model, _upgrade_every_node, _cut_every_connection, _take_apart, _check]
)
def test_work_grows_in_proportion_to_the_flow(
    schemas: Schemas, work: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowise_dev_agent.patch.model.graph._KEPT_CHARS", 0)
    counts: list[int] = []
    for size in (_SMALL, _SMALL * _FACTOR):
        ops = [op for number in range(size) for op in _team(number)]
        flow = compile_ops(GraphIR.empty(), ops, schemas).graph
        work(flow, ops, schemas)  # what is worked out once per node type
        counts.append(_steps(lambda flow=flow, ops=ops: work(flow, ops, schemas)))

    assert counts[1] <= counts[0] * _FACTOR * 1.01
