"""Getting around: the command palette, notices when something waits, the keys of undo and redo, and less motion."""

import pytest
from playwright.async_api import Browser, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import AUTHORIZATION, RECORD_NOTICES, SIZES, WORK_MS, Screen
from tests.e2e.service import ServiceProcess
from tests.e2e.test_update_over_http import make_flow

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_flow_and_its_actions_are_reached_by_keys_alone(screen: Screen, flowise_flows: FlowiseClient) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    await flowise_flows.update_chatflow(row.id, name="Kingfisher desk")
    await page.reload()
    await expect(page.get_by_role("link", name="Kingfisher desk").first).to_be_visible(timeout=WORK_MS)
    field = page.get_by_label("What should the chatbot do?")
    await field.focus()
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    await expect(palette.get_by_placeholder("Flows, sessions, views")).to_be_focused()
    for size in SIZES:
        await page.set_viewport_size(size)
        assert await screen.overflow() <= 0
        assert await screen.violations() == []
    # Away again, the focus is where it was.
    await page.keyboard.press("Escape")
    await expect(palette).to_have_count(0)
    await expect(field).to_be_focused()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("kingfisher")
    await expect(palette.get_by_role("option", name="Kingfisher desk Change")).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("What should be different?")).to_be_focused()
    assert page.url.endswith(f"{row.id}/default/change")
    await page.set_viewport_size(SIZES[0])
    await page.get_by_role("button", name="Go to").click()
    await page.keyboard.type("patt")
    await palette.get_by_role("option", name="Patterns").click()
    await expect(page.get_by_role("heading", level=1, name="Patterns")).to_be_visible()


@pytest.mark.nightly
async def test_the_browser_tells_of_a_question_once_when_the_person_wants_it(screen: Screen) -> None:
    page = screen.page
    await page.add_init_script(RECORD_NOTICES)
    body = {"requirement": "Build a chatbot with GPT-4o and memory", "session_name": "Heron"}
    await page.request.post(f"{screen.url}/sessions?wait=60", headers=AUTHORIZATION, data=body)
    await page.reload()
    # Nobody is asked who has not said so.
    for size in SIZES:
        await page.set_viewport_size(size)
        await expect(page.get_by_role("button", name="Notify me in the browser")).to_be_visible()
        await expect(page.locator("body")).not_to_have_attribute("data-asked", "yes")
    await screen.press("Notify me in the browser")
    await expect(page.locator("body")).to_have_attribute("data-asked", "yes")
    await screen.reads("Notifications are on")
    assert await screen.violations() == []
    await page.request.post(
        f"{screen.url}/sessions?wait=60", headers=AUTHORIZATION, data={**body, "session_name": "Egret"}
    )
    # What waited before is no news.
    await expect(page.locator("body")).to_have_attribute("data-noticed", "The plan: Egret.", timeout=WORK_MS)
    await screen.press("Notifications are on")
    await screen.reads("Notify me in the browser")


@pytest.mark.nightly
async def test_the_keys_of_undo_and_redo_change_the_edits_but_not_in_a_text_field(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    del flowise_flows  # deletes what the test leaves on the server
    page = screen.page
    await screen.start("Build a chatbot with GPT-4o and memory for a zoo")
    await screen.question("The plan")
    await page.locator('.react-flow__node[data-id="chatOpenAI_0"]').click()
    form = page.locator(".node-form")
    await form.get_by_text("More settings").click()
    await form.get_by_label("Streaming").click()
    await screen.reads("1 changed by hand")
    await page.keyboard.press("Control+z")
    await expect(form.get_by_label("Streaming")).to_be_checked()
    await page.keyboard.press("Control+Shift+Z")
    await screen.reads("1 changed by hand")
    words = page.get_by_label("What should be different?")
    await words.fill("be brief")
    await page.keyboard.press("Control+z")
    await expect(words).not_to_have_value("be brief")
    await screen.reads("1 changed by hand")


@pytest.mark.nightly
async def test_a_person_who_asked_for_less_motion_sees_none(browser: Browser, page_service: ServiceProcess) -> None:
    moving = """() => {
        const one = document.body.appendChild(document.createElement("span"));
        one.className = "pulse";
        const {animationName, transitionDuration} = getComputedStyle(one);
        one.style.transition = "opacity 1s";
        const library = getComputedStyle(one).transitionDuration;
        one.remove();
        return [animationName, transitionDuration, library];
    }"""
    for motion, wanted in (("no-preference", ["pulse", "0s", "1s"]), ("reduce", ["none", "0s", "0s"])):
        screen = await Screen.open(browser, page_service.url, reduced_motion=motion)
        # The rules of a session come with it.
        await screen.page.goto(f"{page_service.url}/#/s/00000000-0000-0000-0000-000000000000")
        await screen.reads("Session not found")
        assert await screen.page.evaluate(moving) == wanted
        await screen.page.context.close()
