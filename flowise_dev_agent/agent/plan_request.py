"""Gather the inputs of a plan, and build its request."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from flowise_dev_agent.agent.budget import budget_of
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import DiscoverRequest, DomainDiscoveryResult, Domains
from flowise_dev_agent.agent.failed_trials import failed_trials
from flowise_dev_agent.agent.nodes.patch import flow_so_far
from flowise_dev_agent.agent.state import MAX_CLARIFICATION_ROUNDS, AgentState
from flowise_dev_agent.agent.toolbox import SessionToolbox
from flowise_dev_agent.models.messages import DeltaSink
from flowise_dev_agent.patch import Finding
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.context import ServerLookups
from flowise_dev_agent.planning.likely import types_with_models
from flowise_dev_agent.planning.passes.attached import passages_of
from flowise_dev_agent.planning.passes.mappings import with_sources
from flowise_dev_agent.planning.pipeline import Review
from flowise_dev_agent.planning.prompt_context import focused_summary
from flowise_dev_agent.planning.requests import Pattern, PlanRequest
from flowise_dev_agent.planning.requirement_parts import parts_of
from flowise_dev_agent.planning.wording import split
from flowise_dev_agent.schemas.attachments import AttachmentFacts


@dataclass(frozen=True)
class Discovered:
    """Discovery results of all domains, and the files attached to the requirement."""

    flows: DomainDiscoveryResult
    #: Results of the other domains by name.
    others: Mapping[str, DomainDiscoveryResult]
    #: Warnings on domains that could not be asked.
    failed: tuple[Finding, ...]
    attachments: tuple[AttachmentFacts, ...]


async def discover(state: AgentState, context: AgentContext, domains: Domains, pattern: Pattern | None) -> Discovered:
    """Run every domain's discovery for the requirement."""
    attachments, target = await context.attachments(), state.target.flow
    request = DiscoverRequest(
        requirement=" ".join([state.full_requirement, *state.later_words]),
        intent=state.intent.current,
        feedback=state.plan.feedback,
        kind=target.type if target else "CHATFLOW",
        similar=tuple(dict.fromkeys(pattern.nodes.values())) if pattern else (),
        attachments=attachments,
    )
    flows = await domains.primary.discover(context, request)
    others, failed = await domains.discover_others(context, request)
    return Discovered(flows, others, tuple(failed), attachments)


def goes_on(state: AgentState, context: AgentContext) -> bool:
    """True if no question about the requirement is wanted any more."""
    skip = state.request.skip_clarification
    skip = context.limits.skip_clarification if skip is None else skip
    return skip or state.intent.rounds >= MAX_CLARIFICATION_ROUNDS


async def plan_request(
    state: AgentState,
    context: AgentContext,
    found: Discovered,
    *,
    pattern: Pattern | None,
    notes: tuple[str, ...],
    lookups: ServerLookups,
    tools: SessionToolbox,
    on_delta: DeltaSink,
) -> PlanRequest:
    """Request for the session's next plan."""
    intent, target = state.intent.current, state.target.flow
    requirement, feedback, previous = state.request.requirement, state.plan.feedback, state.plan.contract
    is_form = state.request.design is not None
    by_model = context.reasoner.reads_candidates and not is_form and intent.operation != "question"
    by_words = intent.operation == "create" and not is_form and not context.reasoner.reads_candidates
    graph = await flow_so_far(state, context)
    request = PlanRequest(
        requirement=requirement,
        clarifications=tuple(state.intent.clarifications),
        later=state.later_words,
        model=state.request.model,
        on_delta=on_delta,
        budget=budget_of(state, context.limits),
        intent=intent,
        design=state.request.design if feedback is None and previous is None else None,
        starter=state.plan.starter,
        stores=tuple(await lookups.document_stores()) if by_words else (),
        new_name=state.request.new_name if intent.operation in ("copy", "update") and feedback is None else None,
        nodes=await context.knowledge.nodes(),
        candidates=found.flows.candidates,
        credential_types={type_: len(items) for type_, items in found.flows.credentials.items()},
        target=target.name if target else None,
        target_kind=target.type if target else None,
        flow_summary=focused_summary(graph, f"{requirement} {feedback or ''}") if graph.nodes else None,
        flow=GraphView(graph),
        previous=previous,
        parts=parts_of(intent.parts or split(requirement), state.intent.clarifications, feedback or "", previous),
        review=Review(lookups),
        goes_on=goes_on(state, context),
        feedback=feedback,
        verdict=state.review.verdict,
        failed=await failed_trials(state, context),
        pattern=pattern,
        notes=notes,
        attachments=found.attachments,
        passages=await passages_of(context.files, found.attachments, requirement),
        ready_tools=with_sources([tool for other in found.others.values() for tool in other.ready_tools]),
        skills=tuple(other.skill for other in found.others.values() if other.skill),
        tools=tools,
    )
    return replace(request, server=await lookups.names(types_with_models(request))) if by_model else request
