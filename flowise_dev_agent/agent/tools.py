"""The ToolResult envelope: the only thing that a tool call returns, and the only gate into a prompt.

Only `summary` may reach a prompt. `data` is the raw outcome for code and for blobs, `facts` are structured deltas for
the state, `artifacts` persistent references (ids, hashes).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.reasoning.contracts import ToolDef

SUMMARY_LIMIT = 300

ToolFunction = Callable[..., Awaitable["ToolResult"]]


@dataclass(frozen=True)
class ToolResult:
    """`error` is `{code, detail, hint?}` when `ok` is false."""

    ok: bool
    summary: str
    facts: dict[str, Any] = field(default_factory=dict)
    data: Any = None
    error: dict[str, Any] | None = None
    artifacts: dict[str, Any] | None = None


@dataclass(frozen=True)
class DomainTools:
    """A domain's tools by phase, as offered to a model, and the functions behind them by name."""

    name: str
    discover: tuple[ToolDef, ...] = ()
    patch: tuple[ToolDef, ...] = ()
    test: tuple[ToolDef, ...] = ()
    executor: Mapping[str, ToolFunction] = field(default_factory=dict)


async def execute_tool(name: str, executor: Mapping[str, ToolFunction], **arguments: Any) -> ToolResult:
    """Call a tool by name. A failure that a person may read becomes `ok=False`; a bug stays an exception."""
    tool = executor.get(name)
    if tool is None:
        known = ", ".join(sorted(executor))
        return ToolResult(
            False, f"There is no tool '{name}'.", error={"code": "unknown_tool", "detail": f"Known: {known}"}
        )
    try:
        return await tool(**arguments)
    except AgentError as error:
        return ToolResult(False, shorten(str(error)), data=error, error=error.as_problem())


def result_to_str(result: ToolResult) -> str:
    """What a prompt may see of a tool call."""
    return result.summary


def shorten(text: str, limit: int = SUMMARY_LIMIT) -> str:
    """`text` in one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
