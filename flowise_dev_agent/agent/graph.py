"""The wiring of the 18 nodes; what they do is in `nodes/`, where they lead in `routing.py`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from flowise_dev_agent.agent import routing
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.context_edges import CONTEXT, undeclared
from flowise_dev_agent.agent.domain import DomainCapability, Domains
from flowise_dev_agent.agent.emit import NODE_PHASES, artifact_event
from flowise_dev_agent.agent.node_artifacts import artifacts_of, artifacts_of_decision
from flowise_dev_agent.agent.nodes import apply, check, intent, patch, plan, review, target
from flowise_dev_agent.agent.phases import measured
from flowise_dev_agent.agent.state import AgentState, Update, changed, channel_writes
from flowise_dev_agent.contracts.event_data import Candidate, DecisionData
from flowise_dev_agent.contracts.events import NodeEvent

#: Seconds a node may run: 1 + 5 tries of a 180 s model call would be the longest; predictions take less.
NODE_TIMEOUT: Final = 1_200.0

#: They read and compute: to run them again costs neither money nor the person's time, and changes nothing.
_REPEATABLE: Final = frozenset(
    {
        *(START, "hydrate_context", "resolve_target", "hitl_select_target", "load_current_flow"),
        *("summarize_current_flow", "hitl_plan_v2", "define_patch_scope", "compile_flow_data", "validate"),
        *("repair_schema", "preflight_validate_patch", "hitl_review_v2"),
    }
)
#: They ask at once, and the question is stored with what led to it.
_ASKING: Final = frozenset({"hitl_select_target", "hitl_plan_v2", "hitl_review_v2"})
#: What they do outside refers to the state that they begin with.
_EFFECTIVE: Final = frozenset({"apply_patch", "test_v2"})

Node = Callable[[AgentState, Runtime[AgentContext]], Awaitable[Update]]
AgentGraph = CompiledStateGraph[AgentState, AgentContext, AgentState, AgentState]


def build_graph(
    capabilities: Sequence[DomainCapability], checkpointer: BaseCheckpointSaver[str] | None = None
) -> AgentGraph:
    """Compile the graph for these domains. One graph serves all instances: the rest comes by `AgentContext`."""
    domains = Domains(capabilities)
    nodes: dict[str, Node] = {
        "classify_intent": measured("classify_intent", intent.classify_intent, domains, phase="classify"),
        "hydrate_context": intent.hydrate_context,
        "resolve_target": partial(target.resolve_target, domains=domains),
        "hitl_select_target": target.hitl_select_target,
        "load_current_flow": partial(target.load_current_flow, domains=domains),
        "summarize_current_flow": target.summarize_current_flow,
        "plan_v2": measured("plan_v2", partial(plan.plan_v2, domains=domains), domains, phase="plan", tools="discover"),
        "hitl_plan_v2": plan.hitl_plan_v2,
        "define_patch_scope": patch.define_patch_scope,
        "compile_patch_ir": measured(
            "compile_patch_ir", partial(patch.compile_patch_ir, domains=domains), domains, phase="patch", tools="patch"
        ),
        "compile_flow_data": patch.compile_flow_data,
        "validate": partial(check.validate, domains=domains),
        "repair_schema": measured("repair_schema", check.repair_schema, domains, phase="repair"),
        "preflight_validate_patch": apply.preflight_validate_patch,
        "apply_patch": apply.apply_patch,
        "test_v2": measured("test_v2", partial(review.test_v2, domains=domains), domains, phase="test"),
        "evaluate": measured(
            "evaluate", partial(review.evaluate, domains=domains), domains, phase="judge", tools="test"
        ),
        "hitl_review_v2": review.hitl_review_v2,
    }
    builder = StateGraph(AgentState, context_schema=AgentContext)
    for name, node in nodes.items():
        router, destinations = routing.ROUTERS.get(name, (None, ()))
        ends = tuple(END if to == routing.END else to for to in destinations) or None
        builder.add_node(name, _stored(name, node, router), destinations=ends)
    builder.add_edge(START, "classify_intent")
    for source, destination in routing.EDGES:
        builder.add_edge(source, destination)
    return builder.compile(checkpointer=checkpointer)


def can_wait(ended: Set[str], following: Set[str]) -> bool:
    """Whether the state after these nodes may be lost with its worker, as long as no other is stored."""
    return bool(following) and (ended <= _REPEATABLE or following <= _ASKING) and not following & _EFFECTIVE


def _stored(
    name: str, node: Node, router: routing.Router | None
) -> Callable[..., Awaitable[dict[str, Any] | Command[str]]]:
    """The node as LangGraph runs it, held to `context_edges`: what it changes becomes the JSON of the channels, and
    artifacts. Its router says at once where it goes from there, and tells the run's stream why.

    As a conditional edge the router would cost another reading of the whole state.
    """
    gets_files = CONTEXT[name].files

    async def run(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any] | Command[str]:
        if not gets_files and runtime.context.files is not None:
            runtime = runtime.override(context=replace(runtime.context, files=None))
        # LangGraph's own limit takes two more tasks for each step.
        async with asyncio.timeout(NODE_TIMEOUT):
            update = await node(state, runtime)
        if foreign := undeclared(name, update):
            raise LookupError(f"{name} may not write {', '.join(sorted(foreign))}.")
        after = changed(state, update)
        for artifact in artifacts_of(name, state, after, update, runtime.context.session_id):
            runtime.stream_writer(artifact_event(name, artifact))
        writes = channel_writes(state, after, update)
        if router is None:
            return writes
        decision = router(after)
        runtime.stream_writer(_decision_event(name, decision))
        for artifact in artifacts_of_decision(name, decision, after):
            runtime.stream_writer(artifact_event(name, artifact))
        return Command(update=writes, goto=END if decision.to == routing.END else decision.to)

    return run


def _decision_event(source: str, decision: routing.Decision) -> NodeEvent:
    return NodeEvent(
        node=source,
        phase=NODE_PHASES[source],
        summary=f"{source} → {decision.to}: {decision.why}",
        data=DecisionData(
            taken=decision.to,
            why=decision.why,
            candidates=[Candidate(**vars(candidate)) for candidate in decision.candidates],
        ),
    )
