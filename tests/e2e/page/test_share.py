"""A session and the history of a flow, shown by a link to people without a key."""

import base64
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import SIZES, WORK_MS, Screen
from tests.e2e.people import LOCKED, SharedService

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

SECRETS_KEY = base64.b64encode(b"a key that signs links, 32 bytes").decode()
REQUIREMENT = "Build a chatbot for a lighthouse with GPT-4o and memory"


async def test_a_link_is_made_copied_opened_by_anybody_and_revoked(
    built_page: Path, browser: Browser, shared_service: SharedService, flowise_flows: FlowiseClient
) -> None:
    del built_page, flowise_flows  # the page is served; what the test leaves on the server is deleted
    service = await shared_service(**LOCKED, SECRETS_KEY=SECRETS_KEY)
    maker = await Screen.open(browser, service.url)
    session = await maker.start(REQUIREMENT)
    await maker.question("The plan")
    link = await made_link(maker)

    # At the plan, by somebody who has nothing but the link.
    visitor = await Screen.open(browser, link, has_key=False)
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url.removeprefix(service.url)))
    for size in SIZES:
        await visitor.page.set_viewport_size(size)
        await visitor.page.reload()
        await expect(visitor.page.get_by_role("heading", level=1)).to_contain_text("lighthouse")
        await expect(visitor.page.locator(".turn.mine").first).to_contain_text(REQUIREMENT)
        await expect(visitor.page.get_by_role("heading", name="Plan", exact=True)).to_be_visible()
        if size is SIZES[1]:
            await visitor.press("Picture")
        await expect(visitor.page.locator('.react-flow__node[data-id="chatOpenAI_0"]')).to_be_visible()
        assert await visitor.violations() == []
        assert await visitor.overflow() <= 0
    main = visitor.page.get_by_role("main")
    for action in ("Approve", "Cancel session", "Rename", "Try it", "Share", "Delete session"):
        await expect(main.get_by_role("button", name=action)).to_have_count(0)
    await expect(visitor.page.locator(".talk a, .workbench-head a")).to_have_count(0)
    await expect(main.get_by_role("textbox")).to_have_count(0)
    # It asks for nothing but what the link shows.
    assert {path.partition("?")[0] for path in asked if not path.startswith(("/assets/", "/#"))} <= {"/", "/shared"}

    # The flow, once it is written.
    await maker.see(session)
    await maker.press("Approve", await maker.question("The plan"))
    await maker.accept(await maker.question("The result"))
    await maker.status("Accepted")
    await maker.page.locator(".workbench-head").get_by_role("link", name="History").click()
    history = await made_link(maker)
    await visitor.page.set_viewport_size(SIZES[0])
    await visitor.page.goto(history)
    await expect(visitor.page.get_by_text("v1", exact=True).first).to_be_visible(timeout=WORK_MS)
    await visitor.page.locator(".turn-card > summary", has_text=REQUIREMENT).click()
    await expect(visitor.page.get_by_text("Approved.", exact=True)).to_be_visible()
    node = visitor.page.locator('.react-flow__node[data-id="chatOpenAI_0"]')
    await node.click()
    await expect(visitor.page.locator(".node-details")).to_contain_text("gpt-4o")
    assert await visitor.violations() == []

    # Revoked, it says so; the browser reports the answer 410, nothing else is wrong.
    await maker.press("Share")
    dialog = maker.page.get_by_role("dialog")
    await expect(dialog.get_by_text("last opened")).to_be_visible()
    await dialog.get_by_role("button", name="Revoke").click()
    await expect(dialog.get_by_role("button", name="Revoke")).to_have_count(0)
    assert await maker.violations() == []
    await visitor.page.reload()
    await expect(visitor.page.get_by_role("heading", name="This link has ended")).to_be_visible()
    assert await visitor.violations() == []
    await visitor.page.goto(f"{history[:-1]}{'A' if history[-1] != 'A' else 'B'}")
    await visitor.page.reload()
    await expect(visitor.page.get_by_role("heading", name="This link is not valid")).to_be_visible()
    assert [line for line in visitor.heard if "410" not in line and "401" not in line] == []
    assert maker.heard == []
    for screen in (maker, visitor):
        await screen.page.context.close()


async def made_link(maker: Screen) -> str:
    """A link that a person makes, by the button of what they see."""
    opener = maker.page.get_by_role("button", name="Share", exact=True)
    for size in SIZES:
        await maker.page.set_viewport_size(size)
        # On a phone the actions of a session are in a menu.
        more = maker.page.get_by_role("button", name="More", exact=True)
        await expect(opener.or_(more).filter(visible=True)).to_have_count(1)
        menu = await more.is_visible()
        if menu:
            await more.click()
        await opener.click()
        dialog = maker.page.get_by_role("dialog")
        await expect(dialog.get_by_role("heading", level=2)).to_be_visible()
        assert await maker.violations() == []
        assert await maker.overflow() <= 0
        await dialog.get_by_role("button", name="Close").click()
        await expect(more if menu else opener).to_be_focused()
    await maker.page.set_viewport_size(SIZES[0])
    await opener.click()
    dialog = maker.page.get_by_role("dialog")
    await dialog.get_by_label("It opens until").select_option("30")
    await maker.press("Create the link", dialog)
    link = await dialog.get_by_label("The link").input_value()
    assert link.startswith(f"{maker.url}/#/shared/ey")
    await expect(dialog.get_by_role("list")).to_contain_text("not opened yet")
    assert await maker.violations() == []
    await dialog.get_by_role("button", name="Close").click()
    return link
