"""Execution order of an agentflow: by connections, branches, iterations and loops."""

from collections import deque
from collections.abc import Iterable, Mapping
from functools import cached_property

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.ways import Way, following, reached_from, ways_of
from flowise_dev_agent.patch.validate.context import Connection, FlowContext

_Targets = Mapping[str, list[tuple[str, str]]]


class RunOrder:
    """The execution order of one flow. Reachability is cached per start node."""

    def __init__(self, flow: FlowContext) -> None:
        self._flow = flow
        self._reached: dict[tuple[str, str, bool], frozenset[str]] = {}
        self._names = {node.id: node.name for node in flow.nodes}
        self.start = next((node.id for node in flow.nodes if node.name == v2.START), "")

    def before(self, first: str, second: str, *, loops: bool = False) -> bool:
        """True if a path leads from one step to the other; with ``loops`` also through a loop back."""
        return second in self._reach(first, loops=loops)

    def reaches(self, first: str, second: str, *, avoiding: str) -> bool:
        """True if a path leads from one step to the other that avoids a third."""
        return second in self._reach(first, avoiding=avoiding)

    def apart(self, one: str, other: str) -> bool:
        """True if no run has both steps: they are behind different branches of one step."""
        return any(
            handles_of_one and handles_of_other and not handles_of_one & handles_of_other
            for handles_of_one, handles_of_other in self._branches(one, other)
        )

    def exclusive(self, one: Connection, other: Connection) -> bool:
        """True if no run takes both connections: they are, or lie behind, different branches of one step."""
        for fork in self._forks:
            taken, left = self._handles(fork, one), self._handles(fork, other)
            if taken and left and not taken & left:
                return True
        return False

    def fork_of(self, step: str) -> str | None:
        """The branching step that Flowise considers a step to depend on; None if there is none.

        It is the step itself, else the nearest branching step before it, along the first connection into each.
        """
        seen: set[str] = set()
        while step not in seen:
            seen.add(step)
            if self._names.get(step) in v2.BRANCHING:
                return step
            into = self._flow.connections_into.get(step)
            if not into:
                return None
            step = into[0].source.id
        return None

    def group_of(self, one: Connection) -> str:
        """Name of the inputs of a step of which one is enough: those behind the same branching step."""
        return self.fork_of(one.source.id) or f" {one.source.id}"

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Place of each step in the server's queue, where every branch is taken."""
        queue, found, received = deque([self.start]), dict[str, int](), dict[str, set[str]]()
        while queue:
            step = queue.popleft()
            if step in found:
                continue
            found[step] = len(found)
            for _, target in self._next.get(step, ()):
                received.setdefault(target, set()).add(step)
                into = self._flow.connections_into.get(target, ())
                given = {self.group_of(one) for one in into if one.source.id in received[target]}
                if given == {self.group_of(one) for one in into}:
                    queue.append(target)
        return found

    def skipped(self, step: str, later: str) -> bool:
        """True if a run can reach ``later`` without ``step``, by another branch."""
        for fork in self._forks:
            if not self.before(fork, step):
                continue
            with_step = {handle for handle, target in self._next[fork] if self._leads(target, step)}
            past = {handle for handle, target in self._next[fork] if self._leads(target, later, avoiding=step)}
            if past - with_step:
                return True
        return False

    def _branches(self, one: str, other: str) -> Iterable[tuple[set[str], set[str]]]:
        for fork in self._forks:
            yield (
                {handle for handle, target in self._next[fork] if self._leads(target, one)},
                {handle for handle, target in self._next[fork] if self._leads(target, other)},
            )

    def _handles(self, fork: str, connection: Connection) -> set[str]:
        """Handles of the branches on which a run reaches a connection."""
        if connection.source.id == fork:
            return {connection.edge.source_handle}
        return {handle for handle, target in self._next[fork] if self._leads(target, connection.source.id)}

    def _leads(self, first: str, second: str, *, avoiding: str = "") -> bool:
        return first != avoiding and (first == second or second in self._reach(first, avoiding=avoiding))

    @cached_property
    def _forks(self) -> list[str]:
        return [
            node.id for node in self._flow.nodes if node.name in v2.BRANCHING and len(self._next.get(node.id, ())) > 1
        ]

    @cached_property
    def _next(self) -> _Targets:
        """Node id -> (handle, target) of the possible next steps, jumps back left out."""
        found: dict[str, list[tuple[str, str]]] = {node.id: [] for node in self._flow.nodes}
        for one in self._ways:
            if one.handle != v2.LOOP:
                found[one.source].append((one.handle, one.target))
        return found

    @cached_property
    def _ways(self) -> list[Way]:
        return ways_of(self._flow.graph)

    def _reach(self, first: str, *, avoiding: str = "", loops: bool = False) -> frozenset[str]:
        key = (first, avoiding, loops)
        if key not in self._reached:
            after = self._jumping if loops else self._following
            self._reached[key] = reached_from(after.get(first, ()), after, avoiding=avoiding)
        return self._reached[key]

    @cached_property
    def _following(self) -> Mapping[str, list[str]]:
        return following(self._ways)

    @cached_property
    def _jumping(self) -> Mapping[str, list[str]]:
        return following(self._ways, jumps=True)
