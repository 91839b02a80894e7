"""Implement `Reasoner` by code: no model, no key, no network."""

import re
from dataclasses import replace
from typing import Any, Final

from flowise_dev_agent.forms.offer import Offer
from flowise_dev_agent.forms.ops import to_ops
from flowise_dev_agent.forms.plan import incomplete, plan_of
from flowise_dev_agent.forms.starters import choose, language_of, needs_of, with_placeholders
from flowise_dev_agent.forms.telling import short
from flowise_dev_agent.planning.reasoner import Reasoner
from flowise_dev_agent.planning.requests import ClassifyRequest, JudgeRequest, PatchRequest, PlanRequest, Reasoned
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.designs import ChosenStarter, DesignForm
from flowise_dev_agent.schemas.plan import Intent, OpsAnswer, PatchAnswer, Plan
from flowise_dev_agent.schemas.verdict import Verdict
from flowise_dev_agent.texts import say_in, sentences, text

_ERROR_ANSWER: Final = re.compile(
    r"^\s*(error: |error \d|[45]\d\d\b[\s:]|missing credentials|cannot read propert|access to this host is denied|"
    r"internal server error|not found\s*$)",
    re.IGNORECASE,
)
_TITLE_CHARS: Final = 60


class DeterministicReasoner(Reasoner):
    """Plans from forms and starters only; text is not interpreted. The same request always gives the same answer."""

    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        """Classify by the request's fields: with a target update, else create."""
        operation = request.forced or ("update" if request.target else "create")
        line = " ".join(request.requirement.split())
        title, language = shortened(line, _TITLE_CHARS) or "New chatflow", language_of(request.requirement)
        return _reasoned(Intent(operation=operation, ambiguity=0, title=title, language=language))

    async def plan(self, request: PlanRequest) -> Reasoned[Plan]:
        """Plan a form, a starter, a copy or a rename; decline any other text."""
        if request.design is not None:
            return _of_form(request.design, request)
        if request.new_name is not None:
            return _reasoned(_renamed(request, request.new_name))
        if request.is_new and (request.previous is None or request.previous.declined):
            return _started(request)
        if request.is_new and request.previous and request.feedback:
            return _kept(request.previous, request)
        goal, name = short(request.feedback or request.requirement), request.target or request.intent.title
        declined = Plan(
            goal=goal, operation=request.intent.operation, flow_name=name, declined=text("interrupt.words_need_model")
        )
        return _reasoned(declined)

    @property
    def reads_candidates(self) -> bool:
        return False

    async def patch(self, request: PatchRequest) -> Reasoned[PatchAnswer]:
        """Write the ops. Raises ModelOutputError if the plan does not determine the connections."""
        ops = to_ops(
            request.plan,
            request.nodes,
            existing=request.flow.existing,
            occupied=request.flow.connected_inputs,
            inside={(place.partition(".")[0], name) for place, name in request.flow.components.items()},
            outdated=[one.where for one in request.findings if one.code == "UNKNOWN_PARAM"],
            seeded=bool(request.seed),
            max_ops=request.max_ops,
        )
        return _reasoned(OpsAnswer(ops=ops))

    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        """Fail empty answers and reported errors; leave the others unjudged."""
        notes, failed = list[str](), list[str]()
        for trial in request.trials:
            note = _problem_of(trial.answer) if trial.passed else ""
            notes.append(note or trial.worded("error"))
            failed += [text("verdict.at_question", question=trial.question, problem=note)] if note else []
        if failed:
            return _reasoned(Verdict(done=False, category="LOGIC", reason=sentences(*failed), notes=notes))
        return _reasoned(Verdict(done=True, reason=text("verdict.not_judged"), notes=notes))


def _reasoned(value: Any) -> Reasoned[Any]:
    return Reasoned(value, mode="deterministic")


def _of_form(form: DesignForm, request: PlanRequest) -> Reasoned[Plan]:
    """Plan of a form; a form that began as a starter may lack values that only the starter requires."""
    plan = _plan_of(form, request)
    if request.starter is None:
        return _reasoned(plan)
    needs = needs_of(request.starter.id, form, attached=bool(request.attachments))
    if not needs:
        return _reasoned(plan)
    starter = request.starter.model_copy(update={"form": form, "needs": [*needs]})
    return replace(_reasoned(incomplete(plan, needs)), starter=starter)


def _plan_of(form: DesignForm, request: PlanRequest) -> Plan:
    return plan_of(
        form,
        Offer(request.nodes, request.credential_types),
        words=_latest_words(request),
        language=request.intent.language,
        parts=request.parts,
        ready=request.ready_nodes,
        taken=request.pattern.nodes if request.pattern else {},
    )


def _latest_words(request: PlanRequest) -> str:
    """The person's latest requirement."""
    return request.clarifications[-1][1] if request.clarifications else request.requirement


def _renamed(request: PlanRequest, name: str) -> Plan:
    """Plan of a plain copy or a rename."""
    former = request.target or request.intent.title
    copies = request.intent.operation == "copy"
    return Plan(
        goal=say_in(request.intent.language, f"plan.goal.{'copy' if copies else 'rename'}", flow=former, name=name),
        operation=request.intent.operation,
        flow_name=name if copies else former,
        new_name=None if copies else name,
        parts=[part.model_copy(update={"state": "covered", "reason": ""}) for part in request.parts],
    )


def _started(request: PlanRequest) -> Reasoned[Plan]:
    """Plan of the starter that matches the latest message; declined while its form is incomplete."""
    attached = [one.kind for one in request.attachments]
    chosen = choose(
        _latest_words(request),
        request.nodes,
        stores=request.stores,
        attached=attached,
        language=request.intent.language,
    )
    form, needs = chosen.form, chosen.needs
    if needs and request.goes_on:
        form = with_placeholders(form, needs, chosen.language)
        needs = needs_of(chosen.starter, form, attached=True)
    starter = ChosenStarter(
        id=chosen.starter, title=chosen.title, form=form, words=[*chosen.matched], names=[*chosen.recognised],
        needs=[*needs],
    )  # fmt: skip
    intent = request.intent.model_copy(update={"language": chosen.language})
    plan = _plan_of(form, replace(request, parts=(), intent=intent))
    return replace(_reasoned(incomplete(plan, starter.needs) if starter.needs else plan), starter=starter)


def _kept(previous: Plan, request: PlanRequest) -> Reasoned[Plan]:
    """The plan as it was, which can be approved, with the words that only a model could read as not done."""
    reason = text("interrupt.words_need_model")
    unread = [
        part.model_copy(update={"state": "not_understood", "reason": reason})
        for part in request.parts
        if part.source.startswith("feedback") and part.id not in {one.id for one in previous.parts}
    ]
    plan = previous.model_copy(update={"parts": [*previous.parts, *unread]})
    return replace(_reasoned(plan), starter=request.starter)


def _problem_of(answer: str) -> str:
    if not answer.strip():
        return text("verdict.no_answer")
    return text("verdict.answer_is_error") if _ERROR_ANSWER.match(answer) else ""
