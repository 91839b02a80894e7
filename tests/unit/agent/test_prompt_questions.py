"""A change of words, through the graph: nobody is asked about them, and the approval shows old and new side by side."""

import json

import pytest

from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials
from tests.unit.agent.test_update import add_flow

BOATS = "You answer for Heron Boats.\nNever mention discounts.\nKeep answers short. Never promise discounts."


async def bench_with_boats() -> tuple[Bench, str]:
    bench = Bench([], credentials(OPENAI), reasoner=DeterministicReasoner())
    row = await add_flow(bench)
    data = json.loads(row.flow_data)
    chain = next(node for node in data["nodes"] if node["id"] == "conversationChain_0")
    chain["data"]["inputs"]["systemMessagePrompt"] = BOATS
    await bench.flowise.update_chatflow(row.id, flow_data=json.dumps(data))
    return bench, row.id


@pytest.mark.parametrize(
    ("wish", "after"),
    [
        ("It can mention discounts now", f"{BOATS}\n{say('prompt_from_now_on', 'en')}\n- It can mention discounts now"),
        ('replace "Keep answers short." by "Be detailed."', BOATS.replace("Keep answers short.", "Be detailed.")),
    ],
)
async def test_a_wish_against_the_prompt_leads_to_approval(wish: str, after: str) -> None:
    bench, target = await bench_with_boats()
    approval = await bench.start(wish, target=target)
    assert approval["reason"] == "plan_ready"
    [shown] = approval["data"]["details"]["values"]
    assert (shown["old"], shown["new"], shown["loses_text"]) == (BOATS, after, False)


async def test_a_wish_that_says_nothing_is_one_question_whose_answer_is_the_wish() -> None:
    bench, target = await bench_with_boats()
    question = await bench.start("make it better", target=target)
    assert "What should be different?" in question["message"]
    approval = await bench.answer(action="request_changes", feedback="never mention prices")
    assert approval["reason"] == "plan_ready"
    [shown] = approval["data"]["details"]["values"]
    assert shown["new"].endswith("\n- Never mention prices")
