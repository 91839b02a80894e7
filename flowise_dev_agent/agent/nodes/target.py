"""Phases B and C: which existing flow is meant, and what is in it."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.agent.prompt_context import focused_summary
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.agent.targets import KINDS, find_targets
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.hashing import payload_sha256
from flowise_dev_agent.publish import uploaded_file, why_not_staged

_VERBS = {"copy": "copied", "question": "asked about"}


async def resolve_target(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Flows that the person may mean, best match first; a list that cannot be read ends the run with its error."""
    intent = state["intent"] or {}
    said = [state["requirement"], *(answer for _, answer in state["clarifications"])]
    target, hint = state["request"].get("target"), intent.get("target_hint")
    found = await find_targets(runtime.context.flowise.iter_chatflows(), target=target, hint=hint, text="\n".join(said))
    candidates = found.pop("candidates")
    exact = found.pop("exact") if state["operation_mode"] != "create" else None
    Emitter(runtime, "resolve_target").event(
        "artifact",
        f"{len(candidates) if found['fits'] else 0} of {found['total']} flows fit",
        candidates=[item["id"] for item in candidates],
        exact=exact,
    )
    return {
        "target_candidates": candidates,
        "target_search": {**found, "wanted": target or hint},
        "target_chatflow_id": exact,
        "answer": None,
    }


async def hitl_select_target(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Have the person choose among the flows found."""
    answer: dict[str, Any] = interrupt(_select_target(state))
    match answer["action"]:
        case "cancel":
            return {"answer": answer, "outcome": "cancelled"}
        case "create_new":
            return {"answer": answer, "operation_mode": "create", "target_chatflow_id": None}
        case _:
            mode = state["operation_mode"]
            return {
                "answer": answer,
                "target_chatflow_id": answer["chatflow_id"],
                "operation_mode": "update" if mode == "create" else mode,
            }


async def load_current_flow(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Read the target; the flow becomes a blob, the state keeps its hash and the base for the stale check."""
    target = state["target_chatflow_id"]
    if not target:
        raise InvalidInputError("There is no target flow to load.", hint="Name the chatflow to change.")
    context = runtime.context
    flow = await context.flowise.get_chatflow(target)
    kind = flow.type or "CHATFLOW"
    if kind not in KINDS:
        raise InvalidInputError(
            f"'{flow.name}' is of type {kind}, which cannot be edited here.", hint=f"Choose one of: {', '.join(KINDS)}."
        )
    graph = GraphIR.from_flow_data(flow.flow_data)
    sha256 = await context.blobs.put(flow.flow_data)
    base = {"sha256": payload_sha256(flow.flow_data), "updated_date": flow.updated_date}
    changes_it = state["operation_mode"] == "update"
    write_mode, notes = _write_mode(state, graph) if changes_it else ("direct", [])
    notes += _limits(state, flow, graph)
    return {
        "target": {"id": flow.id, "name": flow.name, "type": kind, "deployed": bool(flow.deployed)},
        "chatflow_id": None if state["operation_mode"] == "copy" else flow.id,
        "chatflow_name": flow.name,
        "live_base": base,
        "base": base if changes_it and write_mode == "direct" else None,
        "write_mode": write_mode,
        "notes": notes,
        "artifacts": {"flowise": {"current_flow": sha256, "original_flow": sha256}},
    }


async def summarize_current_flow(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """The compact text of the flow: all that a prompt ever sees of it."""
    text = await runtime.context.blobs.get(state["artifacts"]["flowise"]["current_flow"])
    summary = focused_summary(GraphIR.from_flow_data(text), state["requirement"])
    return {"facts": {"flowise": {"flow_summary": summary}}}


def _write_mode(state: AgentState, graph: GraphIR) -> tuple[str, list[str]]:
    if state["request"].get("write_mode") == "direct":
        return "direct", ["The change is written to the flow at once, without a draft, as the request says."]
    reason = why_not_staged(graph)
    if reason:
        note = f"The change cannot be tried on a draft: {reason}. It is written to the flow itself; rollback undoes it."
        return "direct", [note]
    return "staged", []


def _limits(state: AgentState, flow: Chatflow, graph: GraphIR) -> list[str]:
    """What the tests of this flow, or its copy, cannot have."""
    notes: list[str] = []
    if flow.apikeyid and state["operation_mode"] == "update":
        notes.append(
            f"'{flow.name}' is protected by an API key of Flowise. Unless it is the key that this service has, the "
            "tests will be refused; the change itself can be made."
        )
    stored = uploaded_file(graph) if state["operation_mode"] == "copy" else None
    if stored:
        notes.append(f"{stored}. The file stays with the original; the copy lacks it until you upload it there again.")
    return notes


def _select_target(state: AgentState) -> dict[str, Any]:
    candidates, search = state["target_candidates"], state["target_search"] or {}
    mode = state["operation_mode"]
    wanted, verb = search.get("wanted"), _VERBS.get(str(mode), "changed")
    if mode == "create":
        reason, message = "existing_flow_named", "A flow of this name exists. Change it, or create a new one beside it?"
    elif not candidates:
        reason, message = "no_flows", "This Flowise has no flow that could be " + verb + "."
    elif not search.get("fits"):
        reason = "target_not_found"
        message = (f"No flow matches '{wanted}'. " if wanted else "It is not clear which flow is meant. ") + (
            f"These are the {len(candidates)} changed last of {search.get('total')}; which one is to be {verb}?"
        )
    else:
        reason, message = "target_ambiguous", f"Which flow is to be {verb}?"
    options = [option("select", "Choose", "One of the flows by its id.")] if candidates else []
    if mode != "question":
        options.append(option("create_new", "Create a new chatflow", "Existing flows are left alone."))
    options.append(option("cancel", "Cancel", "End the session; nothing is written."))
    return build_interrupt(
        "select_target", reason=reason, message=message, options=options, data={"candidates": candidates}
    )
