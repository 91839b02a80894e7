"""Tools: definitions by domain and phase, the one way to call a tool, and its result type.

Only `ToolResult.summary` may reach a prompt. `data` is the raw outcome for code, `facts` are structured deltas for the
state, `artifacts` persistent references (ids, hashes).
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pydantic import ValidationError

from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.models.messages import MAX_SUMMARY_CHARS, ToolDef
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonMapping, JsonObject
from flowise_dev_agent.texts import counted

#: Characters of a summary, unless the tool declares its own limit.
SUMMARY_LIMIT: Final = 300
_JSON_CHARS: Final = 200
_ERRORS_SHOWN: Final = 5

ToolPhase = Literal["discover", "patch", "test"]
#: Called with keyword arguments; returns a `ToolResult`, or a value that `execute_tool` converts to one.
ToolFunction = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class ToolResult:
    """Result of a tool. If `ok` is false, `error` is `{code, detail, hint?}` and `data` the exception, if there was
    one.
    """

    ok: bool
    summary: str
    facts: JsonObject = field(default_factory=dict)
    data: Any = None
    error: dict[str, Any] | None = None
    artifacts: JsonObject | None = None


@dataclass(frozen=True)
class DomainTools:
    """Tools of a domain by phase, their functions by name, and the instructions for a model."""

    name: str
    discover: Sequence[ToolDef] = ()
    patch: Sequence[ToolDef] = ()
    test: Sequence[ToolDef] = ()
    executor: Mapping[str, ToolFunction] = field(default_factory=dict[str, ToolFunction])
    discover_context: str = ""
    patch_context: str = ""
    test_context: str = ""

    def defs(self, phase: ToolPhase) -> Sequence[ToolDef]:
        """The tools of a phase."""
        return {"discover": self.discover, "patch": self.patch, "test": self.test}[phase]

    def context(self, phase: ToolPhase) -> str:
        """Instructions for a model in a phase."""
        texts = {"discover": self.discover_context, "patch": self.patch_context, "test": self.test_context}
        return texts[phase]


async def execute_tool(name: str, arguments: JsonMapping, executor: Mapping[str, ToolFunction]) -> ToolResult:
    """Call a tool by name. Failures that a person or model may read become `ok=False`; a bug raises."""
    tool = executor.get(name)
    if tool is None:
        return _failed("unknown_tool", _unknown(name, executor))
    try:
        raw = await tool(**arguments)
    except ValidationError as error:
        return _failed("invalid_arguments", f"{name}: {_invalid(error)}")
    except AgentError as error:
        return ToolResult(False, shorten(f"{name} failed: {error}"), data=error, error=error.as_problem())
    result = _wrap_result(name, raw)
    return replace(result, summary=shortened(result.summary, MAX_SUMMARY_CHARS))


def result_to_str(result: ToolResult) -> str:
    """Text of a tool result for a prompt."""
    return masked(result.summary)


def shorten(text: str, limit: int = SUMMARY_LIMIT) -> str:
    """Shorten `text` to one line of at most `limit` characters."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return text if line == text else line
    return line[: limit - 1] + "…"


def _wrap_result(tool_name: str, raw: Any) -> ToolResult:
    """Wrap a tool's return value in a `ToolResult`; the first matching rule makes the summary (DD-048)."""
    match raw:
        case ToolResult():
            return raw
        case {"error": message}:
            return ToolResult(
                False,
                shorten(f"{tool_name} failed: {message}"),
                data=raw,
                error={"code": "tool_failed", "detail": str(message)},
            )
        case {"valid": valid, **rest}:
            problems = list(rest.get("errors") or ())
            text = "The flow is valid." if valid else f"The flow is not valid: {counted('errors', len(problems))}."
            return ToolResult(True, shorten(" ".join([text, *map(str, problems[:_ERRORS_SHOWN])])), data=raw)
        case {"id": id_, **rest}:
            summary = shorten(f"Chatflow '{rest.get('name', '')}' (id={id_}).")
            return ToolResult(True, summary, data=raw, artifacts={"chatflow_ids": [str(id_)]})
        case {"snapshotted": snapshotted, **rest} if snapshotted:
            label = str(rest.get("version_label", ""))
            summary = shorten(f"Snapshot saved as {label} (total: {rest.get('snapshot_count', 1)}).")
            return ToolResult(True, summary, data=raw, artifacts={"snapshot_labels": [label]})
        case list():
            return ToolResult(True, f"{tool_name} returned {len(raw)} item(s).", data=raw)
        case dict():
            return ToolResult(True, json.dumps(raw, default=str, ensure_ascii=False)[:_JSON_CHARS], data=raw)
        case _:
            return ToolResult(True, str(raw)[:SUMMARY_LIMIT], data=raw)


def _failed(code: str, text: str) -> ToolResult:
    return ToolResult(False, shorten(text), error={"code": code, "detail": text})


def _unknown(name: str, executor: Mapping[str, ToolFunction]) -> str:
    domains = sorted(key for key in executor if key.endswith(f".{name}"))
    if len(domains) > 1:
        return f"'{name}' is a tool of several domains: call {' or '.join(domains)}."
    known = ", ".join(sorted(key for key in executor if "." not in key) or sorted(executor))
    return f"There is no tool '{shorten(name, 64)}'. Known: {known or 'none'}."


def _invalid(error: ValidationError) -> str:
    """Message for invalid arguments, without their values: they may be long or secret."""
    found = error.errors(include_input=False, include_url=False, include_context=False)[:_ERRORS_SHOWN]
    return "; ".join(f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in found)
