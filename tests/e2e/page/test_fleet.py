"""All flows of a server on one page: their states, the filters in its address, the file for a spreadsheet."""

import pytest
from playwright.async_api import expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import SIZES, WORK_MS, Screen
from tests.e2e.people import make_flow

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]


async def test_flows_are_found_by_name_and_state_and_saved_as_a_file(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    flow = await make_flow(flowise_flows, name="Wagtail desk")
    await make_flow(flowise_flows, name="Dunnock desk")
    await page.goto(f"{screen.url}/?query=wagtail#/fleet")
    rows = page.locator(".fleet tbody tr")
    await expect(rows).to_have_count(1, timeout=WORK_MS)
    await expect(rows.get_by_role("link", name="Wagtail desk")).to_have_attribute("href", f"#/f/{flow.id}/default")
    await expect(rows.get_by_text("never tested")).to_be_visible()
    for size in SIZES:
        await page.set_viewport_size(size)
        assert await screen.overflow() <= 0
        assert await screen.violations() == []
    await page.set_viewport_size(SIZES[0])
    async with page.expect_download() as saving:
        await screen.press("Save as CSV")
    assert (await saving.value).suggested_filename == "flows.csv"

    # The list is a place of the menu.
    await page.goto(screen.url)
    await page.get_by_role("navigation", name="Main").get_by_role("link", name="Flows").click()
    await page.get_by_label("Name").fill("desk")
    await expect(rows).to_have_count(2)
    await page.get_by_label("State").select_option("last test failed")
    await screen.reads("No matching flows.")
    assert "query=desk" in page.url
    assert "state=failing" in page.url
    await page.reload()
    await expect(page.get_by_label("State")).to_have_value("failing")
