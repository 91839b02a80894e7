"""Phases of the nodes, and the events that a node reports; the run stores them, except tokens."""

from typing import Any, Final

from langgraph.runtime import Runtime

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.models.messages import DeltaSink
from flowise_dev_agent.planning.requests import Reasoned
from flowise_dev_agent.schemas.event_data import CostData, EventData, FallbackData, NodeArtifactData, TokenData
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.schemas.node_artifacts import NodeArtifact

#: Phase of each node.
NODE_PHASES: Final[dict[str, str]] = {
    "classify_intent": "intent",
    "hydrate_context": "intent",
    "resolve_target": "target",
    "hitl_select_target": "target",
    "load_current_flow": "baseline",
    "summarize_current_flow": "baseline",
    "plan_v2": "plan",
    "hitl_plan_v2": "plan",
    "define_patch_scope": "patch",
    "compile_patch_ir": "patch",
    "compile_flow_data": "patch",
    "validate": "check",
    "repair_schema": "check",
    "preflight_validate_patch": "apply",
    "apply_patch": "apply",
    "test_v2": "test",
    "evaluate": "test",
    "hitl_review_v2": "review",
}


def node_event(node: str, data: EventData, summary: str = "") -> NodeEvent:
    """Event of a node; its type follows from `data` (at most 4 KB are kept)."""
    return NodeEvent(node, NODE_PHASES[node], summary, data)


def artifact_event(node: str, artifact: NodeArtifact) -> NodeEvent:
    """Event that stores an artifact."""
    summary = f"Stored a {artifact.payload.artifact_type} of {node}"
    return NodeEvent(node, NODE_PHASES[node], summary, NodeArtifactData(), artifact)


class Emitter:
    """Writes events of one node into the run's stream."""

    def __init__(self, runtime: Runtime[AgentContext], node: str) -> None:
        self._write = runtime.stream_writer
        self._emit = runtime.context.emit
        self._node = node

    def put(self, data: EventData, summary: str = "") -> None:
        """Emit an event of this node."""
        self._write(node_event(self._node, data, summary))

    def artifact(self, artifact: NodeArtifact) -> None:
        """Emit an event that stores an artifact."""
        self._write(artifact_event(self._node, artifact))

    def reasoned(self, phase: str, result: Reasoned[Any]) -> None:
        """Emit the cost of a reasoning phase, and a fallback to the other mode if there was one."""
        usage = result.usage
        if usage.model_calls:
            price = "price unknown" if usage.unpriced_calls else f"{usage.usd:.4f} USD"
            summary = f"{phase}: {usage.input_tokens} in, {usage.output_tokens} out, {price}"
            self.put(CostData(**usage.model_dump()), summary)
        if result.degraded:
            text = f"{phase}: {result.degraded.failed_mode} failed, {result.degraded.fallback_mode} answered"
            self.put(FallbackData(reason=result.degraded.reason), text)

    @property
    def delta(self) -> DeltaSink:
        """Sink that forwards a model's text while it is written; not stored. Hundreds of pieces bypass the graph."""
        node, phase, emit = self._node, NODE_PHASES[self._node], self._emit
        return lambda text: emit(NodeEvent(node, phase, "", TokenData(text=text)))
