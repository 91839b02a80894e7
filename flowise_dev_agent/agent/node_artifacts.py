"""Artifacts that a step leaves, made without a model: a change of the plan in the state is a `plan`, patterns that were
looked for or kept are a `memory`, which `pattern_reuse` hands over.

Milestones and decisions are not stored: `sessions/node_artifacts.py` reads them off the event log.
"""

from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.agent.plan_outline import change_of, outline, store
from flowise_dev_agent.agent.state import AgentState, Update
from flowise_dev_agent.schemas.node_artifacts import (
    MemoryAdd,
    MemoryPayload,
    MemoryRetrieve,
    NodeArtifact,
    RememberedFlow,
    RoutingState,
    StoredPlan,
    StoredPlanPayload,
)

#: State parts that a plan's artifact depends on.
_OF_PLANS: Final = frozenset({"plan", "tests", "outcome"})
#: Nodes whose work is a person's answer.
ASKING: Final = frozenset({"hitl_plan_v2", "hitl_review_v2"})


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


def plan_artifact(
    node: str, before: AgentState, after: AgentState, update: Update, session_id: str
) -> NodeArtifact | None:
    """Artifact of the plan after a node's update; None if it is the same as before."""
    if not _OF_PLANS & update.keys():
        return None
    former, plan = outline(before, session_id), outline(after, session_id)
    if plan is None or plan == former:
        return None
    mode, patch = change_of(former, plan)
    result = store(former or StoredPlan(plan_id=session_id, title=plan.title), patch, mode)
    degraded = after.usage.degraded[len(before.usage.degraded) :]
    asked = after.usage.spent.model_calls > before.usage.spent.model_calls
    counts = result.counts.model_dump()
    findings = after.plan.current.findings if node == "plan_v2" else []
    return NodeArtifact(
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
            routing_state=RoutingState(node=node, phase=NODE_PHASES[node], iteration=after.iteration),
        ),
        answered=node in ASKING,
    )
