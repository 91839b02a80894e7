"""Document stores on the page: one that exists is chosen, and a session says how far it is with filling one."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import FilePayload, expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import Screen
from tests.e2e.scripted import READS, script

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

RULES = "Travel rules of the page"
HANDBOOK = "Handbook of the page"


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def stores(flowise_flows: FlowiseClient) -> AsyncIterator[None]:
    """Two stores; they and those that a test makes are deleted."""
    before = {store.id for store in await flowise_flows.list_document_stores()}
    for name in (RULES, HANDBOOK):
        await flowise_flows.create_document_store(name, "of a test")
    yield
    for store in await flowise_flows.list_document_stores():
        if store.id not in before:
            await flowise_flows.delete_document_store(store.id)


async def test_a_session_says_how_far_it_is_with_filling_a_store(reading: Screen, standin: ModelStandIn) -> None:
    script(standin, READS)
    screen = reading
    page = screen.page
    text = b"# Vacation\n\nEverybody has thirty days of vacation."
    notes = FilePayload(name="vacation.md", mimeType="text/markdown", buffer=text)
    await page.locator("input[type=file]").set_input_files(notes)
    await expect(page.locator(".chip", has_text="vacation.md")).to_be_visible()
    await screen.start("Build a bot with GPT-4o that answers from our notes in a document store of its own")
    await screen.press("Approve", await screen.question("The plan"))
    await screen.question("The result")
    story = page.get_by_role("region", name="What happened")
    await expect(story.get_by_text("read 1 of 1 file, 1 piece")).to_be_attached()
