"""Write the prompts of new agentflow steps that a plan leaves open: one model call per step.

The plan says what each step must do. The written prompt becomes a value of the plan, so that the person sees it before
the approval. A prompt that could not be written is left to the op writer.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic import Field, JsonValue

from flowise_dev_agent.errors import ReasoningError
from flowise_dev_agent.models.base import ReasoningEngine
from flowise_dev_agent.models.parsing import UnusableOutputError, parse_model
from flowise_dev_agent.models.tool_loop import ToolLoop
from flowise_dev_agent.patch.model.references import variables
from flowise_dev_agent.planning.prompt_room import room_in
from flowise_dev_agent.planning.prompts import step_prompt
from flowise_dev_agent.planning.requests import PlanRequest, Reasoned
from flowise_dev_agent.planning.skills import Skills
from flowise_dev_agent.planning.step_variables import is_readable, readable
from flowise_dev_agent.schemas.base import Contract, JsonObject
from flowise_dev_agent.schemas.plan import Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.settings import ReasoningSettings

#: The steps that take instructions, and the field for them.
INSTRUCTIONS: Final = {"llmAgentflow": "llmMessages", "agentAgentflow": "agentMessages"}
_USER_MESSAGES: Final = frozenset({"llmUserMessage", "agentUserMessage"})
_VARIABLE: Final = re.compile(r"\{\{[^{}]{0,200}\}\}")
#: Characters of the shortest instruction.
_WORDS: Final = 20
MAX_PARALLEL: Final = 5
_MAX_STEPS: Final = 20


class StepPrompt(Contract):
    """Instructions of one step."""

    system: str = Field(min_length=_WORDS, max_length=8_000)
    user: str = Field(default="", max_length=4_000, description="only for a step without memory")


_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"system": {"type": "string"}, "user": {"type": "string"}},
    "required": ["system"],
}


class PromptWriter:
    """Writer of the prompts that a plan leaves open, at most five at the same time."""

    def __init__(self, engine: ReasoningEngine, settings: ReasoningSettings, skills: Skills) -> None:
        self._engine = engine
        self._settings = settings
        self._skills = skills

    async def complete(self, planned: Reasoned[Plan], request: PlanRequest) -> Reasoned[Plan]:
        """Plan with the instructions of its new steps, and their cost. Instructions of unchanged steps are reused."""
        plan = planned.value
        missing = steps_without_instructions(plan)
        if plan.flow_kind != "AGENTFLOW" or plan.declined or not missing:
            return planned
        kept = _kept(missing, request.previous)
        missing = [node for node in missing if node.node_id not in {value.node_id for value in kept}]
        written: list[PlannedValue | None] = []
        usage = planned.usage
        # In rounds: what the one before cost counts against the session's budget.
        for start in range(0, min(len(missing), _MAX_STEPS), MAX_PARALLEL):
            steps = missing[start : min(start + MAX_PARALLEL, _MAX_STEPS)]
            spent = usage
            results = await asyncio.gather(*(self._write(node, plan, request, spent) for node in steps))
            written += [value for value, _ in results]
            usage = sum((cost for _, cost in results), usage)
        values = [*plan.values, *kept, *(value for value in written if value)]
        return replace(planned, value=plan.model_copy(update={"values": values}), usage=usage)

    async def _write(
        self, node: PlannedNode, plan: Plan, request: PlanRequest, spent: Usage
    ) -> tuple[PlannedValue | None, Usage]:
        budget = request.budget and replace(request.budget, spent=request.budget.spent + spent)
        window = await self._engine.window(self._settings.model_for("plan", request.model))
        prompt = step_prompt(node, plan, request, self._skills, room_in(window))
        model = self._settings.model_for("plan", request.model)
        loop = ToolLoop(self._engine, self._settings, prompt, model=model, output_schema=_SCHEMA, budget=budget)
        try:
            response = await loop.answer()
            answer = None if response.truncated else parse_model(response.text, StepPrompt)
        except (ReasoningError, UnusableOutputError):
            return None, loop.usage
        known = readable(node, plan, request.flow, request.server.variables or ())
        if answer is None or not all(is_readable(one, known) for one in variables(f"{answer.system}\n{answer.user}")):
            # A variable that is not filled would stay in the text that people see.
            return None, loop.usage
        rows: list[JsonValue] = [{"role": "system", "content": answer.system}]
        if answer.user.strip():
            rows.append({"role": "user", "content": answer.user})
        return PlannedValue(node_id=node.node_id, param=INSTRUCTIONS[node.node_name], value=rows), loop.usage


def steps_without_instructions(plan: Plan) -> list[PlannedNode]:
    """New steps that take instructions and have none in the plan."""
    given = {value.node_id for value in plan.values if _instructs(value)}
    return [
        node
        for node in plan.nodes
        if node.node_name in INSTRUCTIONS and not node.existing and node.node_id not in given
    ]


def _instructs(value: PlannedValue) -> bool:
    """True for messages, and for a user message that says what to do: "Translate into German: {{ question }}"."""
    if value.param in _USER_MESSAGES and isinstance(value.value, str):
        return len(_VARIABLE.sub("", value.value).strip()) >= _WORDS
    return value.param.startswith(tuple(INSTRUCTIONS.values()))


def _kept(missing: Sequence[PlannedNode], previous: Plan | None) -> list[PlannedValue]:
    if previous is None:
        return []
    same = {(node.node_id, node.node_name, node.purpose) for node in previous.nodes}
    wanted = {node.node_id for node in missing if (node.node_id, node.node_name, node.purpose) in same}
    fields = set(INSTRUCTIONS.values())
    return [value for value in previous.values if value.node_id in wanted and value.param in fields]
