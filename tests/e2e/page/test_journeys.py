"""Whole journeys of one person: from the first words to a bot that strangers talk to."""

import re

import httpx2
import pytest
from playwright.async_api import expect

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.patch import GraphIR
from tests.e2e.page.screen import SIZES, WORK_MS, Screen
from tests.e2e.scripted import SUPPORT, change, script

pytestmark = pytest.mark.asyncio(loop_scope="session")
POLICY = "Returns are accepted within 30 days, unworn and with the receipt."
STARTERS = ["Can I return shoes?", "Where is my parcel?"]


async def test_a_starter_without_a_model_becomes_a_bot_that_strangers_can_ask(
    screen: Screen, flowise_flows: FlowiseClient, flowise: FlowiseAccess
) -> None:
    page = screen.page
    await screen.start("Answer questions about our return policy")
    form = await screen.question("Complete the form")
    await form.get_by_label("Text", exact=True).fill(POLICY)
    await screen.press("Make the plan", form)
    # What they did, and only their own words as parts of what they asked for.
    await expect(page.locator(".turn.mine", has_text="I filled in the form.")).to_be_visible()
    await screen.press("Approve", await screen.question("The plan"))
    result = await screen.question("The result")
    # One line says what nobody judged; the answers come before the rest.
    await expect(result.get_by_text("No model judged the answers: please read them.", exact=False)).to_be_visible()
    await expect(result.get_by_role("list", name="Criteria")).to_be_hidden()
    # What the person says of an answer counts first; after a failure Accept is not what the page suggests.
    accept, tests = result.get_by_role("button", name="Go live", exact=True), result.get_by_role("list", name="Tests")
    await expect(accept).to_have_class(re.compile("primary"))
    await tests.get_by_role("button", name="Wrong answer").first.click()
    await tests.get_by_label("What should the answer have said?").fill("30 days")
    await screen.press("It is wrong", result)
    await expect(tests.get_by_text("Judged by you")).to_be_visible(timeout=WORK_MS)
    await expect(accept).not_to_have_class(re.compile("primary"))
    assert await screen.violations() == []
    await page.reload()
    await expect(tests.get_by_text("Judged by you")).to_be_visible(timeout=WORK_MS)
    await tests.get_by_role("button", name="Good answer").first.click()
    await expect(accept).to_have_class(re.compile("primary"))
    await page.set_viewport_size(SIZES[1])
    await screen.accept(result)
    live = page.get_by_role("region", name="Your bot is live")
    await expect(live).to_be_visible(timeout=WORK_MS)
    await expect(live.get_by_role("button", name="Give it to people")).to_be_in_viewport(ratio=1)
    assert await screen.violations() == []
    address = await live.get_by_role("link").first.get_attribute("href")
    assert address is not None
    assert address.startswith(flowise.endpoint)
    (row,) = [row async for row in flowise_flows.iter_chatflows() if address.endswith(row.id)]

    await screen.press("Give it to people", live)
    dialog = page.get_by_role("dialog", name="Give it to people")
    await expect(dialog.get_by_label("Address of the chat")).to_have_value(address)
    await screen.press("Let everyone with the link chat", dialog)
    await expect(dialog.get_by_text("Everyone who has the link can chat.")).to_be_visible(timeout=WORK_MS)
    await dialog.get_by_role("tab", name="Settings").click()
    await dialog.get_by_label("Web sites that may show it").fill("shop.example")
    await screen.press("Save", dialog)
    await expect(dialog.get_by_text("“shop.example” is no address")).to_be_visible()
    await dialog.get_by_label("Web sites that may show it").fill("https://shop.example/")
    await dialog.get_by_label("Starter questions").fill("\n".join(STARTERS))
    await dialog.get_by_label("Limit the messages of a visitor").check()
    await dialog.get_by_label("Messages", exact=True).fill("2")
    await screen.press("Save", dialog)
    await expect(dialog.get_by_text("Saved", exact=True)).to_be_visible(timeout=WORK_MS)
    for size in SIZES:
        await page.set_viewport_size(size)
        for tab in ("Link", "Web site", "Program", "Settings"):
            await dialog.get_by_role("tab", name=tab).click()
            assert await screen.violations() == []
            assert await screen.overflow() <= 0

    # What a stranger's browser gets: the page, the starter questions, the answer, the limit, and no other site.
    after = await flowise_flows.get_chatflow(row.id)
    assert (after.deployed, after.is_public, after.flow_data) == (True, True, row.flow_data)
    async with httpx2.AsyncClient(base_url=flowise.endpoint, headers={"Origin": "https://shop.example"}) as stranger:
        assert (await stranger.get(f"/chatbot/{row.id}")).status_code == 200
        shown = (await stranger.get(f"/api/v1/public-chatbotConfig/{row.id}")).json()
        assert [one["prompt"] for one in shown["starterPrompts"].values()] == STARTERS
        asked = [await stranger.post(f"/api/v1/prediction/{row.id}", json={"question": "Hello"}) for _ in range(3)]
        assert [one.status_code for one in asked] == [200, 200, 429]
        assert asked[0].json()["text"]
        assert asked[2].text == "Please wait a moment before you write again."


async def test_words_then_a_hand_then_words_again_lead_to_one_flow(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    words = "Say goodbye at the end"
    script(standin, change("conversationChain_0", "systemMessagePrompt", "Be kind. Say goodbye."), when=words)
    script(standin, SUPPORT)
    screen, page = reading, reading.page
    session = await screen.start("Build a customer support chatbot with GPT-4o and memory")
    await screen.press("Approve", await screen.question("The plan"))
    await screen.question("The result")
    await page.locator('.react-flow__node[data-id="chatOpenAI_0"]').click()
    temperature = page.locator(".node-form").get_by_label("Temperature")
    await temperature.fill("0.3")
    await temperature.blur()
    await screen.press("Write and test my changes")
    await screen.accept(await screen.question("The result"))
    await expect(page.get_by_role("region", name="Your bot is live")).to_be_visible(timeout=WORK_MS)
    assert session in page.url
    await page.get_by_label("What should be different?").fill(words)
    await screen.press("Change it")
    await screen.press("Approve", await screen.question("The plan"))
    await screen.accept(await screen.question("The result"))
    await expect(page.get_by_role("region", name="Your bot is live")).to_be_visible(timeout=WORK_MS)
    address = await page.get_by_role("region", name="Your bot is live").get_by_role("link").first.get_attribute("href")
    written = await flowise_flows.get_chatflow((address or "").rpartition("/")[2])
    nodes = {node.id: node.inputs for node in GraphIR.from_flow_data(written.flow_data).nodes}
    assert float(nodes["chatOpenAI_0"]["temperature"]) == pytest.approx(0.3)
    assert nodes["conversationChain_0"]["systemMessagePrompt"] == "Be kind. Say goodbye."
