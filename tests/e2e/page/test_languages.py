"""The page in the person's language."""

import pytest
from playwright.async_api import Browser, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import Screen
from tests.e2e.service import ServiceProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_page_speaks_the_browsers_language_until_a_person_chooses_another(
    browser: Browser, page_service: ServiceProcess, flowise_flows: FlowiseClient
) -> None:
    screen = await Screen.open(browser, page_service.url, locale="de-DE")
    page = screen.page
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await page.get_by_label("Was soll der Chatbot tun?").fill("Build a chatbot with GPT-4o and memory")
    assert await screen.violations() == []
    await screen.press("Starten")
    plan = await screen.question("Der Plan")
    await expect(plan.get_by_role("button", name="Zustimmen")).to_be_visible()
    await expect(plan.get_by_role("list", name="Was gebaut wird")).to_be_visible()
    await plan.get_by_label("Was soll anders sein?").fill("Nenne ihn Anna")
    assert await screen.violations() == []
    await page.get_by_role("link", name="Alle Flows").click()
    await page.get_by_label("Sprache").select_option("Français")
    await expect(page.locator("html")).to_have_attribute("lang", "fr")
    await expect(page.get_by_label("Que doit faire le chatbot ?")).to_be_visible()
    await page.get_by_role("region", name="Vous attend").get_by_role("link").first.click()
    plan = await screen.question("Le plan")
    # The change of the language has lost nothing.
    await expect(plan.get_by_label("Que faut-il changer ?")).to_have_value("Nenne ihn Anna")
    await page.reload()
    await screen.question("Le plan")
    assert screen.heard == []
    await page.context.close()
