"""The page by keyboard and by thumb: focus is never lost, arrow keys walk the canvas, a phone has one bar."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import AUTHORIZATION, SIZES, THUMB, WORK_MS, Screen
from tests.e2e.test_update_over_http import make_flow

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

ZOO = "Build a chatbot with GPT-4o and memory for a zoo"
VIEWS = ("Home", "Flows", "Patterns", "Instances", "Knowledge", "Webhooks", "Settings", "API")


async def enter(page: Page, what: Locator) -> None:
    """Press it by keyboard. Something has the focus afterwards, also when what was pressed is gone."""
    await what.focus()
    await page.keyboard.press("Enter")
    await focus_is_held(page)


async def focus_is_held(page: Page) -> None:
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    # Neither the body nor nothing matches this.
    await expect(page.locator(":focus")).to_have_count(1)


async def test_the_focus_is_never_lost_on_the_way_through_views_and_dialogs(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    for name in ("Bittern", "Corncrake"):
        body = {"requirement": ZOO, "session_name": name}
        await page.request.post(f"{screen.url}/sessions?wait=60", headers=AUTHORIZATION, data=body)
    await page.reload()
    button, link = (
        (lambda name: page.get_by_role("button", name=name)),
        (lambda name: page.get_by_role("link", name=name)),
    )
    for view in VIEWS:
        await enter(page, page.get_by_role("navigation").get_by_role("link", name=view))
        await expect(page.locator("main").get_by_role("heading", level=1)).to_be_visible()
        await focus_is_held(page)
    await enter(page, page.get_by_role("link", name="Instances"))
    await enter(page, button("Add a credential").first)
    await page.keyboard.press("Escape")
    await expect(button("Add a credential").first).to_be_focused()
    # The dialog hears later that it was closed: it cannot open again before, and who has gone on is not taken back.
    await expect(page.locator("body > dialog")).to_have_count(0)
    await enter(page, button("Add a credential").first)
    await expect(page.get_by_role("dialog")).to_be_visible()
    await link("Flowise Dev Agent").evaluate("(to) => { document.querySelector('dialog[open]').close(); to.focus() }")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(link("Flowise Dev Agent")).to_be_focused()

    # Links in a view go away with it.
    await enter(page, link("Flowise Dev Agent"))
    await enter(page, link("Build by hand"))
    await expect(page.get_by_label("Name of the new flow")).to_be_visible(timeout=WORK_MS)
    await enter(page, link("All flows"))
    await enter(page, page.locator(f'.flow-card-main[href*="{row.id}"]'))
    await expect(page.get_by_role("heading", level=1)).to_have_text(row.name)
    await enter(page, link("History").first)
    await enter(page, link("Back to the flow"))
    await enter(page, link("All flows"))

    # Rows that are renamed or deleted.
    await enter(page, button("Rename Bittern"))
    await enter(page, button("Cancel"))
    await enter(page, button("Delete Bittern"))
    await enter(page, button("No, go back"))
    await enter(page, button("Delete Bittern"))
    await enter(page, button("Delete it"))
    await expect(page.locator(".session-row", has_text="Bittern")).to_have_count(0)
    await focus_is_held(page)

    # A session from its question to its end.
    await enter(page, page.locator(".session-link", has_text="Corncrake"))
    plan = await screen.question("The plan")
    await focus_is_held(page)
    await enter(page, plan.get_by_role("button", name="Remove test question 1"))
    await enter(page, page.get_by_role("button", name="Cancel session"))
    await enter(page, button("No, go back"))
    await enter(page, plan.get_by_role("button", name="Approve"))
    result = await screen.question("The result")
    await focus_is_held(page)
    await enter(page, result.get_by_role("button", name="Roll back"))
    await enter(page, button("No, go back"))
    await enter(page, result.get_by_role("button", name="Go live"))
    await screen.status("Accepted")
    await focus_is_held(page)


async def test_the_canvas_is_one_stop_of_the_tab_key_and_walked_by_arrows(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    del flowise_flows  # deletes what the test leaves on the server
    page = screen.page
    await screen.start(ZOO)
    await screen.question("The plan")
    nodes = page.locator(".react-flow__node")
    await expect(nodes).to_have_count(3)
    assert await nodes.evaluate_all("(all) => all.filter((one) => one.tabIndex === 0).length") == 1
    await page.get_by_role("button", name="Skip the canvas").focus()
    await page.keyboard.press("Tab")
    first = page.locator(".react-flow__node:focus")
    await expect(first).to_have_accessible_name(re.compile(", leads to Conversation Chain$"))
    await page.keyboard.press("ArrowRight")
    await expect(page.locator(".react-flow__node:focus")).to_have_attribute("data-id", "conversationChain_0")
    await page.keyboard.press("Enter")
    await expect(page.locator(".node-details")).to_be_visible()
    await page.keyboard.press("ArrowLeft")
    await expect(page.locator(".react-flow__node:focus")).not_to_have_attribute("data-id", "conversationChain_0")
    await page.keyboard.press("Escape")
    await expect(page.locator(".node-details")).to_have_count(0)
    await expect(page.locator(".react-flow__node:focus")).to_have_count(1)
    # Closed by its button, the details give the focus back to the node.
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Close the details").press("Enter")
    await expect(page.locator(".react-flow__node:focus")).to_have_count(1)
    assert await screen.violations() == []


async def test_a_phone_has_one_bar_a_menu_and_actions_for_a_thumb(screen: Screen, flowise_flows: FlowiseClient) -> None:
    page = screen.page
    await make_flow(flowise_flows)
    await page.set_viewport_size(SIZES[1])
    await page.reload()
    await expect(page.locator(".flow-card").first).to_be_visible(timeout=WORK_MS)

    async def height(what: Locator) -> float:
        box = await what.bounding_box()
        assert box
        return box["height"]

    assert await height(page.locator(".page-top")) < 64
    assert await height(page.get_by_role("button", name="Start")) >= THUMB
    menu = page.get_by_role("button", name="Menu")
    for view in VIEWS:
        await menu.press("Enter")
        await expect(page.locator(".menu")).to_be_visible()
        assert await screen.violations() == []
        await enter(page, page.get_by_role("navigation").get_by_role("link", name=view))
        await expect(page.locator(".menu")).to_be_hidden()
        await expect(page.locator("main").get_by_role("heading", level=1)).to_be_visible()
        assert await screen.overflow() <= 0, view
        assert await screen.violations() == [], view
    await menu.press("Enter")
    await page.get_by_role("button", name="Go to").press("Enter")
    await expect(page.get_by_role("dialog", name="Go to")).to_be_visible()
    await page.keyboard.press("Escape")
    await focus_is_held(page)
    await menu.press("Enter")
    await page.keyboard.press("Escape")
    await expect(menu).to_be_focused()
    await page.goto(screen.url)
    await screen.start(ZOO)
    plan = await screen.question("The plan")
    approve = plan.get_by_role("button", name="Approve", exact=True)
    await expect(approve).to_be_in_viewport(ratio=1)
    assert await height(approve) >= THUMB
    assert await screen.overflow() <= 0
