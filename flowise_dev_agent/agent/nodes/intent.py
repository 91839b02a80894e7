"""Phase A: what does the person want, and is it clear enough to plan?"""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.budget import asks_for_budget, budget_of
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.drift import schema_facts
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.agent.state import MAX_CLARIFICATION_ROUNDS, AgentState, degraded_marker
from flowise_dev_agent.reasoning.contracts import ClassifyRequest

AMBIGUITY_THRESHOLD = 5


@asks_for_budget
async def classify_intent(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Intent, title and, when the requirement is anyone's guess, the questions to ask."""
    emit = Emitter(runtime, "classify_intent")
    request = state["request"]
    forced = request.get("operation") if request.get("operation") != "auto" else None
    result = await runtime.context.reasoner.classify(
        ClassifyRequest(
            requirement=state["requirement"],
            clarifications=_pairs(state),
            model=request.get("model"),
            forced=forced,
            target=request.get("target"),
            on_delta=emit.delta,
            budget=budget_of(state, runtime.context.limits),
        )
    )
    emit.reasoned("classify", result)
    intent = result.value
    skip = request.get("skip_clarification")
    skip = runtime.context.limits.skip_clarification if skip is None else skip
    ask = (
        intent.ambiguity >= AMBIGUITY_THRESHOLD
        and bool(intent.questions)
        and not skip
        and state["clarification_rounds"] < MAX_CLARIFICATION_ROUNDS
    )
    return {
        "intent": intent.model_dump(),
        "operation_mode": forced or intent.operation,
        "open_questions": intent.questions if ask else [],
        "usage": result.usage.model_dump(),
        "degraded": degraded_marker("classify", result.degraded),
        "answer": None,
        "plan": None,
    }


async def hydrate_context(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Ask the open questions; without any, note which server and which schemas this session builds for."""
    questions = state["open_questions"]
    if questions:
        answer: dict[str, Any] = interrupt(_clarification(state, questions))
        if answer["action"] == "cancel":
            return {"answer": answer, "outcome": "cancelled", "open_questions": []}
        given: list[str] = answer.get("answers") or []
        pairs = [[question, text] for question, text in zip(questions, given, strict=False) if text.strip()]
        going_on = answer["action"] == "go_on"
        return {
            "answer": answer,
            "open_questions": [],
            "clarifications": [*state["clarifications"], *pairs],
            "clarification_rounds": MAX_CLARIFICATION_ROUNDS if going_on else state["clarification_rounds"] + 1,
        }
    store = await runtime.context.knowledge.nodes()
    if store.source == "snapshot":
        text = f"The server's node types cannot be read; working with those of Flowise {store.flowise_version}."
        Emitter(runtime, "hydrate_context").event("drift", text, source=store.source)
    return {"answer": None, "facts": {"flowise": schema_facts(state, store)}}


def _clarification(state: AgentState, questions: list[str]) -> dict[str, Any]:
    intent = state["intent"] or {}
    return build_interrupt(
        "clarification",
        reason="ambiguous_requirement",
        message="The requirement leaves open what to build. Please answer, or go on and let the agent decide.",
        options=[
            option("answer", "Answer", "One answer per question; leave one empty to skip it."),
            option("go_on", "Go on", "Plan with what is known."),
            option("cancel", "Cancel", "End the session; nothing is written."),
        ],
        data={"questions": questions, "ambiguity": intent.get("ambiguity")},
    )


def _pairs(state: AgentState) -> tuple[tuple[str, str], ...]:
    return tuple((question, answer) for question, answer in state["clarifications"])
