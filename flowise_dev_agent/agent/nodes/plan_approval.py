"""Phase D, first half: the approval of the plan."""

from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credentials import with_edits
from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.agent.nodes.intent import of_form
from flowise_dev_agent.agent.nodes.patch import flow_so_far
from flowise_dev_agent.agent.state import (
    AgentState,
    IntentState,
    PatchState,
    PlanState,
    RequestState,
    TestsState,
    Update,
)
from flowise_dev_agent.approval.binding import beyond_approval
from flowise_dev_agent.approval.manual_edits import ops_of
from flowise_dev_agent.patch import GraphIR, Schemas
from flowise_dev_agent.patch.model.named import with_names
from flowise_dev_agent.planning.details import plan_details, titles_of
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.schemas.designs import ChosenStarter, DesignForm
from flowise_dev_agent.schemas.interrupts import ApprovalReason, PatternUse, PlanApprovalData, PlanApprovalInterrupt
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.texts import sentences, text


async def hitl_plan_v2(state: AgentState, runtime: Runtime[AgentContext]) -> Update:
    """Show the plan and wait."""
    base = await flow_so_far(state, runtime.context)
    schemas = (await runtime.context.knowledge.nodes()).schemas
    answer: dict[str, Any] = interrupt(_plan_approval(state, base, schemas).in_language(state.language).as_value())
    declined = state.plan.current.declined
    if answer["action"] == "cancel":
        impossible = declined and not state.plan.current.asks
        return {"answer": answer, "outcome": "declined" if impossible else "cancelled"}
    if answer["action"] == "approve":
        plan, credentials = state.plan.current, state.credentials
        if ops := ops_of(answer):
            plan, credentials = await with_edits(state, runtime.context, ops, base)
        update: Update = {
            "patch": PatchState(ops=[*state.patch.ops, *ops]) if state.patch.own else PatchState(),
            "answer": answer,
            "plan": PlanState(
                contract=plan,
                approved=True,
                agreed=plan.capability,
                agreed_values=plan.values,
                agreed_iteration=state.iteration,
                agreed_not_done=[part.quote for part in plan.not_done],
                amended=None,
                approach=answer.get("approach"),
                feedback=None,
            ),
            "credentials": credentials,
        }
        real = answer.get("real") or []
        questions = answer.get("test_questions")
        update["tests"] = TestsState(real=real, questions=questions) if questions else TestsState(real=real)
        return update
    if answer.get("design"):
        form = DesignForm.model_validate(answer["design"])
        return {**of_form(form, state.intent.current.language), "answer": answer, "request": RequestState(design=form)}
    update = {"answer": answer, "plan": PlanState(approved=False, feedback=None if declined else answer["feedback"])}
    if declined:
        update["request"] = RequestState(design=None)
        # The answer to the question that was asked, or another requirement; both are read from the start, as answers.
        question = declined if state.plan.current.asks else text("interrupt.what_instead")
        update["intent"] = IntentState(clarifications=[*state.intent.clarifications, (question, answer["feedback"])])
    else:
        update["intent"] = state.with_words(answer["feedback"])
    return update


def _about_starter(state: AgentState, starter: ChosenStarter) -> str:
    """Fixed message for a starter that was matched without reading the flow."""
    failed = any(one.phase == "plan" for one in state.usage.degraded)
    return sentences(
        text("interrupt.model_failed" if failed else "interrupt.no_model"),
        text("interrupt.starter_for_words", starter=starter.title, words=starter.words)
        if starter.words
        else text("interrupt.starter_by_default", starter=starter.title),
        text("interrupt.starter_names", names=starter.names) if starter.names else "",
        text("interrupt.starter_rest"),
    )


def _still_needed(needs: Sequence[str]) -> list[str]:
    """A sentence for each kind of part that a form lacks; `data.starter.needs` has their paths."""
    return [text(f"interrupt.needs_{kind}") for kind in dict.fromkeys(one.rpartition(".")[2] for one in needs)]


def _about_parts(plan: Plan) -> list[str]:
    count = len(plan.not_done)
    return [text("interrupt.parts_not_done", count=count)] if count else []


def _about_model(state: AgentState) -> list[str]:
    """A sentence for each thing that the model does not take."""
    return [text(f"interrupt.lost_{loss}") for loss in state.usage.lost]


def _plan_approval(state: AgentState, base: GraphIR, schemas: Schemas) -> PlanApprovalInterrupt:
    plan, language = state.plan.current, state.intent.current.language
    if questions := state.tests.questions:
        plan = plan.with_questions(questions)
    if plan.declined:
        return _declined(state, plan, plan.worded("declined"))
    missing = [item.type for item in state.credentials.missing]
    flow, titles = planned_flow(plan, base, schemas).graph, titles_of(plan, base, schemas)
    plan = plan.model_copy(update={"findings": with_names(plan.findings, flow, schemas, titles)})
    details = plan_details(plan, base, language, schemas=schemas, names=state.plan.names, credentials=missing)
    agreed = state.plan.agreed
    added = beyond_approval(plan.capability, agreed) if plan.capability and agreed else None
    reason, said = _reason(state, plan, widened=added is not None)
    return PlanApprovalInterrupt(
        reason=reason,
        message=sentences(*said, *_about_parts(plan), *_about_model(state), *(note.words for note in state.plan.notes)),
        options=[option("approve"), option("request_changes"), option("cancel")],
        data=PlanApprovalData(
            plan=plan_markdown(plan, details, language),
            language=language,
            contract=plan,
            starter=state.plan.starter,
            form=_form(state),
            details=details,
            approaches=plan.approaches,
            missing_credentials=missing,
            target=state.target.flow,
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


def _declined(state: AgentState, plan: Plan, why: str) -> PlanApprovalInterrupt:
    """Interrupt that asks for an answer, another requirement, or the values that the form of a starter lacks."""
    starter, language = state.plan.starter, state.intent.current.language
    reason: ApprovalReason
    if starter:
        missing = _still_needed(starter.needs) or [why]
        reason, message, change = "starter", sentences(_about_starter(state, starter), *missing), "complete_form"
    elif plan.asks:
        reason, message, change = "question", why, "answer_plan"
    else:
        reason, message, change = "declined", why, "request_other"
    return PlanApprovalInterrupt(
        reason=reason,
        message=message,
        options=[option("request_changes", change), option("cancel")],
        data=PlanApprovalData(
            plan=plan_markdown(plan, language=language),
            contract=plan,
            language=language,
            starter=starter,
            form=_form(state),
            target=state.target.flow,
        ),
    )


def _reason(state: AgentState, plan: Plan, *, widened: bool) -> tuple[ApprovalReason, Sequence[str]]:
    """Reason for the approval question, and the sentences that explain it."""
    verdict, starter, target = state.review.verdict, state.plan.starter, state.target.flow
    if widened:
        return "plan_widened", [text("interrupt.plan_widened"), state.plan.amended or ""]
    if state.plan.amended:
        return "plan_revised", [text("interrupt.plan_narrowed"), state.plan.amended]
    if state.iteration:
        of_verdict = [verdict.worded("reason"), verdict.worded("fix")] if verdict else []
        return "plan_revised", [text("interrupt.plan_changed"), *of_verdict]
    if starter:
        return "starter", [_about_starter(state, starter)]
    said = [text("interrupt.plan_ready")]
    if plan.only_fills:
        said.append(text("interrupt.plan_fills_store"))
    elif state.write.mode == "staged" and target:
        said.append(text("interrupt.plan_on_draft", flow=target.name))
    return "plan_ready", said


def _form(state: AgentState) -> DesignForm | None:
    """Form that the plan was made from, if any."""
    return state.plan.starter.form if state.plan.starter else state.request.design
