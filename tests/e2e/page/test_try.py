"""Flows are tried on the page: conversations, decisions, forms, files, and what ran for each answer."""

import re
from collections.abc import Sequence

import pytest
from playwright.async_api import Page, expect

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.patch import PatchOp, Schemas
from tests.e2e.page.screen import SIZES, WORK_MS, Screen
from tests.e2e.test_update_over_http import make_flow
from tests.integration.flowise.test_conversations_live import approval, made, step, to

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def tried(
    screen: Screen, flowise: FlowiseAccess, client: FlowiseClient, ops: Sequence[PatchOp], schemas: Schemas
) -> Page:
    """A flow of these ops, with its page open to try it."""
    before = {row.id async for row in client.iter_chatflows()}
    await made(client, schemas, flowise.credentials, ops)
    (flow,) = [row.id async for row in client.iter_chatflows() if row.id not in before]
    await screen.page.goto(f"{screen.url}/#/f/{flow}/default/try")
    return screen.page


async def ask(page: Page, question: str) -> None:
    answers = page.locator(".answered")
    before = await answers.count()
    await page.get_by_label("Your question").fill(question)
    await page.keyboard.press("Enter")
    await expect(answers).to_have_count(before + 1, timeout=WORK_MS)


async def test_a_person_lets_the_flow_go_on_or_refuses_and_sees_which_nodes_ran(
    screen: Screen, flowise: FlowiseAccess, flowise_flows: FlowiseClient, schemas: Schemas
) -> None:
    page = await tried(screen, flowise, flowise_flows, approval("Not sent: {{ humanInputAgentflow_0 }}"), schemas)
    await page.set_viewport_size(SIZES[0])
    await ask(page, "Write a note")
    await expect(page.locator(".answered").last).to_contain_text("Send this?")
    await expect(page.get_by_label("Your question")).to_have_count(0)
    # What is asked is read with what can be answered.
    await expect(page.get_by_text("Send this?")).to_be_in_viewport(ratio=1)
    await expect(page.get_by_role("button", name="Proceed")).to_be_in_viewport(ratio=1)
    assert await screen.violations() == []
    await page.get_by_label("Your remark").fill("warmer")
    await screen.press("Reject")
    await expect(page.locator(".answered").last).to_contain_text("Not sent: warmer", timeout=WORK_MS)
    await page.get_by_role("button", name="Nodes that ran (4)").click()
    lit = page.locator(".react-flow__node.lit")
    await expect(lit).to_have_count(4)
    last = page.locator('.react-flow__node[data-id="directReplyAgentflow_1"]')
    await expect(last.locator(".ran")).to_have_text("4")
    await last.click()
    did = page.get_by_role("region", name="What it did")
    await expect(did).to_contain_text("Not sent: warmer")
    assert await screen.violations() == []

    # Another conversation beside the first, in which the flow goes on.
    await screen.press("New conversation")
    await ask(page, "Write another note")
    await screen.press("Proceed")
    await expect(page.locator(".answered").last).to_contain_text("Sent: ", timeout=WORK_MS)
    await page.get_by_role("button", name="Conversation 1").click()
    await expect(page.locator(".answered").last).to_contain_text("Not sent: warmer")
    # The pane can be closed and opened; nothing is lost.
    await screen.press("Close the chat with the flow")
    await page.get_by_role("button", name="Try it").first.click()
    await expect(page.get_by_role("button", name="Conversation 2")).to_be_visible()
    await screen.press("Delete this conversation")
    await expect(page.get_by_role("button", name="Conversation 2")).to_have_count(0)
    await expect(page.locator(".answered").last).to_contain_text("Sent: ")

    # On a phone the press shows the picture.
    await page.set_viewport_size(SIZES[1])
    await page.get_by_role("button", name=re.compile("Nodes that ran")).last.click()
    await expect(lit.first).to_be_in_viewport()
    assert await screen.overflow() <= 0
    assert await screen.violations() == []


@pytest.mark.nightly
async def test_the_form_of_a_flow_is_filled_in(
    screen: Screen, flowise: FlowiseAccess, flowise_flows: FlowiseClient, schemas: Schemas
) -> None:
    rows = [
        {"type": "string", "label": "Name", "name": "name"},
        {"type": "number", "label": "Age", "name": "age"},
        {"type": "options", "label": "Size", "name": "size", "addOptions": [{"option": "small"}, {"option": "large"}]},
    ]
    ops: list[PatchOp] = [
        step("startAgentflow", startInputType="formInput", formTitle="Who are you?", formInputTypes=rows),
        step("directReplyAgentflow", directReplyMessage="{{ $form.name }} is {{ $form.age }} and {{ $form.size }}"),
        to("startAgentflow_0", "directReplyAgentflow_0"),
    ]
    page = await tried(screen, flowise, flowise_flows, ops, schemas)
    for size in SIZES:
        await page.set_viewport_size(size)
        await expect(page.get_by_text("Who are you?")).to_be_in_viewport(ratio=1)
        await expect(page.get_by_role("textbox", name="Name")).to_be_focused()
        await expect(page.get_by_role("button", name="Send the form")).to_be_in_viewport(ratio=1)
        assert await screen.overflow() <= 0
        assert await screen.violations() == []
    await page.get_by_role("textbox", name="Name").fill("Eva")
    await page.get_by_role("spinbutton", name="Age").fill("41")
    await page.get_by_role("combobox", name="Size").select_option("large")
    await screen.press("Send the form")
    await expect(page.locator(".answered")).to_contain_text("Eva is 41 and large", timeout=WORK_MS)
    await expect(page.get_by_text("Eva is 41 and large")).to_be_in_viewport(ratio=1)


@pytest.mark.nightly
async def test_a_file_goes_with_a_question_and_the_flow_reads_it(screen: Screen, flowise_flows: FlowiseClient) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    await page.goto(f"{screen.url}/#/f/{row.id}/default/try")
    hours = {"name": "hours.md", "mimeType": "text/markdown", "buffer": b"# Hours\n\nThe lighthouse opens at noon."}
    await page.locator(".try-out input[type=file]").set_input_files(hours)
    await expect(page.locator(".chip.file")).to_contain_text("hours.md")
    assert await screen.violations() == []
    await ask(page, "When does it open?")
    # The stand-in repeats what it was asked: the text of the file is in it.
    await expect(page.locator(".answered")).to_contain_text("The lighthouse opens at noon")
    await expect(page.locator(".asked")).to_contain_text("hours.md")
    await expect(page.locator(".chip.file")).to_have_count(0)
    await page.get_by_role("button", name="Nodes that ran (3)").click()
    await expect(page.locator('.react-flow__node[data-id^="conversationChain"] .ran')).to_have_text("3")


@pytest.mark.nightly
async def test_a_file_is_dropped_on_the_requirement_and_the_session_has_it(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    del flowise_flows  # deletes what the test leaves on the server
    page = screen.page
    # The field is there before the program that hears the drop.
    await expect(page.get_by_role("button", name="Add a file")).to_be_visible()
    await page.evaluate(
        """() => {
            const files = new DataTransfer();
            files.items.add(new File(["Our shop opens at nine."], "shop.txt", {type: "text/plain"}));
            const drop = new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true});
            document.getElementById("requirement").dispatchEvent(drop);
        }"""
    )
    chip = page.locator(".chip.file")
    await expect(chip).to_contain_text("shop.txt")
    await page.get_by_label("What should the chatbot do?").fill("Answer questions from my file")
    # What was dropped survives a reload with the words.
    await page.reload()
    await expect(chip).to_contain_text("shop.txt")
    assert await screen.violations() == []
    await screen.press("Start")
    await page.wait_for_url("**/#/s/*")
    session = page.url.rsplit("/", 1)[1]
    await screen.question("The plan")
    files = await page.evaluate(
        """async (session) => (await (await fetch(`/attachments?session_id=${session}`, {headers:
            {Authorization: `Bearer ${sessionStorage.getItem("flowise-dev-agent-key")}`}})).json())""",
        session,
    )
    assert "shop.txt" in str(files)
