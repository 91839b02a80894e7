"""Phases B and C: find the existing flow, and read it."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import Domains
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.agent.state import (
    AgentState,
    IntentState,
    PlanState,
    TargetState,
    Update,
    WriteState,
)
from flowise_dev_agent.agent.targets import KINDS, kind_of
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.flow_settings import settings_of
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.patch import GraphIR, payload_sha256
from flowise_dev_agent.publish import Base, uploaded_file
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.base import kept
from flowise_dev_agent.schemas.event_data import ArtifactData
from flowise_dev_agent.schemas.flow_writes import FlowSettings
from flowise_dev_agent.schemas.interrupts import SelectTargetData, SelectTargetInterrupt, TargetFlow
from flowise_dev_agent.texts import counted, sentences, text


async def resolve_target(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> Update:
    """Find the flows that the person may mean, best match first; if the list cannot be read, the run ends with the
    error.
    """
    request, classified = state.request, state.intent.classified
    hint = classified and classified.target_hint
    said = [request.requirement, *(answer for _, answer in state.intent.clarifications)]
    found = await domains.primary.find_flows(runtime.context, target=request.target, hint=hint, text="\n".join(said))
    exact = found.exact if state.intent.operation != "create" else None
    Emitter(runtime, "resolve_target").put(
        ArtifactData(candidates=[candidate.id for candidate in found.candidates], exact=exact),
        text("event.flows_fit", found=len(found.candidates) if found.search.fits else 0, total=found.search.total),
    )
    return {
        "target": TargetState(candidates=found.candidates, search=found.search, chatflow_id=exact),
        "answer": None,
    }


async def hitl_select_target(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Let the person choose among the flows found."""
    answer: dict[str, Any] = interrupt(_select_target(state).in_language(state.language).as_value())
    match answer["action"]:
        case "cancel":
            return {"answer": answer, "outcome": "cancelled"}
        case "create_new":
            return {
                "answer": answer,
                "intent": IntentState(operation="create"),
                "target": TargetState(chatflow_id=None),
            }
        case _:
            operation = state.intent.operation
            return {
                "answer": answer,
                "intent": IntentState(operation="update" if operation == "create" else operation),
                "target": TargetState(chatflow_id=answer["chatflow_id"]),
            }


async def load_current_flow(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> Update:
    """Read the target: store the flow as a blob, its hash and base (for the stale check) in the state."""
    target = state.target.chatflow_id
    if not target:
        raise InvalidInputError(text("error.no_target_flow_was_chosen"), hint=text("error.name_chatflow_change"))
    context = runtime.context
    flow = await domains.primary.read_flow(context, target)
    kind = kind_of(flow)
    if kind is None:
        raise InvalidInputError(
            text("error.type_not_editable", name=flow.name, type=flow.type or ""),
            hint=text("error.one_of", names=[*KINDS]),
        )
    graph = GraphIR.from_flow_data(flow.flow_data)
    sha256 = await context.blobs.put(flow.flow_data)
    base = Base(sha256=payload_sha256(flow.flow_data), updated_date=flow.updated_date)
    name = masked(flow.name)
    return {
        "target": TargetState(flow=TargetFlow(id=flow.id, name=name, type=kind, deployed=bool(flow.deployed))),
        "plan": PlanState(notes=[kept(note) for note in _limits(state, flow, graph)]),
        "write": WriteState(
            live_base=base,
            original_sha=sha256,
            settings_sha=await context.blobs.put(settings_of(flow).model_dump_json(exclude_none=True)),
            current_sha=sha256,
            chatflow_id=None if state.intent.operation == "copy" else flow.id,
            chatflow_name=name,
        ),
    }


async def settings_before(state: AgentState, context: AgentContext) -> FlowSettings | None:
    """Settings of the flow before the session, if there was one. They may hold secrets, as the flow may: the state has
    neither.
    """
    sha256 = state.write.settings_sha
    return (
        FlowSettings.model_validate_json(await context.blobs.get(sha256)) if sha256 else state.write.original_settings
    )


async def summarize_current_flow(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Report the contents of the flow. Its summary for a prompt is made with that prompt."""
    context = runtime.context
    graph = GraphIR.from_flow_data(await context.blobs.get(str(state.write.current_sha)))
    nodes, edges = len(graph.nodes), len(graph.edges)
    Emitter(runtime, "summarize_current_flow").put(
        ArtifactData(nodes=nodes, edges=edges),
        text(
            "event.flow_read",
            flow=state.write.chatflow_name or "",
            nodes=counted("nodes", nodes),
            connections=counted("connections", edges),
        ),
    )
    return {}


def _limits(state: AgentState, flow: Chatflow, graph: GraphIR) -> list[str]:
    """Notes on limits of testing or copying this flow."""
    notes: list[str] = []
    if flow.apikeyid and state.intent.operation == "update":
        notes.append(text("note.protected_flow", flow=flow.name))
    stored = uploaded_file(graph) if state.intent.operation == "copy" else None
    if stored:
        notes.append(sentences(f"{stored}.", text("note.file_stays")))
    return notes


def _select_target(state: AgentState) -> SelectTargetInterrupt:
    candidates, search = state.target.candidates, state.target.search
    operation = state.intent.operation
    wanted, kind = search and search.wanted, operation if operation in ("copy", "question") else "update"
    if operation == "create":
        reason, message = "existing_flow_named", text("interrupt.existing_flow_named")
    elif search and search.unchangeable:
        reason, message = "target_not_found", text("interrupt.unchangeable", flow=search.unchangeable)
    elif not candidates:
        reason, message = "no_flows", text(f"interrupt.no_flows.{kind}")
    elif search is None or not search.fits:
        reason, total = "target_not_found", search.total if search else len(candidates)
        message = sentences(
            text("interrupt.no_match", wanted=wanted) if wanted else text("interrupt.flow_unclear"),
            text(f"interrupt.only_flow.{kind}")
            if total == 1
            else text(f"interrupt.last_flows.{kind}", shown=len(candidates), total=total),
        )
    else:
        reason, message = "target_ambiguous", text(f"interrupt.target_ambiguous.{kind}")
    options = [option("select")] if candidates else []
    if operation != "question":
        options.append(option("create_new"))
    options.append(option("cancel"))
    return SelectTargetInterrupt(
        reason=reason,
        message=message,
        options=options,
        data=SelectTargetData(candidates=candidates),
    )
