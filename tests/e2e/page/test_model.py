"""What a person sees of a model at work: its plan while it is written, and its cost before it gets too high."""

from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import RECORD_NOTICES, SIZES, WORK_MS, Screen
from tests.e2e.people import SharedService
from tests.e2e.scripted import REQUIREMENT, SUPPORT, model_environment, script

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]


@pytest_asyncio.fixture(loop_scope="session")
async def screen(
    built_page: Path,
    browser: Browser,
    shared_service: SharedService,
    flowise_flows: FlowiseClient,
    standin: ModelStandIn,
) -> AsyncIterator[Screen]:
    """The page of a service that thinks with a model; the browser must have had nothing to complain about."""
    del flowise_flows  # deletes what a test leaves on the server
    service = await shared_service(**model_environment(standin))
    screen = await Screen.open(browser, service.url)
    yield screen
    await screen.page.context.close()
    assert screen.heard == []


async def test_p71_what_a_model_writes_is_told_in_sentences_and_drawn_while_it_writes(
    screen: Screen, standin: ModelStandIn
) -> None:
    page = screen.page
    await page.add_init_script(RECORD_NOTICES)
    await page.reload()
    watched, gate = Event(), Event()
    script(standin, SUPPORT, gates={"classify": watched, "plan": gate})
    await screen.start(REQUIREMENT)
    # What is written before the page looks is not sent again: the time that runs was read from the events.
    await expect(page.locator(".now small")).to_be_visible(timeout=WORK_MS)
    watched.set()
    # The nodes are there before the plan is finished, and nobody reads JSON.
    nodes = page.locator(".fnode.ghost")
    await expect(nodes).to_have_count(3, timeout=WORK_MS)
    await expect(nodes.filter(has_text="Buffer Memory")).to_have_count(1)
    await expect(page.locator(".now")).to_contain_text("…")
    assert "node_name" not in await page.inner_text("main")
    assert '"goal"' not in await page.inner_text("main")
    # Who goes to do something else may be told when the plan is there.
    for size in reversed(SIZES):
        await page.set_viewport_size(size)
        await expect(page.locator(".now").get_by_role("button", name="Notify me in the browser")).to_be_visible()
        assert await screen.overflow() <= 0
    story = page.get_by_role("region", name="What happened")
    await expect(story.get_by_text("Plan: waiting for you")).to_have_count(0)
    assert await screen.violations() == []
    gate.set()
    plan = await screen.question("The plan")
    await expect(plan.get_by_label("Test question 2", exact=True)).to_have_value("Where is my parcel?")
    await expect(page.get_by_text("Planned; nothing is written yet")).to_be_visible()
    await expect(story.get_by_text("Plan: waiting for you")).to_be_attached()


async def test_p28_p71_a_used_up_budget_stops_the_work_until_the_person_raises_it(
    screen: Screen, standin: ModelStandIn
) -> None:
    page = screen.page
    phases = script(standin, SUPPORT)
    await page.get_by_text("Options", exact=True).click()
    await page.get_by_label("Token limit").fill("100")
    session_id = await screen.start(REQUIREMENT)
    card = await screen.question("The budget is used up")
    await screen.reads("of 100 tokens are used")
    assert (phases["classify"].calls, phases["plan"].calls) == (1, 0)
    raise_it = card.get_by_role("button", name="Raise the budget and continue")
    await expect(raise_it).to_be_disabled()
    assert await screen.violations() == []
    # Not enough: it stops again, before the next call.
    await card.get_by_label("New token limit").fill("101")
    await raise_it.click()
    await screen.reads("of 101 tokens are used")
    assert phases["plan"].calls == 0
    await screen.see(session_id)
    await page.reload()
    card = await screen.question("The budget is used up")
    await card.get_by_label("New token limit").fill("1000000")
    await screen.press("Raise the budget and continue", card)
    await screen.press("Approve", await screen.question("The plan"))
    await screen.question("The result")
    # The plan says all of the flow: no model writes its ops.
    assert {name: phase.calls for name, phase in phases.items()} == {"classify": 1, "plan": 1, "patch": 0, "judge": 1}
