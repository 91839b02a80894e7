"""Lists of a node are changed by click, in a plan and in a result: tools of an agent and its messages."""

import pytest
from playwright.async_api import Locator, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import WORK_MS, Screen
from tests.e2e.page.test_edits import inputs

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

AGENT = {
    "name": "Zoo",
    "kind": "steps",
    "model": "gpt-4o",
    "steps": [{"kind": "answer", "prompt": "You answer customers of a zoo.", "tools": ["calculator"]}],
}
NODE = "agentAgentflow_0"


def row(form: Locator, name: str) -> Locator:
    return form.get_by_role("group", name=name, exact=True)


async def planned(screen: Screen) -> str:
    """A session with the plan of the agent; its id."""
    session = await screen.begin(**AGENT, prompt=None)
    await screen.question("The plan")
    return session


async def bound(flowise: FlowiseClient, session: str) -> list[str]:
    """The credentials of the tools."""
    configs = [one.get("agentSelectedToolConfig") or {} for one in (await inputs(flowise, session, NODE))["agentTools"]]
    return [config["FLOWISE_CREDENTIAL_ID"] for config in configs if config.get("FLOWISE_CREDENTIAL_ID")]


async def chosen(flowise: FlowiseClient, session: str) -> list[str]:
    return [one["agentSelectedTool"] for one in (await inputs(flowise, session, NODE))["agentTools"]]


async def test_tools_of_an_agent_are_added_ordered_and_taken_out_in_a_plan_and_in_a_result(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    session = await planned(screen)
    await page.locator(f'.react-flow__node[data-id="{NODE}"]').click()
    form = page.locator(".node-form")
    await screen.press("Add to tools", form)
    # The focus is in the new row, and the server lists what it may be.
    tool = row(form, "Tools 2").get_by_label("Tool")
    await expect(tool).to_be_focused()
    await tool.select_option("currentDateTime")
    await screen.press("Move up", row(form, "Tools 2"))
    await screen.reads("1 changed by hand")
    assert await screen.violations() == []
    await screen.press("Approve with my edits")
    await screen.question("The result")
    assert await chosen(flowise_flows, session) == ["currentDateTime", "calculator"]

    await page.locator(f'.react-flow__node[data-id="{NODE}"]').click()
    await screen.press("Remove", row(form, "Tools 1"))
    await form.get_by_text("Settings of OpenAI").click()
    await form.get_by_label("Temperature").fill("0.3")
    await form.get_by_label("Temperature").blur()
    await screen.reads("2 changed by hand")
    await page.set_viewport_size({"width": 390, "height": 844})
    await screen.press("Picture")
    await expect(form).to_be_visible()
    assert await screen.overflow() == 0
    assert await screen.violations() == []
    await screen.press("Chat")
    await screen.press("Write and test my changes")
    await expect(page.get_by_label("Iteration to accept")).to_be_visible(timeout=WORK_MS)
    assert await chosen(flowise_flows, session) == ["calculator"]
    assert (await inputs(flowise_flows, session, NODE))["agentModelConfig"]["temperature"] == 0.3


async def test_a_list_with_a_credential_is_changed_and_the_credential_stays(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    session = await planned(screen)
    agent = page.locator(f'.react-flow__node[data-id="{NODE}"]')
    form = page.locator(".node-form")
    await agent.click()
    await screen.press("Add to tools", form)
    await row(form, "Tools 2").get_by_label("Tool").select_option("braveSearchAPI")
    await screen.press("Approve with my edits")
    await screen.question("The result")
    before = await bound(flowise_flows, session)
    assert len(before) == 1
    await agent.click()
    await screen.press("Move up", row(form, "Tools 2"))
    await screen.press("Write and test my changes")
    await expect(page.get_by_label("Iteration to accept")).to_be_visible(timeout=WORK_MS)
    assert await chosen(flowise_flows, session) == ["braveSearchAPI", "calculator"]
    assert await bound(flowise_flows, session) == before
