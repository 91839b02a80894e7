"""Traces: the steps of a conversation as Flowise reports them, read, masked and bounded."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from pydantic import JsonValue

from flowise_dev_agent.flowise.models import Prediction
from flowise_dev_agent.redaction import masked, redacted
from flowise_dev_agent.sanitize import clean_json
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.verdict import Trace, TracedSource, TracedTool, TracedTurn, TraceStep

#: Bytes of a stored trace.
TRACE_BYTES: Final = 256 * 1024
#: Characters of each text in a trace, from the longest form to the shortest.
_TEXT_CHARS: Final = (20_000, 4_000, 1_000, 200)
_MOST_STEPS: Final = 200
_MOST_SOURCES: Final = 50
_FAILED_ROUND: Final = re.compile(r"Error in iteration \d+: ")
_CUT: Final = "… [cut]"
#: Keys of a step's output without information for a reader.
_NOISE: Final = frozenset(
    {"timeMetadata", "usageMetadata", "responseMetadata", "availableTools", "calledTools", "usedTools"}
)


@dataclass
class Exchange:
    """A message and the decisions that followed, each with its answer; the last reply holds the steps of all of it."""

    said: list[str]
    reply: Prediction = field(default_factory=Prediction)
    answers: list[str] = field(default_factory=list[str])


def trace_of(exchanges: Sequence[Exchange], failed_steps: Sequence[JsonObject] = ()) -> Trace:
    """Build the trace of a conversation; `failed_steps` are the steps of a turn that ended in an error."""
    raw = [step for exchange in exchanges for step in exchange.reply.agent_flow_executed_data]
    raw += failed_steps
    outputs = [_mapping(_data(step).get("output")) for step in raw]
    tools = [tool for exchange in exchanges for tool in exchange.reply.used_tools]
    tools += [tool for output in outputs for tool in _mappings(output.get("usedTools"))]
    sources = [item for exchange in exchanges for item in exchange.reply.source_documents]
    sources += [item for output in outputs for item in _mappings(output.get("sourceDocuments"))]
    states = [state for step in raw if (state := _mapping(_data(step).get("state")))]
    trace = Trace(
        turns=[
            TracedTurn(said=masked(said), answer=masked(answer))
            for one in exchanges
            for said, answer in zip_longest(one.said, one.answers, fillvalue="")
        ],
        steps=[*map(_step, raw), *(_spoken(one) for exchange in exchanges for one in exchange.reply.agent_reasoning)],
        used_tools=[_tool(tool) for tool in tools],
        sources=_unique(_source(item) for item in sources),
        state=_mapping(redacted(clean_json(states[-1]))) if states else {},
        tokens=_tokens(outputs),
    )
    return _fitted(trace)


def _step(raw: JsonObject) -> TraceStep:
    data = _data(raw)
    output = _mapping(data.get("output"))
    kept = {key: value for key, value in output.items() if key not in _NOISE}
    took = _mapping(output.get("timeMetadata")).get("delta")
    return TraceStep(
        node_id=str(raw.get("nodeId") or data.get("id") or ""),
        label=str(raw.get("nodeLabel") or ""),
        name=str(data.get("name") or ""),
        status=str(raw.get("status") or ""),
        input=redacted(clean_json(data.get("input"))),
        output=redacted(clean_json(kept)),
        error=_text(data.get("error")) or _failed_round(output),
        duration_ms=round(took) if isinstance(took, int | float) else None,
    )


def _spoken(raw: JsonObject) -> TraceStep:
    """Step of a sequence or member of a team: what it said, and what it handed on."""
    said = {key: raw[key] for key in ("messages", "next", "instructions", "state") if raw.get(key)}
    name = str(raw.get("nodeName") or "")
    node_id = str(raw.get("nodeId") or "")
    return TraceStep(
        node_id=node_id,
        label=str(raw.get("agentName") or ""),
        name=name or node_id.rpartition("_")[0],
        status="FINISHED",
        output=redacted(clean_json(said)),
    )


def _failed_round(output: JsonObject) -> str:
    """First error that an iteration put among its results: Flowise goes on with the next item, and the step counts as
    done.
    """
    results = output.get("iterationResults")
    texts = [one for one in results if isinstance(one, str)] if isinstance(results, list) else []
    return next((_text(one) for one in texts if _FAILED_ROUND.match(one)), "")


def _tool(raw: JsonObject) -> TracedTool:
    return TracedTool(
        tool=str(raw.get("tool") or "?"),
        input=redacted(clean_json(raw.get("toolInput"))),
        output=redacted(clean_json(raw.get("toolOutput"))),
        error=_text(raw.get("error")),
    )


def _source(raw: JsonObject) -> TracedSource:
    return TracedSource(
        text=_text(raw.get("pageContent")), metadata=_mapping(redacted(clean_json(_mapping(raw.get("metadata")))))
    )


def _tokens(outputs: Iterable[JsonObject]) -> dict[str, int]:
    names = {"input_tokens": "input", "output_tokens": "output", "total_tokens": "total"}
    sums: dict[str, int] = {}
    for output in outputs:
        usage = _mapping(output.get("usageMetadata"))
        for name, short in names.items():
            count = usage.get(name)
            if isinstance(count, int | float):
                sums[short] = sums.get(short, 0) + round(count)
    return sums


def _data(step: JsonObject) -> JsonObject:
    return _mapping(step.get("data"))


def _mapping(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _mappings(value: JsonValue) -> list[JsonObject]:
    """Objects in a list that may be nested: Flowise keeps one list per tool call."""
    if isinstance(value, dict):
        return [value]
    return [found for item in value for found in _mappings(item)] if isinstance(value, list) else []


def _unique(items: Iterable[TracedSource]) -> list[TracedSource]:
    return list({item.model_dump_json(): item for item in items}.values())


def _text(value: JsonValue) -> str:
    return masked(str(clean_json(value))) if value else ""


# --- size ------------------------------------------------------------------------------------------------------------


def _fitted(trace: Trace) -> Trace:
    """Limit a trace to TRACE_BYTES: shorten long texts first, then leave out steps in the middle."""
    steps, sources = trace.steps, trace.sources[:_MOST_SOURCES]
    if len(steps) > _MOST_STEPS:
        steps = steps[: _MOST_STEPS // 2] + steps[-_MOST_STEPS // 2 :]
    dropped = len(steps) < len(trace.steps) or len(sources) < len(trace.sources)
    trace = trace.model_copy(update={"steps": steps, "sources": sources, "cut": dropped})
    for limit in _TEXT_CHARS:
        shorter = _shortened(trace, limit)
        if _size(shorter) <= TRACE_BYTES:
            return shorter
    # Many small values: keep only the fact that each step ran.
    bare = [
        TraceStep(node_id=step.node_id, name=step.name, status=step.status, error=step.error[:200]) for step in steps
    ]
    turns = [TracedTurn(said=_head(turn.said, 1_000), answer=_head(turn.answer, 10_000)) for turn in trace.turns]
    return Trace(turns=turns, steps=bare, tokens=trace.tokens, cut=True)


def _shortened(trace: Trace, limit: int) -> Trace:
    dumped = trace.model_dump(mode="json")
    cut: list[bool] = []
    shorter = Trace.model_validate(_walk(dumped, lambda text: _head(text, limit, cut)))
    return shorter.model_copy(update={"cut": trace.cut or bool(cut)})


def _head(text: str, limit: int, cut: list[bool] | None = None) -> str:
    if len(text) <= limit:
        return text
    if cut is not None:
        cut.append(True)
    return text[:limit] + _CUT


def _walk(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """Apply `change` to every string in a JSON value; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _walk(item, change) for key, item in value.items()}
    return [_walk(item, change) for item in value] if isinstance(value, list) else value


def _size(trace: Trace) -> int:
    return len(trace.model_dump_json().encode())
