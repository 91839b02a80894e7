"""Artifacts of a step, made from the state and the decisions without a model.

A change of the plan in the state is a `plan`, an edge that leaves a phase a `milestone`, a fork a `decision`. Patterns
that were looked for or kept are a `memory`, which `pattern_reuse` hands over.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.agent.plan_outline import change_of, outline, store
from flowise_dev_agent.agent.routing import EDGES, END, Decision
from flowise_dev_agent.agent.state import AgentState, Update
from flowise_dev_agent.schemas.node_artifacts import (
    DecisionPayload,
    Evaluation,
    MemoryAdd,
    MemoryPayload,
    MemoryRetrieve,
    MilestonePayload,
    MilestoneState,
    NodeArtifact,
    RememberedFlow,
    RoutingState,
    StoredPlan,
    StoredPlanPayload,
)

#: State parts that a plan's artifact depends on.
_OF_PLANS: Final = frozenset({"plan", "tests", "outcome"})
#: Nodes whose work is a person's answer.
_ASKING: Final = frozenset({"hitl_plan_v2", "hitl_review_v2"})
_FIXED: Final = dict(EDGES)


def artifacts_of(
    node: str, before: AgentState, after: AgentState, update: Update, session_id: str
) -> Iterator[NodeArtifact]:
    """Artifacts of a node's update."""
    if _OF_PLANS & update.keys():
        yield from _plan(node, before, after, session_id)
    if after.iteration != before.iteration:
        yield _milestone(
            node,
            MilestoneState(milestone_key="iteration", status="in_progress", iteration=before.iteration),
            MilestoneState(milestone_key="iteration", status="in_progress", iteration=after.iteration),
            after,
        )
    if after.outcome is not None and before.outcome is None:
        yield _milestone(
            node,
            MilestoneState(milestone_key="acceptance", status="in_progress", iteration=after.iteration),
            MilestoneState(
                milestone_key="acceptance", status="completed", iteration=after.iteration, detail=after.outcome
            ),
            after,
        )
    if (following := _FIXED.get(node)) is not None:
        yield from _phase_end(node, following, "", after)


def artifacts_of_decision(node: str, decision: Decision, state: AgentState) -> Iterator[NodeArtifact]:
    """Artifacts of a routing decision."""
    taken = decision.to
    yield NodeArtifact(
        DecisionPayload(
            matched_connector_ids=[_connector(node, taken)],
            evaluations=[
                Evaluation(
                    connector_id=_connector(node, candidate.to),
                    condition_text=candidate.why,
                    matched=candidate.fits,
                    reason="taken"
                    if candidate.to == taken and candidate.why == decision.why
                    else _reason(candidate.fits),
                )
                for candidate in decision.candidates
            ],
            # The last candidate is the default, taken if no condition holds.
            no_match=not any(candidate.fits for candidate in decision.candidates[:-1]),
            resolved_route_key=taken,
            resolved_route_path=_connector(node, taken),
            routing_state=_routing(node, state, taken),
        )
    )
    yield from _phase_end(node, taken, decision.why, state)


def retrieved(query: str, found: Sequence[RememberedFlow], taken: int | None, limit: int) -> NodeArtifact:
    """Artifact of a search for patterns or notes, best first. At most one pattern is used; all notes are."""
    used = "all" if all(one.kind == "note" for one in found) else taken or "none"
    return NodeArtifact(
        MemoryPayload(
            action="retrieve",
            action_results=[f"{len(found)} found, {used} used"],
            effective_prompt=query,
            retrieved_memories=list(found),
            routing_state=RoutingState(node="plan_v2", phase="plan"),
            llm_guided_retrieve=MemoryRetrieve(query_text=query, memory_id=taken, limit=limit),
        ),
        memory_id=taken,
    )


def remembered(memory_id: int, text: str) -> NodeArtifact:
    """Artifact of a stored pattern; it replaces a pattern with the same words."""
    return NodeArtifact(
        MemoryPayload(
            action="add",
            action_results=[f"Kept as pattern {memory_id}"],
            effective_prompt=text,
            stored_memory=RememberedFlow(memory_id=memory_id, text=text),
            routing_state=RoutingState(node="apply_patch", phase="apply"),
            llm_guided_add=MemoryAdd(text=text, store_mode="replace"),
        ),
        memory_id=memory_id,
    )


def _plan(node: str, before: AgentState, after: AgentState, session_id: str) -> Iterator[NodeArtifact]:
    former, plan = outline(before, session_id), outline(after, session_id)
    if plan is None or plan == former:
        return
    mode, patch = change_of(former, plan)
    result = store(former or StoredPlan(plan_id=session_id, title=plan.title), patch, mode)
    degraded = after.usage.degraded[len(before.usage.degraded) :]
    asked = after.usage.spent.model_calls > before.usage.spent.model_calls
    counts = result.counts.model_dump()
    findings = after.plan.current.findings if node == "plan_v2" else []
    yield NodeArtifact(
        StoredPlanPayload(
            mode="llm_guided" if asked and not degraded else "deterministic",
            store_mode=mode,
            action_results=[f"{name}: {count}" for name, count in counts.items() if count],
            additive_prompt=before.plan.feedback or "",
            operation_counts=result.counts,
            touched=result.touched,
            warnings=[*result.warnings, *(found.message for found in findings if found.severity == "warning")],
            errors=[*result.errors, *(found.message for found in findings if found.severity == "error")],
            mode_fallback_used=bool(degraded),
            failed_mode=degraded[0].failed_mode if degraded else None,
            fallback_mode=degraded[0].fallback_mode if degraded else None,
            fallback_reason=degraded[0].fallback_reason if degraded else None,
            plan=result.plan.model_copy(update={"title": plan.title}),
            routing_state=_routing(node, after),
        ),
        answered=node in _ASKING,
    )


def _phase_end(node: str, following: str, why: str, state: AgentState) -> Iterator[NodeArtifact]:
    """Milestone of a phase that an edge leaves."""
    phase = NODE_PHASES[node]
    if NODE_PHASES.get(following) == phase:
        return
    yield _milestone(
        node,
        MilestoneState(milestone_key=phase, status="in_progress", iteration=state.iteration),
        MilestoneState(milestone_key=phase, status="completed", iteration=state.iteration, detail=why),
        state,
        following,
    )


def _milestone(
    node: str, before: MilestoneState, now: MilestoneState, state: AgentState, following: str | None = None
) -> NodeArtifact:
    done = now.status == "completed"
    return NodeArtifact(
        MilestonePayload(
            action="mark_complete" if done else "create_or_update",
            action_results=[f"{now.milestone_key}: {now.status}"],
            checkpoint_hit=done,
            before_milestone=before,
            milestone=now,
            routing_state=_routing(node, state, following),
        ),
        answered=node in _ASKING,
    )


def _routing(node: str, state: AgentState, to: str | None = None) -> RoutingState:
    return RoutingState(node=node, phase=NODE_PHASES[node], iteration=state.iteration, route_key=to)


def _connector(source: str, to: str) -> str:
    return f"{source}->{to if to != END else 'END'}"


def _reason(fits: bool) -> str:
    return "fits, but another came first" if fits else "its condition does not hold"
