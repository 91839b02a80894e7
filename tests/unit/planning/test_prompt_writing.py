"""The prompts of an agentflow's steps: which are written, by how many calls, and what happens when one fails."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from flowise_dev_agent.errors import ModelUnavailableError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.base import ReasoningEngine
from flowise_dev_agent.models.messages import EngineResponse, Message, SessionBudget
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.planning.prompt_writing import steps_without_instructions
from flowise_dev_agent.planning.requests import Reasoned
from flowise_dev_agent.schemas.plan import Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.settings import ReasoningSettings
from tests.support.requests import plan_request

WRITTEN = "You are careful. Do the task of this step and nothing else."


class Writer(ReasoningEngine):
    """Answers the plan first, then for each step what `answers` has for it, else `WRITTEN`."""

    def __init__(self, plan: dict[str, Any], answers: dict[str, Any] | None = None) -> None:
        self.plan = plan
        self.answers = answers or {}
        self.asked: list[str] = []
        self.running = 0
        self.most = 0

    async def complete(self, messages: Sequence[Message], system: str, *args: Any, **more: Any) -> EngineResponse:
        usage = Usage(model_calls=1, input_tokens=100, output_tokens=10)
        prompt = messages[0].content
        if "<step>" not in prompt:
            return EngineResponse(text=json.dumps(self.plan), usage=usage)
        step = prompt.partition("<step>\n")[2].partition(" ")[0]
        self.asked.append(step)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        answer = self.answers.get(step, {"system": WRITTEN})
        if isinstance(answer, Exception):
            raise answer
        return EngineResponse(text=answer if isinstance(answer, str) else json.dumps(answer), usage=usage)

    def model_id(self) -> str:
        return "writer"

    async def aclose(self) -> None:
        return None


def plan_of(steps: int, **values: Any) -> dict[str, Any]:
    names = ["startAgentflow", *["llmAgentflow"] * (steps - 1), "agentAgentflow", "directReplyAgentflow"]
    nodes = [
        {"node_id": f"{name}_{number}", "node_name": name, "purpose": f"step {number}"}
        for number, name in enumerate(names)
    ]
    set_to = [
        {"node_id": place.rpartition("__")[0], "param": place.rpartition("__")[2], "value": value}
        for place, value in values.items()
    ]
    return {"goal": "x", "flow_name": "x", "nodes": nodes, "values": set_to}


async def planned(engine: Writer, nodes: NodeStore, **request: Any) -> Reasoned[Plan]:
    settings = ReasoningSettings(REASONING_ENGINE="deterministic", REASONING_RETRY_COUNT=0)
    return await LlmReasoner(engine, settings).plan(plan_request(nodes, **{"requirement": "a team"} | request))


def messages_in(plan: Plan) -> dict[str, Any]:
    return {value.node_id: value.value for value in plan.values if value.param.endswith("Messages")}


async def test_the_prompts_of_three_steps_are_written_into_the_plan(catalogue: NodeStore) -> None:
    engine = Writer(plan_of(3), {"llmAgentflow_2": {"system": WRITTEN, "user": "{{ llmAgentflow_1 }}"}})
    result = await planned(engine, catalogue)
    system = {"role": "system", "content": WRITTEN}
    assert messages_in(result.value) == {
        "llmAgentflow_1": [system],
        "llmAgentflow_2": [system, {"role": "user", "content": "{{ llmAgentflow_1 }}"}],
        "agentAgentflow_3": [system],
    }
    assert [value.param for value in result.value.values] == ["llmMessages", "llmMessages", "agentMessages"]
    assert result.usage.model_calls == 4


async def test_the_prompt_of_a_single_step_is_written_with_the_plan_too(catalogue: NodeStore) -> None:
    result = await planned(Writer(plan_of(1)), catalogue)
    assert len(messages_in(result.value)) == 1


async def test_a_prompt_that_the_plan_has_is_not_written_again(catalogue: NodeStore) -> None:
    own = [{"role": "system", "content": "Say exactly: hello"}]
    engine = Writer(plan_of(4, llmAgentflow_1__llmMessages=own))
    result = await planned(engine, catalogue)
    assert engine.asked == ["llmAgentflow_2", "llmAgentflow_3", "agentAgentflow_4"]
    assert messages_in(result.value)["llmAgentflow_1"] == own


@pytest.mark.parametrize(
    ("message", "asked"),
    [("Translate into German: {{ question }}", 0), ("<p>{{ question }}</p>", 1)],
    ids=["says what to do", "hands over"],
)
def test_a_user_message_that_says_what_to_do_needs_no_instructions(message: str, asked: int) -> None:
    plan = Plan.model_validate(
        {
            "operation": "create",
            "flow_kind": "AGENTFLOW",
            "goal": "Translate",
            "flow_name": "Translator",
            "nodes": [{"node_id": "llmAgentflow_0", "node_name": "llmAgentflow", "purpose": "translates"}],
            "values": [{"node_id": "llmAgentflow_0", "param": "llmUserMessage", "value": message}],
        }
    )
    assert len(steps_without_instructions(plan)) == asked


async def test_at_most_five_prompts_are_written_at_the_same_time(catalogue: NodeStore) -> None:
    engine = Writer(plan_of(12))
    result = await planned(engine, catalogue)
    assert len(messages_in(result.value)) == 12
    assert engine.most == 5


@pytest.mark.parametrize(
    "failure",
    [
        ModelUnavailableError("The provider is down."),
        "no object at all",
        {"system": "short"},
        {"system": f"{WRITTEN} Use {{{{ agentAgentflow_3 }}}}."},
        {"system": f"{WRITTEN} Use {{{{ qestion }}}}."},
    ],
    ids=["no provider", "no JSON", "too short", "a later step", "a misspelt variable"],
)
async def test_a_prompt_that_fails_is_left_to_the_op_writer(failure: Any, catalogue: NodeStore) -> None:
    engine = Writer(plan_of(3), {"llmAgentflow_2": failure})
    result = await planned(engine, catalogue)
    assert list(messages_in(result.value)) == ["llmAgentflow_1", "agentAgentflow_3"]


async def test_no_prompt_is_written_beyond_the_budget(catalogue: NodeStore) -> None:
    engine = Writer(plan_of(8))
    budget = SessionBudget(max_tokens=300, max_usd=10, spent=Usage())
    result = await planned(engine, catalogue, budget=budget)
    assert len(engine.asked) == 5
    assert len(messages_in(result.value)) == 5


async def test_a_plan_that_is_written_again_keeps_the_prompts_of_steps_that_stay(catalogue: NodeStore) -> None:
    old = plan_of(3)
    rows = [{"role": "system", "content": "as approved"}]
    previous = Plan(
        goal="x",
        operation="create",
        flow_name="x",
        nodes=[PlannedNode(**node) for node in old["nodes"][:-2]],
        values=[PlannedValue(node_id="llmAgentflow_1", param="llmMessages", value=rows)],
    )
    engine = Writer(old)
    result = await planned(engine, catalogue, previous=previous, feedback="one more step")
    assert engine.asked == ["llmAgentflow_2", "agentAgentflow_3"]
    assert messages_in(result.value)["llmAgentflow_1"] == rows
