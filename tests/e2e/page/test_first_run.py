"""A new service: somebody connects a Flowise and a model at the page, and starts."""

from pathlib import Path

import psycopg
import pytest
from playwright.async_api import Browser, Locator, expect
from psycopg.types.json import Jsonb

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.chaos.fake_flowise import FakeFlowise
from tests.e2e.page.screen import SIZES, WORK_MS, Screen
from tests.e2e.people import MakeService
from tests.e2e.service import ServiceProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOTHING = {"FLOWISE_API_ENDPOINT": "", "FLOWISE_API_KEY": "", "REASONING_ENGINE": ""}


def complaints_of(screen: Screen) -> list[str]:
    """What the browser says, but for the Flowise that is away or was given wrongly."""
    return [line for line in screen.heard if "/connections/" not in line and "/flows?" not in line]


def record_session(dsn: str, planned_with: str) -> None:
    """A session that ended well."""
    totals = {"usd": 0.03, "input_tokens": 900, "phase_durations_ms": {"plan": 30_000, "patch": 10_000}}
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO sessions (id, owner, requirement, request, instance_id, status, outcome, totals, planned_with)"
            " VALUES (gen_random_uuid(), 'default', 'x', '{}', 'default', 'completed', 'accepted', %s, %s)",
            (Jsonb(totals), planned_with),
        )


async def test_a_new_service_is_connected_at_the_page_and_starts(
    browser: Browser, built_page: Path, make_service: MakeService, flowise: FlowiseAccess, standin: ModelStandIn
) -> None:
    service = make_service(**NOTHING)
    await service.start()
    screen = await Screen.open(browser, service.url, has_key=False)
    page, key = screen.page, flowise.api_key.get_secret_value()
    for size in SIZES:
        await page.set_viewport_size(size)
        await screen.reads("No Flowise is connected yet.")
        await expect(page.locator(".example")).to_have_count(8)
        # There is nothing to search; what is still empty is as wide as the rest.
        await expect(page.get_by_role("searchbox").filter(visible=True)).to_have_count(0)
        await screen.settles(
            """new Set([".composer", ".home .home"].map((one) =>
                document.querySelector(one).getBoundingClientRect().width)).size === 1"""
        )
        assert await screen.overflow() <= 0
        assert await screen.violations() == []
    await page.set_viewport_size(SIZES[0])
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    await screen.reads("Works without a model")
    await page.get_by_label("What should the chatbot do?").fill("A chatbot that I typed before")

    await screen.press("Connect a Flowise")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Address").fill("http://127.0.0.1:9")
    await dialog.get_by_label("Key").fill("not-the-key")
    await screen.press("Test and connect", dialog)
    await expect(dialog.get_by_role("alert")).to_contain_text("cannot be reached", timeout=WORK_MS)
    await dialog.get_by_label("Address").fill(flowise.endpoint)
    await screen.press("Test and connect", dialog)
    await expect(dialog.get_by_role("alert")).to_contain_text("Check the key", timeout=WORK_MS)
    await expect(dialog.get_by_role("button", name="Test and connect")).to_be_focused()
    assert await screen.violations() == []
    for size in SIZES:
        await page.set_viewport_size(size)
        await expect(dialog.get_by_role("button", name="Test and connect")).to_be_in_viewport()
    await dialog.get_by_label("Key").fill(key)
    await screen.press("Test and connect", dialog)
    await screen.reads(f"Connected to {flowise.endpoint}")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Change the Flowise connection")).to_be_focused()

    await screen.press("Connect a model")
    await dialog.get_by_label("Provider").select_option("other")
    await dialog.get_by_label("Address").fill(standin.base_url_openai)
    await dialog.get_by_label("Model").fill("gpt-4o")
    assert await screen.violations() == []
    await screen.press("Test and connect", dialog)
    await expect(page.locator(".first-run")).to_contain_text("Plans with gpt-4o", timeout=WORK_MS)
    assert await screen.violations() == []
    # What a start will cost is known from sessions like it, and not before there is one.
    await expect(page.get_by_text("about $")).to_have_count(0)
    record_session(service.dsn, "openai gpt-4o")
    await page.reload()
    await screen.reads("about $0.03, 40 s")
    # Nothing typed is lost, and work can begin.
    await expect(page.get_by_label("What should the chatbot do?")).to_have_value("A chatbot that I typed before")
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()
    assert key not in await page.content()

    await page.goto(f"{service.url}/#/instances")
    instance = page.get_by_role("region", name="Instance default")
    await screen.press("Disconnect", instance)
    await screen.press("Disconnect", page.get_by_role("dialog"))
    await screen.reads("No Flowise is connected yet.")
    await page.context.close()
    assert complaints_of(screen) == []


@pytest.mark.nightly
async def test_open_sessions_are_kept_or_stopped_as_the_person_says_when_the_server_changes(
    browser: Browser,
    built_page: Path,
    make_service: MakeService,
    flowise: FlowiseAccess,
    flowise_flows: FlowiseClient,
) -> None:
    del flowise_flows  # deletes what the test leaves on the server
    key = flowise.api_key.get_secret_value()
    with FakeFlowise(api_key=key) as another:
        await walk_over_open_sessions(browser, make_service(**NOTHING), flowise, another)


async def walk_over_open_sessions(
    browser: Browser, service: ServiceProcess, flowise: FlowiseAccess, fake: FakeFlowise
) -> None:
    await service.start()
    screen = await Screen.open(browser, service.url, has_key=False)
    page, key = screen.page, flowise.api_key.get_secret_value()
    another = f"http://127.0.0.1:{fake.port}"
    body = {"endpoint": flowise.endpoint, "api_key": key}
    assert (await page.request.put(f"{service.url}/connections/flowise", data=body)).ok
    await page.reload()
    session = await screen.begin()
    await screen.question("The plan")

    async def change_to(address: str) -> Locator:
        await page.goto(f"{service.url}/#/instances")
        await screen.press("Change the Flowise connection")
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Address").fill(address)
        await dialog.get_by_label("Key").fill(key)
        await screen.press("Test and connect", dialog)
        await expect(dialog.get_by_role("alert")).to_contain_text("session", timeout=WORK_MS)
        return dialog

    other = flowise.endpoint.replace("127.0.0.1", "localhost")
    dialog = await change_to(other)
    for size in SIZES:
        await page.set_viewport_size(size)
        assert await screen.violations() == []
        assert await screen.overflow() <= 0
    # The same Flowise elsewhere: the session goes on.
    await screen.press("It is the same Flowise at another address", dialog)
    await screen.reads(f"Connected to {other}")
    await screen.see(session)
    await screen.press("Approve", await screen.question("The plan"))
    await screen.question("The result")
    # Another one: it ends.
    dialog = await change_to(another)
    await screen.press("Stop the sessions and connect", dialog)
    await screen.reads(f"Connected to {another}")
    await screen.see(session)
    await screen.accept(await screen.question("The result"))
    await screen.status("Failed")
    assert await screen.violations() == []
    # Forgotten, it is asked about the sessions that are open too.
    await page.goto(service.url)
    await screen.begin()
    await screen.question("The plan")
    await page.goto(f"{service.url}/#/instances")
    await screen.press("Disconnect", page.get_by_role("region", name="Instance default"))
    await screen.press("Disconnect", page.get_by_role("dialog"))
    await screen.press("Stop the sessions and disconnect")
    await screen.reads("No Flowise is connected yet.")
    await page.context.close()


@pytest.mark.nightly
async def test_where_no_key_can_be_kept_the_page_says_which_settings_to_write(
    browser: Browser, built_page: Path, make_service: MakeService
) -> None:
    service = make_service(**NOTHING, XDG_DATA_HOME="/dev/null/none")
    await service.start()
    screen = await Screen.open(browser, service.url, has_key=False)
    await screen.press("Connect a Flowise")
    dialog = screen.page.get_by_role("dialog")
    for setting in ("FLOWISE_API_ENDPOINT=", "FLOWISE_API_KEY=", "SECRETS_KEY="):
        await expect(dialog).to_contain_text(setting)
    assert await screen.violations() == []
    await screen.press("Close", dialog)
    await expect(screen.page.get_by_role("button", name="Connect a Flowise")).to_be_focused()
    await screen.page.context.close()
    assert complaints_of(screen) == []
