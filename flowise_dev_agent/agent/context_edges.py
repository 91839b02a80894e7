"""The parts of the state that each node of the graph reads and writes, in one table.

The graph holds nodes to it: what they write, and whether they get the files. That they read nothing else is shown by
tests.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Final

#: Control parts: the session's position, not its content. Routers read them, and every node may use them.
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
        """Names of the parts that the node reads."""
        return frozenset(self.reading.split())

    @property
    def writes(self) -> Set[str]:
        """Names of the parts that the node writes."""
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
        "credentials intent patch pattern plan request review target tests write",
        "credentials intent patch plan request tests",
    ),
    "define_patch_scope": NodeContext("credentials intent plan", "credentials patch"),
    "compile_patch_ir": NodeContext(
        "check credentials intent patch pattern plan request review target tests write",
        "check credentials patch plan",
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
    "evaluate": NodeContext("check credentials intent patch pattern plan request review tests write", "review tests"),
    "hitl_review_v2": NodeContext(
        "check credentials intent patch plan request review tests write",
        "check credentials intent patch plan review tests write",
    ),
}


def undeclared(node: str, written: Iterable[str]) -> Set[str]:
    """State parts that a node wrote without permission."""
    return {*written} - CONTROL - CONTEXT[node].writes
