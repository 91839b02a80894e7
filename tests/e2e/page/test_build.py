"""A flow is built step by step in the browser, and a session's flow is opened as a form again."""

import re

import pytest
from playwright.async_api import expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import Screen

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_p71_a_form_becomes_a_chatflow_and_its_session_a_form(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    await page.get_by_role("link", name="Build step by step").click()
    await expect(page.get_by_label("Name", exact=True)).to_be_visible()
    assert await screen.violations() == []
    assert await screen.overflow() == 0
    await page.get_by_label("Name", exact=True).fill("Harbour desk")
    await page.get_by_label("Prompt").fill("You help guests of the harbour hotel. Breakfast is from 7 to 10.")
    await page.get_by_label("Model").fill("gpt-4o")
    await page.get_by_label("Temperature").fill("0.2")
    await page.get_by_label("Memory").fill("5")
    await page.get_by_label("Tools (one a line)").fill("calculator")
    await screen.press("Add to sources")
    await page.get_by_label("Kind").last.select_option("text")
    await page.get_by_label("Text", exact=True).fill("The sauna is open on Fridays.")
    assert await screen.violations() == []
    await screen.press("Start")

    plan = await screen.question("The plan")
    await expect(plan.get_by_text("Breakfast is from 7 to 10").first).to_be_visible()
    await screen.press("Approve", plan)
    result = await screen.question("The result")
    await screen.press("Accept", result)
    await screen.status("Accepted")
    rows = [row async for row in flowise_flows.iter_chatflows()]
    assert "Harbour desk" in {row.name for row in rows}

    await page.get_by_role("link", name="Open as form").click()
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Harbour desk")
    await expect(page.get_by_label("Tools (one a line)")).to_have_value("calculator")
    await expect(page.get_by_label("Memory")).to_have_value("5")
    await page.get_by_label("Kind").first.select_option("steps")
    await expect(page.get_by_label("Tools (one a line)")).to_be_hidden()
    await expect(page.get_by_role("group", name="Steps", exact=True)).to_be_visible()


@pytest.mark.nightly
async def test_p71_typed_steps_become_an_agentflow_and_its_session_the_same_steps(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    await page.get_by_role("link", name="Build step by step").click()
    await page.get_by_label("Name", exact=True).fill("Harbour mail")
    await page.get_by_label("Kind").select_option("steps")
    await page.get_by_label("Start", exact=True).select_option("form")
    await screen.press("Add to inputs")
    mail = page.get_by_role("group", name="Inputs 1")
    await mail.get_by_label("Name").fill("mail")
    await expect(mail.get_by_label("Options (one a line)")).to_be_hidden()

    steps = [page.get_by_role("group", name=f"Steps {n}", exact=True) for n in range(1, 5)]
    for _ in steps:
        await screen.press("Add to steps")
    draft, ask, send, stop = steps
    await draft.get_by_label("Title").fill("Draft")
    await draft.get_by_label("Prompt").fill("Answer this mail of a guest: {mail}")
    await ask.get_by_label("Kind").select_option("approve")
    await expect(ask.get_by_label("Prompt")).to_be_hidden()
    await ask.get_by_label("Question").fill("Send this?")
    await send.get_by_label("Kind").select_option("reply")
    await send.get_by_label("Message").fill("Sent: {Draught}")
    await stop.get_by_label("Kind").select_option("reply")
    await stop.get_by_label("Branch", exact=True).fill("rejected")
    await stop.get_by_label("Message").fill("Not sent.")
    assert await screen.violations() == []
    assert await screen.overflow() == 0
    await screen.press("Start")
    await screen.reads("{Draught} is not known here. It can name {mail}, {Draft}")
    # The browser says itself that the service answered 422.
    assert [heard for heard in screen.heard if "422" not in heard] == []
    screen.heard.clear()

    await send.get_by_label("Message").fill("Sent: {Draft}")
    await screen.press("Start")
    await screen.press("Approve", await screen.question("The plan"))
    await screen.press("Accept", await screen.question("The result"))
    await screen.status("Accepted")
    (row,) = [row async for row in flowise_flows.iter_chatflows() if row.name == "Harbour mail"]
    assert row.type == "AGENTFLOW"
    await page.get_by_role("link", name="Open as form").click()
    await expect(draft.get_by_label("Prompt")).to_have_value("Answer this mail of a guest: {mail}")
    await expect(send.get_by_label("Message")).to_have_value("Sent: {Draft}")
    await expect(stop.get_by_label("Branch", exact=True)).to_have_value("rejected")


@pytest.mark.nightly
async def test_a_session_that_began_with_words_is_opened_as_a_form(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    words = "A chatbot for a zoo with gpt-4o"
    await screen.start(words)
    await screen.question("The plan")
    await screen.page.get_by_role("link", name="Open as form").click()
    await expect(screen.page.get_by_label("Prompt")).to_have_value(re.compile(re.escape(words)))
    await expect(screen.page.get_by_label("Model")).not_to_have_value("")
