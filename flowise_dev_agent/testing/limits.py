"""Limits of loops: a copy of a flow in which a conversation can bring a loop to its limit, whatever the models say.

In front of the step that decides whether a loop goes on stands a condition on the id of the session. In other
conversations it lets everything pass. Measured on Flowise 3.1.4: each loop counts for itself, so the loop behind the
condition is one of its own, with the same limit and the same answer.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch import AddNode, Connect, Disconnect, GraphIR, PatchOp, Schemas, compile_ops
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ways import following, reached_from, ways_of
from flowise_dev_agent.schemas.base import JsonValue

_FORKS: Final = frozenset({v2.CONDITION, v2.CONDITION_AGENT})
#: Rounds of the longest loop that is brought to its limit, and of one that names none.
_MOST_ROUNDS, _ROUNDS = 10, 5


class Limit(NamedTuple):
    """Loop that a conversation can bring to its limit: the step of the flow, and the steps that the copy adds."""

    node_id: str
    title: str
    rounds: int
    fork: str
    gate: str
    loop: str


class Limits(NamedTuple):
    """Flow, and its loops that a conversation can bring to their limit."""

    graph: GraphIR
    found: Sequence[Limit] = ()


def rounds_of(loop: FlowNode) -> int:
    """Most runs of the step that a loop goes back to."""
    said = str(loop.inputs.get("maxLoopCount") or "").strip()
    return int(said[:9]) if said.isascii() and said.isdigit() and int(said[:9]) else _ROUNDS


def counts_on(loop: FlowNode, graph: GraphIR) -> bool:
    """True if a way back to the loop waits for no person: with each answer of a person Flowise counts anew."""
    people = {node.id for node in graph.nodes if node.name == v2.HUMAN_INPUT}
    after = {id_: later for id_, later in following(ways_of(graph)).items() if id_ not in people}
    return loop.id in reached_from([v2.loop_target_id(str(loop.inputs.get(v2.LOOP_TARGET) or ""))], after)


def with_limits(graph: GraphIR, schemas: Schemas) -> Limits:
    """Copy of the flow in which conversations whose session id says so go round each loop until its limit."""
    found: list[Limit] = []
    ops: list[PatchOp] = []
    for node in graph.nodes:
        forks = [graph.node(edge.source) for edge in graph.edges if edge.target == node.id]
        fork = forks[0] if len(forks) == 1 and node.name == v2.LOOP and not node.parent else None
        if fork is None or fork.name not in _FORKS or fork.id in {one.fork for one in found}:
            continue
        if rounds_of(node) <= _MOST_ROUNDS and counts_on(node, graph):
            number = len(found)
            title = node.label or node.id
            added = f"limitGate_{number}", f"limitLoop_{number}"
            found.append(Limit(node.id, title, rounds_of(node), fork.id, *added))
            ops += _gate(graph, node, found[-1], number)
    try:
        return Limits(compile_ops(graph, ops, schemas).graph, found) if ops else Limits(graph)
    except PatchError:
        return Limits(graph)


def _gate(graph: GraphIR, loop: FlowNode, limit: Limit, number: int) -> list[PatchOp]:
    row: dict[str, JsonValue] = {
        "type": "string",
        "value1": "{{ $flow.sessionId }}",
        "operation": "contains",
        "value2": f"limit{number}-",
    }
    kept = {name: value for name, value in loop.inputs.items() if name in loop.params_by_name and value not in ("", [])}
    back = v2.loop_target_id(str(kept.get(v2.LOOP_TARGET) or ""))
    kept[v2.LOOP_TARGET] = limit.gate if back == limit.fork else back
    ops: list[PatchOp] = []
    ops.append(AddNode(node_name=v2.CONDITION, node_id=limit.gate, params={"conditions": [row]}))
    ops.append(AddNode(node_name=v2.LOOP, node_id=limit.loop, label=loop.label, params=kept))
    for branch, target in (("0", limit.loop), ("1", limit.fork)):
        ops.append(Connect(source_node_id=limit.gate, source_anchor=branch, target_node_id=target))
    for edge in graph.edges:
        if edge.target == limit.fork:
            anchor = edge.output_name or None
            ops.append(Disconnect(source_node_id=edge.source, source_anchor=anchor, target_node_id=limit.fork))
            ops.append(Connect(source_node_id=edge.source, source_anchor=anchor, target_node_id=limit.gate))
    return ops
