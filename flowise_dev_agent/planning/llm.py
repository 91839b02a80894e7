"""Reasoning by a model: send prompts, parse typed answers, and retry with the problems found."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

from pydantic import JsonValue, ValidationError

from flowise_dev_agent.errors import BudgetSpentError, ModelContextError, ModelOutputError, PatchError
from flowise_dev_agent.models.answer_schemas import answer_schema
from flowise_dev_agent.models.base import ReasoningEngine
from flowise_dev_agent.models.messages import Prompt
from flowise_dev_agent.models.parsing import IncompleteOutputError, UnusableOutputError, parse_model, parse_object
from flowise_dev_agent.models.tool_loop import ToolLoop
from flowise_dev_agent.patch import AddNode, BindCredential, Finding, PatchOp, SetParam, ops_from_json
from flowise_dev_agent.patch.model.equal_values import held
from flowise_dev_agent.planning import wording
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.ops_by_code import ops_by_code
from flowise_dev_agent.planning.passes.target import new_name
from flowise_dev_agent.planning.plan_checks import accounted, checked_amendment, checked_plan, is_done_by_values
from flowise_dev_agent.planning.prompt_room import room_in
from flowise_dev_agent.planning.prompt_writing import PromptWriter
from flowise_dev_agent.planning.prompts import (
    classify_prompt,
    judge_prompt,
    patch_prompt,
    plan_prompt,
    shows_trials_whole,
)
from flowise_dev_agent.planning.reasoner import Reasoner
from flowise_dev_agent.planning.requests import (
    ClassifyRequest,
    JudgeRequest,
    PatchRequest,
    PlanRequest,
    Reasoned,
    ReviewedPlan,
)
from flowise_dev_agent.planning.skills import SKILL_FILES, Skills
from flowise_dev_agent.planning.votes import (
    MORE_VOTES,
    agreed,
    checked_judgement,
    shows_content_only,
    verdict_of,
    without_a_real_model,
)
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import (
    AmendAnswer,
    FunctionSample,
    Intent,
    NothingToChange,
    OpsAnswer,
    PatchAnswer,
    Plan,
    ProposedPlan,
)
from flowise_dev_agent.schemas.verdict import Judgement, Verdict
from flowise_dev_agent.settings import Phase, ReasoningSettings
from flowise_dev_agent.texts import text

_MOST_SAMPLES: Final = 40
T = TypeVar("T")


class LlmReasoner(Reasoner):
    """Reasoner that asks `engine`. An unusable answer is returned to the model with its problems, `1 + retry_count`
    tries in all.

    Every phase raises `BudgetSpentError` instead of making a call that the session has no budget for, and
    `ModelOutputError` when no try was usable; its `details` hold `problems`, `tries` and `usage`.
    """

    def __init__(self, engine: ReasoningEngine, settings: ReasoningSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._skills = Skills(settings.skills_dir)

    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        async def read(text: str) -> Intent:
            intent = parse_model(text, Intent)
            return intent.model_copy(
                update={
                    "operation": request.forced or intent.operation,
                    "questions": intent.questions if intent.ambiguity >= 5 else [],
                    "parts": wording.all_parts(request.requirement, intent.parts),
                }
            )

        return await self._ask("classify", lambda room: classify_prompt(request, self._skills, room), read, request)

    async def plan(self, request: PlanRequest) -> Reasoned[Plan]:
        async def read(text: str) -> Plan:
            proposal = parse_model(text, ProposedPlan)
            # A model does not decide that any answer proves what it promises.
            criteria = [one.model_copy(update={"by_answer": False}) for one in proposal.criteria]
            fields: dict[str, Any] = {**vars(proposal), "parts": [], "criteria": criteria}
            if request.target_kind and request.intent.operation != "create":
                fields["flow_kind"] = request.target_kind
            plan = Plan(operation=request.intent.operation, **fields)
            named = new_name(PlanContext(plan=plan, request=request))
            plan = checked_plan(plan.linked().model_copy(update={"new_name": named}), request, proposal.parts)
            parts, problems = accounted(plan, proposal.parts, request)
            plan = plan.model_copy(update={"parts": parts})
            reviewed = await request.review(plan, request) if request.review else ReviewedPlan(plan)
            if problems := [*reviewed.problems, *problems]:
                raise IncompleteOutputError(problems[:12], reviewed.plan)
            return reviewed.plan

        planned = await self._ask("plan", lambda room: plan_prompt(request, self._skills, room), read, request)
        return await PromptWriter(self._engine, self._settings, self._skills).complete(planned, request)

    async def patch(self, request: PatchRequest) -> Reasoned[PatchAnswer]:
        async def read(text: str) -> PatchAnswer:
            return _checked_answer(text, request)

        if is_done_by_values(request):
            return Reasoned(OpsAnswer(), mode="deterministic")
        if (ops := await asyncio.to_thread(ops_by_code, request)) is not None:
            return Reasoned(OpsAnswer(ops=ops), mode="deterministic")
        return await self._ask("patch", lambda room: patch_prompt(request, self._skills, room), read, request)

    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        if request.stand_in and shows_content_only(request):
            return Reasoned(without_a_real_model(request), mode="llm_guided")

        def prompt(room: int) -> Prompt:
            return judge_prompt(request, self._skills, room)

        window = await self._engine.window(self._settings.model_for("judge", request.model))
        if shows_trials_whole(prompt(room_in(window)), request):
            # What could only be looked up again is no reason for another call.
            request = replace(request, tools=None)

        async def read(text: str) -> Judgement:
            return checked_judgement(parse_model(text, Judgement), request)

        first = await self._ask("judge", prompt, read, request)
        judgements, usage = [first.value], first.usage
        # A criterion that is not shown counts as open, however sure that is.
        if not all(vote.sure or vote.state == "not_shown" for vote in first.value.criteria):
            for _ in range(MORE_VOTES):
                if agreed(judgements) or (request.budget and request.budget.exceeded_by(usage)):
                    break
                again = await self._ask("judge", prompt, read, request)
                judgements, usage = [*judgements, again.value], usage + again.usage
        return Reasoned(verdict_of(judgements), mode="llm_guided", usage=usage, tries=first.tries)

    @property
    def skills_version(self) -> str | None:
        return ", ".join(f"{name} {self._skills.version(name)}" for name in SKILL_FILES)

    async def aclose(self) -> None:
        await self._engine.aclose()

    async def _ask(
        self,
        phase: Phase,
        prompt: Callable[[int], Prompt],
        read: Callable[[str], Awaitable[T]],
        request: ClassifyRequest | PlanRequest | PatchRequest | JudgeRequest,
    ) -> Reasoned[T]:
        model = self._settings.model_for(phase, request.model)
        window = await self._engine.window(model)
        try:
            return await self._ask_within(window, phase, prompt, read, request)
        except ModelContextError:
            # The provider may just have told its window.
            smaller = await self._engine.window(model)
            if smaller >= window:
                raise
            return await self._ask_within(smaller, phase, prompt, read, request)

    async def _ask_within(
        self,
        window: int,
        phase: Phase,
        prompt: Callable[[int], Prompt],
        read: Callable[[str], Awaitable[T]],
        request: ClassifyRequest | PlanRequest | PatchRequest | JudgeRequest,
    ) -> Reasoned[T]:
        model = self._settings.model_for(phase, request.model)
        loop = ToolLoop(
            self._engine,
            self._settings,
            prompt(room_in(window)),
            model=model,
            phase=phase,
            output_schema=answer_schema(phase),
            tools=request.tools,
            window=window,
            budget=request.budget,
            on_delta=request.on_delta,
        )
        tries = 1 + self._settings.retry_count
        problems: list[str] = []
        usable: T | None = None
        for number in range(1, tries + 1):
            try:
                response = await loop.answer()
            except BudgetSpentError:
                if usable is None:
                    raise
                return Reasoned(usable, mode="llm_guided", usage=loop.usage, tries=number - 1)
            if response.truncated:
                problems = ["The answer is cut off before its end. Give it again, shorter."]
            else:
                try:
                    return Reasoned(
                        await read(response.text),
                        mode="llm_guided",
                        usage=loop.usage,
                        tries=number,
                        lost=frozenset(loop.lost),
                    )
                except UnusableOutputError as error:
                    problems = error.problems
                    better = cast("T", error.value) if isinstance(error, IncompleteOutputError) else None
                    last = number == tries or (usable is not None and better is not None)
                    usable = usable if better is None else better
                    if last and usable is not None:
                        return Reasoned(
                            usable, mode="llm_guided", usage=loop.usage, tries=number, lost=frozenset(loop.lost)
                        )
            loop.hand_back(response.text, problems)
        raise ModelOutputError(
            text("error.no_usable_answer", model=model, phase=phase, count=tries, problem=shortened(problems[0], 300)),
            hint=text("error.no_usable_answer_hint"),
            details={"problems": problems, "tries": tries, "usage": loop.usage.model_dump()},
        )


def _checked_answer(text: str, request: PatchRequest) -> PatchAnswer:
    """Parse an answer: ops, an amendment of the plan, or nothing to do; without a kind it counts as ops."""
    try:
        answer = parse_object(text)
    except UnusableOutputError:
        answer = {}
    match answer.get("kind"):
        case "amend":
            return checked_amendment(parse_model(text, AmendAnswer), request)
        case "nothing_to_change":
            if not request.flow.existing or request.seed:
                raise UnusableOutputError(["There is no flow yet, so there is something to do: answer with ops."])
            return parse_model(text, NothingToChange)
        case _:
            pass
    plan = request.plan
    if answer.get("ops") == [] and plan.values and not plan.removals and all(node.existing for node in plan.nodes):
        return OpsAnswer()
    return OpsAnswer(ops=_checked_ops(text, request), samples=_samples(answer.get("samples")))


def _samples(given: JsonValue) -> list[FunctionSample]:
    """Readable samples of an answer; an unreadable one is ignored, without a retry."""
    found: list[FunctionSample] = []
    for one in given if isinstance(given, list) else []:
        with suppress(ValidationError):
            found.append(FunctionSample.model_validate(one, extra="ignore"))
    return found[:_MOST_SAMPLES]


def _of_existing(op: PatchOp, request: PatchRequest) -> list[PatchOp]:
    """The op; of one that adds a node of the flow again, with its own type, the fields that differ, and nothing of one
    that binds the credential that the node has.
    """
    node = request.flow.graph.node(op.node_id) if isinstance(op, AddNode | BindCredential) else None
    if node is None:
        return [op]
    if isinstance(op, BindCredential):
        is_bound = node.credential and not op.path and op.credential_type not in request.plan.credential_requirements
        return [] if is_bound else [op]
    if not isinstance(op, AddNode) or node.name.casefold() != op.node_name.casefold():
        return [op]
    return [
        SetParam(node_id=node.id, param_name=name, value=value)
        for name, value in op.params.items()
        if not held(node.inputs.get(name), value)
    ]


def _checked_ops(text: str, request: PatchRequest) -> list[PatchOp]:
    try:
        ops = ops_from_json(text)
    except PatchError as error:
        raise UnusableOutputError(
            [Finding.model_validate(item).text for item in error.details["findings"]] or [error.message]
        ) from None
    ops = [change for op in ops for change in _of_existing(op, request)]
    problems: list[str] = []
    if len(ops) > request.max_ops:
        problems.append(f"There are {len(ops)} ops, at most {request.max_ops} are allowed.")
    problems += [
        f"The node '{op.node_id}' exists already: use SetParam on it instead of AddNode."
        for op in ops
        if isinstance(op, AddNode) and op.node_id in request.flow.existing
    ]
    if problems:
        raise UnusableOutputError(problems)
    # A model knows no ids: the compiler binds what the person's instance has.
    return [op.model_copy(update={"credential_id": ""}) if isinstance(op, BindCredential) else op for op in ops]
