"""Which node of the graph gets what from which: one table, from which the edges follow.

An edge of the graph is `solid`: it triggers its target and brings context and attachments. A node that reads what
another one wrote, without being triggered by it, has a `dotted` edge: context only. The files of a session reach a
node that works on them and is not the first one by a `dashed` edge: attachments only.

The graph holds nodes to it: what they write, and whether they get the files. That they read nothing else is shown by
tests.
"""

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Final, Literal

from langgraph.graph import START

from flowise_dev_agent.agent.routing import EDGES, END, ROUTERS

Mode = Literal["solid", "dotted", "dashed"]
#: Where a session is, not what it is about: read by routers and open to every node.
CONTROL: Final = frozenset(
    {"answer", "outcome", "budget", "usage", "debug", "iteration", "artifacts", "facts", "version"}
)


@dataclass(frozen=True)
class NodeContext:
    """Parts of the state that a node reads and writes, besides `CONTROL`, and whether it works on the files."""

    reading: str
    writing: str
    files: bool = False

    @property
    def reads(self) -> Set[str]:
        """Names of parts."""
        return frozenset(self.reading.split())

    @property
    def writes(self) -> Set[str]:
        """Names of parts."""
        return frozenset(self.writing.split())


CONTEXT: Final[dict[str, NodeContext]] = {
    "classify_intent": NodeContext("check intent request", "intent plan", files=True),
    "hydrate_context": NodeContext("catalogue intent", "catalogue intent"),
    "resolve_target": NodeContext("intent request", "target"),
    "hitl_select_target": NodeContext("intent target", "intent target"),
    "load_current_flow": NodeContext("intent request target", "plan target write"),
    "summarize_current_flow": NodeContext("write", ""),
    "plan_v2": NodeContext(
        "check credentials intent plan request review target tests write",
        "check credentials patch pattern plan review write",
        files=True,
    ),
    "hitl_plan_v2": NodeContext(
        "credentials intent pattern plan request review target tests write",
        "credentials intent plan request tests",
    ),
    "define_patch_scope": NodeContext("credentials plan", "credentials patch"),
    "compile_patch_ir": NodeContext(
        "check credentials intent patch pattern plan request review target write", "check credentials patch plan"
    ),
    "compile_flow_data": NodeContext(
        "catalogue check credentials intent patch pattern plan write", "catalogue check patch", files=True
    ),
    "validate": NodeContext("check credentials patch pattern plan write", "check"),
    "repair_schema": NodeContext("check", "check"),
    "preflight_validate_patch": NodeContext(
        "check intent patch plan request write", "check intent patch plan review write"
    ),
    "apply_patch": NodeContext(
        "check intent patch pattern plan request review target tests write", "check write", files=True
    ),
    "test_v2": NodeContext("check intent plan request tests write", "tests write", files=True),
    "evaluate": NodeContext("check credentials intent patch pattern plan request review tests write", "review"),
    "hitl_review_v2": NodeContext(
        "check credentials intent patch plan request review tests write",
        "check credentials intent patch plan review tests write",
    ),
}


@dataclass(frozen=True)
class ContextEdge:
    """From one node to another. `parts` are what the target reads of what the source writes."""

    source: str
    target: str
    mode: Mode
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputContext:
    """What reaches a node besides what comes with the edge that triggers it."""

    context_only_upstream_nodes: tuple[str, ...]
    attachment_only_upstream_nodes: tuple[str, ...]
    #: Whether the files of the session get to it.
    propagated_attachments: bool


def context_edges() -> list[ContextEdge]:
    """All edges: by target, those that trigger it first."""
    return [edge for target in CONTEXT for edge in _into(target)]


def input_context(node: str) -> InputContext:
    """What reaches a node. Raises KeyError for an unknown one."""
    edges = [*_into(node)]
    return InputContext(
        context_only_upstream_nodes=tuple(edge.source for edge in edges if edge.mode == "dotted"),
        attachment_only_upstream_nodes=tuple(edge.source for edge in edges if edge.mode == "dashed"),
        propagated_attachments=CONTEXT[node].files,
    )


def undeclared(node: str, written: Iterable[str]) -> Set[str]:
    """The parts that a node wrote and may not."""
    return {*written} - CONTROL - CONTEXT[node].writes


def _into(target: str) -> Iterator[ContextEdge]:
    triggers = [source for source, to in _solid() if to == target]
    for source in triggers:
        yield ContextEdge(source, target, "solid", _shared(source, target))
    for source in CONTEXT:
        if source != target and source not in triggers and (shared := _shared(source, target)):
            yield ContextEdge(source, target, "dotted", shared)
    if CONTEXT[target].files and START not in triggers:
        yield ContextEdge(START, target, "dashed")


def _solid() -> Iterator[tuple[str, str]]:
    yield START, "classify_intent"
    yield from EDGES
    for source, (_, targets) in ROUTERS.items():
        yield from ((source, target) for target in targets if target != END)


def _shared(source: str, target: str) -> tuple[str, ...]:
    if source == START:
        return ("request",)
    return tuple(sorted(CONTEXT[source].writes & CONTEXT[target].reads))
