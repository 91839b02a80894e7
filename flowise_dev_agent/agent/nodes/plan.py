"""Phase D, first half: the plan."""

import re
from collections.abc import Sequence
from typing import Final

from langgraph.runtime import Runtime

from flowise_dev_agent.agent import pattern_reuse
from flowise_dev_agent.agent.budget import asks_for_budget
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credentials import Available, available_credentials, match_credentials
from flowise_dev_agent.agent.domain import Domains
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.nodes.patch import flow_so_far
from flowise_dev_agent.agent.plan_request import discover, plan_request
from flowise_dev_agent.agent.stages import StageEvent, next_stage
from flowise_dev_agent.agent.state import (
    AgentState,
    CheckState,
    CredentialState,
    PatchState,
    PlanState,
    ReviewState,
    Update,
    WriteState,
)
from flowise_dev_agent.agent.toolbox import SessionToolbox
from flowise_dev_agent.approval.agreed_values import changed_values, with_agreed_values
from flowise_dev_agent.approval.binding import beyond_approval, capability_of, with_agreed
from flowise_dev_agent.approval.manual_edits import plan_of
from flowise_dev_agent.knowledge.model_ends import UsedModel
from flowise_dev_agent.patch import Finding, GraphIR, PatchOp, Schemas
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.passes.document_stores import (
    agreed_stores,
)
from flowise_dev_agent.planning.pipeline import OF_FORM, OF_TAKEN_PLAN, passed
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.planning.requests import ServerNames
from flowise_dev_agent.publish import why_not_staged
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import TextCode, kept
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.event_data import ArtifactData
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.testing.earlier_tests import still_expected
from flowise_dev_agent.texts import listed, quoted, sentences, text

_QUESTION_CHARS: Final = 60
#: Tests that a note names.
_MOST_LISTED: Final = 5
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")


@asks_for_budget
async def plan_v2(
    state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains, tools: SessionToolbox
) -> Update:
    """Make the plan, and find the credentials that it needs and the instance lacks (see `credential_check`)."""
    emit, context = Emitter(runtime, "plan_v2"), runtime.context
    if state.request.ops and state.plan.contract is None:
        return await _by_hand(state, state.request.ops, context)
    match = await pattern_reuse.find_pattern(state, context, emit)
    pattern = pattern_reuse.shown_pattern(match, await pattern_reuse.compile_pattern(match, context))
    notes = await pattern_reuse.find_notes(state, context, emit)
    found = await discover(state, context, domains, pattern)
    lookups = _Lookups(domains, context)
    request = await plan_request(
        state, context, found, pattern=pattern, notes=notes, lookups=lookups, tools=tools, on_delta=emit.delta
    )
    result = await context.reasoner.plan(request)
    emit.reasoned("plan", result)
    plan, by_form = result.value, result.mode == "deterministic"
    if used := tools.result_of("flowise.use_pattern"):
        match, plan = used.data, pattern_reuse.started_from(used.data, plan)
    plan, pattern_update = await pattern_reuse.apply_pattern(state, match, plan, context, emit, by_form=by_form)
    planned = PlanContext(plan=plan, request=request, lookups=lookups, by_form=by_form)
    planned = await passed(planned, (*OF_FORM, *OF_TAKEN_PLAN) if by_form else OF_TAKEN_PLAN)
    repairs = state.plan.approved and state.review.verdict is not None
    if planned.is_open and repairs:
        planned = planned.having(with_agreed_values(planned.plan, state.plan.agreed_values, planned.base))
    if planned.is_open:
        capability = capability_of(planned.plan, request.nodes.schemas, planned.base)
        planned = planned.found(found.failed).changed(capability=with_agreed(capability, state.plan.agreed))
    plan, usage = planned.plan, state.usage.plus("plan", result)
    if plan.answer is not None:
        emit.put(ArtifactData(), plan.answer)
        return {"plan": PlanState(contract=plan), "outcome": "answered", "usage": usage}
    if plan.declined and request.feedback is None and request.verdict and not request.verdict.done:
        # Without a known remedy the result stays as it is, and the person sees it.
        notes_of_plan = [*state.plan.notes, kept(plan.declined)]
        return {"review": ReviewState(next_step="ask"), "plan": PlanState(notes=notes_of_plan), "usage": usage}
    way, said, can_compare = _way_of_writing(state, plan, planned.base, request.nodes.schemas)
    plan, said = await _with_test_set(state, plan, planned.base, request.nodes.schemas, said, context)
    update: Update = {
        **_of_new_plan(state, way, can_compare=can_compare),
        "credentials": await _matched_credentials(state, context, plan, found.flows.credentials),
        "usage": usage,
    }
    approved = is_approved(state, request.previous, plan)
    changed = changed_values(plan, state.plan.agreed_values, planned.base) if repairs else []
    update["plan"] = PlanState(
        contract=plan,
        approved=approved and not changed,
        # What the person asked for at the result is agreed to; a repair is not.
        agreed_values=state.plan.agreed_values if repairs or not approved else plan.values,
        agreed_iteration=state.plan.agreed_iteration if repairs or not approved else state.iteration,
        amended=None,
        starter=result.starter,
        by_form=by_form,
        notes=said,
        names=await _store_names(plan, lookups),
    )
    if facts := {name: other.facts for name, other in found.others.items() if other.facts}:
        update["facts"] = facts
    if pattern_update is not None:
        update["pattern"] = pattern_update
    return update


async def _by_hand(state: AgentState, ops: list[PatchOp], context: AgentContext) -> Update:
    """Plan of the ops that the person made; no model is asked."""
    base, schemas = await flow_so_far(state, context), (await context.knowledge.nodes()).schemas
    target, request = state.target.flow, state.request
    name = target.name if target else request.session_name or state.intent.current.title
    plan = plan_of(ops, base, schemas, goal=request.requirement, name=name)
    way, said, can_compare = _way_of_writing(state, plan, base, schemas)
    plan, said = await _with_test_set(state, plan, base, schemas, said, context)
    update = _of_new_plan(state, way, can_compare=can_compare)
    update["patch"] = PatchState(ops=ops, nothing_to_change=None, own=True)
    update["credentials"] = await _matched_credentials(state, context, plan, await available_credentials(context))
    update["plan"] = PlanState(contract=plan, approved=False, agreed_values=plan.values, notes=said, names={})
    return update


async def _with_test_set(
    state: AgentState,
    plan: Plan,
    base: GraphIR,
    schemas: Schemas,
    notes: list[TextCode],
    context: AgentContext,
) -> tuple[Plan, list[TextCode]]:
    """Plan with the tests of the flow's set, as far as there is room; a note names those that are left out. They expect
    nothing that the plan is to change.
    """
    if state.intent.operation != "update" or state.target.chatflow_id is None:
        return plan, notes
    tests = await context.test_set(state.target.chatflow_id)
    if not tests:
        return plan, notes
    before = GraphIR.from_flow_data(await context.blobs.get(str(state.write.original_sha)))
    after = planned_flow(plan, base, schemas).graph
    plan, left_out = plan.with_tests(still_expected(tests, before, after, plan.tests))
    if not left_out:
        return plan, notes
    said = listed([quoted(shortened(" ".join(one.turns), _QUESTION_CHARS)) for one in left_out[:_MOST_LISTED]])
    note = kept(text("note.tests_left_out", number=len(left_out), count=len(plan.tests), tests=said))
    others = [one for one in notes if one.code != note.code]
    return plan, [*others, note]


async def _store_names(plan: Plan, lookups: "_Lookups") -> dict[str, str]:
    """Names of the document stores that the plan uses by id."""
    values = plan.model_dump_json(include={"values"})
    if not _ID.search(values):
        return {}
    return {store.id: store.name for store in await lookups.document_stores() if store.id in values}


def _of_new_plan(state: AgentState, way: WriteState, *, can_compare: bool) -> Update:
    """Reset the state that followed from the previous plan."""
    event = StageEvent.PLANNED_WITHOUT_BASELINE if can_compare and state.tests.baseline is None else StageEvent.PLANNED
    stage = WriteState(stage=next_stage(state.write.stage, event), reviewed_sha=None)
    return {
        "patch": PatchState(ops=[], nothing_to_change=None, own=False),
        "check": CheckState(findings=[], retries=0, repairs=0, validated_sha=None),
        "write": stage.changed_by(way),
        "review": ReviewState(next_step=None),
        "answer": None,
    }


def _way_of_writing(
    state: AgentState, plan: Plan, base: GraphIR, schemas: Schemas
) -> tuple[WriteState, list[TextCode], bool]:
    """Way of writing an update, notes for the person, and if the flow before it can be tested.

    The flow that the plan leads to decides if there can be a draft: what stands in the way may be what it removes. Once
    something is written the way stays.
    """
    write, notes = state.write, state.plan.notes
    if state.intent.operation != "update":
        return WriteState(mode="direct"), notes, False
    if write.draft_id is None and write.current_sha == write.original_sha:
        others = notes[1:] if write.mode == "direct" else notes
        reason = why_not_staged(planned_flow(plan, base, schemas).graph)
        if state.request.write_mode == "direct":
            note = text("note.direct_requested")
        elif reason:
            note = sentences(text("note.no_draft", reason=reason), text("note.no_draft_undo"))
        else:
            return WriteState(mode="staged", base=None), others, why_not_staged(base) is None
        return WriteState(mode="direct", base=write.live_base), [kept(note), *others], True
    return WriteState(), notes, write.mode == "direct" or why_not_staged(base) is None


async def _matched_credentials(
    state: AgentState, context: AgentContext, plan: Plan, known: Available
) -> CredentialState:
    required, chosen = plan.credential_requirements, state.credentials.chosen
    credentials = match_credentials(required, known, chosen)
    if credentials.missing:
        # The credential may have been created since the last read: read again before asking.
        credentials = match_credentials(required, await available_credentials(context, refresh=True), chosen)
    return credentials


class _Lookups:
    """Server look-ups of the planning passes, through the domain that owns the flow."""

    def __init__(self, domains: Domains, context: AgentContext) -> None:
        self._flows, self._context = domains.primary, context

    async def document_stores(self) -> list[DocumentStoreView]:
        return await self._flows.document_stores(self._context)

    async def names(self, with_models: Sequence[str]) -> ServerNames:
        return await self._flows.names(self._context, with_models)

    async def review_plan(self, plan: Plan, base: GraphIR) -> list[Finding]:
        return await self._flows.review_plan(self._context, plan, base)

    async def measure_stores(self, plan: Plan) -> Plan:
        return await self._flows.measure_stores(self._context, plan)

    async def planned_models(self, plan: Plan, base: GraphIR, *, ending_only: bool) -> list[UsedModel]:
        return await self._flows.planned_models(self._context, plan, base, ending_only=ending_only)


def is_approved(state: AgentState, previous: Plan | None, plan: Plan) -> bool:
    """True if an earlier approval covers the plan: same operation, nothing beyond the agreed capability."""
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
