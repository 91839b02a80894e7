"""Run a node as a phase: with its tools, recording its measurements in the session's state."""

import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from langgraph.runtime import Runtime

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import Domains, ToolScope
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.nodes.patch import base_graph, flow_so_far, seeded_ids
from flowise_dev_agent.agent.state import AgentState, Update
from flowise_dev_agent.agent.toolbox import CalledTool, SessionToolbox
from flowise_dev_agent.agent.tools import ToolPhase
from flowise_dev_agent.redaction import masked, redacted
from flowise_dev_agent.sanitize import bounded
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.usage import PhaseMetrics

#: Most phases whose measurements a session keeps (the latest).
MAX_PHASES: Final = 60
_RESULT_BYTES: Final = 20_000

Node = Callable[..., Awaitable[Update]]


def measured(name: str, node: Node, domains: Domains, *, phase: str, tools: ToolPhase | None = None) -> Node:
    """Wrap a node: record its measurements as `phase` in `debug`; with `tools`, pass it a `SessionToolbox`."""

    async def run(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
        start = time.time()
        context = runtime.context
        if tools is None:
            update, calls = await node(state, runtime), []
            toolbox = None
        else:
            registry = domains.registry(await _scope(state, context, tools))
            toolbox = SessionToolbox(registry, tools, Emitter(runtime, name))
            update = await node(state, runtime, tools=toolbox)
            calls = toolbox.calls
        domain = domains.primary.name
        metrics = _metrics(phase, start, state, update, calls)
        if metrics.input_tokens:
            metrics = metrics.model_copy(update={"skills": context.reasoner.skills_version})
        debug: JsonObject = {"phase_metrics": _phases(state, domain, metrics)}
        if toolbox and calls:
            debug["tool_calls"] = _counts(state, domain, toolbox)
            debug[f"{phase}_tools"] = await context.blobs.put(_record(calls))
            update["facts"], update["artifacts"] = toolbox.facts, toolbox.artifacts
        update["debug"] = {domain: debug}
        return update

    return run


async def _scope(state: AgentState, context: AgentContext, phase: ToolPhase) -> ToolScope:
    """Tool scope of a phase. Only after the approval does it contain the plan, and so allow running its code."""
    common: dict[str, Any] = {
        "flowise": context.flowise,
        "knowledge": context.knowledge,
        "flows": context.flows,
        "session_id": context.session_id,
        "chosen": state.credentials.chosen,
        "stored": await flow_so_far(state, context),
    }
    match phase:
        case "discover":
            is_new = state.intent.operation == "create" and state.write.chatflow_id is None and state.iteration == 0
            return ToolScope(**common, base=common["stored"], patterns=context.patterns, is_new=is_new)
        case "patch":
            original = state.write.original_sha
            return ToolScope(
                **common,
                base=await base_graph(state, context),
                seeded=seeded_ids(state),
                original=await context.blobs.get(original) if original else None,
                plan=state.plan.contract if state.plan.approved else None,
                limits=state.patch.scope,
                without_credentials=bool(state.credentials.skipped),
            )
        case "test":
            tested_id = state.tests.copy_id or state.write.draft_id or state.write.chatflow_id
            traces = [trial.trace_sha256 for trial in state.tests.results]
            return ToolScope(**common, base=common["stored"], tested_id=tested_id, traces=traces, blobs=context.blobs)


def _metrics(phase: str, start: float, state: AgentState, update: Update, calls: list[CalledTool]) -> PhaseMetrics:
    end = time.time()
    before, usage, check = state.usage.spent, update.get("usage"), update.get("check")
    spent = usage.spent if usage else before
    repaired = check.repairs if check and "repairs" in check.model_fields_set else state.check.repairs
    return PhaseMetrics(
        phase=phase,
        start_ts=start,
        end_ts=end,
        duration_ms=max(0, int((end - start) * 1000)),
        input_tokens=spent.input_tokens - before.input_tokens,
        output_tokens=spent.output_tokens - before.output_tokens,
        tool_call_count=len(calls),
        cache_hits=sum(call.repeated for call in calls),
        repair_events=max(0, repaired - state.check.repairs),
    )


def _phases(state: AgentState, domain: str, latest: PhaseMetrics) -> list[Any]:
    former = state.debug.get(domain, {}).get("phase_metrics")
    return [*(former if isinstance(former, list) else []), latest.model_dump(mode="json")][-MAX_PHASES:]


def _counts(state: AgentState, domain: str, toolbox: SessionToolbox) -> JsonObject:
    former = state.debug.get(domain, {}).get("tool_calls")
    known = former.items() if isinstance(former, dict) else ()
    return {**(Counter(toolbox.counts) + Counter({name: count for name, count in known if isinstance(count, int)}))}


def _record(calls: list[CalledTool]) -> str:
    """Tool calls of a phase with their raw results, for debugging; never for a prompt."""
    return json.dumps(
        [
            {
                "name": call.name,
                "arguments": call.arguments,
                "ok": call.result.ok,
                "duration_ms": call.duration_ms,
                "repeated": call.repeated,
                "summary": masked(call.result.summary),
                **bounded({"data": redacted(_plain(call.result.data))}, _RESULT_BYTES),
            }
            for call in calls
        ],
        ensure_ascii=False,
    )


def _plain(data: Any) -> Any:
    return json.loads(json.dumps(data, default=str))
