"""Phase D, first half: the plan and its approval."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent import pattern_reuse
from flowise_dev_agent.agent.budget import asks_for_budget, budget_of
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credentials import available_credentials, match_credentials, with_edits
from flowise_dev_agent.agent.domain import DiscoverRequest, Domains
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.agent.nodes.intent import of_form
from flowise_dev_agent.agent.nodes.patch import flow_so_far
from flowise_dev_agent.agent.stages import StageEvent, next_stage
from flowise_dev_agent.agent.state import (
    AgentState,
    CheckState,
    IntentState,
    PatchState,
    PlanState,
    RequestState,
    ReviewState,
    TestsState,
    Update,
    WriteState,
)
from flowise_dev_agent.agent.toolbox import SessionToolbox
from flowise_dev_agent.approval.binding import beyond_approval, capability_of, with_agreed
from flowise_dev_agent.approval.manual_edits import ops_of
from flowise_dev_agent.patch import Finding, GraphIR
from flowise_dev_agent.patch.views.flow_view import FlowView
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.passes.attached import passages_of
from flowise_dev_agent.planning.passes.document_stores import (
    agreed_stores,
)
from flowise_dev_agent.planning.passes.mappings import with_sources
from flowise_dev_agent.planning.pipeline import OF_FORM, OF_TAKEN_PLAN, Review, passed
from flowise_dev_agent.planning.prompt_context import focused_summary
from flowise_dev_agent.planning.requirement_parts import parts_of
from flowise_dev_agent.reasoning.contracts import PlanContract, PlanRequest
from flowise_dev_agent.reasoning.wording import split
from flowise_dev_agent.schemas.base import kept
from flowise_dev_agent.schemas.designs import ChosenStarter, DesignForm
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.event_data import ArtifactData
from flowise_dev_agent.schemas.interrupts import PatternUse, PlanApprovalData, PlanApprovalInterrupt
from flowise_dev_agent.schemas.plan_text import plan_markdown
from flowise_dev_agent.texts import sentences, text


@asks_for_budget
async def plan_v2(
    state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains, tools: SessionToolbox
) -> Update:
    """Plan, and find out which credentials the plan needs and the instance lacks (asked for by `credential_check`)."""
    emit = Emitter(runtime, "plan_v2")
    context = runtime.context
    intent = state.intent.current
    requirement, feedback, target = state.request.requirement, state.plan.feedback, state.target.flow
    match = await pattern_reuse.find_pattern(state, context, emit)
    pattern = pattern_reuse.shown_pattern(match, await pattern_reuse.compile_pattern(match, context))
    notes = await pattern_reuse.find_notes(state, context, emit)
    attachments = await context.attachments()
    looked_for = DiscoverRequest(
        requirement=" ".join([state.full_requirement, *state.later_words]),
        intent=intent,
        feedback=feedback,
        kind=target.type if target else "CHATFLOW",
        similar=tuple(dict.fromkeys(pattern.nodes.values())) if pattern else (),
        attachments=attachments,
    )
    discovery = await domains.primary.discover(context, looked_for)
    found, unasked = await domains.discover_others(context, looked_for)
    ready = with_sources([tool for other in found.values() for tool in other.ready_tools])
    previous, verdict = state.plan.contract, state.review.verdict
    graph = await flow_so_far(state, context)
    nodes = await context.knowledge.nodes()

    lookups = _Lookups(domains, context)
    matched = intent.operation == "create" and not (state.request.design or context.reasoner.reads_candidates)
    stores = await lookups.document_stores() if matched else []
    request = PlanRequest(
        requirement=requirement,
        clarifications=tuple(state.intent.clarifications),
        later=state.later_words,
        model=state.request.model,
        on_delta=emit.delta,
        budget=budget_of(state, context.limits),
        intent=intent,
        design=state.request.design if feedback is None and previous is None else None,
        starter=state.plan.starter,
        stores=tuple(stores),
        new_name=state.request.new_name if intent.operation in ("copy", "update") and feedback is None else None,
        nodes=nodes,
        candidates=discovery.candidates,
        credential_types={type_: len(items) for type_, items in discovery.credentials.items()},
        target=target.name if target else None,
        target_kind=target.type if target else None,
        flow_summary=focused_summary(graph, f"{requirement} {feedback or ''}") if graph.nodes else None,
        flow=FlowView(graph),
        previous=previous,
        parts=parts_of(
            intent.parts or split(requirement),
            state.intent.clarifications,
            feedback or "",
            previous,
        ),
        review=Review(lookups),
        feedback=feedback,
        verdict=verdict,
        pattern=pattern,
        templates=discovery.templates,
        notes=notes,
        attachments=attachments,
        passages=await passages_of(context.files, attachments, requirement),
        ready_tools=ready,
        skills=tuple(other.skill for other in found.values() if other.skill),
        tools=tools,
    )
    result = await context.reasoner.plan(request)
    proposed = result.value
    if used := tools.result_of("flowise.use_pattern"):
        match = used.data
        proposed = pattern_reuse.started_from(used.data, proposed)
    emit.reasoned("plan", result)
    usage = state.usage.plus("plan", result)
    by_form = result.mode == "deterministic"
    plan, pattern_update = await pattern_reuse.apply_pattern(state, match, proposed, context, emit, by_form=by_form)
    planned = PlanContext(plan=plan, request=request, lookups=lookups, by_form=by_form)
    if by_form:
        planned = await passed(planned, OF_FORM)
    planned = await passed(planned, OF_TAKEN_PLAN)
    if planned.is_open:
        capability = capability_of(planned.plan, planned.words, nodes.schemas)
        planned = planned.found(unasked).changed(capability=with_agreed(capability, state.plan.agreed))
    plan = planned.plan
    if plan.answer is not None:
        emit.put(ArtifactData(), plan.answer)
        return {"plan": PlanState(contract=plan), "outcome": "answered", "usage": usage}
    if plan.declined and feedback is None and verdict and not verdict.done:
        # Without a known remedy the result is kept: the person sees it as it is.
        return {
            "review": ReviewState(next_step="ask"),
            "plan": PlanState(notes=[*state.plan.notes, kept(plan.declined)]),
            "usage": usage,
        }
    required, chosen = plan.credential_requirements, state.credentials.chosen
    credentials = match_credentials(required, discovery.credentials, chosen)
    if credentials.missing:
        # It may have been created since the credentials were last read: look before asking.
        credentials = match_credentials(required, await available_credentials(context, refresh=True), chosen)
    is_compared = state.intent.operation == "update" and state.tests.baseline is None
    event = StageEvent.PLANNED_WITHOUT_BASELINE if is_compared else StageEvent.PLANNED
    update: Update = {
        "plan": PlanState(
            contract=plan,
            approved=_is_approved(state, previous, plan),
            amended=None,
            starter=result.starter,
            by_form=by_form,
        ),
        "credentials": credentials,
        "patch": PatchState(ops=[], nothing_to_change=None, own=False),
        "check": CheckState(findings=[], retries=0, repairs=0, validated_sha=None),
        "write": WriteState(stage=next_stage(state.write.stage, event), reviewed_sha=None),
        "review": ReviewState(next_step=None),
        "usage": usage,
        "answer": None,
    }
    if facts := {name: other.facts for name, other in found.items() if other.facts}:
        update["facts"] = facts
    if pattern_update is not None:
        update["pattern"] = pattern_update
    return update


async def hitl_plan_v2(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Show the plan and wait."""
    base = await flow_so_far(state, runtime.context)
    answer: dict[str, Any] = interrupt(_plan_approval(state, base).as_value())
    declined = state.plan.current.declined
    if answer["action"] == "cancel":
        impossible = declined and not state.plan.current.asks
        return {"answer": answer, "outcome": "declined" if impossible else "cancelled"}
    if answer["action"] == "approve":
        plan, credentials = state.plan.current, state.credentials
        if ops := ops_of(answer):
            plan, credentials = await with_edits(state, runtime.context, ops)
        update: Update = {
            "answer": answer,
            "plan": PlanState(
                contract=plan,
                approved=True,
                agreed=plan.capability,
                agreed_not_done=[part.quote for part in plan.not_done],
                amended=None,
                approach=answer.get("approach"),
                feedback=None,
            ),
            "credentials": credentials,
        }
        if questions := answer.get("test_questions"):
            update["tests"] = TestsState(questions=questions)
        return update
    if answer.get("design"):
        form = DesignForm.model_validate(answer["design"])
        return {**of_form(form), "answer": answer, "request": RequestState(design=form)}
    update = {"answer": answer, "plan": PlanState(approved=False, feedback=None if declined else answer["feedback"])}
    if declined:
        update["request"] = RequestState(design=None)
        # The answer to the question that was asked, or another requirement; both are read from the start, as answers.
        instead = "This cannot be built as described. What should be built instead?"
        question = declined if state.plan.current.asks else instead
        update["intent"] = IntentState(clarifications=[*state.intent.clarifications, (question, answer["feedback"])])
    else:
        update["intent"] = state.with_words(answer["feedback"])
    return update


class _Lookups:
    """What the passes ask the server, through the domain that owns the flow."""

    def __init__(self, domains: Domains, context: AgentContext) -> None:
        self._flows, self._context = domains.primary, context

    async def document_stores(self) -> list[DocumentStoreView]:
        return await self._flows.document_stores(self._context)

    async def review_plan(self, plan: PlanContract, base: GraphIR) -> list[Finding]:
        return await self._flows.review_plan(self._context, plan, base)

    async def measure_stores(self, plan: PlanContract) -> PlanContract:
        return await self._flows.measure_stores(self._context, plan)


def _is_approved(state: AgentState, previous: PlanContract | None, plan: PlanContract) -> bool:
    """An approval covers every later plan of the same operation that stays within what was agreed to."""
    agreed = state.plan.agreed
    if not state.plan.approved or agreed is None or previous is None or plan.declined or plan.capability is None:
        return False
    if not {part.quote for part in plan.not_done} <= set(state.plan.agreed_not_done):
        return False
    if not all(store in agreed_stores(previous) for store in agreed_stores(plan)):
        return False
    if plan.new_name not in (None, previous.new_name):
        return False
    return previous.operation == plan.operation and beyond_approval(plan.capability, agreed) is None


def _about_starter(state: AgentState, starter: ChosenStarter) -> str:
    """The fixed message of a flow that was matched and not read."""
    failed = any(one.phase == "plan" for one in state.usage.degraded)
    return sentences(
        text("interrupt.model_failed" if failed else "interrupt.no_model"),
        text("interrupt.starter_for_words", starter=starter.title, words=starter.words)
        if starter.words
        else text("interrupt.starter_by_default", starter=starter.title),
        text("interrupt.starter_names", names=starter.names) if starter.names else text("interrupt.starter_no_names"),
        text("interrupt.starter_rest"),
    )


def _about_parts(plan: PlanContract) -> list[str]:
    count = len(plan.not_done)
    return [text("interrupt.parts_not_done", number=count, total=len(plan.parts))] if count else []


def _plan_approval(state: AgentState, base: GraphIR) -> PlanApprovalInterrupt:
    plan, verdict, target = state.plan.current, state.review.verdict, state.target.flow
    agreed, language = state.plan.agreed, state.intent.current.language
    if questions := state.tests.questions:
        plan = plan.with_questions(questions)
    cancel = option("cancel")
    starter = state.plan.starter
    form = starter.form if starter else state.request.design
    if plan.declined and starter:
        return PlanApprovalInterrupt(
            reason="starter",
            message=sentences(_about_starter(state, starter), plan.declined),
            options=[
                option("request_changes", "complete_form"),
                cancel,
            ],
            data=PlanApprovalData(
                plan=plan_markdown(plan, language=language),
                contract=plan,
                language=language,
                starter=starter,
                form=form,
            ),
        )
    if plan.declined:
        return PlanApprovalInterrupt(
            reason="question" if plan.asks else "declined",
            message=plan.declined,
            options=[
                option("request_changes", "answer_plan") if plan.asks else option("request_changes", "request_other"),
                cancel,
            ],
            data=PlanApprovalData(
                plan=plan_markdown(plan, language=language), contract=plan, language=language, form=form
            ),
        )
    details = plan_details(plan, base, language)
    added = beyond_approval(plan.capability, agreed) if plan.capability and agreed else None
    if added:
        reason, said = "plan_widened", [text("interrupt.plan_widened"), state.plan.amended or ""]
    elif state.plan.amended:
        reason, said = "plan_revised", [text("interrupt.plan_narrowed"), state.plan.amended]
    elif state.iteration:
        reason, said = "plan_revised", [text("interrupt.plan_changed")]
        if verdict:
            said += [verdict.worded("reason"), verdict.worded("fix")]
    elif starter:
        reason, said = "starter", [_about_starter(state, starter)]
    else:
        reason, said = "plan_ready", [text("interrupt.plan_ready")]
        if plan.only_fills:
            said.append(text("interrupt.plan_fills_store"))
        elif state.write.mode == "staged" and target:
            said.append(text("interrupt.plan_on_draft", flow=target.name))
    return PlanApprovalInterrupt(
        reason=reason,
        message=sentences(*said, *_about_parts(plan), *(note.words for note in state.plan.notes)),
        options=[
            option("approve"),
            option("request_changes"),
            cancel,
        ],
        data=PlanApprovalData(
            plan=plan_markdown(plan, details, language),
            language=language,
            contract=plan,
            starter=starter,
            form=form,
            details=details,
            approaches=plan.approaches,
            missing_credentials=[item.type for item in state.credentials.missing],
            target=target,
            write_mode=state.write.mode,
            notes=[note.words for note in state.plan.notes],
            assumed=[part for part in plan.parts if part.state == "assumed"],
            not_done=plan.not_done,
            capability=plan.capability,
            added=added,
            pattern=PatternUse(
                pattern_used=state.pattern.id is not None,
                pattern_id=state.pattern.id,
                ops_in_base=len(state.pattern.ops),
            ),
        ),
    )
