"""Tools of one attempt of a phase: limited, answered once, counted and reported."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.registry import ToolRegistry
from flowise_dev_agent.agent.state import DomainValues, merge_domains
from flowise_dev_agent.agent.tools import ToolPhase, ToolResult, execute_tool, result_to_str, shorten
from flowise_dev_agent.models.messages import MAX_TOOL_CALLS, ToolDef
from flowise_dev_agent.observability.tracing import span
from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.sanitize import bounded
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.event_data import ToolCallData, ToolResultData
from flowise_dev_agent.texts import counted

#: Seconds of one call, connecting included. Nothing is tried again: the model decides what follows from a failure.
CALL_SECS: Final = 60.0
_ARGUMENT_BYTES: Final = 1_000


@dataclass(frozen=True)
class CalledTool:
    """Tool call. `repeated`: answered with the result of an identical call."""

    name: str
    arguments: JsonObject
    result: ToolResult
    duration_ms: int
    repeated: bool


class SessionToolbox:
    """`Toolbox` for a reasoner: the registry's tools of a phase, by full or bare name."""

    def __init__(
        self, registry: ToolRegistry, phase: ToolPhase, emit: Emitter, *, call_secs: float = CALL_SECS
    ) -> None:
        self._definitions = {definition.name: definition for definition in registry.tool_defs(phase)}
        self._executor = registry.executor(phase)
        self._emit = emit
        self._call_secs = call_secs
        self._begun = 0
        self._results: dict[str, ToolResult] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self.calls: list[CalledTool] = []

    @property
    def definitions(self) -> list[ToolDef]:
        """Tool definitions that the model is offered."""
        return list(self._definitions.values())

    async def call(self, name: str, arguments: JsonObject) -> str:
        """Call a tool; return the text of the result that the model may see."""
        if self._begun >= MAX_TOOL_CALLS:
            return f"Not called: a phase has at most {MAX_TOOL_CALLS} calls. Answer with what is known."
        self._begun += 1
        definition = self._definition(name)
        shown = definition.name if definition else shorten(name, 64)
        clean = bounded(redacted(arguments), _ARGUMENT_BYTES)
        self._emit.put(ToolCallData(name=shown, arguments=clean), f"{shown} is called")
        # A name that is no tool's is text of the model.
        known = shown if definition else "unknown"
        about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": known}
        start = time.monotonic()
        with span(f"execute_tool {known}", about) as current:
            result, repeated = await self._answer(shown, definition, arguments)
            current.set_attribute("fda.tool.ok", result.ok)
        duration_ms = int((time.monotonic() - start) * 1000)
        self.calls.append(CalledTool(shown, clean, result, duration_ms, repeated))
        text = result_to_str(result)
        data = ToolResultData(
            name=known,
            ok=result.ok,
            characters=len(text),
            duration_ms=duration_ms,
            repeated=repeated,
        )
        self._emit.put(data, f"{shown}: {'ok' if result.ok else 'failed'}, {counted('characters', len(text))}")
        return text

    def result_of(self, name: str) -> ToolResult | None:
        """Last successful result of a tool, by full name."""
        return next((call.result for call in reversed(self.calls) if call.name == name and call.result.ok), None)

    @property
    def counts(self) -> dict[str, int]:
        """Number of calls by full name, without unknown tools."""
        return dict(Counter(call.name for call in self.calls if call.name in self._definitions))

    @property
    def facts(self) -> DomainValues:
        """Facts of all results, by domain."""
        return self._merged([{call.name.partition(".")[0]: call.result.facts} for call in self.calls])

    @property
    def artifacts(self) -> DomainValues:
        """Artifacts of all results, by domain."""
        return self._merged([{call.name.partition(".")[0]: call.result.artifacts or {}} for call in self.calls])

    def _definition(self, name: str) -> ToolDef | None:
        if name in self._definitions:
            return self._definitions[name]
        if name not in self._executor:
            return None
        return next(one for full, one in self._definitions.items() if full.partition(".")[2] == name)

    async def _answer(self, name: str, definition: ToolDef | None, arguments: JsonObject) -> tuple[ToolResult, bool]:
        if definition is None or not definition.answered_once:
            return await self._run(name, arguments), False
        key = json.dumps([name, arguments], sort_keys=True, default=str)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key in self._results:
                return self._results[key], True
            result = await self._run(name, arguments)
            if result.ok:
                self._results[key] = result
            return result, False

    async def _run(self, name: str, arguments: JsonObject) -> ToolResult:
        try:
            async with asyncio.timeout(self._call_secs):
                return await execute_tool(name, arguments, self._executor)
        except TimeoutError:
            text = f"{name} failed: no answer within {self._call_secs:g} s."
            return ToolResult(False, text, error={"code": "tool_timeout", "detail": text})

    @staticmethod
    def _merged(parts: list[DomainValues]) -> DomainValues:
        merged: DomainValues = {}
        for part in parts:
            merged = merge_domains(merged, {domain: values for domain, values in part.items() if values})
        return merged
