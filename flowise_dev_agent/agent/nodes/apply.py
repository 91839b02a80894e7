"""Phase F, first half: the last stop before a write, and the write."""

from dataclasses import asdict
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent import pattern_reuse as patterns
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.errors import WriteFailedError
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.views.canvas_view import public_op
from flowise_dev_agent.publish import Base, Stale, Written, changes, draft_columns

_CANCEL = option("cancel", "Cancel", "End the session; nothing more is written.")
_REPLAN = option("replan", "Plan again", "With your remarks, if you give any.")
#: The actions that fit a reason to stop.
_ACTIONS = {
    "repeated_finding": [_REPLAN, _CANCEL],
    "budget": [option("raise_budget", "Raise the budget", "New ceilings in tokens or USD."), _CANCEL],
    "stale_base": [
        option("rebase", "Keep both", "Apply this change to the flow as it is now."),
        option("overwrite", "Overwrite", "This change replaces the other one."),
        _REPLAN,
        _CANCEL,
    ],
    "diff_requested": [option("continue", "Write it", "Apply the change."), _REPLAN, _CANCEL],
}


async def preflight_validate_patch(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Ask when something forbids going on, or when the person wanted to see the change before the write."""
    stop = state["stop"]
    unseen = state["stage"] != "promote" and state["reviewed_sha"] != state["flow_sha"]
    if stop is None and state["request"].get("review_patch") and unseen:
        stop = {"reason": "diff_requested", "message": "This is what will be written."}
    if stop is None:
        return {"answer": None}
    answer: dict[str, Any] = interrupt(_patch_review(state, stop))
    update: dict[str, Any] = {"answer": answer, "stop": None}
    match answer["action"]:
        case "continue":
            update["reviewed_sha"] = state["flow_sha"]
        case "replan":
            update |= {"feedback": answer.get("feedback"), "approved": False}
            if stop["reason"] == "stale_base":
                update |= _onto(state, stop)
        case "rebase":
            update |= _onto(state, stop) | {"ops": _pending_ops(state, stop), "findings": [], "retries": 0}
        case "overwrite":
            update |= {_BASE_OF[stop["where"]]: stop["found"]}
            if stop["where"] == "live":
                update["artifacts"] = {"flowise": {"original_flow": stop["found_flow"]}}
        case "raise_budget":
            update["budget"] = {**state["budget"], **answer["budget"]}
            update["answer"] = {**answer, "then": stop.get("then")}
        case _:
            update["outcome"] = "cancelled"
    return update


async def apply_patch(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """The one node that writes to Flowise; `stage` says what: a draft, the flow, its acceptance, or its removal."""
    emit = Emitter(runtime, "apply_patch")
    context = runtime.context
    if state["outcome"] is not None:
        await _remove_draft(state, context, emit)
        return {"draft_id": None}
    match state["stage"]:
        case "baseline":
            return await _write_baseline(state, context, emit)
        case "promote":
            return await _promote(state, context, emit)
        case "accept":
            return await _accept(state, context, emit)
        case "rollback":
            return await _roll_back(state, context, emit)
        case _:
            return await _write_flow(state, context, emit)


def is_staged(state: AgentState) -> bool:
    """Whether the session changes a flow by way of a draft."""
    return state["operation_mode"] == "update" and state["write_mode"] == "staged"


# --- the writes ------------------------------------------------------------------------------------------------------


async def _write_baseline(state: AgentState, context: AgentContext, emit: Emitter) -> dict[str, Any]:
    """The draft as an exact copy, to ask it the test questions before the change; nothing in direct mode."""
    if not is_staged(state) or state["draft_id"]:
        return {}
    original: str = state["artifacts"]["flowise"]["original_flow"]
    flow_data = await context.blobs.get(original)
    made = await _create_draft(state, context, flow_data, (state["live_base"] or {}).get("sha256"))
    if isinstance(made, Stale):
        return await _stopped(state, context, made, emit, where="live")
    emit.event("write", f"Created the draft '{made.name}'", chatflow_id=made.chatflow_id, flow=made.sha256)
    return {"draft_id": made.chatflow_id, "base": asdict(made.base)}


async def _write_flow(state: AgentState, context: AgentContext, emit: Emitter) -> dict[str, Any]:
    plan = state["plan"] or {}
    flow_data = await context.blobs.get(str(state["flow_sha"]))
    staged = is_staged(state)
    work_id, base = state["draft_id"] if staged else state["chatflow_id"], state["base"]
    if work_id and base:
        result: Written | Stale = await context.publisher.update(
            chatflow_id=work_id,
            flow_data=flow_data,
            validated_sha256=state["validated_sha"],
            base=Base(**base),
            iteration=state["iteration"],
            role="draft" if staged else "flow",
        )
    elif staged:
        result = await _create_draft(state, context, flow_data, state["validated_sha"])
    else:
        result = await context.publisher.create(
            name=plan["flow_name"],
            flow_data=flow_data,
            kind=plan["flow_kind"],
            validated_sha256=state["validated_sha"],
            iteration=state["iteration"],
        )
    if isinstance(result, Stale):
        return await _stopped(state, context, result, emit, where="work" if work_id else "live")
    current = await context.flowise.get_chatflow(result.chatflow_id)
    blob = await context.blobs.put(current.flow_data)
    verb = "Adopted" if result.adopted else "Updated" if work_id else "Created"
    emit.event("write", f"{verb} '{result.name}'", chatflow_id=result.chatflow_id, flow=result.sha256)
    own = {"draft_id": result.chatflow_id} if staged else {"chatflow_id": result.chatflow_id}
    return {
        **own,
        "chatflow_name": state["chatflow_name"] if staged else result.name,
        "base": asdict(result.base),
        "applied_ops": [*state["applied_ops"], *state["ops"]],
        "validated_sha": None,  # spent: one authorisation, one write
        "artifacts": {"flowise": {"current_flow": blob, "chatflow_id": result.chatflow_id}},
    }


async def _create_draft(
    state: AgentState, context: AgentContext, flow_data: str, authorised_sha256: str | None
) -> Written | Stale:
    """A draft of the target, unless that has changed since it was read."""
    target = state["target"] or {}
    stale = await context.publisher.check(target["id"], Base(**(state["live_base"] or {})))
    if stale is not None:
        return stale
    live = await context.flowise.get_chatflow(target["id"])
    return await context.publisher.create(
        name=f"{target['name']} (draft)",
        flow_data=flow_data,
        kind=target["type"],
        validated_sha256=authorised_sha256,
        iteration=state["iteration"],
        role="draft",
        columns=draft_columns(live),
    )


async def _promote(state: AgentState, context: AgentContext, emit: Emitter) -> dict[str, Any]:
    """The bytes that the draft held when it was tested go live; then the draft goes."""
    target = state["target"] or {}
    result = await context.publisher.update(
        chatflow_id=target["id"],
        flow_data=await context.blobs.get(state["artifacts"]["flowise"]["current_flow"]),
        validated_sha256=state["tested_sha"],
        base=Base(**(state["live_base"] or {})),
        iteration=state["iteration"],
        reason="promote",
    )
    if isinstance(result, Stale):
        return await _stopped(state, context, result, emit, where="live")
    emit.event("write", f"Promoted the draft to '{result.name}'", chatflow_id=result.chatflow_id, flow=result.sha256)
    await _remove_draft(state, context, emit)
    return {"outcome": "accepted", "draft_id": None, "base": asdict(result.base), "live_base": asdict(result.base)}


async def _accept(state: AgentState, context: AgentContext, emit: Emitter) -> dict[str, Any]:
    """End the trial of a flow that the session made."""
    chatflow_id = str(state["chatflow_id"])
    deploy = bool((state["answer"] or {}).get("deploy", True))
    written = await context.publisher.accept(chatflow_id=chatflow_id, deploy=deploy, iteration=state["iteration"])
    emit.event("write", f"Accepted '{written.name}'", chatflow_id=chatflow_id, deployed=deploy)
    await patterns.accepted(state, context, emit)
    return {"outcome": "accepted", "base": asdict(written.base)}


async def _roll_back(state: AgentState, context: AgentContext, emit: Emitter) -> dict[str, Any]:
    """Undo: a draft or a flow of the session's own is deleted, a flow that was changed gets its text back."""
    chatflow_id, iteration = state["chatflow_id"], state["iteration"]
    if state["operation_mode"] != "update":
        await patterns.failed(state, context)
        if chatflow_id:
            await context.publisher.delete_created(chatflow_id=chatflow_id, iteration=iteration)
            emit.event("write", "Deleted the chatflow that this session made", chatflow_id=chatflow_id)
        return {"outcome": "rolled_back", "chatflow_id": None}
    if is_staged(state):
        await _remove_draft(state, context, emit)
        return {"outcome": "rolled_back", "draft_id": None}
    original: str = state["artifacts"]["flowise"]["original_flow"]
    written = await context.publisher.restore(
        chatflow_id=str(chatflow_id), flow_data=await context.blobs.get(original), sha256=original, iteration=iteration
    )
    emit.event("write", f"Put '{written.name}' back to what it was", chatflow_id=chatflow_id, flow=written.sha256)
    return {"outcome": "rolled_back", "base": asdict(written.base)}


async def _remove_draft(state: AgentState, context: AgentContext, emit: Emitter) -> None:
    draft_id = state["draft_id"]
    if not draft_id:
        return
    try:
        await context.publisher.delete_created(chatflow_id=draft_id, iteration=state["iteration"], role="draft")
    except WriteFailedError as error:
        # A person took its tag off to keep it: the session's own work is done all the same.
        emit.event("decision", error.message, chatflow_id=draft_id)
    else:
        emit.event("write", "Deleted the draft", chatflow_id=draft_id)


# --- a base that moved -----------------------------------------------------------------------------------------------

#: What the state remembers of the flow in use and of what ops are written to (the draft, or the flow itself).
_BASE_OF = {"live": "live_base", "work": "base"}


async def _stopped(
    state: AgentState, context: AgentContext, stale: Stale, emit: Emitter, *, where: str
) -> dict[str, Any]:
    """Nothing was written; what changed meanwhile is shown to the person."""
    emit.event("decision", "The flow was changed on Flowise meanwhile; nothing was written", where=where)
    artifacts: dict[str, str] = state["artifacts"]["flowise"]
    known = await context.blobs.get(artifacts["original_flow" if where == "live" else "current_flow"])
    found_flow = await context.blobs.put(stale.flow_data)
    meanwhile = changes(GraphIR.from_flow_data(known), GraphIR.from_flow_data(stale.flow_data))
    what = "draft" if where == "work" and is_staged(state) else "flow"
    if meanwhile["text"] == "no difference":
        meanwhile["text"] = "Its nodes are the same; its name, layout or another setting was changed."
    return {
        "answer": None,
        "stop": {
            "reason": "stale_base",
            "where": where,
            "message": f"The {what} was changed on Flowise since it was read. Nothing was written.",
            "found": asdict(stale.found),
            "found_flow": found_flow,
            "meanwhile": meanwhile,
        },
    }


def _onto(state: AgentState, stop: dict[str, Any]) -> dict[str, Any]:
    """The state with what was found as the flow to change. A draft stays and is written over."""
    artifacts = {"current_flow": stop["found_flow"]}
    if stop["where"] == "live" or (state["operation_mode"] == "update" and not state["applied_ops"]):
        artifacts["original_flow"] = stop["found_flow"]
    update: dict[str, Any] = {
        _BASE_OF[stop["where"]]: stop["found"],
        "artifacts": {"flowise": artifacts},
        "flow_sha": None,
        "validated_sha": None,
        "stage": "apply" if state["stage"] == "promote" else state["stage"],
    }
    return update | ({"applied_ops": []} if stop["where"] == "live" else {})


def _pending_ops(state: AgentState, stop: dict[str, Any]) -> list[dict[str, Any]]:
    """The ops that the flow as found lacks: of the live flow all, of the draft those that were about to be written."""
    unwritten = state["ops"] if state["validated_sha"] is not None else []
    return [*state["applied_ops"], *unwritten] if stop["where"] == "live" else unwritten


def _patch_review(state: AgentState, stop: dict[str, Any]) -> dict[str, Any]:
    return build_interrupt(
        "patch_review",
        reason=stop["reason"],
        message=stop["message"],
        options=_ACTIONS[stop["reason"]],
        data={
            "change": state["change"] or {},
            "meanwhile": stop.get("meanwhile"),
            "ops": [public_op(op) for op in state["ops"]],
            "findings": state["findings"],
            "budget": state["budget"],
        },
    )
