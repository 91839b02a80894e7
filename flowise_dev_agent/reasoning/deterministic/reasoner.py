"""The four questions of `Reasoner`, answered by rules over node schemas. No model, no key, no network."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import OpsAnswer, PatchAnswer
from flowise_dev_agent.errors import ModelOutputError
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
from flowise_dev_agent.reasoning.deterministic import intents
from flowise_dev_agent.reasoning.deterministic.accounting import with_parts
from flowise_dev_agent.reasoning.deterministic.change_requests import (
    existing_nodes,
    full_reading,
    schemas_of,
    wishes_of,
)
from flowise_dev_agent.reasoning.deterministic.copying import as_copy, plain_copy, wish_for_copy
from flowise_dev_agent.reasoning.deterministic.nested import change_inside, is_agentflow
from flowise_dev_agent.reasoning.deterministic.pattern_ops import onto_seed
from flowise_dev_agent.reasoning.deterministic.planning import answer, plan_change, plan_new
from flowise_dev_agent.reasoning.deterministic.reading import read
from flowise_dev_agent.reasoning.deterministic.retrieval import suggested
from flowise_dev_agent.reasoning.deterministic.wiring import Wiring
from flowise_dev_agent.reasoning.deterministic.writing import agentflow_ops, onto_flow
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.reasoner import Reasoner

_ERROR_ANSWER = re.compile(
    r"^\s*(error: |missing credentials|cannot read propert|access to this host is denied)", re.IGNORECASE
)


class DeterministicReasoner(Reasoner):
    """Reads requirements by word lists, selects and wires nodes by their schemas.

    The same request always gives the same answer. What it does not recognise it declines, in the person's language.
    """

    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        return _reasoned(intents.classify(request))

    async def plan(self, request: PlanRequest) -> Reasoned[PlanContract]:
        return _reasoned(with_parts(_plan(request), request))

    async def patch(self, request: PatchRequest) -> Reasoned[PatchAnswer]:
        if request.plan.operation == "copy":
            request = replace(request, requirement=wish_for_copy(request.requirement, request.target))
        schemas = schemas_of(request.existing, request.nodes)
        wishes = wishes_of(request.plan)
        # The language of the plan, which the person has read.
        language = read(request.requirement).language
        new = {node.node_id: node.node_name for node in request.plan.nodes if node.node_id not in request.existing}
        added = schemas_of(new, request.nodes)
        if missing := [name for node_id, name in new.items() if node_id not in added]:
            raise ModelOutputError(f"The plan names nodes that this Flowise does not have: {', '.join(missing)}.")
        reading = full_reading(request, wishes, request.nodes)
        if is_agentflow(request):
            changed = change_inside(request, [request.requirement, *wishes], language)
            ops, wiring = list(changed.ops), Wiring((), (), ())
        elif request.plan.flow_kind == "AGENTFLOW" and not request.existing:
            ops, wiring = agentflow_ops(request, reading, language), Wiring((), (), ())
        elif request.seed:
            planned = {node.node_id: (schemas | added)[node.node_id] for node in request.plan.nodes}
            ops, wiring = onto_seed(planned, request.seed, reading, language, request.plan.credential_requirements)
        else:
            ops, wiring = onto_flow(request, wishes, reading, language, added=added, existing=schemas)
        if wiring.unmet or wiring.loose:
            problem = [f"{node}.{anchor}" for node, anchor in wiring.unmet] + list(wiring.loose)
            raise ModelOutputError(f"The rules cannot connect every node of this plan: {', '.join(problem)}.")
        if not ops:
            raise ModelOutputError("The rules find nothing to change for this plan.")
        if len(ops) > request.max_ops:
            raise ModelOutputError(f"The plan takes {len(ops)} ops, at most {request.max_ops} are allowed.")
        return _reasoned(OpsAnswer(ops=ops))

    def suggest_node_types(self, text: str, nodes: NodeStore, credential_types: Mapping[str, int]) -> list[str]:
        return suggested(text, nodes, credential_types)

    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        language = read(request.requirement).language
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


def _plan(request: PlanRequest) -> PlanContract:
    language = request.intent.language
    if request.intent.operation == "question":
        return answer(request, language)
    existing = existing_nodes(request)
    if existing and request.intent.operation == "copy":
        wish = wish_for_copy(request.requirement, request.target)
        if wish or request.previous:
            contract = plan_change(replace(request, requirement=wish), existing, language)
        else:
            contract = plain_copy(request, language)
        return as_copy(contract, request.requirement)
    return plan_change(request, existing, language) if existing else plan_new(request, language)


def _reasoned(value: Any) -> Reasoned[Any]:
    return Reasoned(value, mode="deterministic")
