"""The edges of a flow while it is being changed: in order, and found by their ends."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.lazy import lazy

#: Node id to the edges at it, each under its number.
_AtNode = dict[str, dict[int, FlowEdge]]


class EdgeSet:
    """Edges keep their place, those that come stand behind. What stands at which node is looked up when first asked."""

    def __init__(self, base: Sequence[FlowEdge]) -> None:
        self._edges = dict(enumerate(base))
        self._border = self._next = len(base)

    def __iter__(self) -> Iterator[FlowEdge]:
        return iter(list(self._edges.values()))

    @lazy
    def _by_source(self) -> _AtNode:
        grouped: _AtNode = {}
        for number, edge in self._edges.items():
            grouped.setdefault(edge.source, {})[number] = edge
        return grouped

    @lazy
    def _by_target(self) -> _AtNode:
        grouped: _AtNode = {}
        for number, edge in self._edges.items():
            grouped.setdefault(edge.target, {})[number] = edge
        return grouped

    def out_of(self, node_id: str) -> list[FlowEdge]:
        return _in_order(self._by_source.get(node_id))

    def into(self, node_id: str) -> list[FlowEdge]:
        return _in_order(self._by_target.get(node_id))

    @lazy
    def _ends(self) -> set[tuple[str, str, str, str]]:
        return {edge.ends for edge in self._edges.values()}

    def has(self, ends: tuple[str, str, str, str]) -> bool:
        """Whether there is an edge with just these ends."""
        return ends in self._ends

    def add(self, edge: FlowEdge) -> None:
        self._put(self._next, edge)
        self._next += 1

    def remove(self, edge: FlowEdge) -> None:
        self._take(edge)

    def replace(self, old: FlowEdge, new: FlowEdge) -> None:
        """Put another edge in the same place."""
        self._put(self._take(old), new)

    def _put(self, number: int, edge: FlowEdge) -> None:
        self._edges[number] = edge
        self._ends.add(edge.ends)
        self._by_source.setdefault(edge.source, {})[number] = edge
        self._by_target.setdefault(edge.target, {})[number] = edge

    def _take(self, edge: FlowEdge) -> int:
        leaving, arriving = self._by_source[edge.source], self._by_target[edge.target]
        number = next(number for number, one in leaving.items() if one is edge)
        self._ends.discard(edge.ends)
        del leaving[number], arriving[number], self._edges[number]
        return number

    def kept_and_added(self) -> tuple[list[FlowEdge], list[FlowEdge]]:
        """Edges in the places of the base, then those that came."""
        numbers = sorted(self._edges)
        border = bisect_left(numbers, self._border)
        in_order = [self._edges[number] for number in numbers]
        return in_order[:border], in_order[border:]


def _in_order(edges: dict[int, FlowEdge] | None) -> list[FlowEdge]:
    return [edges[number] for number in sorted(edges)] if edges else []
