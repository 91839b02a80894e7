"""Phase F, first half: the last stop before a write, and the write."""

from dataclasses import asdict
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.publish import Base, Stale, Written

_CANCEL = option("cancel", "Cancel", "End the session; nothing more is written.")
_REPLAN = option("replan", "Plan again", "With your remarks, if you give any.")
#: The actions that fit a reason to stop.
_ACTIONS = {
    "repeated_finding": [_REPLAN, _CANCEL],
    "budget": [option("raise_budget", "Raise the budget", "New ceilings in tokens or USD."), _CANCEL],
    "stale_base": [option("overwrite", "Overwrite", "Your change replaces the other one."), _REPLAN, _CANCEL],
    "diff_requested": [option("continue", "Write it", "Apply the change."), _REPLAN, _CANCEL],
}


async def preflight_validate_patch(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Ask when something forbids going on, or when the person wanted to see the change before the write."""
    stop = state["stop"]
    if stop is None and state["request"].get("review_patch") and state["reviewed_sha"] != state["flow_sha"]:
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
        case "overwrite":
            update["base"] = stop["found"]
        case "raise_budget":
            update["budget"] = {**state["budget"], **answer["budget"]}
        case _:
            update["outcome"] = "cancelled"
    return update


async def apply_patch(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """The one node that writes to Flowise; `stage` says what: the flow, its acceptance, or its removal."""
    emit = Emitter(runtime, "apply_patch")
    publisher = runtime.context.publisher
    iteration, chatflow_id = state["iteration"], state["chatflow_id"]
    if state["stage"] == "accept" and chatflow_id:
        deploy = bool((state["answer"] or {}).get("deploy", True))
        written = await publisher.accept(chatflow_id=chatflow_id, deploy=deploy, iteration=iteration)
        emit.event("write", f"Accepted '{written.name}'", chatflow_id=chatflow_id, deployed=deploy)
        return {"outcome": "accepted", "base": asdict(written.base)}
    if state["stage"] == "rollback":
        if chatflow_id:
            await publisher.delete_created(chatflow_id=chatflow_id, iteration=iteration)
            emit.event("write", "Deleted the chatflow that this session made", chatflow_id=chatflow_id)
        return {"outcome": "rolled_back", "chatflow_id": None}
    return await _write_flow(state, runtime.context, emit)


async def _write_flow(state: AgentState, context: AgentContext, emit: Emitter) -> dict[str, Any]:
    plan = state["plan"] or {}
    flow_data = await context.blobs.get(str(state["flow_sha"]))
    chatflow_id, base = state["chatflow_id"], state["base"]
    if chatflow_id and base:
        result: Written | Stale = await context.publisher.update(
            chatflow_id=chatflow_id,
            flow_data=flow_data,
            validated_sha256=state["validated_sha"],
            base=Base(**base),
            iteration=state["iteration"],
        )
    else:
        result = await context.publisher.create(
            name=plan["flow_name"],
            flow_data=flow_data,
            kind=plan["flow_kind"],
            validated_sha256=state["validated_sha"],
            iteration=state["iteration"],
        )
    if isinstance(result, Stale):
        emit.event("decision", "The chatflow was changed on Flowise meanwhile; nothing was written")
        message = "The chatflow was changed on Flowise since it was read. Nothing was written."
        return {"stop": {"reason": "stale_base", "message": message, "found": asdict(result.found)}, "answer": None}
    current = await context.flowise.get_chatflow(result.chatflow_id)
    blob = await context.blobs.put(current.flow_data)
    verb = "Adopted" if result.adopted else "Updated" if chatflow_id else "Created"
    emit.event("write", f"{verb} '{result.name}'", chatflow_id=result.chatflow_id, flow=result.sha256)
    return {
        "chatflow_id": result.chatflow_id,
        "chatflow_name": result.name,
        "base": asdict(result.base),
        "validated_sha": None,  # spent: one authorisation, one write
        "artifacts": {"flowise": {"current_flow": blob, "chatflow_id": result.chatflow_id}},
    }


def _patch_review(state: AgentState, stop: dict[str, Any]) -> dict[str, Any]:
    change = state["change"] or {}
    return build_interrupt(
        "patch_review",
        reason=stop["reason"],
        message=stop["message"],
        options=_ACTIONS[stop["reason"]],
        data={"change": change, "ops": state["ops"], "findings": state["findings"], "budget": state["budget"]},
    )
