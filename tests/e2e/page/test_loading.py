"""How the page comes: what it asks for and when, and that nothing moves once it is seen. Counted, not timed."""

import asyncio
import re
from collections import Counter
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, Route, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import GIVE_KEY, SIZES, WORK_MS, Screen
from tests.e2e.service import ServiceProcess
from tests.e2e.test_update_over_http import make_flow

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

#: Of a layout: what moves without the person's doing, as browsers measure it.
MOST_SHIFT = 0.05
WATCH_SHIFTS = """
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const {value, hadRecentInput, sources} of list.getEntries())
            if (!hadRecentInput)
                window.shifts.push([value, sources.map(({node}) => node?.className || node?.nodeName || "gone")]);
    }).observe({type: "layout-shift", buffered: true});
"""
PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def test_the_start_page_asks_for_everything_once_and_before_its_program_runs(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    await make_flow(flowise_flows)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(screen.url)))
    await page.reload()
    await expect(page.locator(".flow-card").first).to_be_visible(timeout=WORK_MS)
    await expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    calls = [one for one in asked if one != "/" and not one.startswith("/assets/")]
    once = ["/health", "/info", "/keys/current", "/sessions/expected-cost"]
    first = [urlsplit(one).path for one in calls[:7]]
    assert sorted(first) == sorted([*once, "/flows", "/sessions", "/sessions"])
    assert len(set(calls[:7])) == len(first)
    # What the program finds answered it does not ask for again; the lists it does after a while.
    again = Counter(urlsplit(one).path for one in calls)
    assert {path: again[path] for path in once} == dict.fromkeys(once, 1)
    # The view is sent for beside the program, not by it.
    assert asked.index(calls[0]) < next(number for number, one in enumerate(asked) if "/SessionsPage-" in one)
    assert screen.heard == []


async def test_what_people_read_first_is_there_without_the_program_in_their_language(
    browser: Browser, page_service: ServiceProcess
) -> None:
    for locale, title in (("en-GB", "What should the chatbot do?"), ("de-DE", "Was soll der Chatbot tun?")):
        async with await browser.new_context(locale=locale) as context:
            page = await context.new_page()
            await page.route("**/assets/main-*", lambda route: route.abort())
            await page.goto(page_service.url)
            await expect(page.get_by_role("heading", level=1)).to_have_text(title, use_inner_text=True)
            # Other views have their own heads.
            await page.goto(f"{page_service.url}/?again#/settings")
            await expect(page.get_by_text("Flowise Dev Agent", exact=True)).to_be_visible()
            await expect(page.get_by_role("heading", level=1)).to_be_hidden()


async def test_what_is_typed_before_the_program_is_there_is_kept_with_the_cursor(
    browser: Browser, page_service: ServiceProcess
) -> None:
    async with await browser.new_context() as context:
        await context.add_init_script(GIVE_KEY)
        page = await context.new_page()
        come = asyncio.Event()

        async def late(route: Route) -> None:
            await come.wait()
            await route.continue_()

        await page.route("**/assets/main-*", late)
        # What the page loads is not waited for: it does not come yet.
        await page.goto(page_service.url, wait_until="commit")
        field = page.get_by_label("What should the chatbot do?")
        await expect(page.locator(".head-start")).to_be_visible()
        # Not by keys: a browser may drop those that come before the first picture of a page.
        await field.fill("A bot for our baery")
        await field.evaluate("(one) => one.setSelectionRange(16, 16)")
        come.set()
        await expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()
        await expect(page.locator(".head-start")).to_have_count(0)
        await page.keyboard.type("k")
        await expect(field).to_have_value("A bot for our bakery")
        # It is what is kept, not only what is seen.
        await page.unroute("**/assets/main-*", late)
        await page.reload()
        await expect(field).to_have_value("A bot for our bakery")


async def test_nothing_moves_on_any_screen_while_it_loads(screen: Screen, flowise_flows: FlowiseClient) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    session = await screen.start("Build a customer support chatbot with GPT-4o and memory")
    await screen.question("The plan")
    await page.add_init_script(WATCH_SHIFTS)
    views = {
        "/": page.locator(".session-row").first,
        f"/s/{session}": page.get_by_role("heading", name="The plan"),
        f"/f/{row.id}/default": page.get_by_label("What should be different?"),
        # The watch may have found the flow already.
        f"/history/{row.id}": page.get_by_text("No versions yet").or_(page.get_by_role("region", name="Versions")),
        "/new": page.get_by_label("Name of the new flow"),
        "/patterns": page.get_by_role("heading", level=1),
        "/instances": page.get_by_label("Instance default"),
        "/knowledge": page.get_by_role("button", name="Refresh").first,
        "/webhooks": page.get_by_role("heading", level=1),
        "/settings": page.get_by_label("Limits"),
        "/api": page.get_by_role("heading", level=1),
    }
    found: dict[str, object] = {}
    for size in SIZES:
        await page.set_viewport_size(size)
        for number, (view, last) in enumerate(views.items()):
            # Another address before the `#` loads the page as a whole.
            await page.goto(f"{screen.url}/?{size['width']}-{number}#{view}")
            await expect(last).to_be_attached(timeout=WORK_MS)
            shifts = await settled(page)
            if sum(value for value, _ in shifts) > MOST_SHIFT:
                found[f"{view} at {size['width']}"] = shifts
    assert found == {}, str(found)


async def settled(page: Page) -> list[tuple[float, list[str]]]:
    """The shifts once no call of the page is under way."""
    waits = page.locator("main p.quiet", has_text=re.compile("^(Loading|Checking)"))
    await expect(waits).to_have_count(0, timeout=WORK_MS)
    await page.evaluate(PAINTED)
    return await page.evaluate("window.shifts")
