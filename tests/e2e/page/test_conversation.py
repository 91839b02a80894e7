"""A person's own words, in order: in a session, and over all sessions on a flow."""

import pytest
from playwright.async_api import expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import Screen
from tests.e2e.scripted import SUPPORT, VAGUE, change, script

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]


async def test_what_a_person_said_is_read_in_order_and_again_at_the_next_change_of_the_flow(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    script(standin, change("chatOpenAI_0", "temperature", 0.3), when="temperature of 0.3")
    plans = [SUPPORT["plan"], {**SUPPORT["plan"], "flow_name": "Bike Helper"}]
    script(standin, {**SUPPORT, "classify": [VAGUE, SUPPORT["classify"]], "plan": plans})
    screen = reading
    page = screen.page
    await screen.start("a bot")
    card = await screen.question("A few questions first")
    await card.get_by_role("textbox").first.fill("It helps customers of a bike shop with repairs")
    await screen.press("Answer", card)
    plan = await screen.question("The plan")
    await plan.get_by_label("What should be different?").fill("Call it Bike Helper")
    await screen.press("Ask for changes", plan)
    mine = page.locator(".turn.mine")
    await expect(mine).to_have_count(3)
    await page.reload()
    await screen.question("The plan")
    for index, words in enumerate(("a bot", "customers of a bike shop", "Call it Bike Helper")):
        await expect(mine.nth(index)).to_contain_text(words)
        await expect(mine.nth(index).locator("time")).not_to_be_empty()
    assert await screen.violations() == []
    await screen.press("Approve")
    await screen.accept(await screen.question("The result"))
    await screen.status("Accepted")

    # The flow has a page of its own, with the conversation so far.
    await (await screen.open_card("Details")).get_by_role("link", name="Show").click()
    await page.wait_for_url("**/#/f/**")
    earlier = page.locator(".turn-card", has_text="a bot")
    await earlier.locator("summary").click()
    await expect(earlier.get_by_text("Call it Bike Helper")).to_be_visible()
    assert await screen.violations() == []
    await page.get_by_label("What should be different?").fill("Use a temperature of 0.3")
    # What is typed survives the way to another view and back.
    await page.get_by_role("link", name="History").click()
    await expect(page.get_by_role("heading", name="History of the flow")).to_be_visible()
    # The only version is not compared with itself.
    await expect(page.get_by_role("region", name="Compare").locator(".react-flow__node").first).to_be_visible()
    await expect(page.get_by_role("button", name="Swap")).to_have_count(0)
    await expect(page.get_by_role("group", name="State to show")).to_have_count(0)
    await page.go_back()
    await expect(page.get_by_label("What should be different?")).to_have_value("Use a temperature of 0.3")
    await screen.press("Change it")
    await page.wait_for_url("**/#/s/*")
    await screen.question("The plan")
    await expect(page.locator(".turn-card", has_text="a bot")).to_be_attached()
    await expect(mine.last).to_contain_text("Use a temperature of 0.3")
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await screen.overflow() <= 0
    assert await screen.violations() == []
