"""A node is changed by hand: in the plan before it is approved, and in the result before it is accepted."""

import json
from typing import Any

import pytest
from playwright.async_api import expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import SIZES, WORK_MS, Screen
from tests.e2e.scripted import HANDBOOK, script

pytestmark = pytest.mark.asyncio(loop_scope="session")

ZOO = "You answer for a zoo."
ANIMALS = "You know every animal of the zoo."


async def inputs(flowise: FlowiseClient, session: str, node: str) -> dict[str, Any]:
    """What is set on a node of the flow that the session wrote."""
    (row,) = [row async for row in flowise.iter_chatflows() if f"fda:{session}:flow" in row.tags]
    flow = json.loads((await flowise.get_chatflow(row.id)).flow_data)
    return next(one["data"]["inputs"] for one in flow["nodes"] if one["id"] == node)


async def test_a_plan_and_a_result_are_changed_by_hand_with_undo_and_written_as_said(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    session = await screen.begin(prompt=ZOO)
    await screen.question("The plan")
    await page.locator('.react-flow__node[data-id="chatOpenAI_0"]').click()
    form = page.locator(".node-form")
    await form.get_by_text("More settings").click()
    await form.get_by_label("Temperature").fill("0.3")
    await form.get_by_label("Streaming").click()
    # A choice keeps the focus where it was made.
    await expect(form.get_by_label("Streaming")).to_be_focused()
    await screen.reads("2 changed by hand")
    assert await screen.violations() == []
    await screen.press("Undo")
    await screen.reads("1 changed by hand")
    await expect(form.get_by_label("Streaming")).to_be_checked()
    await screen.press("Redo")
    await screen.press("Undo")
    await page.reload()
    # The edits are kept, and seen in the picture.
    await expect(page.locator('.react-flow__node[data-id="chatOpenAI_0"]')).to_contain_text("0.3")
    await screen.press("Approve with my edits")
    await screen.question("The result")
    said = page.locator(".turn.mine")
    await expect(said.last).to_contain_text("Approved.")
    await expect(said.last.get_by_role("listitem")).to_have_text(["Temperature of OpenAI: Before 0.9 → After 0.3"])
    assert str((await inputs(flowise_flows, session, "chatOpenAI_0"))["temperature"]) == "0.3"

    await page.locator('.react-flow__node[data-id="conversationChain_0"]').click()
    prompt = form.get_by_label("System Message")
    await prompt.fill(ANIMALS)
    await prompt.blur()
    assert await screen.violations() == []
    await screen.press("Write and test my changes")
    await expect(page.get_by_label("Iteration to accept")).to_be_visible(timeout=WORK_MS)
    change = f"Before {ZOO} → After {ANIMALS}"
    told = f"System Message of Conversation Chain: {change}"
    await expect(said.last.get_by_role("listitem")).to_have_text([told])
    await expect(said.last).not_to_contain_text("conversationChain_0")
    set_ = await inputs(flowise_flows, session, "conversationChain_0")
    assert set_["systemMessagePrompt"] == ANIMALS
    await screen.accept()
    await screen.status("Accepted")


@pytest.mark.nightly
async def test_on_a_phone_another_model_is_chosen_and_a_placeholder_is_typed(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    script(standin, HANDBOOK)
    screen = reading
    page = screen.page
    await page.set_viewport_size(SIZES[1])
    session = await screen.start("Build a bot with GPT-4o that answers questions from our handbook")
    await screen.question("The plan")
    await screen.press("Picture")
    form = page.locator(".node-form")
    await page.locator('.react-flow__node[data-id="chatOpenAI_0"]').click()
    # The models that the server offers.
    await form.get_by_label("Model Name").select_option("gpt-4o-mini")
    await screen.press("Close the details")
    await page.locator('.react-flow__node[data-id="plainText_0"]').click()
    await form.get_by_label("Text", exact=True).fill("The sauna is open on Fridays.")
    await form.get_by_label("Text", exact=True).blur()
    assert await screen.violations() == []
    assert await screen.overflow() <= 0
    await screen.press("Chat")
    await screen.reads("2 changed by hand")
    await expect(page.get_by_text("filled in")).to_be_visible()
    await screen.press("Approve with my edits")
    await screen.question("The result")
    assert (await inputs(flowise_flows, session, "chatOpenAI_0"))["modelName"] == "gpt-4o-mini"
    assert (await inputs(flowise_flows, session, "plainText_0"))["text"] == "The sauna is open on Fridays."
