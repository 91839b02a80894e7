"""Tests of a flow from before a change, which expect nothing that the change is to change."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.agentflow import BRANCHING, HUMAN_INPUT
from flowise_dev_agent.patch.model.field_kinds import PROSE
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.schemas.plan import Expectation, TestCase
from flowise_dev_agent.testing.checks import settings_in, squeezed
from flowise_dev_agent.testing.tool_names import without_number

#: Row of an agent's tool that a person has to allow.
_ASKS: Final = "agentSelectedToolRequiresHumanInput"
_TOOL: Final = "tool"
_NODE_ID: Final = re.compile(r"\w+_\d+")


def still_expected(
    cases: Iterable[TestCase], before: GraphIR, after: GraphIR, own: Sequence[TestCase]
) -> list[TestCase]:
    """Earlier tests of a flow, without what the approved change is to change. `own` are the tests of its plan.

    Each still asks the same. It expects no step to which another way leads now, no tool whose caller is told something
    else, no words that the flow no longer holds, and none excluded that the plan expects.
    """
    change = _Change(before, after, own)
    return [change.rewritten(case) for case in cases]


class _Change:
    def __init__(self, before: GraphIR, after: GraphIR, own: Sequence[TestCase]) -> None:
        self._before, self._after, self._own = before, after, own

    def rewritten(self, case: TestCase) -> TestCase:
        expect = case.expect
        wanted = [squeezed(words) for one in self._own for words in one.expect.contains]
        kept = Expectation(
            branch=[one for one in expect.branch if self._is_led_alike(one)],
            tools=[one for one in expect.tools if self._is_called_alike(one)],
            sources=[one for one in expect.sources if self._is_held(one)],
            fields=[one for one in expect.fields if self._is_held(one)],
            contains=[one for one in expect.contains if self._is_held(one)],
            excludes=[one for one in expect.excludes if not any(squeezed(one) in words for words in wanted)],
            language=None if self._speaks_otherwise(expect.language) else expect.language,
        )
        update = {"expect": kept}
        if self._asks_otherwise:
            update |= {"human": [], "human_feedback": []}
        return case.model_copy(update=update)

    def _is_led_alike(self, node_id: str) -> bool:
        """True for a step that stays, to which the same branches lead, each decided as before."""
        ways = _ways(self._before, node_id)
        forks = {fork for fork, _ in ways}
        deciding = forks.union(*(_ancestors(self._after, fork) for fork in forks))
        return (
            self._after.node(node_id) is not None
            and ways == _ways(self._after, node_id)
            and not any(map(self._is_altered, deciding))
        )

    def _is_called_alike(self, tool: str) -> bool:
        """True for a tool that stays, whose callers run and are told what they were told."""
        if _NODE_ID.fullmatch(tool) and self._after.node(tool) is None:
            return False
        callers = _callers(self._before, tool)
        return callers == _callers(self._after, tool) and all(
            self._is_led_alike(one) and _told(self._before.node(one)) == _told(self._after.node(one)) for one in callers
        )

    def _is_held(self, words: str) -> bool:
        """False for words that the flow had and has no more."""
        return squeezed(words) in self._texts[1] or squeezed(words) not in self._texts[0]

    def _speaks_otherwise(self, language: str | None) -> bool:
        """True for another language than that of the plan's tests, where a text for a model is another one."""
        spoken = {one.expect.language for one in self._own} - {None}
        told = [[_told(node) for node in graph.nodes] for graph in (self._before, self._after)]
        return bool(spoken) and language not in spoken and told[0] != told[1]

    @cached_property
    def _asks_otherwise(self) -> bool:
        """True if a step that waited for a person is gone, or is reached otherwise."""
        stops = [node.id for node in self._before.nodes if _waits(node)]
        return any(not _waits(self._after.node(one)) or not self._is_led_alike(one) for one in stops)

    @cached_property
    def _texts(self) -> tuple[str, str]:
        return squeezed(self._before.to_flow_data()), squeezed(self._after.to_flow_data())

    def _is_altered(self, node_id: str) -> bool:
        old, new = self._before.node(node_id), self._after.node(node_id)
        return old is None or new is None or (old.name, old.inputs) != (new.name, new.inputs)


def _ways(graph: GraphIR, node_id: str) -> set[tuple[str, str]]:
    """Branches that lead to a step, or to the iteration that it is in, as step and output."""
    node = graph.node(node_id)
    near = {node_id, node.parent if node else ""}
    reached = near.union(*(_ancestors(graph, one) for one in near))
    forks = {one.id for one in graph.nodes if one.name in BRANCHING}
    return {(edge.source, edge.output_name) for edge in graph.edges if edge.source in forks and edge.target in reached}


def _ancestors(graph: GraphIR, node_id: str) -> set[str]:
    found, left = set[str](), [node_id]
    while left:
        target = left.pop()
        sources = {edge.source for edge in graph.edges if edge.target == target} - found
        found |= sources
        left += sources
    return found


def _callers(graph: GraphIR, tool: str) -> set[str]:
    """Nodes that call a tool: those that hold its type, those that its node is connected to, or a step of its own."""
    type_, found = without_number(tool), set[str]()
    for node in graph.nodes:
        held = any(without_number(one.component) == type_ for one in nested_components(node.params, node.inputs))
        if held or (node.id == tool and node.is_agentflow):
            found.add(node.id)
        elif node.id == tool:
            found |= {edge.target for edge in graph.edges if edge.source == tool}
    return found


def _told(node: FlowNode | None) -> list[tuple[str, object]]:
    settings = settings_in(node.inputs) if node else ()
    return [(name, value) for name, value in settings if PROSE.search(name) or _TOOL in name.casefold()]


def _waits(node: FlowNode | None) -> bool:
    """True for a step that waits for a person, or asks one before it uses a tool."""
    if node is None:
        return False
    asks = any(name == _ASKS and str(value).lower() == "true" for name, value in settings_in(node.inputs))
    return node.name == HUMAN_INPUT or asks
