"""The start page: what waits, the flows with their pictures, examples, and a Flowise that is away."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from tests.e2e.page.screen import AUTHORIZATION, SIZES, WORK_MS, Screen
from tests.e2e.people import MakeService, nodes_of
from tests.e2e.test_instances import instances
from tests.e2e.test_update_over_http import make_flow

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_flows_are_found_by_their_cards_and_each_action_leads_on(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    for number in range(14):
        # With a letter that no id has: a search finds ids, too.
        name = f"Lighthouse n{number:02}"
        await flowise_flows.create_chatflow(ChatflowCreate(name=name, type="CHATFLOW", flow_data=row.flow_data))
    await page.reload()
    cards = page.locator(".flow-card")
    await expect(cards).to_have_count(12, timeout=WORK_MS)
    await expect(cards.first.locator("svg.thumbnail")).to_be_visible()
    assert await screen.violations() == []
    await page.get_by_role("button", name="More flows").click()
    # Other tests may have left flows.
    there = len([row async for row in flowise_flows.iter_chatflows()])
    await expect(cards).to_have_count(min(there, 24), timeout=WORK_MS)
    await page.get_by_label("Search flows").fill("lighthouse n07")
    await expect(cards).to_have_count(1)
    # The search is in the address: it survives a reload and can be sent to a colleague.
    await page.reload()
    await expect(page.get_by_label("Search flows")).to_have_value("lighthouse n07")
    await expect(cards).to_have_count(1)
    await page.get_by_text("Deployed only").click()
    await screen.reads("No matching flows.")
    await page.get_by_text("Deployed only").click()

    changed = await screen.page.request.post(
        f"{screen.url}/sessions?wait=60",
        headers=AUTHORIZATION,
        data={"requirement": "Be brief", "target": "Lighthouse n07"},
        timeout=WORK_MS,
    )
    await page.reload()
    await expect(cards.first.locator(".last-session")).to_contain_text("Waiting for you", timeout=WORK_MS)
    await expect(cards.first.locator(".last-session")).to_have_attribute(
        "href", f"#/s/{(await changed.json())['thread_id']}"
    )

    await page.get_by_role("button", name="Copy: Lighthouse n07").click()
    await expect(page.get_by_label("What should the chatbot do?")).to_be_focused()
    await screen.reads("A copy of")
    await page.get_by_role("link", name="Change: Lighthouse n07").click()
    await expect(page.get_by_label("What should be different?")).to_be_focused()
    await page.go_back()
    await page.get_by_role("link", name="Try: Lighthouse n07").click()
    await expect(page.get_by_label("Your question")).to_be_focused()
    assert await screen.violations() == []
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.go_back()
    await expect(cards.first).to_be_visible()
    assert await screen.overflow() <= 0
    assert await screen.violations() == []


@pytest.mark.nightly
async def test_any_of_300_flows_is_found_on_the_page(screen: Screen, flowise_flows: FlowiseClient) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    for number in range(300):
        name = f"Pelican n{number:03}"
        await flowise_flows.create_chatflow(ChatflowCreate(name=name, type="CHATFLOW", flow_data=row.flow_data))
    cards = page.locator(".flow-card")
    await page.get_by_label("Search flows").fill("pelican n299")
    for _ in range(20):
        # The list may be some seconds old.
        await page.reload()
        await expect(cards.or_(page.get_by_text("No matching flows.")).first).to_be_visible(timeout=WORK_MS)
        if await cards.count():
            break
    for size in SIZES:
        await page.set_viewport_size(size)
        await page.get_by_label("Search flows").fill("pelican n287")
        await expect(cards).to_have_count(1, timeout=WORK_MS)
        await expect(page.get_by_role("link", name="Change: Pelican n287")).to_be_visible()
        assert await screen.overflow() <= 0
    await page.get_by_text("Options", exact=True).click()
    await page.get_by_role("combobox", name="Operation").select_option("update")
    await page.get_by_role("searchbox", name="Flow to change or copy").fill("pelican")
    await screen.reads("8 of 300 flows")
    await page.get_by_role("searchbox", name="Flow to change or copy").fill("pelican n000")
    await page.get_by_role("button", name="Pelican n000").click()
    assert await screen.violations() == []


@pytest.mark.nightly
async def test_the_card_of_a_flow_that_was_just_deleted_asks_for_nothing(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    await page.goto(f"{screen.url}/?flow={row.id}#/")
    card = page.locator(".flow-card")
    await expect(card).to_have_count(1, timeout=WORK_MS)
    await flowise_flows.delete_chatflow(row.id)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # The list may be some seconds old; a missing picture would be a complaint of the browser.
    await page.reload()
    await expect(page.get_by_label("Search flows")).to_have_value(row.id)
    await expect(
        page.locator(".flow-card svg.thumbnail rect").or_(page.get_by_text("No matching flows.")).first
    ).to_be_visible()
    assert not [url for url in asked if "/graph" in url]
    assert any("pictures=true" in url for url in asked)


@pytest.mark.nightly
async def test_what_waits_for_a_person_is_first_and_a_draft_survives(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    session = await screen.start("Build a chatbot with GPT-4o and memory for a lighthouse")
    await screen.question("The plan")
    await page.get_by_role("link", name="All flows").click()
    inbox = page.get_by_role("region", name="Waits for you")
    await page.get_by_label("What should the chatbot do?").fill("A bot for")
    await page.reload()
    await expect(page.get_by_label("What should the chatbot do?")).to_have_value("A bot for")
    await inbox.get_by_role("link").first.click()
    await page.wait_for_url(f"**/#/s/{session}")
    # A text that is too long is refused with the number, and not cut.
    await page.get_by_role("link", name="All flows").click()
    await page.get_by_label("What should the chatbot do?").fill("word " * 7_000)
    await screen.reads("The text has 35000 characters; at most 32000 are possible.")
    await screen.press("Start")
    await expect(page.get_by_label("What should the chatbot do?")).to_have_value("word " * 7_000)


@pytest.mark.nightly
async def test_a_flow_is_promoted_to_another_server_after_a_look_at_what_would_be_written(
    browser: Browser, built_page: Path, make_service: MakeService, flowise: FlowiseAccess, flowise_flows: FlowiseClient
) -> None:
    row = await make_flow(flowise_flows, bind=("openAIApi",))
    there = await make_flow(flowise_flows, bind=("openAIApi",))
    await flowise_flows.update_chatflow(there.id, flow_data=there.flow_data.replace('"mine"', '"theirs"'))
    # Two names of one server are two servers to the service.
    service = make_service(FLOWISE_INSTANCES=instances(dev=flowise, prod=flowise))
    await service.start()
    screen = await Screen.open(browser, service.url, has_key=False)
    page = screen.page
    await page.goto(f"{service.url}/?flow={row.id}#/")
    opener = page.get_by_role("button", name=f"Promote: {row.name}")
    await opener.click(timeout=WORK_MS)
    dialog = page.get_by_role("dialog")
    for size in SIZES:
        await page.set_viewport_size(size)
        await expect(dialog.get_by_role("button", name="Promote")).to_be_enabled(timeout=WORK_MS)
        assert await screen.violations() == []
        assert await screen.overflow() <= 0
    await dialog.get_by_label("Replace a flow").check()
    await expect(dialog.get_by_role("button", name="Promote")).to_be_disabled()
    await dialog.get_by_label("Flow to replace").fill(there.name)
    await dialog.get_by_role("list", name="Flows found").get_by_role("button", name=there.name).click()
    await expect(dialog.get_by_label("What would be written")).to_contain_text("1 field changed", timeout=WORK_MS)
    assert (await flowise_flows.get_chatflow(there.id)).flow_data != row.flow_data
    await screen.press("Close", dialog)
    await expect(opener).to_be_focused()
    await opener.click()
    await dialog.get_by_label("Replace a flow").check()
    await expect(dialog.get_by_role("button", name="Promote")).to_be_disabled()
    await dialog.get_by_label("Flow to replace").fill(there.name)
    await dialog.get_by_role("list", name="Flows found").get_by_role("button", name=there.name).click()
    await dialog.get_by_role("button", name="Promote").click()
    await expect(dialog.get_by_role("status")).to_contain_text("kept as a version", timeout=WORK_MS)
    await expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    await dialog.get_by_role("link", name="Show the flow there").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(there.name)
    assert page.url.endswith(f"#/f/{there.id}/prod")
    notes = [node["data"]["inputs"] for node in nodes_of(await flowise_flows.get_chatflow(there.id)).values()]
    assert "mine" in str(notes)
    assert "theirs" not in str(notes)
    assert screen.heard == []
    await page.context.close()


@pytest.mark.nightly
async def test_start_waits_for_a_flowise_that_is_away_and_says_what_to_do(
    browser: Browser, built_page: Path, make_service: MakeService
) -> None:
    service = make_service(FLOWISE_API_ENDPOINT="http://127.0.0.1:9")
    await service.start()
    screen = await Screen.open(browser, service.url, has_key=False)
    page = screen.page
    await screen.reads("does not respond. You can start when it is back.")
    await expect(page.get_by_role("button", name="Start")).to_be_disabled()
    await expect(page.get_by_role("button", name="Check again")).to_be_enabled()
    assert await screen.violations() == []
    await page.context.close()
