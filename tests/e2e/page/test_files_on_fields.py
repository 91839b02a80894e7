"""Placeholders of a plan and fields of its nodes are filled by files."""

import json

import pytest
from playwright.async_api import expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import SIZES, Screen

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOTES = "The lighthouse opens at nine and closes at five."
FILE = {"name": "notes.md", "mimeType": "text/markdown", "buffer": NOTES.encode()}


async def test_a_file_becomes_the_value_of_a_placeholder_and_of_a_text_field(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    session = await screen.start("Build a bot with GPT-4o that answers questions from our handbook")
    plan = await screen.question("The plan")
    waiting = plan.locator(".file-drop").filter(has=page.locator(".points"))
    await expect(waiting).to_have_count(1)
    for size in SIZES:
        await page.set_viewport_size(size)
        await expect(waiting.get_by_role("button", name="Add a file")).to_be_visible()
        assert await screen.violations() == []
        assert await screen.overflow() <= 0
    await waiting.locator("input[type=file]").set_input_files(FILE)
    await expect(waiting.get_by_text("filled in")).to_be_visible()
    # It is an edit like one that is typed.
    await page.set_viewport_size(SIZES[0])
    await screen.reads("1 changed by hand")
    await screen.press("Undo")
    await expect(waiting.get_by_text("filled in")).to_have_count(0)
    await screen.press("Redo")
    await screen.press("Approve with my edits", plan)
    await screen.question("The result")
    (row,) = [row async for row in flowise_flows.iter_chatflows() if f"fda:{session}:flow" in row.tags]
    nodes = json.loads((await flowise_flows.get_chatflow(row.id)).flow_data)["nodes"]
    assert NOTES in json.dumps([one["data"]["inputs"] for one in nodes])


async def test_a_file_goes_into_a_file_field_as_it_is(screen: Screen, flowise_flows: FlowiseClient) -> None:
    page = screen.page
    session = await screen.start("Build a bot with GPT-4o that answers questions from a CSV file")
    plan = await screen.question("The plan")
    waiting = plan.locator(".file-drop").filter(has=page.locator(".points"))
    picker = waiting.locator("input[type=file]")
    await expect(picker).to_have_attribute("accept", ".csv")
    # What it does not take is refused by name before it is sent.
    await picker.set_input_files({"name": "hours.exe", "mimeType": "", "buffer": b"MZ"})
    await expect(waiting.get_by_role("alert")).to_have_text("hours.exe does not fit here. It takes .csv.")
    await picker.set_input_files({"name": "all.csv", "mimeType": "text/csv", "buffer": b"a," * (11 * 1024**2)})
    await expect(waiting.get_by_role("alert")).to_have_text("all.csv is larger than 20 MB.")
    rows = b"place,opens\nlighthouse,nine\n"
    await picker.set_input_files({"name": "hours.csv", "mimeType": "text/csv", "buffer": rows})
    await expect(waiting.locator(".chip")).to_contain_text("hours.csv")
    assert await screen.violations() == []
    await screen.press("Approve with my edits", plan)
    await screen.question("The result")
    (row,) = [row async for row in flowise_flows.iter_chatflows() if f"fda:{session}:flow" in row.tags]
    flow = (await flowise_flows.get_chatflow(row.id)).flow_data
    # Flowise keeps the content and leaves the name.
    assert "hours.csv" in flow
    assert "placeholder.csv" not in flow
