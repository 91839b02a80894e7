"""Events that a node tells about itself; the run runner stores them (tokens only pass through)."""

from typing import Any

from langgraph.runtime import Runtime

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.phases import NODE_PHASES
from flowise_dev_agent.reasoning.contracts import DeltaSink, Reasoned


class Emitter:
    """Writes events of one node into the run's stream."""

    def __init__(self, runtime: Runtime[AgentContext], node: str) -> None:
        self._write = runtime.stream_writer
        self._node = node

    def event(self, type_: str, summary: str, **data: Any) -> None:
        """One stored event; `data` is small JSON (4 KB at most are kept)."""
        self._write(
            {"type": type_, "node": self._node, "phase": NODE_PHASES[self._node], "summary": summary, "data": data}
        )

    def reasoned(self, phase: str, result: Reasoned[Any]) -> None:
        """What a reasoning phase cost, and whether the other mode had to answer."""
        usage = result.usage.model_dump()
        if result.usage.model_calls:
            price = "price unknown" if result.usage.unpriced_calls else f"{usage['usd']:.4f} USD"
            self.event("cost", f"{phase}: {usage['input_tokens']} in, {usage['output_tokens']} out, {price}", **usage)
        if result.degraded:
            text = f"{phase}: {result.degraded.failed_mode} failed, {result.degraded.fallback_mode} answered"
            self.event("fallback", text, reason=result.degraded.reason)

    @property
    def delta(self) -> DeltaSink:
        """Forwards a model's text while it is written; not stored."""
        return lambda text: self.event("token", "", text=text)
