"""The hard stop: every model call is asked for first, and a raised budget goes on where it stopped."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from flowise_dev_agent.flowise.models import Credential
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.models import ReasoningEngine
from flowise_dev_agent.models.messages import EngineResponse, Message
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.planning.phased import PhasedReasoner
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.settings import ReasoningSettings
from tests.unit.agent.rig import OPENAI, Bench, plan

SETTINGS = ReasoningSettings(_env_file=None, REASONING_ENGINE="openai", OPENAI_BASE_URL="http://m.test")  # type: ignore[call-arg]
INTENT = {"operation": "create", "ambiguity": 0, "title": "Support bot"}
VAGUE = {**INTENT, "ambiguity": 8, "questions": ["What for?"]}
OPS = {
    "ops": [
        {
            "op_type": "AddNode",
            "node_name": "chatOpenAI",
            "node_id": "chatOpenAI_0",
            "params": {"modelName": "gpt-5.4"},
        },
        {"op_type": "AddNode", "node_name": "bufferMemory", "node_id": "bufferMemory_0"},
        {"op_type": "AddNode", "node_name": "conversationChain", "node_id": "conversationChain_0"},
        {
            "op_type": "Connect",
            "source_node_id": "chatOpenAI_0",
            "target_node_id": "conversationChain_0",
            "target_anchor": "model",
        },
        {
            "op_type": "Connect",
            "source_node_id": "bufferMemory_0",
            "target_node_id": "conversationChain_0",
            "target_anchor": "memory",
        },
    ]
}
PLAN = plan().model_dump() | {
    "values": [{"node_id": "chatOpenAI_0", "param": "modelName", "value": "gpt-5.4"}],
    "parts": [{"id": "p1", "state": "covered", "nodes": ["chatOpenAI_0"]}],
}
ANSWERS: list[Any] = [INTENT, PLAN, OPS, {"done": True}]


class Metered(ReasoningEngine):
    """Gives the answers in turn; each call costs 100 tokens and 0.1 USD."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers]
        self.prompts: list[str] = []

    async def complete(self, messages: Sequence[Message], system: str, *args: Any, **kwargs: Any) -> EngineResponse:
        self.prompts.append(system + "\n".join(message.content for message in messages))
        usage = Usage(model_calls=1, input_tokens=90, output_tokens=10, usd=0.1)
        return EngineResponse(text=self.answers[len(self.prompts) - 1], usage=usage, model="m", stop_reason="stop")

    def model_id(self) -> str:
        return "m"

    async def aclose(self) -> None:
        return


def bench(engine: Metered) -> Bench:
    credentials = CredentialStore.from_rows([Credential(id=OPENAI, name="key", credential_name="openAIApi")])
    phased = PhasedReasoner(LlmReasoner(engine, SETTINGS), DeterministicReasoner(), SETTINGS)
    return Bench([], credentials, reasoner=phased)


async def to_the_end(made: Bench, interrupt: dict[str, Any]) -> dict[str, Any]:
    for _ in range(9):
        match interrupt.get("type"):
            case "plan_approval":
                interrupt = await made.answer(action="approve")
            case "clarification":
                interrupt = await made.answer(answers=["support"])
            case _:
                return interrupt
    raise AssertionError("the session does not end")


@pytest.mark.parametrize(("calls", "phase"), [(1, "plan"), (2, "patch"), (3, "judge")])
@pytest.mark.parametrize("unit", ["tokens", "usd"])
async def test_p28_no_call_is_made_beyond_the_budget_and_a_raised_one_goes_on(
    calls: int, phase: str, unit: str
) -> None:
    engine = Metered(ANSWERS)
    made = bench(engine)
    ceiling = {"tokens": calls * 100} if unit == "tokens" else {"usd": round(calls * 0.1, 1)}
    stopped = await to_the_end(made, await made.start(budget=ceiling))
    assert (stopped["type"], stopped["reason"]) == ("patch_review", "budget"), phase
    assert {item["value"] for item in stopped["options"]} == {"raise_budget", "cancel"}
    assert len(engine.prompts) == calls
    review = await to_the_end(made, await made.answer(action="raise_budget", budget={unit: 10_000}))
    assert (review["type"], review["reason"]) == ("result_review", "tests_passed")
    assert len(engine.prompts) == 4
    assert (await made.state()).usage.spent.usd == 0.4


async def test_p28_the_budget_counts_between_the_tries_of_one_phase() -> None:
    engine = Metered([INTENT, "no plan at all", *ANSWERS[1:]])
    made = bench(engine)
    stopped = await made.start(budget={"tokens": 200})
    assert (stopped["reason"], len(engine.prompts)) == ("budget", 2)
    approval = await made.answer(action="raise_budget", budget={"tokens": 10_000})
    assert approval["type"] == "plan_approval"
    assert (await made.state()).usage.spent.model_calls == 3


async def test_p28_a_second_reading_needs_budget_too() -> None:
    engine = Metered([VAGUE, *ANSWERS])
    made = bench(engine)
    assert (await made.start(budget={"tokens": 100}))["type"] == "clarification"
    stopped = await made.answer(answers=["support"])
    assert (stopped["reason"], len(engine.prompts)) == ("budget", 1)
    assert (await made.answer(action="raise_budget", budget={"tokens": 10_000}))["type"] == "plan_approval"


async def test_cancelling_for_want_of_budget_ends_without_a_write() -> None:
    made = bench(Metered(ANSWERS))
    assert (await made.start(budget={"tokens": 50}))["reason"] == "budget"
    assert await made.answer(action="cancel") == {}
    assert ((await made.state()).outcome, made.flowise.flows) == ("cancelled", {})


async def test_no_key_and_no_credential_id_gets_into_any_prompt_of_a_session() -> None:
    key = "sk-" + "a1B2c3" * 6
    engine = Metered(ANSWERS)
    made = bench(engine)
    made.flowise.answers = {"Hello": f"My key is {key}"}
    review = await to_the_end(made, await made.start(f"A support bot, my OpenAI key is {key}"))
    assert review["type"] == "result_review"
    assert len(engine.prompts) == 4
    for prompt in engine.prompts:
        assert key not in prompt
        assert OPENAI not in prompt
