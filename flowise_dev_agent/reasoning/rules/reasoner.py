"""The four questions of `Reasoner`, answered by rules over node schemas. No model, no key, no network."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import OpsAnswer, PatchAnswer
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.contracts import (
    ClassifyRequest,
    Intent,
    JudgeRequest,
    PatchRequest,
    PlanContract,
    PlanRequest,
    Reasoned,
    Verdict,
)
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.reasoner import Reasoner
from flowise_dev_agent.reasoning.rules import intents
from flowise_dev_agent.reasoning.rules.design.build import declined, design_new
from flowise_dev_agent.reasoning.rules.design.copying import as_copy, wish_for_copy
from flowise_dev_agent.reasoning.rules.design.form import design_form
from flowise_dev_agent.reasoning.rules.design.inside import design_inside, is_agentflow
from flowise_dev_agent.reasoning.rules.design.naming import take_flow_name
from flowise_dev_agent.reasoning.rules.design.parts import for_request
from flowise_dev_agent.reasoning.rules.design.reading import read
from flowise_dev_agent.reasoning.rules.design.selection import select
from flowise_dev_agent.reasoning.rules.design.updates import design_change, wish_of
from flowise_dev_agent.reasoning.rules.language.text import detect_language, normalised
from flowise_dev_agent.reasoning.rules.render import telling
from flowise_dev_agent.reasoning.rules.render.ops import to_ops

_ERROR_ANSWER = re.compile(
    r"^\s*(error: |error \d|[45]\d\d\b[\s:]|missing credentials|cannot read propert|access to this host is denied|"
    r"internal server error|not found\s*$)",
    re.IGNORECASE,
)


class DeterministicReasoner(Reasoner):
    """Reads a text once into a design and renders that as plan and as ops.

    The same request always gives the same answer. What it does not recognise it declines, in the person's language.
    """

    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        return _reasoned(intents.classify(request))

    async def plan(self, request: PlanRequest) -> Reasoned[PlanContract]:
        return _reasoned(for_request(plan(request), request))

    async def patch(self, request: PatchRequest) -> Reasoned[PatchAnswer]:
        return _reasoned(OpsAnswer(ops=to_ops(request)))

    def suggest_node_types(self, text: str, nodes: NodeStore, credential_types: Mapping[str, int]) -> list[str]:
        """Node types for a wish; where the rules would decline it, the parts that they recognise."""
        reading = read(normalised(text), nodes)
        names = list(select(reading, nodes, credential_types, language=reading.language).names)
        if not names:
            chat = [reading.provider.chat] if reading.provider else []
            parts = (name for name in (reading.vector_store, reading.memory) if name)
            names = [*reading.requested, *chat, *(tools[0] for tools in reading.tools), *parts]
        return [name for name in dict.fromkeys(names) if name in nodes.schemas]

    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        language = detect_language(request.requirement)
        notes: list[str] = []
        failed: list[str] = []
        for trial in request.trials:
            if not trial.answer.strip():
                note, wrong = say("note_empty", language), True
            elif _ERROR_ANSWER.match(trial.answer):
                note, wrong = say("note_error", language), True
            else:
                note, wrong = say("note_ok", language, length=len(trial.answer)), False
            notes.append(note)
            if wrong:
                failed.append(f"{trial.question}: {note}")
        if failed:
            return _reasoned(Verdict(done=False, category="LOGIC", reason="; ".join(failed), notes=notes))
        return _reasoned(Verdict(done=True, reason=say("judged", language), notes=notes))


def plan(request: PlanRequest) -> PlanContract:
    """The plan of a request; pure, so that it can run in a process of its own."""
    previous, is_new = request.previous, request.intent.operation == "create" and not request.existing
    # A flow that exists keeps the name that it has on the server.
    name, rest = take_flow_name(normalised(request.feedback)) if request.feedback and is_new else ("", "")
    if previous is None or previous.declined or not name:
        return _planned(request)
    renamed = previous.model_copy(update={"flow_name": name})
    return _planned(replace(request, previous=renamed, feedback=rest)) if rest else renamed


def _planned(request: PlanRequest) -> PlanContract:
    language, operation = request.intent.language, request.intent.operation
    if operation == "question":
        known = request.flow_summary
        return PlanContract(
            goal=telling.short(request.requirement),
            operation="question",
            flow_name=request.intent.title,
            answer=say("answer_flow", language, summary=known) if known else say("answer_none", language),
        )
    if request.design is not None:
        return design_form(request, request.design).to_plan()
    wish = wish_of(request)
    if wish is None:
        reason = request.verdict.reason if request.verdict else ""
        return declined(request, say("declined_failed", language, reason=reason)).to_plan()
    if operation == "copy" and not request.feedback:
        wish = wish_for_copy(wish, request.target)
        if not wish:
            same = PlanContract(
                goal=telling.short(request.requirement),
                operation="copy",
                flow_name=request.intent.title,
                steps=[say("step_copy", language)],
            )
            return as_copy(same, request.requirement)
    if is_agentflow(request):
        design = design_inside(request, wish, language)
    elif request.existing or (request.previous and request.previous.flow_kind == "CHATFLOW" and request.previous.nodes):
        design = design_change(request, wish, language)
    else:
        design = design_new(request)
    made = design.to_plan()
    return as_copy(made, request.requirement) if operation == "copy" else made


def _reasoned(value: Any) -> Reasoned[Any]:
    return Reasoned(value, mode="deterministic")
