"""A person who never read the docs builds, steers and finds sessions in the browser."""

import httpx2
import pytest
from playwright.async_api import Browser, expect

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e import scripted
from tests.e2e.page.screen import AUTHORIZATION, SIZES, WORK_MS, Screen
from tests.e2e.people import KEY
from tests.e2e.scripted import VAGUE, script
from tests.e2e.service import ServiceProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")

SUPPORT = "Build a customer support chatbot with GPT-4o and memory"


async def test_p71_a_sentence_becomes_an_accepted_chatflow_and_every_state_survives_a_reload(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    assert await screen.violations() == []
    await screen.start(SUPPORT)

    plan = await screen.question("The plan")
    await expect(plan.get_by_role("heading", name="Success criteria")).to_be_visible()
    assert await screen.violations() == []
    await page.reload()
    plan = await screen.question("The plan")
    await plan.get_by_label("Test question 1", exact=True).fill("Where is my parcel?")
    # Feedback is never lost silently.
    await plan.get_by_label("What should be different?").fill("be brief")
    await screen.press("Approve", plan)
    await screen.reads('"Approve" does not send your feedback.')
    await plan.get_by_label("What should be different?").fill("")
    await screen.press("Approve", plan)

    result = await screen.question("The result")
    tests = result.get_by_role("list", name="Tests")
    await expect(tests.get_by_role("listitem")).to_have_count(2)
    await expect(tests.get_by_text("Where is my parcel?").first).to_be_visible()
    await expect(tests.get_by_text("Answered", exact=True)).to_have_count(2)
    # That it answers is no proof that it does what is asked.
    known = "It answers. Shown: 1 of 2 criteria."
    await expect(result.get_by_role("region", name="Verdict")).to_contain_text(known)
    assert await screen.violations() == []
    await page.reload()
    result = await screen.question("The result")
    await screen.press("Try it")
    await page.get_by_label("Your question").fill("Do you ship to Norway?")
    await screen.press("Ask")
    await screen.reads('You said: "Do you ship to Norway?"')

    await screen.accept(result)
    await screen.status("Accepted")
    await page.reload()
    await screen.status("Accepted")
    tests = await screen.open_card("Tests")
    await expect(tests.get_by_text("Where is my parcel?").first).to_be_visible()
    agreed = await screen.open_card("Plan")
    await expect(agreed.get_by_role("heading", name="Success criteria")).to_be_visible()
    await expect(agreed.get_by_text("Where is my parcel?")).to_be_visible()
    summary = await screen.open_card("Summary")
    await expect(summary.get_by_role("heading", name="Writes")).to_be_visible()
    story = page.get_by_role("region", name="What happened")
    await expect(story.get_by_text("Review: done")).to_be_attached()
    assert await screen.violations() == []
    assert [row.deployed async for row in flowise_flows.iter_chatflows()].count(True) >= 1


@pytest.mark.nightly
async def test_an_earlier_iteration_is_accepted_in_place_of_the_newest(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    plan = scripted.SUPPORT["plan"]
    cooler = {"node_id": "chatOpenAI_0", "param": "temperature", "value": 0.1}
    script(standin, {**scripted.SUPPORT, "plan": [plan, {**plan, "values": [*plan["values"], cooler]}]})
    screen = reading
    session = await screen.start(SUPPORT)
    await screen.press("Approve", await screen.question("The plan"))
    result = await screen.question("The result")
    await expect(result.get_by_label("Iteration to accept")).to_have_count(0)
    (first,) = [row async for row in flowise_flows.iter_chatflows() if f"fda:{session}:flow" in row.tags]
    await result.get_by_label("What should be different?").fill("Use a temperature of 0.1")
    await screen.press("Change it", result)
    choice = screen.page.get_by_label("Iteration to accept")
    await expect(choice).to_be_visible(timeout=WORK_MS)
    await expect(choice.locator("option")).to_have_count(2)
    await expect(choice.locator("option:checked")).to_contain_text("1 (newest)")
    assert await screen.violations() == []
    assert (await flowise_flows.get_chatflow(first.id)).flow_data != first.flow_data
    await choice.select_option("0")
    await screen.accept(await screen.question("The result"))
    await screen.status("Accepted")
    accepted = await flowise_flows.get_chatflow(first.id)
    assert (accepted.flow_data, accepted.deployed) == (first.flow_data, True)


@pytest.mark.nightly
async def test_p71_questions_are_answered_and_lead_to_a_plan(reading: Screen, standin: ModelStandIn) -> None:
    classified = [VAGUE, scripted.SUPPORT["classify"]]
    plans = [scripted.SUPPORT["plan"], {**scripted.SUPPORT["plan"], "flow_name": "Bike Helper"}]
    script(standin, {**scripted.SUPPORT, "classify": classified, "plan": plans})
    screen = reading
    await screen.start("a bot")
    card = await screen.question("A few questions first")
    assert await screen.violations() == []
    await card.get_by_role("textbox").first.fill("It helps customers of a bike shop with repairs")
    await screen.page.reload()
    card = await screen.question("A few questions first")
    await card.get_by_role("textbox").first.fill("It helps customers of a bike shop with repairs")
    await screen.press("Answer", card)
    plan = await screen.question("The plan")
    await plan.get_by_label("What should be different?").fill("Call it Bike Helper")
    await screen.press("Ask for changes", plan)
    await screen.reads("Bike Helper")


async def test_p71_a_missing_credential_is_created_chosen_and_the_work_is_stopped(
    screen: Screen, flowise: FlowiseAccess, flowise_flows: FlowiseClient
) -> None:
    await screen.start("Build a chatbot with Mistral AI and memory")
    plan = await screen.question("The plan")
    await screen.reads("mistralAIApi")
    await screen.press("Approve", plan)
    card = await screen.question("Credentials")
    await expect(card.get_by_role("link", name="Create it in Flowise")).to_have_attribute(
        "href", f"{flowise.endpoint}/credentials"
    )
    assert await screen.violations() == []
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    async with httpx2.AsyncClient(base_url=f"{flowise.endpoint}/api/v1", headers=headers) as http:
        made: list[str] = []
        for name in ("Mistral of sales", "Mistral of support"):
            body = {"name": name, "credentialName": "mistralAIApi", "plainDataObj": {"mistralAIAPIKey": "x"}}
            made.append((await http.post("/credentials", json=body)).json()["id"])
        await screen.press("Read again", card)
        await expect(card.get_by_label("mistralAIApi")).to_be_visible(timeout=WORK_MS)
        await screen.press("Choose", card)
        await screen.reads("Choose a credential for each type.")
        await card.get_by_label("mistralAIApi").select_option("Mistral of support")
        await screen.press("Choose", card)
        await expect(card).to_be_hidden()
        await screen.press("Cancel session")
        await screen.press("Yes, cancel")
        await screen.status("Cancelled")
        for identity in made:
            await http.delete(f"/credentials/{identity}")
    await screen.page.reload()
    await screen.status("Cancelled")


@pytest.mark.nightly
async def test_two_tabs_answer_one_question_and_the_slower_one_sees_the_answer(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    session_id = await screen.start(SUPPORT)
    await screen.question("The plan")
    other = await Screen.open(screen.page.context, screen.url)
    # This tab does not hear of the other's answer before it sends its own.
    await other.page.route("**/sessions/*/stream", lambda route: route.abort())
    await other.page.set_viewport_size(SIZES[1])
    await other.see(session_id)
    slower = await other.question("The plan")
    quicker = await screen.question("The plan")
    await screen.press("Approve", quicker)
    await screen.question("The result")
    await slower.get_by_label("What should be different?").fill("use another model")
    await screen.press("Ask for changes", slower)
    await other.reads("This question was answered elsewhere")
    await other.page.unroute_all()
    result = await other.question("The result")
    # It is read before the next question, also on a phone.
    await expect(other.page.get_by_text("This question was answered elsewhere")).to_be_in_viewport(ratio=1)
    assert await other.violations() == []
    # The browser itself reports the lost stream and the refused answer; nothing else is wrong.
    assert all("409" in line or "ERR_FAILED" in line for line in other.heard), other.heard
    # A tab that listens sees the answer without doing anything.
    await screen.press("Roll back", result)
    await screen.press("Roll back now", result)
    await other.status("Rolled back")
    await screen.status("Rolled back")
    await screen.reads("This question was answered elsewhere: the person wants it undone.")


async def test_p70_what_people_and_models_write_is_shown_and_never_run(screen: Screen) -> None:
    nasty = "<img src=x onerror=alert(1)> <script>alert(2)</script> [press me](javascript:alert(3))"
    await screen.start(f"{SUPPORT} {nasty}")
    plan = await screen.question("The plan")
    await screen.reads("<script>alert(2)</script>")
    assert await plan.locator("img, script, iframe").count() == 0
    assert await screen.page.locator("a[href^='javascript']").count() == 0


@pytest.mark.nightly
async def test_sessions_are_found_filtered_renamed_paged_and_deleted(
    screen: Screen, page_service: ServiceProcess
) -> None:
    page = screen.page
    async with httpx2.AsyncClient(base_url=page_service.url, headers=AUTHORIZATION, timeout=60) as http:
        for number in range(23):
            body = {"requirement": f"zebra number{number}", "session_name": f"Zebra {number}"}
            created = await http.post("/sessions?wait=0", json=body)
            await http.post(f"/sessions/{created.json()['thread_id']}/cancel")
    await page.get_by_label("Search sessions").fill("zebra")
    rows = page.locator(".session-row")
    await expect(rows).to_have_count(20)
    await screen.reads("23 sessions")
    await screen.press("Older sessions")
    await expect(rows).to_have_count(23)
    await page.get_by_text("Failed", exact=True).click()
    await screen.reads("No matching sessions.")
    await page.get_by_role("group", name="Status").get_by_text("Cancelled", exact=True).click()
    await expect(rows.first).to_contain_text("Cancelled")

    await page.get_by_label("Search sessions").fill("number7")
    await expect(rows).to_have_count(1)
    await screen.press("Rename Zebra 7")
    await page.get_by_label("Session name").fill("Giraffe")
    await screen.press("Save")
    await expect(rows.first).to_contain_text("Giraffe")
    assert await screen.violations() == []
    await screen.press("Delete Giraffe")
    # The safe answer has the focus, and changes nothing.
    await expect(page.get_by_role("button", name="No, go back")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(rows).to_have_count(1)
    await screen.press("Delete Giraffe")
    await screen.press("Delete it")
    await screen.reads("No matching sessions.")


@pytest.mark.nightly
async def test_the_key_is_asked_for_and_kept_for_the_tab(browser: Browser, page_service: ServiceProcess) -> None:
    screen = await Screen.open(browser, page_service.url, has_key=False)
    page = screen.page
    dialog = page.get_by_role("dialog", name="API key required")
    await expect(dialog).to_be_visible()
    assert await screen.violations() == []
    await dialog.get_by_label("Key").fill("not the key")
    await screen.press("Continue")
    await screen.reads("Wrong key.")
    await dialog.get_by_label("Key").fill(KEY)
    await screen.press("Continue")
    await expect(dialog).to_be_hidden()
    await screen.reads("Without a model your words choose one of the ready-made flows below")
    await page.reload()
    await screen.reads("Without a model your words choose one of the ready-made flows below")
    await expect(dialog).to_be_hidden()
    # The browser reports what was refused; nothing else is wrong.
    assert all("401" in line for line in screen.heard), screen.heard
    await page.context.close()


async def test_a_lost_connection_loses_nothing(browser: Browser, page_service: ServiceProcess) -> None:
    screen = await Screen.open(browser, page_service.url)
    page = screen.page
    await screen.start(SUPPORT)
    plan = await screen.question("The plan")
    typed = plan.get_by_label("What should be different?")
    await typed.fill("half a thought")
    await page.context.set_offline(True)
    await screen.reads("Connection lost.")
    await screen.press("Ask for changes", plan)
    await screen.reads("The service does not respond.")
    await page.context.set_offline(False)
    await expect(page.get_by_text("Connection lost.")).to_be_hidden()
    # No input is lost, and the stream resumes where it was cut.
    await expect(typed).to_have_value("half a thought")
    await typed.fill("")
    await screen.press("Cancel", plan)
    await screen.press("End the session", plan)
    await screen.status("Cancelled")
    await expect(page.get_by_role("region", name="What happened").get_by_text("Plan: done")).to_have_count(1)
    assert all("ERR_" in line for line in screen.heard), screen.heard
    await page.context.close()


@pytest.mark.nightly
async def test_a_phone_a_dark_room_and_a_keyboard_are_enough(browser: Browser, page_service: ServiceProcess) -> None:
    screen = await Screen.open(browser, page_service.url, color_scheme="dark")
    page = screen.page
    await page.set_viewport_size({"width": 375, "height": 740})
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert await screen.violations() == []
    assert await screen.overflow() <= 0
    field = page.get_by_label("What should the chatbot do?")
    await field.focus()
    await page.keyboard.type(SUPPORT)
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()
    await page.keyboard.press("Control+Enter")
    plan = await screen.question("The plan")
    assert await screen.overflow() <= 0
    assert await screen.violations() == []
    await plan.get_by_role("button", name="Cancel", exact=True).focus()
    await page.keyboard.press("Enter")
    # The safe answer has the focus; the destructive one is one step back.
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await screen.status("Cancelled")
    await page.get_by_role("link", name="All flows").click()
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("button", name="Light colours").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    for path in ("patterns", "instances", "knowledge", "webhooks", "settings", "api"):
        await page.goto(f"{screen.url}/#/{path}")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert await screen.overflow() <= 0, path
    assert screen.heard == []
    await page.context.close()
