"""The wiring of the 18 nodes; what they do is in `nodes/`, where they lead in `routing.py`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command
from langsmith.utils import tracing_is_enabled

from flowise_dev_agent.agent import routing
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.context_edges import CONTEXT, undeclared
from flowise_dev_agent.agent.domain import DomainCapability, Domains
from flowise_dev_agent.agent.emit import NODE_PHASES, artifact_event, node_event
from flowise_dev_agent.agent.node_artifacts import plan_artifact
from flowise_dev_agent.agent.nodes import apply, check, intent, patch, plan, plan_approval, review, target, testing
from flowise_dev_agent.agent.phases import measured
from flowise_dev_agent.agent.state import AgentState, Update, changed, channel_writes, merged
from flowise_dev_agent.observability import log_context
from flowise_dev_agent.observability.tracing import span
from flowise_dev_agent.schemas.event_data import Candidate, DecisionData, NodeEndData, NodeStartData
from flowise_dev_agent.schemas.events import NodeEvent

_log = logging.getLogger(__name__)

#: Seconds a node may run: 1 + 5 tries of a 180 s model call would be the longest; predictions take less.
NODE_TIMEOUT: Final = 1_200.0

#: Nodes that only read and compute: repeating them costs neither money nor the person's time.
_REPEATABLE: Final = frozenset(
    {
        *(START, "hydrate_context", "resolve_target", "hitl_select_target", "load_current_flow"),
        *("summarize_current_flow", "hitl_plan_v2", "define_patch_scope", "compile_flow_data", "validate"),
        *("repair_schema", "preflight_validate_patch", "hitl_review_v2"),
    }
)
#: Nodes that ask at once: the question is stored with the state before it.
_ASKING: Final = frozenset({"hitl_select_target", "hitl_plan_v2", "hitl_review_v2"})
#: Nodes with external effects that refer to the state before them, which must be stored.
_EFFECTIVE: Final = frozenset({"apply_patch", "test_v2"})
_FIXED: Final = dict(routing.EDGES)

Node = Callable[[AgentState, Runtime[AgentContext]], Awaitable[Update]]
AgentGraph = CompiledStateGraph[AgentState, AgentContext, AgentState, AgentState]


def build_graph(
    capabilities: Sequence[DomainCapability], checkpointer: BaseCheckpointSaver[str] | None = None
) -> AgentGraph:
    """Compile the graph for these domains. One graph serves all instances: the rest comes by `AgentContext`."""
    domains = Domains(capabilities)
    nodes: dict[str, Node] = {
        "classify_intent": measured(
            "classify_intent", partial(intent.classify_intent, domains=domains), domains, phase="classify"
        ),
        "hydrate_context": intent.hydrate_context,
        "resolve_target": partial(target.resolve_target, domains=domains),
        "hitl_select_target": target.hitl_select_target,
        "load_current_flow": partial(target.load_current_flow, domains=domains),
        "summarize_current_flow": target.summarize_current_flow,
        "plan_v2": measured("plan_v2", partial(plan.plan_v2, domains=domains), domains, phase="plan", tools="discover"),
        "hitl_plan_v2": plan_approval.hitl_plan_v2,
        "define_patch_scope": patch.define_patch_scope,
        "compile_patch_ir": measured(
            "compile_patch_ir", partial(patch.compile_patch_ir, domains=domains), domains, phase="patch", tools="patch"
        ),
        "compile_flow_data": patch.compile_flow_data,
        "validate": partial(check.validate, domains=domains),
        "repair_schema": measured("repair_schema", check.repair_schema, domains, phase="repair"),
        "preflight_validate_patch": apply.preflight_validate_patch,
        "apply_patch": apply.apply_patch,
        "test_v2": measured("test_v2", partial(testing.test_v2, domains=domains), domains, phase="test"),
        "evaluate": measured(
            "evaluate", partial(testing.evaluate, domains=domains), domains, phase="judge", tools="test"
        ),
        "hitl_review_v2": review.hitl_review_v2,
    }
    builder = StateGraph(AgentState, context_schema=AgentContext)
    steps = Steps(nodes)
    for name in nodes:
        _, ways = routing.ROUTERS.get(name, (None, (_FIXED.get(name, END),)))
        destinations = tuple(END if to == routing.END else to for to in ways)
        builder.add_node(name, steps.beginning_with(name), destinations=destinations)
    builder.add_edge(START, "classify_intent")
    return builder.compile(checkpointer=checkpointer)


def can_wait(ended: Set[str], following: Set[str]) -> bool:
    """True if the state after these nodes need not be stored: it may be lost with its worker and is recomputed."""
    return bool(following) and (ended <= _REPEATABLE or following <= _ASKING) and not following & _EFFECTIVE


def joins(ended: str, following: str) -> bool:
    """True if a node runs in its predecessor's LangGraph step, because the state between them is not needed."""
    return following in _REPEATABLE - _ASKING and can_wait({ended}, {following})


@dataclass(frozen=True)
class Steps:
    """Nodes as LangGraph runs them, checked against `context_edges`. Each step writes its changes as JSON channels and
    artifacts, decides the next node itself, and emits the reason.

    As conditional edges the routers would cost another reading of the whole state.
    """

    nodes: Mapping[str, Node]

    def beginning_with(self, first: str) -> Callable[..., Awaitable[Command[str]]]:
        """Step that runs one node, then the nodes that join it."""

        async def run(state: AgentState, runtime: Runtime[AgentContext]) -> Command[str]:
            name, now, written, ran = first, state, Update(), {first}
            while True:
                try:
                    following, now, update = await self._run(name, now, runtime)
                except Exception as error:
                    if name == first:
                        raise
                    if not isinstance(error, GraphBubbleUp):
                        _log.warning("%s failed behind %s and is repeated: %s", name, first, type(error).__name__)
                    # Repeat the node in its own step, so that the state before it is stored first.
                    following = name
                    break
                written = merged(written, update)
                on = following not in ran and joins(name, following) and not tracing_is_enabled()
                if on or name != first:
                    runtime.stream_writer(node_event(name, NodeEndData()))
                if not on:
                    break
                runtime.stream_writer(node_event(following, NodeStartData()))
                name = following
                ran.add(name)
            writes = channel_writes(state, now, written)
            return Command(update=writes, goto=END if following == routing.END else following)

        return run

    async def _run(
        self, name: str, state: AgentState, runtime: Runtime[AgentContext]
    ) -> tuple[str, AgentState, Update]:
        """Run one node: (next node, new state, update)."""
        if not CONTEXT[name].files and runtime.context.files is not None:
            runtime = runtime.override(context=replace(runtime.context, files=None))
        about = {"fda.step": name, "fda.phase": NODE_PHASES[name]}
        with span(f"step {name}", about, expected=GraphBubbleUp), log_context(step=name):
            # LangGraph's own limit takes two more tasks for each step.
            async with asyncio.timeout(NODE_TIMEOUT):
                update = await self.nodes[name](state, runtime)
        if foreign := undeclared(name, update):
            raise LookupError(f"{name} may not write {', '.join(sorted(foreign))}.")
        after = changed(state, update)
        if (artifact := plan_artifact(name, state, after, update, runtime.context.session_id)) is not None:
            runtime.stream_writer(artifact_event(name, artifact))
        if (following := _FIXED.get(name)) is not None:
            return following, after, update
        decision = routing.ROUTERS[name][0](after)
        runtime.stream_writer(_decision_event(name, decision, after.iteration))
        return decision.to, after, update


def _decision_event(source: str, decision: routing.Decision, iteration: int) -> NodeEvent:
    data = DecisionData(
        taken=decision.to,
        why=decision.why,
        candidates=[Candidate(**vars(candidate)) for candidate in decision.candidates],
        iteration=iteration,
    )
    return node_event(source, data, f"{source} → {decision.to}: {decision.why}")
