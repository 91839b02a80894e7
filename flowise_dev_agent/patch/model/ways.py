"""Ways of a run through a flow: its lines, those into an iteration and out of it, and the jumps back of loops."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model import sequential
from flowise_dev_agent.patch.model.graph import GraphIR


class Way(NamedTuple):
    """Way from one node to the next. `handle` is that of the source, empty into and out of an iteration and LOOP for a
    jump back; `input` is the input of a chatflow's node.
    """

    source: str
    handle: str
    target: str
    input: str = ""


def ways_of(graph: GraphIR) -> list[Way]:
    """Ways between the nodes of a flow. The first steps inside an iteration follow it, before what it leads to; its
    last steps lead to that as well.
    """
    nodes = {node.id: node for node in graph.nodes if not node.is_note}
    lines = [
        Way(one.source, one.source_handle, one.target, one.input_name)
        for one in graph.edges
        if one.source in nodes and one.target in nodes
    ]
    entered, left, after = {one.target for one in lines}, {one.source for one in lines}, following(lines)
    inside = [(node.parent, id_) for id_, node in nodes.items() if node.parent in nodes and node.parent != id_]
    return [
        *(Way(parent, "", id_) for parent, id_ in inside if id_ not in entered),
        *lines,
        *(Way(id_, "", target) for parent, id_ in inside if id_ not in left for target in after.get(parent, ())),
        *(
            Way(id_, v2.LOOP, target)
            for id_, node in nodes.items()
            if node.name == v2.LOOP
            if (target := v2.loop_target_id(str(node.inputs.get(v2.LOOP_TARGET) or ""))) in nodes
        ),
        *(
            Way(id_, v2.LOOP, target)
            for id_, node in nodes.items()
            if node.name == sequential.LOOP
            if (target := sequential.id_called(str(node.inputs.get(sequential.LOOP_TO) or ""), nodes.values()))
        ),
    ]


def following(ways: Iterable[Way], *, jumps: bool = False) -> Mapping[str, list[str]]:
    """Node id -> ids of the nodes that follow it; those that a loop jumps back to only with `jumps`."""
    found: dict[str, dict[str, None]] = {}
    for one in ways:
        if jumps or one.handle != v2.LOOP:
            found.setdefault(one.source, {})[one.target] = None
    return {source: list(targets) for source, targets in found.items()}


def reached_from(starts: Iterable[str], after: Mapping[str, Collection[str]], *, avoiding: str = "") -> frozenset[str]:
    """Ids of `starts` and of all nodes that follow them, without what only a way through `avoiding` leads to."""
    seen, queue = set[str](), list(starts)
    while queue:
        if (one := queue.pop()) not in seen and one != avoiding:
            seen.add(one)
            queue += after.get(one, ())
    return frozenset(seen)
