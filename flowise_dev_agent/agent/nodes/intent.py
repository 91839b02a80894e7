"""Phase A: classify the person's intent, and clarify the requirement."""

from contextlib import suppress
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.budget import asks_for_budget, budget_of
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import Domains
from flowise_dev_agent.agent.drift import catalogue_of
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.agent.state import MAX_CLARIFICATION_ROUNDS, AgentState, IntentState, PlanState, Update
from flowise_dev_agent.agent.targets import names_a_flow
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.forms.starters import language_of
from flowise_dev_agent.planning.requests import ClassifyRequest
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.event_data import DriftData
from flowise_dev_agent.schemas.interrupts import ClarificationData, ClarificationInterrupt
from flowise_dev_agent.schemas.plan import Intent
from flowise_dev_agent.texts import text

AMBIGUITY_THRESHOLD = 5
_TITLE_CHARS = 120


@asks_for_budget
async def classify_intent(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> Update:
    """Classify the intent and set a title; for an ambiguous requirement, add clarifying questions."""
    emit = Emitter(runtime, "classify_intent")
    request = state.request
    if request.design is not None:
        return of_form(request.design, language_of(request.design.as_text()))
    if request.new_name is not None or request.ops is not None:
        return _complete(state)
    forced = None if request.operation == "auto" else request.operation
    result = await runtime.context.reasoner.classify(
        ClassifyRequest(
            requirement=request.requirement,
            clarifications=tuple(state.intent.clarifications),
            model=request.model,
            forced=forced,
            target=request.target,
            on_delta=emit.delta,
            budget=budget_of(state, runtime.context.limits),
            attachments=await runtime.context.attachments(),
        )
    )
    emit.reasoned("classify", result)
    intent = result.value
    if result.mode == "deterministic" and intent.operation == "create" and forced is None:
        # Code reads no words, but knows the names of the flows.
        intent = intent.model_copy(
            update={"target_hint": await _named_flow(runtime.context, domains, request.requirement)}
        )
    skip = request.skip_clarification
    skip = runtime.context.limits.skip_clarification if skip is None else skip
    ask = (
        intent.ambiguity >= AMBIGUITY_THRESHOLD
        and bool(intent.questions)
        and not skip
        and state.intent.rounds < MAX_CLARIFICATION_ROUNDS
    )
    return {
        "intent": IntentState(
            classified=intent, operation=forced or intent.operation, questions=intent.questions if ask else []
        ),
        "plan": PlanState(contract=None),
        "usage": state.usage.plus("classify", result),
        "answer": None,
    }


async def _named_flow(context: AgentContext, domains: Domains, requirement: str) -> str | None:
    """Name of the flow that the requirement calls by its exact name, if there is one."""
    with suppress(FlowiseError):
        found = await domains.primary.find_flows(context, target=None, hint=None, text=requirement)
        return names_a_flow(found, requirement)
    return None


def of_form(form: DesignForm, language: str) -> Update:
    """Update for a filled-in form, which needs no clarification."""
    intent = Intent(operation="create", ambiguity=0, title=form.name, parts=form.quotes, language=language)
    return {
        "intent": IntentState(classified=intent, operation="create", questions=[]),
        "plan": PlanState(contract=None, feedback=None),
        "answer": None,
    }


def _complete(state: AgentState) -> Update:
    """Update for a plain copy, a rename or ops of the person; the requirement is not read."""
    operation = "update" if state.request.operation == "auto" else state.request.operation
    said = state.request.requirement
    intent = Intent(
        operation=operation, ambiguity=0, title=said[:_TITLE_CHARS], parts=[said], language=language_of(said)
    )
    return {
        "intent": IntentState(classified=intent, operation=operation, questions=[]),
        "plan": PlanState(contract=None),
        "answer": None,
    }


async def hydrate_context(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Ask the open questions; without any, record the node types that this session builds for."""
    intent = state.intent
    if intent.questions:
        answer: dict[str, Any] = interrupt(_clarification(intent).in_language(state.language).as_value())
        if answer["action"] == "cancel":
            return {"answer": answer, "outcome": "cancelled", "intent": IntentState(questions=[])}
        given: list[str] = answer.get("answers") or []
        pairs = [(question, text) for question, text in zip(intent.questions, given, strict=False) if text.strip()]
        going_on = answer["action"] == "go_on"
        return {
            "answer": answer,
            "intent": IntentState(
                questions=[],
                clarifications=[*intent.clarifications, *pairs],
                rounds=MAX_CLARIFICATION_ROUNDS if going_on else intent.rounds + 1,
            ),
        }
    store = await runtime.context.knowledge.nodes()
    if store.source == "snapshot":
        summary = text("event.types_unread", version=store.flowise_version)
        Emitter(runtime, "hydrate_context").put(DriftData(source=store.source), summary)
    return {"answer": None, "catalogue": catalogue_of(state, store)}


def _clarification(intent: IntentState) -> ClarificationInterrupt:
    return ClarificationInterrupt(
        message=text("interrupt.clarification"),
        options=[
            option("answer"),
            option("go_on"),
            option("cancel"),
        ],
        data=ClarificationData(
            questions=intent.questions, ambiguity=intent.classified.ambiguity if intent.classified else None
        ),
    )
