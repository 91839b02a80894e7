"""Reuse an accepted flow for a new one: found before the plan, cut to the plan, stored at the end.

A library that cannot be read, or a pattern that no longer compiles, stops no session: the flow is built from nothing.
"""

import logging
from collections.abc import Set
from uuid import UUID

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.node_artifacts import remembered, retrieved
from flowise_dev_agent.agent.state import AgentState, PatternState
from flowise_dev_agent.errors import DatabaseUnavailableError, PatchError
from flowise_dev_agent.knowledge.pattern_library import MOST_MATCHES, Match, trimmed
from flowise_dev_agent.patch import AddNode, GraphIR, Schemas, compile_ops, errors, summarize
from flowise_dev_agent.planning.requests import Pattern
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.event_data import ArtifactData, Candidate, DecisionData
from flowise_dev_agent.schemas.node_artifacts import RememberedFlow
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.schemas.verdict import Verdict
from flowise_dev_agent.texts import say_in, text

_log = logging.getLogger(__name__)
_MAX_REQUIREMENT_CHARS = 120
#: Notes that a planner reads.
_MOST_NOTES = 10
_NOT_USED = PatternState(id=None, ops=[], flow_sha=None)


async def find_pattern(state: AgentState, context: AgentContext, emit: Emitter) -> Match | None:
    """Find a pattern for a new flow; only for CREATE and before any write."""
    if context.patterns is None or not _is_fresh(state):
        return None
    if errors(state.check.findings):
        # The ops on top of the pattern failed: the next plan starts from an empty flow.
        await count_failure(state, context)
        return None
    try:
        matches = await context.patterns.find(state.request.requirement, await context.knowledge.nodes())
    except DatabaseUnavailableError:
        _log.warning("the pattern library cannot be searched; planning without it", exc_info=True)
        return None
    if not matches:
        return None
    chosen = matches[0] if matches[0].refused is None else None
    candidates = [
        Candidate(
            to=f"pattern {match.id}",
            fits=match is chosen,
            why=match.refused or text("pattern.relevance", found=f"{match.score:g}"),
        )
        for match in matches
    ]
    taken = f"pattern {chosen.id}" if chosen else "none"
    emit.put(
        DecisionData(taken=taken, candidates=candidates),
        text("event.pattern_chosen", number=chosen.id) if chosen else text("event.no_pattern"),
    )
    found = [
        RememberedFlow(memory_id=match.id, text=match.requirement, score=match.score, refused=match.refused)
        for match in matches
    ]
    emit.artifact(retrieved(state.request.requirement, found, chosen.id if chosen else None, MOST_MATCHES))
    return chosen


async def find_notes(state: AgentState, context: AgentContext, emit: Emitter) -> tuple[str, ...]:
    """Find the person's notes for the planner; the search is recorded as an artifact unless there is none."""
    if context.notes is None or not context.reasoner.reads_candidates:
        return ()
    words = " ".join([state.full_requirement, *state.later_words])
    try:
        notes = await context.notes.find(words, limit=_MOST_NOTES)
    except DatabaseUnavailableError:
        _log.warning("the notes cannot be read; planning without them", exc_info=True)
        return ()
    if notes:
        found = [RememberedFlow(memory_id=id_, kind="note", text=text) for id_, text in notes]
        emit.artifact(retrieved(state.request.requirement, found, None, _MOST_NOTES))
    return tuple(text for _, text in notes)


def shown_pattern(match: Match | None, graph: GraphIR | None) -> Pattern | None:
    """Found pattern in the form that the planner sees."""
    if match is None or graph is None:
        return None
    nodes = {op.node_id: op.node_name for op in match.ops if isinstance(op, AddNode)}
    return Pattern(requirement=match.requirement, summary=summarize(graph, 2_000), nodes=nodes)


async def compile_pattern(match: Match | None, context: AgentContext) -> GraphIR | None:
    """Compile the whole pattern to a flow; None if it no longer compiles."""
    if match is None:
        return None
    try:
        return compile_ops(GraphIR.empty(), match.ops, (await context.knowledge.nodes()).schemas).graph
    except PatchError:
        _log.warning("pattern %s no longer compiles; planning without it", match.id, exc_info=True)
        return None


def started_from(match: Match, plan: Plan) -> Plan:
    """Mark as existing the plan's nodes that the pattern has with the same id and type."""
    types = {op.node_id: op.node_name for op in match.ops if isinstance(op, AddNode)}
    nodes = [
        node.model_copy(update={"existing": node.existing or types.get(node.node_id) == node.node_name})
        for node in plan.nodes
    ]
    return plan.model_copy(update={"nodes": nodes})


async def apply_pattern(
    state: AgentState,
    match: Match | None,
    plan: Plan,
    context: AgentContext,
    emit: Emitter,
    *,
    by_form: bool,
) -> tuple[Plan, PatternState | None]:
    """Start from the pattern: the plan, and the pattern state with only the nodes that the plan takes over.

    A form says every value, so that nodes and connections alone are taken over. The plan's first step says
    where the nodes that it calls existing come from; its other steps leave them out.
    """
    if not _is_fresh(state):
        return plan, None
    schemas, language = (await context.knowledge.nodes()).schemas, state.intent.current.language
    ids = {op.node_id for op in match.ops if isinstance(op, AddNode)} if match else set[str]()
    taken = {node.node_id for node in plan.nodes if node.existing} & ids
    if match is None or not taken or context.patterns is None or plan.flow_kind != match.flow_kind:
        return _as_new(plan, schemas, language), _NOT_USED
    try:
        ops = trimmed(match.ops, taken, with_params=not by_form)
        base = compile_ops(GraphIR.empty(), ops, schemas)
        flow_sha = await context.blobs.put(base.flow_data)
    except PatchError:
        _log.warning("pattern %s cannot be used", match.id, exc_info=True)
        return _as_new(plan, schemas, language), _NOT_USED
    emit.put(
        ArtifactData(pattern_used=True, pattern_id=match.id, ops_in_base=len(ops)),
        text("event.pattern_ops", count=len(ops), number=match.id),
    )
    accepted = shortened(" ".join(match.requirement.split()), _MAX_REQUIREMENT_CHARS)
    nodes = _labels(plan, taken, schemas)
    start = say_in(language, "plan.step.pattern", id=match.id, requirement=accepted, nodes=nodes)
    return _with_first_step(plan, start), PatternState(id=match.id, ops=list(ops), flow_sha=flow_sha)


async def keep_as_pattern(state: AgentState, context: AgentContext, emit: Emitter) -> None:
    """Store the accepted flow of a CREATE as a pattern, if its criteria were met."""
    if context.patterns is None or state.intent.operation != "create" or not _is_shown(state.review.verdict):
        return
    plan = state.plan.current
    try:
        kept = await context.patterns.accepted(
            UUID(context.session_id),
            requirement=state.full_requirement,
            name=plan.flow_name,
            flow_kind=plan.flow_kind,
            flow=GraphIR.from_flow_data(await context.blobs.get(str(state.write.current_sha))),
            nodes=await context.knowledge.nodes(),
            used=state.pattern.id,
        )
    except DatabaseUnavailableError:
        _log.warning("the accepted flow is not kept as a pattern", exc_info=True)
        return
    if kept is not None:
        emit.put(ArtifactData(pattern_id=kept), text("event.pattern_kept", number=kept))
        emit.artifact(remembered(kept, state.full_requirement))


async def count_failure(state: AgentState, context: AgentContext) -> None:
    """Count a failure of the pattern that the session started from, if any."""
    used = state.pattern.id
    if context.patterns is None or used is None:
        return
    try:
        await context.patterns.failed(UUID(context.session_id), used)
    except DatabaseUnavailableError:
        _log.warning("a failure of pattern %s is not counted", used, exc_info=True)


def _is_shown(verdict: Verdict | None) -> bool:
    """True if every criterion is met. Without a judge, the person's acceptance counts for what code cannot check."""
    if verdict is None or verdict.headline == "works":
        return verdict is not None
    judged = any(item.judged_by == "model" for item in verdict.criteria)
    return verdict.headline == "runs" and not judged


def _is_fresh(state: AgentState) -> bool:
    return state.intent.operation == "create" and state.iteration == 0 and state.write.chatflow_id is None


def _as_new(plan: Plan, schemas: Schemas, language: str) -> Plan:
    """Plan without existing nodes: a new flow without a pattern has none yet."""
    if not (existing := {node.node_id for node in plan.nodes if node.existing}):
        return plan
    added = _with_first_step(plan, say_in(language, "plan.step.add", nodes=_labels(plan, existing, schemas)))
    return added.model_copy(update={"nodes": [node.model_copy(update={"existing": False}) for node in plan.nodes]})


def _with_first_step(plan: Plan, step: str) -> Plan:
    return plan.model_copy(update={"steps": [step, *plan.steps]})


def _labels(plan: Plan, ids: Set[str], schemas: Schemas) -> str:
    names = [node.node_name for node in plan.nodes if node.node_id in ids]
    return ", ".join(schemas[name].label if name in schemas else name for name in names)
