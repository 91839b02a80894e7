"""An AgentFlow with a condition, an approval and a loop: built from nothing in the page, then opened in Flowise's own
editor and built there, too.
"""

from itertools import combinations
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.patch import GraphIR
from scripts.bench.by_hand import NAME, Hand, build_here, build_there, caught, sign_in, try_ways
from tests.e2e.page.screen import Screen
from tests.e2e.people import KEY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly, pytest.mark.timeout(400)]


Box = dict[str, float]


def shape(flow_data: str) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Types of the nodes, and what each output leads to."""
    graph = GraphIR.from_flow_data(flow_data)
    names = {node.id: node.name for node in graph.nodes}
    lines = [(names[one.source], one.source_handle.partition("-")[2], names[one.target]) for one in graph.edges]
    return sorted(names.values()), sorted(lines)


def apart(one: Box, other: Box) -> bool:
    return any(
        one[at] + one[long] <= other[at] or other[at] + other[long] <= one[at]
        for at, long in (("x", "width"), ("y", "height"))
    )


async def test_a_flow_built_by_hand_looks_and_runs_in_flowise_as_drawn_and_takes_less_than_there(
    browser: Browser, screen: Screen, flowise: FlowiseAccess, flowise_flows: FlowiseClient
) -> None:
    here = await build_here(screen.page, screen.url)
    assert await screen.violations() == []
    (row,) = [row async for row in flowise_flows.iter_chatflows() if row.name == NAME]
    built = (await flowise_flows.get_chatflow(row.id)).flow_data
    window = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await window.new_page()
    await sign_in(page, flowise)
    await page.goto(f"{flowise.endpoint}/v2/agentcanvas/{row.id}")
    nodes = page.locator(".react-flow__node")
    await expect(nodes).to_have_count(7)
    await expect(page.locator(".react-flow__edge")).to_have_count(6)
    # No box covers another one, and each step is to the right of what leads to it.
    boxes = {await one.get_attribute("data-id"): await one.bounding_box() for one in await nodes.all()}
    places: dict[str, Any] = {str(id_): box for id_, box in boxes.items() if box}
    assert all(apart(one, other) for one, other in combinations(places.values(), 2))
    graph = GraphIR.from_flow_data(built)
    assert all(places[one.source]["x"] < places[one.target]["x"] for one in graph.edges)
    assert {node.id: node.label for node in graph.nodes}["loopAgentflow_0"] == "Back to LLM"
    # It runs there on all three ways, and its editor saves what it opened.
    opened = Hand(page)
    await try_ways(opened)
    await expect(page.get_by_text("Please ask about refunds.").first).to_be_visible()
    await expect(page.get_by_text('You said: "refund"').nth(1)).to_be_visible()
    async with page.expect_response(lambda answer: answer.request.method == "PUT" and answer.ok):
        await page.get_by_title("Save Agents").click()
    assert shape((await flowise_flows.get_chatflow(row.id)).flow_data) == shape(built)

    there = await build_there(page, flowise)
    made = page.url.rpartition("/")[2]
    assert shape((await flowise_flows.get_chatflow(made)).flow_data) == shape(built)
    assert here.clicks + here.drags < there.clicks + there.drags
    assert here.words <= there.words
    told = await caught(screen.page, screen.url, flowise, made, KEY)
    assert [name for name, one in told.items() if one.there and not one.here] == []
    assert sum(one.here for one in told.values()) > sum(one.there for one in told.values())
    await window.close()
