"""Placeholders of a plan and fields of its nodes are filled by files."""

import base64
import json
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import SIZES, Screen
from tests.e2e.scripted import HANDBOOK, PDF, script
from tests.e2e.test_attachments import TEXT, handbook

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

NOTES = "The lighthouse opens at nine and closes at five."
FILE = {"name": "notes.md", "mimeType": "text/markdown", "buffer": NOTES.encode()}


async def test_a_file_becomes_the_value_of_a_placeholder_and_of_a_text_field(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    script(standin, HANDBOOK)
    screen = reading
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


async def test_a_file_goes_into_a_file_field_as_it_is(
    screen: Screen, flowise_flows: FlowiseClient, tmp_path: Path
) -> None:
    page = screen.page
    session = await screen.begin(sources=[{"kind": "csv"}])
    plan = await screen.question("The plan")
    waiting = plan.locator(".file-drop").filter(has=page.locator(".points"))
    picker = waiting.locator("input[type=file]")
    await expect(picker).to_have_attribute("accept", ".csv")
    # What it does not take is refused by name before it is sent.
    await picker.set_input_files({"name": "hours.exe", "mimeType": "", "buffer": b"MZ"})
    await expect(waiting.get_by_role("alert")).to_have_text("hours.exe does not fit here. It takes .csv.")
    large = tmp_path / "all.csv"
    large.write_bytes(b"a," * (11 * 1024**2))
    await picker.set_input_files(large)
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


#: As a person drags it from a folder onto the field.
DROP = """(field, [name, content]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([Uint8Array.from(atob(content), (one) => one.charCodeAt(0))], name));
    for (const kind of ["dragover", "drop"])
        field.dispatchEvent(new DragEvent(kind, {dataTransfer, bubbles: true, cancelable: true}));
}"""
TICKETS = b"""openapi: 3.1.0
info: {title: Tickets of the harbour, version: "1"}
paths:
  /tickets/{number}:
    get:
      operationId: getTicket
      parameters: [{name: number, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: the ticket}}
"""


async def drop(field: Locator, name: str, content: bytes) -> None:
    await field.evaluate(DROP, [name, base64.b64encode(content).decode()])


async def test_a_pdf_and_an_openapi_document_are_dropped_on_placeholders(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    script(standin, {"patch": PDF["patch"], "plan": PDF["plan"]}, when="a PDF file")
    script(standin, HANDBOOK)
    screen = reading
    page = screen.page
    written: list[str] = []
    for size, requirement, name, content in (
        (SIZES[0], "a PDF file", "Our handbook.pdf", handbook()),
        (SIZES[1], "our handbook", "Our handbook.pdf", handbook()),
        (SIZES[0], "our handbook", "tickets.yaml", TICKETS),
    ):
        await page.goto(screen.url)
        await page.set_viewport_size(size)
        session = await screen.start(f"Build a bot with GPT-4o that answers questions from {requirement}")
        plan = await screen.question("The plan")
        waiting = plan.locator(".file-drop").filter(has=page.locator(".points"))
        await expect(waiting).to_have_count(1)
        await drop(waiting, name, content)
        await expect(waiting.get_by_text("filled in")).to_be_visible()
        assert await screen.violations() == []
        assert await screen.overflow() <= 0
        await screen.press("Approve with my edits", plan)
        await screen.question("The result")
        (row,) = [row async for row in flowise_flows.iter_chatflows() if f"fda:{session}:flow" in row.tags]
        nodes = json.loads((await flowise_flows.get_chatflow(row.id)).flow_data)["nodes"]
        written.append(json.dumps([one["data"]["inputs"] for one in nodes]))
    # A field for files keeps the file, one for text what is read in it.
    assert "Our handbook.pdf" in written[0]
    assert TEXT in written[1]
    assert "Tickets of the harbour" in written[2]
