"""What a person sees of a session without scrolling, on a laptop and on a phone."""

import re

import pytest
from playwright.async_api import Locator, expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import SIZES, Screen
from tests.e2e.people import make_flow
from tests.e2e.scripted import SUPPORT, VAGUE, change, script

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

LONG = (
    "You help the customers of our online shop, remember the conversation, answer in a friendly tone, "
    "never promise a refund, and always ask for the order number."
)


async def in_sight(screen: Screen, card: Locator, names: list[str]) -> None:
    """The question is longer than the window, and all its actions are in it."""
    for size in SIZES:
        await screen.page.set_viewport_size(size)
        talk = screen.page.locator(".talk")
        await talk.evaluate("(one) => one.scrollTo(0, 0)")
        await screen.settles(
            "[...document.querySelectorAll('.talk')].every((a) => a.scrollHeight - a.clientHeight > 100)"
        )
        for name in names:
            await expect(card.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
        assert await screen.overflow() <= 0
        assert await screen.violations() == []


async def test_all_actions_of_a_long_question_are_in_sight_without_scrolling(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    await screen.begin(prompt=LONG, tools=["calculator"])
    plan = await screen.question("The plan")
    await in_sight(screen, plan, ["Approve", "Ask for changes", "Cancel"])
    await screen.press("Approve", plan)
    result = await screen.question("The result")
    await in_sight(screen, result, ["Go live", "Change it", "Roll back"])
    # What has the focus is not behind the bar.
    field = result.get_by_role("link", name="Open the flow in Flowise")
    await field.focus()
    await screen.settles(
        """document.activeElement.matches("a") && document.activeElement.getBoundingClientRect().bottom
            <= document.querySelector(".dock").getBoundingClientRect().top"""
    )


async def test_after_acceptance_the_way_on_comes_first_and_delete_last(
    reading: Screen, flowise_flows: FlowiseClient, standin: ModelStandIn
) -> None:
    script(standin, change("chatOpenAI_0", "temperature", 0.1), when="temperature of 0.1")
    script(standin, SUPPORT)
    screen = reading
    page = screen.page
    await page.set_viewport_size(SIZES[0])
    first = await screen.start("Build a customer support chatbot with GPT-4o and memory")
    await screen.press("Approve", await screen.question("The plan"))
    await screen.accept(await screen.question("The result"))
    await screen.status("Accepted")
    # The focus is on what happened, not lost.
    await expect(page.locator(".now p").first).to_be_focused()
    onward = page.get_by_role("region", name="What next?")
    for size in reversed(SIZES):
        await page.set_viewport_size(size)
        await expect(onward.get_by_role("button", name="Change it")).to_be_in_viewport(ratio=1)
        await expect(onward.get_by_role("link", name="Open in Flowise")).to_be_in_viewport(ratio=1)
        assert await screen.violations() == []
    details = await screen.open_card("Details")
    await expect(details.get_by_role("button", name="Delete session")).to_be_visible()
    await screen.press("Try it", onward)
    await expect(page.get_by_label("Your question")).to_be_focused()
    await onward.get_by_label("What should be different?").fill("Use a temperature of 0.1")
    await screen.press("Change it", onward)
    await page.wait_for_url(lambda url: "/#/s/" in url and not url.endswith(first))
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await screen.question("The plan")


async def test_the_wheel_zooms_the_change_and_no_mark_covers_a_title(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    row = await make_flow(flowise_flows)
    await page.goto(f"{screen.url}/#/f/{row.id}/default")
    await page.locator('.react-flow__node[data-id="chatOpenAI_0"]').click()
    await page.keyboard.press("Control+d")
    box = page.locator('.react-flow__node[data-id="chatOpenAI_1"]')
    await expect(box.locator(".mark")).to_have_text(re.compile(r"^\+"))
    # Both at one moment: the flow is fitted into the window again when that has changed.
    apart = """(box) => box.querySelector(":is(.fnode-title, .fnode-name)").getBoundingClientRect().top
        - box.querySelector(".mark").getBoundingClientRect().bottom"""
    assert await box.evaluate(apart) >= -1
    view = page.locator(".react-flow__viewport")
    before = await view.get_attribute("style")
    assert before
    await page.locator(".react-flow__pane").hover()
    await page.mouse.wheel(0, -300)
    await expect(view).not_to_have_attribute("style", before)
    assert await screen.violations() == []


async def test_the_picture_is_beside_the_conversation_and_the_browser_keeps_the_divider(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    await page.set_viewport_size(SIZES[0])
    await screen.begin(prompt=LONG, tools=["calculator"])
    await screen.press("Approve", await screen.question("The plan"))
    result = await screen.question("The result")
    talk = page.get_by_role("region", name="Conversation")
    await expect(talk.get_by_text("never promise a refund").first).to_be_attached()
    nodes = page.locator(".react-flow__node")
    await expect(nodes).to_have_count(4)
    await expect(nodes.first).to_be_in_viewport()
    divider = page.get_by_role("separator", name="Width of the conversation")
    before = await talk.bounding_box()
    assert before
    await divider.focus()
    for _ in range(3):
        await page.keyboard.press("ArrowRight")
    await page.wait_for_function(
        "(least) => document.querySelector('.talk').getBoundingClientRect().width > least", arg=before["width"] + 20
    )
    after = await talk.bounding_box()
    assert after
    await result.get_by_label("What should be different?").fill("half a thought")
    await page.reload()
    result = await screen.question("The result")
    await expect(result.get_by_label("What should be different?")).to_have_value("half a thought")
    await screen.settles(
        "(width) => Math.abs(document.querySelector('.talk').getBoundingClientRect().width - width) < 3", after["width"]
    )
    # On a phone one of the three is seen at a time, and none is drawn again.
    await page.set_viewport_size(SIZES[1])
    await expect(nodes.first).not_to_be_in_viewport()
    await screen.press("Picture")
    await expect(nodes.first).to_be_in_viewport()
    assert await screen.violations() == []
    await screen.press("Try")
    await expect(page.get_by_label("Your question")).to_be_focused()
    assert await screen.violations() == []
    await screen.press("Chat")
    await expect(result.get_by_label("What should be different?")).to_have_value("half a thought")


async def test_the_plan_is_drawn_before_approval_and_its_parts_point_at_their_nodes(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    await page.set_viewport_size(SIZES[0])
    there = [row.id async for row in flowise_flows.iter_chatflows()]
    await screen.begin(prompt=LONG, tools=["calculator"])
    plan = await screen.question("The plan")
    assert [row.id async for row in flowise_flows.iter_chatflows()] == there
    ghosts = page.locator(".fnode.ghost")
    await expect(ghosts).to_have_count(4)
    await expect(ghosts.filter(has_text="Tool Agent")).to_be_visible()
    # No letters are smaller than eleven pixels.
    smallest = """() => Math.min(...[...document.querySelectorAll(".fnode :is(strong, small, li, .fnode-name)")].map(
        one => parseFloat(getComputedStyle(one).fontSize) * one.getBoundingClientRect().width / one.offsetWidth))"""
    assert await page.evaluate(smallest) >= 10.5
    await expect(page.locator(".edge.expected")).to_have_count(3)
    # A line of the plan points at its node, by mouse and by keyboard.
    built = plan.get_by_role("list", name="What is built")
    await built.get_by_role("button", name="Calculator").hover()
    await expect(page.locator(".react-flow__node.lit")).to_have_attribute("data-id", "calculator_0")
    await built.get_by_role("button", name="OpenAI").focus()
    await expect(page.locator(".react-flow__node.lit")).to_have_attribute("data-id", "chatOpenAI_0")
    # The parts of a form are its own fields: nothing is told of those that are done.
    await expect(plan.get_by_role("list", name="Your request, part by part")).to_have_count(0)
    # On a phone the press on a line shows the picture.
    await page.set_viewport_size(SIZES[1])
    await built.get_by_role("button", name="Calculator").click()
    await expect(page.locator(".react-flow__node.lit")).to_be_in_viewport()
    assert await screen.violations() == []


async def test_on_a_phone_a_session_is_cancelled_in_its_menu_and_nobody_else_is_named(
    reading: Screen, standin: ModelStandIn
) -> None:
    script(standin, {"classify": VAGUE})
    screen = reading
    page = screen.page
    await page.set_viewport_size(SIZES[1])
    await screen.start("a bot")
    await screen.question("A few questions first")
    # The bar has room for the name.
    await screen.settles("document.querySelector('.workbench-head h1').getBoundingClientRect().width > 150")
    await screen.press("More")
    await screen.press("Cancel session")
    assert await screen.violations() == []
    await screen.press("Yes, cancel")
    await screen.reads("Session cancelled.")
    await expect(page.get_by_role("button", name="Rename")).to_be_hidden()
    await expect(page.get_by_text("answered elsewhere")).to_have_count(0)
