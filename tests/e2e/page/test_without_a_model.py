"""The page without a model: starters, a plain copy, a new name, and the ways beside words."""

import json
import re

import pytest
from playwright.async_api import Browser, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import Screen
from tests.e2e.page.test_languages import I18N
from tests.e2e.people import make_flow
from tests.e2e.service import ServiceProcess

POLICY = "Goods can be returned within 30 days."
pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("language", "words", "name", "make"),
    [
        ("en", "a support bot that knows our return policy", "Answers from a text", "Make the plan"),
        pytest.param(
            *("de", "ein Support-Bot, der unsere Rückgaberegeln kennt", "Antworten aus einem Text", "Plan erstellen"),
            marks=pytest.mark.nightly,
        ),
    ],
)
async def test_a_sentence_chooses_a_starter_whose_form_is_completed_approved_and_built(
    browser: Browser,
    page_service: ServiceProcess,
    flowise_flows: FlowiseClient,
    language: str,
    words: str,
    name: str,
    make: str,
) -> None:
    texts: dict[str, str] = json.loads((I18N / f"{language}.json").read_text("utf-8"))

    def t(text: str) -> str:
        return texts.get(text, text)

    screen = await Screen.open(browser, page_service.url, locale=language)
    page = screen.page
    await page.get_by_label(t("What should the chatbot do?")).fill(words)
    await screen.press(t("Start"))
    form = await screen.question(t("Complete the form"))
    await expect(form.get_by_text(name).first).to_be_visible()
    await expect(form.get_by_role("button", name=t("Approve"))).to_have_count(0)
    text = form.get_by_label(t("Text"), exact=True)
    await expect(text).to_be_focused()
    await expect(form.get_by_text(t("Still needed"), exact=True)).to_have_count(1)
    assert await screen.violations() == []
    assert await screen.overflow() == 0

    # Nothing is sent while it is empty.
    await screen.press(make, form)
    await expect(text).to_be_focused()
    await screen.press(t("Use what I wrote as the text"), form)
    await expect(text).to_have_value(words)
    await text.fill(POLICY)
    await expect(form.get_by_text(t("Still needed"), exact=True)).to_have_count(0)
    await form.get_by_text(t("The other parts of the form")).click()
    await expect(form.get_by_label("Prompt")).to_contain_text(words)
    await form.get_by_label(t("Name"), exact=True).fill(f"Returns {language}")
    await screen.press(make, form)

    plan = await screen.question(t("The plan"))
    await expect(plan.get_by_text(POLICY).first).to_be_visible()
    await screen.press(t("Approve"), plan)
    await screen.press(t("Go live"), await screen.question(t("The result")))
    await screen.status(t("Accepted"))
    built = {row.name: row async for row in flowise_flows.iter_chatflows()}
    assert POLICY in (await flowise_flows.get_chatflow(built[f"Returns {language}"].id)).flow_data
    assert screen.heard == []
    await page.context.close()


async def test_a_flow_is_copied_and_renamed_by_a_name_alone(screen: Screen, flowise_flows: FlowiseClient) -> None:
    original = await make_flow(flowise_flows, name="Harbour desk")
    await named(screen, original.id, "Copy", "Name of the copy", "Second desk")
    copy = next(row for row in [row async for row in flowise_flows.iter_chatflows()] if row.name == "Second desk")
    assert (await flowise_flows.get_chatflow(copy.id)).flow_data == original.flow_data

    await named(screen, original.id, "Rename", "New name", "First desk")
    after = await flowise_flows.get_chatflow(original.id)
    assert (after.name, after.flow_data) == ("First desk", original.flow_data)


async def named(screen: Screen, flow_id: str, operation: str, field: str, name: str) -> None:
    """Copy or rename a flow on its page with the keyboard, and accept the result."""
    page = screen.page
    await page.goto(f"{screen.url}/#/f/{flow_id}")
    button = page.get_by_role("button", name=operation, exact=True)
    await button.focus()
    await page.keyboard.press("Enter")
    assert await screen.violations() == []
    await page.keyboard.press("Escape")
    await expect(button).to_be_focused()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("Enter")
    await page.get_by_label(field).fill(name)
    await page.keyboard.press("Enter")
    await screen.press("Approve", await screen.question("The plan"))
    await screen.accept(await screen.question("The result"))
    await screen.status("Accepted")


async def test_words_about_a_flow_are_declined_with_the_ways_that_need_no_model(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    flow = await make_flow(flowise_flows, name="Harbour desk")
    await screen.page.goto(f"{screen.url}/#/f/{flow.id}")
    await screen.page.get_by_label("What should be different?").fill("Use Claude instead")
    await screen.press("Change it")
    await screen.question("This needs a model")
    ways = await screen.question("Without a model")
    await expect(ways.get_by_role("link", name="Edit by hand in Flowise")).to_have_attribute(
        "href", re.compile(flow.id)
    )
    await expect(ways.get_by_role("link", name="Change it by hand")).to_be_visible()
    assert await screen.violations() == []
    await screen.press("Rename", ways)
    await screen.page.get_by_label("New name").fill("First desk")
    await screen.page.keyboard.press("Enter")
    await screen.question("The plan")
