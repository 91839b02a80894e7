"""What people stumbled over on the page before, each with the test that holds it mended.

| what was seen | test |
|---|---|
| "Used: calculatoranswered", "shop..", "the session ends as None", an answer in Markdown as one grey line,
  "Accept: Deploy" when unticked | `test_every_text_from_plan_to_summary_is_whole` |
| titles cut in mid-phrase ("for our online") | the same, and `test_title_is_short_and_says_what_it_is` (unit) |
| "+ added" covers titles, the wheel does not zoom |
  `test_the_wheel_zooms_the_change_and_no_mark_covers_a_title` (test_session_layout) |
| focus on the body after acceptance | `test_after_acceptance_the_way_on_comes_first_and_delete_last`
  (test_session_layout) |
| a German plan under English headings |
  `test_a_german_person_reads_no_english_from_the_plan_to_a_conflict` (test_languages) |
| a picker with 8 of 300 flows, the first deployed one chosen beforehand |
  `test_every_flow_can_be_picked_and_none_is_picked_beforehand` |
| "Flowise does not answer: default." | `test_start_waits_for_a_flowise_that_is_away_and_says_what_to_do` (test_home) |
| the notice of a fallback below Approve | `test_that_the_model_failed_is_read_before_the_plan_is_approved` |
| `#/flow` and `#/change`, linked from nowhere | `test_every_view_of_a_flow_is_linked_and_old_addresses_say_so` |
| stale screenshots | `python scripts/screenshots.py`, which CI runs |
"""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.devkit.standin.protocol import StandInFailure
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from tests.e2e.page.screen import SIZES, WORK_MS, Screen
from tests.e2e.people import SharedService
from tests.e2e.scripted import AGENT_WIRES, builds, change, model_environment, script, tells
from tests.e2e.test_update_over_http import make_flow

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

SHOP = (
    "Build an agent with GPT-4o for our online shop that remembers the conversation and has a calculator. "
    "It answers in a friendly tone and never promises a refund."
)
NODES = "Which nodes does it have, and which model does it use?"
#: Two full stops, None, or two words that were never apart.
BROKEN = re.compile(r"(?<!\.)\.\.(?!\.)|\bNone\b|\bundefined\b|\bnull\b|\[object|calculatoranswered")


async def test_every_text_from_plan_to_summary_is_whole(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    title = "Agent with GPT-4o for our online shop"
    told = "## Nodes\n\n- an agent\n- a calculator\n\nIt uses **gpt-4o**."
    script(standin, tells(told), when=NODES)
    script(standin, builds(*AGENT_WIRES, "calculator -> toolAgent.tools", title=title))
    screen = reading
    page = screen.page

    async def texts_are_whole() -> None:
        for one in await page.locator("details").all():
            await one.evaluate("(details) => { details.open = true }")
        assert BROKEN.findall(await page.locator("main").inner_text()) == []

    await screen.start(SHOP)
    plan = await screen.question("The plan")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Agent with GPT-4o for our online shop")
    await texts_are_whole()
    await plan.get_by_label("Test question 1", exact=True).fill("What is 17 * 3?")
    await screen.press("Approve", plan)
    result = await screen.question("The result")
    test = result.locator(".test", has_text="What is 17 * 3?")
    await expect(test.locator(".said .markdown p")).to_have_text("The result is 51")
    await expect(test.get_by_text("Used: calculator", exact=True)).to_be_visible()
    await texts_are_whole()
    await result.get_by_label("Put it live when I accept").uncheck()
    await expect(result.get_by_text("Keep the chatflow without deploying it.")).to_be_visible()
    await expect(result.get_by_text("Deploy the chatflow.", exact=True)).to_have_count(0)
    await screen.accept(result)
    await screen.status("Accepted")
    await screen.open_card("Plan")
    await screen.open_card("Summary")
    await expect(page.get_by_role("heading", name="Writes")).to_be_visible()
    await texts_are_whole()
    (row,) = [row async for row in flowise_flows.iter_chatflows() if row.name.startswith("Agent with GPT-4o")]
    assert not row.deployed

    # The answer to a question has its lists and headings.
    await page.get_by_label("What should be different?").fill(NODES)
    await screen.press("Ask about it")
    await screen.status("Answered")
    await expect(page.locator(".now .markdown > *").first).to_be_visible()
    await texts_are_whole()


async def test_every_flow_can_be_picked_and_none_is_picked_beforehand(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    colder = change("chatOpenAI_0", "temperature", 0.1)
    script(standin, {**colder, "classify": {**colder["classify"], "target_hint": "Lagoon"}})
    screen = reading
    page = screen.page
    row = await make_flow(flowise_flows, deployed=True)
    for number in range(12):
        name = f"Harbour {number:02}"
        await flowise_flows.create_chatflow(ChatflowCreate(name=name, type="CHATFLOW", flow_data=row.flow_data))
    await page.reload()
    await expect(page.get_by_role("link", name="Harbour 11").first).to_be_visible(timeout=WORK_MS)
    await page.get_by_text("Options", exact=True).click()
    found = page.get_by_role("list", name="Flows found")
    # Who has said nothing of a flow is shown none.
    await expect(page.get_by_role("searchbox", name="Flow to change or copy")).to_be_visible()
    await expect(found).to_have_count(0)
    await page.get_by_role("combobox", name="Operation").select_option("update")
    await expect(found).to_be_visible()
    await page.get_by_role("searchbox", name="Flow to change or copy").fill("harbour")
    await screen.reads("8 of 12 flows")
    await found.get_by_role("button", name="More flows").click()
    await expect(found.get_by_role("button", name=re.compile("Harbour"))).to_have_count(12)
    assert await screen.violations() == []

    # The question which flow is meant offers some, marks none, and finds the others too.
    await screen.start("Change the temperature of the flow Lagoon to 0.1")
    card = await screen.question("Which flow?")
    await expect(card.get_by_role("radio")).to_have_count(10)
    await expect(card.get_by_role("radio", checked=True)).to_have_count(0)
    await screen.press("Choose", card)
    await screen.reads("Choose one of the flows.")
    await expect(found).to_have_count(0)
    await card.get_by_role("searchbox", name="Another flow").fill("harbour 00")
    await card.get_by_role("button", name=re.compile("Harbour 00")).click()
    assert await screen.violations() == []
    await page.set_viewport_size(SIZES[1])
    assert await screen.overflow() <= 0
    await screen.press("Choose", card)
    await screen.question("The plan")
    await screen.reads("Harbour 00")


async def test_that_the_model_failed_is_read_before_the_plan_is_approved(
    built_page: Path,
    browser: Browser,
    shared_service: SharedService,
    flowise_flows: FlowiseClient,
    standin: ModelStandIn,
) -> None:
    del flowise_flows  # deletes what the test leaves on the server
    service = await shared_service(**model_environment(standin))
    standin.script("", StandInFailure.http(400, "no such model"))
    screen = await Screen.open(browser, service.url)
    await screen.start("Build a customer support chatbot with GPT-4o and memory")
    title = (await screen.question("The plan")).get_by_role("heading", name="The plan")
    notice = screen.page.get_by_text("the configured reasoning mode failed")
    await expect(notice).to_be_visible()
    ends = [await notice.element_handle(), await title.element_handle()]
    for size in SIZES:
        await screen.page.set_viewport_size(size)
        await screen.settles(
            "([one, other]) => one.getBoundingClientRect().bottom <= other.getBoundingClientRect().top", ends
        )
    await screen.page.context.close()


async def test_every_view_of_a_flow_is_linked_and_old_addresses_say_so(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    card = page.locator(".flow-card", has_text=row.name)
    await expect(card).to_be_visible(timeout=WORK_MS)
    links = await card.get_by_role("link").evaluate_all("(all) => all.map((one) => one.getAttribute('href'))")
    for part in (r"#/f/[^/]+/default$", r"/change$", r"/ask$", r"/try$", r"#/history/"):
        assert any(re.search(part, link) for link in links), (part, links)
    for link in links:
        await page.goto(f"{screen.url}/{link}")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await expect(page.get_by_role("heading", name="Page not found")).to_have_count(0)
    for old in ("flow/default/1", "change/1"):
        await page.goto(f"{screen.url}/#/{old}")
        await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
        await expect(page.get_by_role("main").get_by_role("link")).to_have_attribute("href", "#/")

    # A flow that is gone says so, with a way on.
    await flowise_flows.delete_chatflow(row.id)
    await page.goto(f"{screen.url}/#/f/{row.id}/default")
    await page.reload()
    await expect(page.get_by_role("heading", name="This flow is not in Flowise any more")).to_be_visible()
    assert await screen.violations() == []
    await page.get_by_role("main").get_by_role("link", name="All flows").click()
    await expect(page.get_by_label("What should the chatbot do?")).to_be_visible()
    # The browser itself reports the answer 404; nothing else is wrong.
    assert all("404" in line for line in screen.heard), screen.heard
    screen.heard.clear()
