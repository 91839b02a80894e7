"""A question about a sentence of a prompt, through the graph: its answer leads to the approval of old and new."""

import json

import pytest

from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials
from tests.unit.agent.test_update import add_flow

PROMISE = "Never promise discounts."
BOATS = f"You answer for Heron Boats.\nNever mention discounts.\nKeep answers short. {PROMISE}"


@pytest.mark.parametrize(
    ("feedback", "after"),
    [
        ("1", BOATS.replace("Never mention discounts.", "It can mention discounts now.")),
        ("keep both", f"{BOATS}\nIt can mention discounts now"),
        ("Never mention discounts", BOATS.replace("Never mention discounts.", "It can mention discounts now.")),
    ],
)
async def test_an_answer_about_a_prompt_leads_to_approval(feedback: str, after: str) -> None:
    bench = Bench([], credentials(OPENAI), reasoner=DeterministicReasoner())
    row = await add_flow(bench)
    data = json.loads(row.flow_data)
    chain = next(node for node in data["nodes"] if node["id"] == "conversationChain_0")
    chain["data"]["inputs"]["systemMessagePrompt"] = BOATS
    await bench.flowise.update_chatflow(row.id, flow_data=json.dumps(data))
    question = await bench.start("it can mention discounts now", target=row.id)
    assert "«Never mention discounts.»" in question["message"]
    assert question["data"]["plan"].startswith("# One question first")
    approval = await bench.answer(action="request_changes", feedback=feedback)
    assert approval["reason"] == "plan_ready"
    [shown] = approval["data"]["details"]["values"]
    assert (shown["old"], shown["new"], shown["loses_text"]) == (BOATS, after, False)
