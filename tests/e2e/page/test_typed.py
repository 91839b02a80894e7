"""What a person types: kept over a reload until it is sent, and refused with the number when it is too long.

| field | kept | most characters |
|---|---|---|
| what the chatbot should do; a remark on a plan or a result; what should be different | yes | 32 000 |
| an answer to a question of the agent | yes | 8 000 |
| a test question; a question or a remark to a flow that is tried | yes | 4 000 |
| the name of a session | yes | 120; as the schema says |
| the settings of a node | yes, as edits | as the schema says |
| a token limit, a cost limit | yes | numbers |
| a search | in the address | 200 |
| a key, a credential, an address that a key belongs to | never | 500 to 20 000 |
"""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import WORK_MS, Screen
from tests.e2e.test_update_over_http import make_flow

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

ZOO = "Build a chatbot with GPT-4o and memory for a zoo"


async def paste(field: Locator, length: int) -> None:
    """Put a text into a field as a paste does: the browser's own limits apply."""
    await field.fill("")
    await expect(field).to_have_value("")
    await field.focus()
    await field.page.keyboard.insert_text("a " * (length // 2) + "a" * (length % 2))


async def refused(page: Page, field: Locator, most: int) -> None:
    """One character too many is neither cut nor taken; the number is said."""
    await paste(field, most + 1)
    assert len(await field.input_value()) == most + 1
    said = re.compile(rf"has {most + 1:,} characters; at most {most:,}".replace(",", ",?"))
    await expect(page.get_by_role("alert").filter(has_text=said)).to_be_visible()
    await paste(field, most)
    await expect(page.get_by_role("alert").filter(has_text="characters; at most")).to_have_count(0)


async def kept(page: Page, fields: dict[str, str]) -> None:
    """Typed into these fields, by their labels, it is there again after a reload."""
    found = [
        (page.get_by_label(label, exact=label in ("Name", "Test question 1")), text) for label, text in fields.items()
    ]
    for field, text in found:
        await field.fill(text)
    await page.reload()
    for field, text in found:
        await expect(field).to_have_value(text, timeout=WORK_MS)


async def test_what_is_typed_into_a_field_is_kept_and_never_cut(screen: Screen, flowise_flows: FlowiseClient) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    await refused(page, page.get_by_label("What should the chatbot do?"), 32_000)
    search = page.get_by_label("Search flows")
    await refused(page, search, 200)
    await search.fill("")
    await expect(search).to_have_value("")
    await kept(page, {"What should the chatbot do?": "Half a"})

    await page.goto(f"{screen.url}/#/f/{row.id}/default/try")
    await refused(page, page.get_by_label("Your question"), 4_000)
    await kept(page, {"Your question": "half a question"})
    await page.goto(f"{screen.url}/#/f/{row.id}/default")
    await refused(page, page.get_by_label("What should be different?"), 32_000)
    await kept(page, {"What should be different?": "half a change"})

    await page.goto(screen.url)
    await screen.start(ZOO)
    plan = await screen.question("The plan")
    await refused(page, plan.get_by_label("Test question 1", exact=True), 4_000)
    await refused(page, plan.get_by_label("What should be different?"), 32_000)
    await page.get_by_role("button", name="Rename").click()
    await refused(page, page.get_by_label("Session name"), 120)
    await page.get_by_role("button", name="Cancel", exact=True).first.click()
    await kept(page, {"Test question 1": "half a test", "What should be different?": "half a remark"})
    # Too long a test question is not approved.
    await plan.get_by_label("What should be different?").fill("")
    await paste(plan.get_by_label("Test question 1", exact=True), 4_001)
    await plan.get_by_role("button", name="Approve").click()
    await expect(plan.get_by_role("alert").filter(has_text="at most")).to_be_visible()
    await expect(plan.get_by_role("button", name="Approve")).to_be_enabled()
