"""Flows and changes on the canvas, and the views beside the sessions, in a browser on a real Flowise."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import AUTHORIZATION, SIZES, WORK_MS
from tests.e2e.page.site import Site, choose
from tests.e2e.people import LOCKED, SharedService, make_flow
from tests.e2e.scripted import COLDER, change, model_environment, script
from tests.e2e.service import ServiceProcess
from tests.e2e.test_update_over_http import temperature
from tests.fixtures.receiver import Receiver, running_receiver
from tests.support.sessions import ASSISTANT

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def site(page_service: ServiceProcess, flowise_flows: FlowiseClient, browser: Browser) -> AsyncIterator[Site]:
    """The service with all its views; each test makes flows and sessions of its own."""
    async with httpx2.AsyncClient(base_url=page_service.url, headers=AUTHORIZATION, timeout=120) as http:
        yield Site(page_service.url, http, flowise_flows, browser)


@pytest_asyncio.fixture(loop_scope="session")
async def changing(
    built_page: Path,
    shared_service: SharedService,
    standin: ModelStandIn,
    flowise_flows: FlowiseClient,
    browser: Browser,
) -> AsyncIterator[Site]:
    """The same with a model that makes a flow colder."""
    script(standin, change("chatOpenAI_0", "temperature", 0.2), when=COLDER)
    service = await shared_service(**LOCKED, **model_environment(standin))
    async with httpx2.AsyncClient(base_url=service.url, headers=AUTHORIZATION, timeout=120) as http:
        yield Site(service.url, http, flowise_flows, browser)


async def changed_node(page: Page) -> str:
    box = page.locator(".react-flow__node", has=page.locator(".mark-changed")).first
    return str(await box.get_attribute("data-id"))


async def tab(page: Page, name: str | re.Pattern[str]) -> None:
    await page.get_by_role("tab", name=name).click()


async def test_p71_an_update_is_seen_from_proposal_over_promotion_to_rollback(changing: Site) -> None:
    row = await make_flow(changing.flowise)
    reviewed = await changing.answer(await changing.start(COLDER, target=row.id, review_patch=True), action="approve")
    session_id = reviewed["thread_id"]
    async with changing.page(f"/s/{session_id}") as page:
        picture = page.get_by_role("region", name="Picture of the flow")
        await expect(picture.get_by_text("1 field changed").first).to_be_visible()
        await expect(picture.locator(".fnode-param", has_text="Temperature")).to_have_text("Temperature 0.9 0.2")
        await expect(picture.locator(".fnode del")).to_have_text("0.9")
        # The sticky note; beside the details of a node it may be out of sight.
        await expect(page.locator(".react-flow__node", has_text="mine")).to_have_count(1)
        node = await changed_node(page)
        await choose(page, node)
        details = page.locator(".node-details")
        await expect(details.locator("del").first).to_have_text("Before 0.9")
        await expect(details.locator("ins").first).to_have_text("After 0.2")
        await page.get_by_role("button", name="Before: as it was").click()
        await expect(page.locator(".fnode .mark")).to_have_count(0)
        await tab(page, "List")
        await expect(page.locator(".change-list")).to_contain_text("temperature")
        await tab(page, "One by one (1)")
        await expect(page.get_by_text(f"Set temperature of {node} to 0.2")).to_be_visible()
    tested = await changing.answer(reviewed, action="continue")
    done = await changing.answer(tested, action="accept")
    assert done["outcome"] == "accepted"

    async with changing.page(f"/history/{row.id}", color_scheme="dark") as page:
        versions = page.get_by_role("list").filter(has=page.locator(".version")).locator(".version")
        await expect(versions).to_have_count(2)
        # Versions are counted over all sessions and named as their sessions are.
        await expect(versions.first).to_contain_text("v2")
        await expect(versions.first).to_contain_text("Change it")
        picture = page.get_by_role("region", name="Compare")
        await expect(picture.get_by_text("1 field changed").first).to_be_visible()
        await page.get_by_role("button", name="Bookmark v1").click()
        await expect(page.get_by_role("button", name="Bookmark v1")).to_have_attribute("aria-pressed", "true")
        # What is compared is in the address.
        await page.get_by_role("combobox", name="From").select_option("live")
        await expect(picture.get_by_text("no difference").or_(picture.get_by_text("No differences."))).to_be_attached()
        await page.reload()
        await expect(page.get_by_role("combobox", name="From")).to_have_value("live")
        await page.get_by_role("button", name="Go back to v1").click()
        await page.get_by_role("button", name="No, go back").click()
        assert temperature(await changing.flowise.get_chatflow(row.id)) == "0.2"
        await page.get_by_role("button", name="Go back to v1").click()
        await page.get_by_role("button", name="Write v1 to Flowise").click()
        await expect(page.get_by_text("The flow is as v1 again")).to_be_visible()
        assert (await changing.flowise.get_chatflow(row.id)).flow_data == row.flow_data
        await expect(versions).to_have_count(3)
        await expect(versions.first).to_contain_text("as v1")
        await page.get_by_role("button", name="Skip to content").press("Enter")
        await expect(page.locator("main")).to_be_focused()


@pytest.mark.nightly
async def test_the_newest_version_is_undone_after_a_question_and_that_by_the_next(changing: Site) -> None:
    row = await make_flow(changing.flowise)
    reviewed = await changing.answer(await changing.start(COLDER, target=row.id), action="approve")
    await changing.answer(reviewed, action="accept")
    for size, newest, degrees in zip(SIZES, ("v2", "v3"), ("0.9", "0.2"), strict=True):
        async with changing.page(f"/history/{row.id}", viewport=size) as page:
            undo = page.get_by_role("button", name=f"Undo {newest}", exact=True)
            await expect(undo).to_be_in_viewport(ratio=1)
            await undo.click()
            # The same rule as for going back to an older one: the flow is in use.
            assert temperature(await changing.flowise.get_chatflow(row.id)) != degrees
            await page.locator("dialog[open] .button.danger").click()
            await expect(page.get_by_text("and verified in Flowise")).to_be_in_viewport(ratio=1)
            assert temperature(await changing.flowise.get_chatflow(row.id)) == degrees
            await expect(page.locator(".version").first).to_contain_text("current")
            assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


async def test_p07_p71_a_stale_base_is_decided_on_the_canvas_and_the_draft_promoted(changing: Site) -> None:
    row = await make_flow(changing.flowise, deployed=True)
    planned = await changing.start(COLDER, target=row.id)
    await changing.flowise.update_chatflow(row.id, flow_data=row.flow_data.replace('"mine"', '"theirs"'))
    async with changing.page(f"/s/{planned['thread_id']}") as page:
        await page.get_by_role("button", name="Approve").click()
        theirs = page.get_by_label("Changes by someone else")
        await expect(theirs.locator(".fnode .mark")).to_have_count(1, timeout=WORK_MS)
        await theirs.get_by_role("tab", name="List").click()
        await expect(theirs.locator(".change-list ins")).to_have_text("After theirs")
        await expect(page.get_by_role("region", name="The flow has changed in Flowise")).to_be_visible()
        await page.get_by_role("button", name="Keep both").click()
        accept = page.get_by_role("button", name="Go live")
        await expect(accept).to_be_visible(timeout=WORK_MS)
        live = await changing.flowise.get_chatflow(row.id)
        assert (temperature(live), '"theirs"' in live.flow_data) == ("0.9", True)
        changed = page.locator(".react-flow__node", has=page.locator(".mark-changed"))
        await expect(changed).to_have_count(1)
        await expect(page.locator(".fnode.note")).to_have_text("theirs")
        await accept.click()
        await expect(page.locator(".workbench-head .badge").first).to_have_text("Accepted", timeout=WORK_MS)
    live = await changing.flowise.get_chatflow(row.id)
    assert (temperature(live), live.deployed, '"theirs"' in live.flow_data) == ("0.2", True, True)


@pytest.mark.nightly
async def test_patterns_are_imported_found_exported_and_deleted(site: Site, tmp_path: Path) -> None:
    pattern = {
        "requirement": "A travel bot for Lisbon",
        "name": "Travel bot",
        "ops": [{"op_type": "AddNode", "node_name": "chatOpenAI", "node_id": "chatOpenAI_0"}],
    }
    file = tmp_path / "patterns.json"
    file.write_text(json.dumps({"format": "flowise-dev-agent/patterns", "version": 1, "patterns": [pattern]}))
    async with site.page("/patterns") as page:
        # There is nothing to search in.
        await expect(page.get_by_text("No patterns yet.")).to_be_visible()
        await expect(page.get_by_label("Search")).to_have_count(0)
        await page.get_by_label("Import…").set_input_files(file)
        await expect(page.get_by_text("1 pattern imported.")).to_be_visible()
        await page.get_by_label("Search").fill("lisbon")
        await expect(page.get_by_role("heading", name="Travel bot")).to_be_visible()
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Export all").click()
        await (await download.value).save_as(file)
        assert [item["name"] for item in json.loads(file.read_bytes())["patterns"]] == ["Travel bot"]
        await page.get_by_role("button", name="Delete the pattern Travel bot").click()
        await page.get_by_role("button", name="Delete the pattern", exact=True).click()
        await expect(page.get_by_text("No matching patterns.")).to_be_visible()
        await page.get_by_label("Import…").set_input_files({"name": "x.json", "mimeType": "", "buffer": b"nothing"})
        await expect(page.get_by_role("alert")).to_contain_text("The file is not JSON.")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


@pytest.mark.nightly
async def test_p63_a_webhook_is_shown_with_its_status_and_sent_again(site: Site, receiver: Receiver) -> None:
    view = await site.start(design=ASSISTANT, webhook_url=receiver.url("/hook?token=t0ken"))
    await asyncio.to_thread(receiver.wait_for, 1)
    async with site.page("/webhooks") as page:
        row = page.locator("tbody tr", has_text=f"127.0.0.1:{receiver.port}")
        await expect(row).to_contain_text("delivered")
        assert "t0ken" not in await page.content()
        await row.get_by_role("button").click()
        await expect(page.get_by_text("Queued to be sent again")).to_be_visible()
        first, second = await asyncio.to_thread(receiver.wait_for, 2)
        assert first.id == second.id
        await expect(row).to_contain_text("delivered")
    await site.http.post(f"/sessions/{view['thread_id']}/cancel")


@pytest.mark.nightly
async def test_an_instance_is_refreshed_and_its_state_and_the_settings_are_shown(site: Site) -> None:
    async with site.page("/knowledge") as page:
        await page.get_by_role("button", name="Refresh").click()
        await expect(page.get_by_text("Nothing has changed.")).to_be_visible(timeout=WORK_MS)
        await expect(page.get_by_text(re.compile(r"\d+ of Flowise \d"))).to_be_visible()
    async with site.page("/instances") as page:
        server = page.get_by_label("Instance default")
        await expect(server.get_by_text("reachable")).to_be_visible(timeout=20_000)
        # Its address is said once.
        await expect(server.get_by_text(str(site.flowise.endpoint))).to_have_count(1)
    async with site.page("/settings") as page:
        await expect(page.get_by_text("without a model").first).to_be_visible()
        assert "whsec" not in await page.content()


@pytest.mark.nightly
async def test_a_note_is_remembered_and_deleted_on_the_page(site: Site) -> None:
    text = "Our bots are polite.\nThey never name prices."
    async with site.page("/knowledge") as page:
        notes = page.get_by_role("region", name="Notes")
        remember = notes.get_by_role("button", name="Remember")
        await expect(remember).to_be_disabled()
        await notes.get_by_label("A new note").fill("word " * 500)
        await expect(notes.get_by_role("alert")).to_contain_text("at most 2000")
        await expect(remember).to_be_disabled()
        await notes.get_by_label("A new note").fill(text)
        await remember.click()
        note = notes.get_by_role("listitem").filter(has_text="They never name prices.")
        await expect(note).to_be_visible()
        await expect(notes.get_by_label("A new note")).to_have_value("")
        kept = (await site.http.get("/memories", params={"kind": "note"})).json()["items"]
        assert text in [one["text"] for one in kept]
        await note.get_by_role("button", name="Delete the note").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete the note").click()
        await expect(note).to_have_count(0)


#: Of the names of far nodes: words that are on two lines, words that are cut off beside an icon, and the least letters.
NAMES = """() => {
    const found = {broken: [], cut: [], smallest: 99};
    const zoom = new DOMMatrix(getComputedStyle(document.querySelector(".react-flow__viewport")).transform).a;
    for (const name of document.querySelectorAll(".fnode.far .fnode-name")) {
        const text = name.firstChild;
        found.smallest = Math.min(found.smallest, parseFloat(getComputedStyle(name).fontSize) * zoom);
        const edge = name.getBoundingClientRect().right;
        const icon = name.parentElement.querySelector(".fnode-icon > *")?.getBoundingClientRect().width;
        for (const {index, 0: word} of name.textContent.matchAll(/\\S+/g)) {
            const range = new Range();
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            const lines = new Set([...range.getClientRects()].filter((one) => one.width > 0).map((one) => one.top));
            if (lines.size > 1) found.broken.push(word);
            if (range.getBoundingClientRect().right > edge + 1 && icon > 1) found.cut.push(word);
        }
    }
    return found;
}"""


async def test_names_of_nodes_seen_from_far_break_at_no_place_within_a_word(site: Site) -> None:
    for template in ("Multiple Documents QnA", "Human In The Loop"):
        row = await make_flow(site.flowise, template)
        async with site.page(f"/f/{row.id}/default") as page:
            await expect(page.locator(".fnode").first).to_be_visible()
            for _ in range(3):
                await page.get_by_role("button", name="Zoom Out").click()
                await expect(page.locator(".fnode.far .fnode-name").nth(3)).to_be_visible()
                names = await page.evaluate(NAMES)
                assert (names["broken"], names["cut"]) == ([], []), names
                assert names["smallest"] >= 11
