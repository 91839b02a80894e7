"""Phase F, first half: the last check before a write, and the write."""

from collections.abc import Awaitable, Callable, Mapping
from functools import reduce
from typing import Any, Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent import pattern_reuse
from flowise_dev_agent.agent.budget import raised_budget
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.agent.nodes.target import settings_before
from flowise_dev_agent.agent.stages import Stage, StageEvent, next_stage
from flowise_dev_agent.agent.state import (
    AgentState,
    BudgetState,
    CheckState,
    PatchState,
    PlanState,
    ReviewState,
    StaleBase,
    Update,
    WriteState,
)
from flowise_dev_agent.agent.store_writes import (
    fill_vector_stores,
    make_parts,
    remove_parts,
    stores_in_use,
    take_parts,
)
from flowise_dev_agent.errors import WriteFailedError
from flowise_dev_agent.flowise.uploads import SettingsChange, offering, put_back, taking
from flowise_dev_agent.patch import GraphIR, PatchOp, payload_sha256
from flowise_dev_agent.patch.views.flow_diff import NO_DIFFERENCE
from flowise_dev_agent.planning.made_with_flow import stores_to_make, tools_to_make
from flowise_dev_agent.publish import Base, Stale, Written, changes, draft_columns
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.change import public_ops
from flowise_dev_agent.schemas.event_data import DecisionData, WriteData
from flowise_dev_agent.schemas.interrupts import Option, PatchReviewData, PatchReviewInterrupt, TargetFlow
from flowise_dev_agent.texts import text

_CANCEL = option("cancel", "cancel_further")
_REPLAN = option("replan")
Reason = Literal["budget", "stale_base", "repeated_finding", "diff_requested"]
#: Actions offered for each reason to stop.
_ACTIONS: Final[Mapping[Reason, list[Option]]] = {
    "repeated_finding": [_REPLAN, _CANCEL],
    "budget": [option("raise_budget"), _CANCEL],
    "stale_base": [
        option("rebase"),
        option("overwrite"),
        _REPLAN,
        _CANCEL,
    ],
    "diff_requested": [option("continue"), _REPLAN, _CANCEL],
}


async def preflight_validate_patch(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Ask the person if the session cannot continue alone, or if they want to see the change before the write."""
    stop = _why_stop(state)
    if stop is None:
        return {"answer": None}
    answer: dict[str, Any] = interrupt(_patch_review(state, *stop).in_language(state.language).as_value())
    stale, question = state.write.stale, state.budget.question
    write, check, budget = WriteState(stale=None), CheckState(given_up=None), BudgetState(question=None)
    update: Update = {"answer": answer}
    match answer["action"]:
        case "continue":
            write = write.changed_by(WriteState(reviewed_sha=state.check.flow_sha))
        case "replan":
            feedback: str | None = answer.get("feedback")
            update["plan"] = PlanState(feedback=feedback, approved=False)
            if feedback:
                update["intent"] = state.with_words(feedback)
            if stale:
                write, check = write.changed_by(_onto(state, stale)), check.changed_by(_UNCHECKED)
                update["review"] = ReviewState(iterations=[])
        case "rebase" if stale:
            update["patch"] = PatchState(ops=_pending_ops(state, stale))
            write = write.changed_by(_onto(state, stale))
            check = check.changed_by(_UNCHECKED).changed_by(CheckState(findings=[], retries=0))
            update["review"] = ReviewState(iterations=[])
        case "overwrite" if stale and stale.where == "live":
            write = write.changed_by(WriteState(live_base=stale.found, original_sha=stale.found_sha))
        case "overwrite" if stale and state.write.stage is Stage.PROMOTE:
            # The session's text goes onto the draft again, and is tested there.
            stage = next_stage(state.write.stage, StageEvent.BASE_REPLACED)
            write, check = write.changed_by(WriteState(base=stale.found, stage=stage)), check.changed_by(_UNCHECKED)
        case "overwrite" if stale:
            write = write.changed_by(WriteState(base=stale.found))
        case "raise_budget" if question:
            budget = raised_budget(state.budget, question, answer["budget"])
        case _:
            update["outcome"] = "cancelled"
    return update | {"write": write, "check": check, "budget": budget}


async def apply_patch(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Write to Flowise, as the stage says; no other node writes. For a cancelled session, remove its draft, document
    stores and tools.
    """
    emit = Emitter(runtime, "apply_patch")
    if state.outcome is not None:
        await _remove_draft(state, runtime.context, emit)
        await remove_parts(state, runtime.context, emit)
        return {"write": WriteState(draft_id=None, stores={}, tools={})}
    return await WRITES[state.write.stage](state, runtime.context, emit)


# --- the writes ------------------------------------------------------------------------------------------------------


async def _write_baseline(state: AgentState, context: AgentContext, emit: Emitter) -> Update:
    """Write the draft as an exact copy, to test it before the change; nothing in direct mode."""
    target = state.target.flow
    if not state.is_staged or state.write.draft_id or target is None:
        return {}
    flow_data = await context.blobs.get(str(state.write.original_sha))
    live_base = _known(state.write.live_base)
    made = await _create_draft(state, context, target, flow_data, authorised_sha256=live_base.sha256)
    if isinstance(made, Stale):
        return await _stopped(state, context, made, emit, where="live")
    emit.put(WriteData(chatflow_id=made.chatflow_id, flow=made.sha256), text("event.draft_created", flow=made.name))
    return {"write": WriteState(draft_id=made.chatflow_id, base=made.base)}


async def _write_flow(state: AgentState, context: AgentContext, emit: Emitter) -> Update:
    write, validated, target = state.write, state.check.validated_sha, state.target.flow
    if (made := await make_parts(state, context, emit)) is not None:
        return made
    flow_data = await context.blobs.get(str(state.check.flow_sha))
    staged, settings = state.is_staged, _settings(state)
    work_id = write.draft_id if staged else write.chatflow_id
    if work_id and write.base:
        result: Written | Stale = await context.publisher.update(
            chatflow_id=work_id,
            flow_data=flow_data,
            validated_sha256=validated,
            base=write.base,
            iteration=state.iteration,
            role="draft" if staged else "flow",
            name=None if staged else state.plan.current.new_name,
            settings=settings,
        )
    elif staged and target:
        result = await _create_draft(state, context, target, flow_data, authorised_sha256=validated, settings=settings)
    else:
        plan = state.plan.current
        result = await context.publisher.create(
            name=plan.flow_name,
            flow_data=flow_data,
            kind=plan.flow_kind,
            validated_sha256=validated,
            iteration=state.iteration,
            columns=await _columns(state, context, settings),
        )
    if isinstance(result, Stale):
        return await _stopped(state, context, result, emit, where="work" if work_id else "live")
    if payload_sha256(flow_data) != result.sha256:  # stored otherwise than it was sent
        flow_data = (await context.publisher.read(result.chatflow_id)).flow_data
    blob = await context.blobs.put(flow_data)
    event = "event.adopted" if result.adopted else "event.updated" if work_id else "event.created"
    emit.put(WriteData(chatflow_id=result.chatflow_id, flow=result.sha256), text(event, flow=result.name))
    written = WriteState(base=result.base, current_sha=blob, applied_ops=[*write.applied_ops, *state.patch.ops])
    own = (
        WriteState(draft_id=result.chatflow_id)
        if staged
        else WriteState(chatflow_id=result.chatflow_id, chatflow_name=masked(result.name))
    )
    live = await stores_in_use(state, context, flow_data)
    unfilled = await fill_vector_stores(state, context, emit, result.chatflow_id, flow_data, without=live)
    # The authorisation is spent: one authorisation, one write.
    check = CheckState(validated_sha=None, findings=[*state.check.findings, *unfilled])
    return {"write": written.changed_by(own), "check": check}


async def _create_draft(
    state: AgentState,
    context: AgentContext,
    target: TargetFlow,
    flow_data: str,
    *,
    authorised_sha256: str | None,
    settings: SettingsChange | None = None,
) -> Written | Stale:
    """Create a draft of the target, unless the target changed since it was read."""
    live = await context.publisher.check(target.id, _known(state.write.live_base))
    if isinstance(live, Stale):
        return live
    columns = draft_columns(live)
    if settings is not None:
        columns["chatbot_config"] = settings(columns["chatbot_config"])
    return await context.publisher.create(
        name=f"{target.name} (draft)",
        flow_data=flow_data,
        kind=target.type,
        validated_sha256=authorised_sha256,
        iteration=state.iteration,
        role="draft",
        columns=columns,
    )


async def _promote(state: AgentState, context: AgentContext, emit: Emitter) -> Update:
    """Publish the bytes that the draft held when it was tested; then remove the draft."""
    flow_data = await context.blobs.get(str(state.write.current_sha))
    if payload_sha256(flow_data) != state.tests.tested_sha and state.write.draft_id:
        # Someone had edited the draft before it was tested.
        edited = await context.publisher.check(state.write.draft_id, _known(state.write.base))
        if isinstance(edited, Stale):
            return await _stopped(state, context, edited, emit, where="work")
    result = await context.publisher.update(
        chatflow_id=str(state.write.chatflow_id),
        flow_data=flow_data,
        validated_sha256=state.tests.tested_sha,
        base=_known(state.write.live_base),
        iteration=state.iteration,
        reason="promote",
        name=state.plan.current.new_name,
        settings=_settings(state),
    )
    if isinstance(result, Stale):
        return await _stopped(state, context, result, emit, where="live")
    data = WriteData(chatflow_id=result.chatflow_id, flow=result.sha256)
    emit.put(data, text("event.draft_promoted", flow=result.name))
    await fill_vector_stores(state, context, emit, result.chatflow_id, flow_data)
    await _remove_draft(state, context, emit)
    await take_parts(state, context, emit)
    return {"outcome": "accepted", "write": WriteState(draft_id=None, base=result.base, live_base=result.base)}


async def _accept(state: AgentState, context: AgentContext, emit: Emitter) -> Update:
    """Accept a flow that the session made, in the version of an earlier iteration if the person chose one."""
    chatflow_id = str(state.write.chatflow_id)
    if (state.answer or {}).get("iteration") not in (None, state.iteration):
        await context.publisher.restore(
            chatflow_id=chatflow_id,
            flow_data=await context.blobs.get(str(state.write.current_sha)),
            sha256=str(state.tests.tested_sha),
            iteration=state.iteration,
        )
    deploy = bool((state.answer or {}).get("deploy", True))
    written = await context.publisher.accept(chatflow_id=chatflow_id, deploy=deploy, iteration=state.iteration)
    emit.put(WriteData(chatflow_id=chatflow_id, deployed=deploy), text("event.accepted", flow=written.name))
    await take_parts(state, context, emit)
    await pattern_reuse.keep_as_pattern(state, context, emit)
    return {"outcome": "accepted", "write": WriteState(base=written.base)}


async def _roll_back(state: AgentState, context: AgentContext, emit: Emitter) -> Update:
    """Undo the session's writes: delete its draft or its own flow, restore the text of a changed flow."""
    chatflow_id, iteration = state.write.chatflow_id, state.iteration
    if state.intent.operation != "update":
        await pattern_reuse.count_failure(state, context)
        if chatflow_id:
            await context.publisher.delete_created(chatflow_id=chatflow_id, iteration=iteration)
            emit.put(WriteData(chatflow_id=chatflow_id), text("event.flow_deleted"))
        await remove_parts(state, context, emit)
        return {"outcome": "rolled_back", "write": WriteState(chatflow_id=None, stores={}, tools={})}
    if state.is_staged:
        await _remove_draft(state, context, emit)
        await remove_parts(state, context, emit)
        return {"outcome": "rolled_back", "write": WriteState(draft_id=None, stores={}, tools={})}
    original = str(state.write.original_sha)
    written = await context.publisher.restore(
        chatflow_id=str(chatflow_id),
        flow_data=await context.blobs.get(original),
        sha256=original,
        iteration=iteration,
        name=state.target.flow.name if state.target.flow and state.plan.current.new_name else None,
        settings=await _former_settings(state, context),
    )
    data = WriteData(chatflow_id=chatflow_id, flow=written.sha256)
    emit.put(data, text("event.put_back", flow=written.name))
    await remove_parts(state, context, emit)
    return {"outcome": "rolled_back", "write": WriteState(base=written.base, stores={}, tools={})}


WRITES: Final[Mapping[Stage, Callable[[AgentState, AgentContext, Emitter], Awaitable[Update]]]] = {
    Stage.BASELINE: _write_baseline,
    Stage.APPLY: _write_flow,
    Stage.PROMOTE: _promote,
    Stage.ACCEPT: _accept,
    Stage.ROLLBACK: _roll_back,
}


async def _remove_draft(state: AgentState, context: AgentContext, emit: Emitter) -> None:
    draft_id = state.write.draft_id
    if not draft_id:
        return
    try:
        await context.publisher.delete_created(chatflow_id=draft_id, iteration=state.iteration, role="draft")
    except WriteFailedError as error:
        # A person removed the tag to keep the flow: the session's own work is done nevertheless.
        emit.put(DecisionData(chatflow_id=draft_id), error.message)
    else:
        emit.put(WriteData(chatflow_id=draft_id), text("event.draft_deleted"))


async def _columns(state: AgentState, context: AgentContext, settings: SettingsChange | None) -> dict[str, str]:
    """Columns of a new flow: a copy has the settings of the original, as far as the plan does not change them."""
    before = await settings_before(state, context)
    columns = before.columns if before else {}
    return columns | {"chatbot_config": settings(columns.get("chatbot_config"))} if settings else columns


async def _former_settings(state: AgentState, context: AgentContext) -> SettingsChange | None:
    """Change that takes back what the plan changed in the settings of an existing flow."""
    before = await settings_before(state, context)
    return put_back(before.chatbot_config) if before and state.plan.current.set_beside else None


def _settings(state: AgentState) -> SettingsChange | None:
    """Change of the flow's settings that the plan makes."""
    plan = state.plan.current
    changes = [] if plan.uploads is None else [taking(plan.uploads)]
    changes += [] if plan.starter_questions is None else [offering(plan.starter_questions)]
    return (lambda config: reduce(lambda text, change: change(text), changes, config) or "") if changes else None


def _known(base: Base | None) -> Base:
    if base is None:
        raise LookupError("The flow in use has not been read yet.")
    return base


# --- a base that someone else changed --------------------------------------------------------------------------------

#: Reset of the compilation, which is invalid for another base.
_UNCHECKED: Final = CheckState(flow_sha=None, validated_sha=None)


async def _stopped(
    state: AgentState, context: AgentContext, stale: Stale, emit: Emitter, *, where: Literal["live", "work"]
) -> Update:
    """Stop for a concurrent change: the person sees it and decides."""
    conflict = stale.conflict
    event = text("event.stale_both" if conflict else "event.stale_nothing")
    emit.put(DecisionData(where=where, chatflow_id=stale.chatflow_id), event)
    known = await context.blobs.get(str(state.write.original_sha if where == "live" else state.write.current_sha))
    found_sha = await context.blobs.put(stale.flow_data)
    meanwhile = changes(GraphIR.from_flow_data(known), GraphIR.from_flow_data(stale.flow_data))
    what = "draft" if where == "work" and state.is_staged else "flow"
    if meanwhile.text == NO_DIFFERENCE:
        meanwhile = meanwhile.model_copy(update={"text": text("change.nodes_same")})
    found = StaleBase(
        where=where,
        message=text(f"interrupt.overtaken_{what}" if conflict else f"interrupt.stale_{what}"),
        found=stale.found,
        found_sha=found_sha,
        meanwhile=meanwhile,
    )
    conflicts = [*state.write.conflicts, *([conflict] if conflict else [])]
    return {"answer": None, "write": WriteState(stale=found, conflicts=conflicts)}


def _onto(state: AgentState, stale: StaleBase) -> WriteState:
    """Rebase on the flow as found. A draft stays and is overwritten."""
    write = WriteState(current_sha=stale.found_sha, stage=next_stage(state.write.stage, StageEvent.BASE_REPLACED))
    if stale.where == "live" or (state.intent.operation == "update" and not state.write.applied_ops):
        write = write.changed_by(WriteState(original_sha=stale.found_sha))
    if stale.where == "live":
        return write.changed_by(WriteState(live_base=stale.found, applied_ops=[]))
    return write.changed_by(WriteState(base=stale.found))


def _pending_ops(state: AgentState, stale: StaleBase) -> list[PatchOp]:
    """Ops missing in the flow as found: for the live flow all ops, for the draft those not yet written."""
    unwritten = state.patch.ops if state.check.validated_sha is not None else []
    return [*state.write.applied_ops, *unwritten] if stale.where == "live" else unwritten


# --- the question ----------------------------------------------------------------------------------------------------


def _why_stop(state: AgentState) -> tuple[Reason, str] | None:
    """First reason to ask the person, with its message; None if there is none."""
    if state.budget.question:
        return "budget", state.budget.question.worded("message")
    if state.write.stale:
        return "stale_base", state.write.stale.worded("message")
    if state.check.given_up:
        return "repeated_finding", state.check.given_up.words
    unseen = state.write.stage is not Stage.PROMOTE and state.write.reviewed_sha != state.check.flow_sha
    # The flow that will be written has the ids of its new document stores and tools, which the plan has shown.
    plan, write = state.plan.contract, state.write
    whole = plan is None or not (stores_to_make(plan, write.stores) or tools_to_make(plan, write.tools))
    if state.request.review_patch and unseen and whole:
        return "diff_requested", text("interrupt.diff_requested")
    return None


def _patch_review(state: AgentState, reason: Reason, message: str) -> PatchReviewInterrupt:
    stale, change = state.write.stale, state.check.change
    return PatchReviewInterrupt(
        reason=reason,
        message=message,
        options=_ACTIONS[reason],
        data=PatchReviewData(
            change=change,
            meanwhile=stale.meanwhile if stale else None,
            ops=public_ops(state.patch.ops),
            findings=state.check.findings,
            budget=state.budget.ceilings,
        ),
    )
