"""Reasoning by a model: sends prompts, reads typed values, and puts what is wrong with an answer into the next try."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flowise_dev_agent.contracts.plan import FlowKind
from flowise_dev_agent.errors import ModelOutputError, PatchError
from flowise_dev_agent.patch import AddNode, BindCredential, Finding, NodeSchema, PatchOp, ops_from_json
from flowise_dev_agent.patch.model.agentflow import AGENTFLOW_CATEGORY
from flowise_dev_agent.patch.model.suggest import closest
from flowise_dev_agent.reasoning.contracts import (
    ClassifyRequest,
    Intent,
    Judgement,
    JudgeRequest,
    PatchRequest,
    PlanContract,
    PlannedNode,
    PlanProposal,
    PlanRequest,
    Reasoned,
    Verdict,
)
from flowise_dev_agent.reasoning.credential_requirements import required_types
from flowise_dev_agent.reasoning.engines.base import ReasoningEngine
from flowise_dev_agent.reasoning.parsing import UnusableOutputError, parse_model
from flowise_dev_agent.reasoning.prompts import (
    Prompt,
    classify_prompt,
    judge_prompt,
    patch_prompt,
    plan_prompt,
)
from flowise_dev_agent.reasoning.reasoner import Reasoner
from flowise_dev_agent.reasoning.schemas import answer_schema
from flowise_dev_agent.reasoning.skills import Skills
from flowise_dev_agent.reasoning.tool_loop import ToolLoop
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.settings import Phase, ReasoningSettings

#: The catalogue, the chapters and a session together need less than this many tokens.
_WHOLE_CATALOGUE_FROM = 32_000
T = TypeVar("T")


class LlmReasoner(Reasoner):
    """Asks `engine`. An answer that cannot be used is handed back with what is wrong, `1 + retry_count` tries in all.

    Every phase raises `BudgetSpentError` instead of making a call that the session has no budget for, and
    `ModelOutputError` when no try was usable; its `details` hold `problems`, `tries` and `usage`.
    """

    def __init__(self, engine: ReasoningEngine, settings: ReasoningSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._skills = Skills(settings.skills_dir)

    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        def read(text: str) -> Intent:
            intent = parse_model(text, Intent)
            return intent.model_copy(
                update={
                    "operation": request.forced or intent.operation,
                    "questions": intent.questions if intent.ambiguity >= 5 else [],
                }
            )

        return await self._ask("classify", classify_prompt(request, self._skills), read, request)

    async def plan(self, request: PlanRequest) -> Reasoned[PlanContract]:
        def read(text: str) -> PlanContract:
            proposal = parse_model(text, PlanProposal)
            plan = PlanContract(operation=request.intent.operation, **vars(proposal))
            return _checked_plan(plan.linked(), request)

        whole = self._settings.context_tokens >= _WHOLE_CATALOGUE_FROM
        return await self._ask("plan", plan_prompt(request, self._skills, whole_catalogue=whole), read, request)

    async def patch(self, request: PatchRequest) -> Reasoned[list[PatchOp]]:
        def read(text: str) -> list[PatchOp]:
            return _checked_ops(text, request)

        return await self._ask("patch", patch_prompt(request, self._skills), read, request)

    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        def read(text: str) -> Verdict:
            verdict = Verdict(**parse_model(text, Judgement).model_dump())
            wrong = [number for number in verdict.failed_trials if not 1 <= number <= len(request.trials)]
            if wrong:
                raise UnusableOutputError([f"There are {len(request.trials)} trials; {wrong} is none of them."])
            if verdict.done and verdict.failed_trials:
                raise UnusableOutputError(["done is true only when every trial passes; `failed_trials` names some."])
            if verdict.done:
                return verdict.model_copy(update={"category": None})
            if verdict.category is None or not verdict.reason:
                raise UnusableOutputError(["done is false, so `category` and `reason` must say why."])
            return verdict

        return await self._ask("judge", judge_prompt(request, self._skills), read, request)

    async def aclose(self) -> None:
        await self._engine.aclose()

    async def _ask(
        self,
        phase: Phase,
        prompt: Prompt,
        read: Callable[[str], T],
        request: ClassifyRequest | PlanRequest | PatchRequest | JudgeRequest,
    ) -> Reasoned[T]:
        model = self._settings.model_for(phase, request.model)
        loop = ToolLoop(
            self._engine,
            self._settings,
            prompt,
            model=model,
            output_schema=answer_schema(phase),
            tools=request.tools,
            budget=request.budget,
            on_delta=request.on_delta,
        )
        tries = 1 + self._settings.retry_count
        problems: list[str] = []
        for number in range(1, tries + 1):
            response = await loop.answer()
            if response.truncated:
                problems = ["The answer is cut off before its end. Give it again, shorter."]
            else:
                try:
                    return Reasoned(read(response.text), mode="llm_guided", usage=loop.usage, tries=number)
                except UnusableOutputError as error:
                    problems = error.problems
            loop.hand_back(response.text, problems)
        raise ModelOutputError(
            f"The model {model} gave no usable answer for the phase '{phase}' in {tries} tries. "
            f"Last problem: {shortened(problems[0], 300)}",
            hint="Try again, raise REASONING_RETRY_COUNT, or use a stronger model for this phase.",
            details={"problems": problems, "tries": tries, "usage": loop.usage.model_dump()},
        )


def _checked_plan(plan: PlanContract, request: PlanRequest) -> PlanContract:
    """The plan with what code knows for certain: operation, spelling of node names, credential types."""
    update: dict[str, Any] = {}
    if plan.declined or request.intent.operation == "question":
        if not plan.declined and not plan.answer:
            raise UnusableOutputError(["This is a question about a flow: put what you found into `answer`."])
        return plan.model_copy(update=update | {"nodes": [], "credential_requirements": []})
    as_it_is = request.intent.operation == "copy" and not plan.removals
    problems: list[str] = []
    if not (plan.nodes or plan.removals or plan.values or as_it_is):
        problems.append("`nodes` is empty. List the nodes to add or to change, or fill `declined`.")
    nodes: list[PlannedNode] = []
    new = []
    pattern = request.pattern.nodes if request.pattern else {}
    for node in plan.nodes:
        schema = request.nodes.get(node.node_name)
        if schema is None:
            near = ", ".join(request.nodes.suggest(node.node_name)) or "none"
            problems.append(f"There is no node type '{node.node_name}'. Close names: {near}.")
            continue
        if any(node.node_id == other.node_id for other in nodes):
            problems.append(f"The node id '{node.node_id}' occurs twice.")
        from_pattern = node.existing and pattern.get(node.node_id) == schema.name
        existing = node.existing and (from_pattern or node.node_id in request.existing)
        nodes.append(node.model_copy(update={"node_name": schema.name, "existing": existing}))
        if not existing or from_pattern:
            new.append(schema)
    problems += _unknown_ids(plan, nodes, request)
    kinds = {_kind(request.nodes.schemas[node.node_name]) for node in nodes}
    if len(kinds) > 1:
        problems.append(
            "FLOW_KIND_MIX: a flow consists of nodes of the category Agent Flows only, or of none of them. "
            "In an agentflow, models and tools are settings of its steps (`llmModel`, `agentTools`), not nodes."
        )
    if problems:
        raise UnusableOutputError(problems)
    if kinds and request.intent.operation == "create":
        update["flow_kind"] = kinds.pop()
    required = required_types(new, request.credential_types)
    if any(request.nodes.schemas[node.node_name].category == AGENTFLOW_CATEGORY for node in nodes):
        # The schema of such a node does not say which models and tools it holds: trust the plan.
        known = {name for schema in request.nodes.schemas.values() for name in schema.credential_names}
        required = list(dict.fromkeys([*required, *(name for name in plan.credential_requirements if name in known)]))
    update |= {"nodes": nodes, "credential_requirements": required}
    return plan.model_copy(update=update)


def _kind(schema: NodeSchema) -> FlowKind:
    return "AGENTFLOW" if schema.is_agentflow else "CHATFLOW"


def _unknown_ids(plan: PlanContract, nodes: Sequence[PlannedNode], request: PlanRequest) -> list[str]:
    """Ids and params that the plan names and that neither it nor the flow has."""
    types = {**request.existing, **{node.node_id: node.node_name for node in nodes}}
    problems = [
        f"`removals` names '{node_id}', which is not in the flow. It has: {', '.join(request.existing) or 'no nodes'}."
        for node_id in plan.removals
        if node_id not in request.existing
    ]
    for value in plan.values:
        schema = request.nodes.get(types.get(value.node_id, ""))
        if value.node_id not in types:
            problems.append(f"`values` names '{value.node_id}', which is neither planned nor in the flow.")
        elif schema is not None and (problem := _unknown_param(schema, value.param)):
            problems.append(f"`values` of '{value.node_id}': {problem}")
    return problems


def _unknown_param(schema: NodeSchema, path: str) -> str | None:
    """What is wrong with the beginning of a path; what is inside a model or tool is checked when it is compiled."""
    root = re.split(r"[.\[]", path, maxsplit=1)[0]
    names = [entry["name"] for entry in schema.input_definitions]
    if root in names or root.removesuffix("Config") in names or root == "credential":
        return None
    near = ", ".join(closest(root, names)) or ", ".join(names[:12])
    return f"{schema.name} has no field '{root}'. Close names: {near}."


def _checked_ops(text: str, request: PatchRequest) -> list[PatchOp]:
    try:
        ops = ops_from_json(text)
    except PatchError as error:
        raise UnusableOutputError(
            [Finding.model_validate(item).text for item in error.details["findings"]] or [error.message]
        ) from None
    problems: list[str] = []
    if len(ops) > request.max_ops:
        problems.append(f"There are {len(ops)} ops, at most {request.max_ops} are allowed.")
    problems += [
        f"The node '{op.node_id}' exists already: use SetParam on it instead of AddNode."
        for op in ops
        if isinstance(op, AddNode) and op.node_id in request.existing
    ]
    if problems:
        raise UnusableOutputError(problems)
    # A model knows no ids: the compiler binds what the person's instance has.
    return [op.model_copy(update={"credential_id": ""}) if isinstance(op, BindCredential) else op for op in ops]
