"""Speed of the page: its arrival, and the drawing of large flows. The report of the tests prints all figures.

Generated flows in a headless Chromium, with answers of the API made up: the time until all boxes are drawn, the boxes
after zooming in, and the frames while the flow is dragged. Then the start page on slow 4G with a CPU that is four times
slower. What is sent and what moves is the same on every machine and has a budget; times depend on the machine.
"""

import asyncio
import math
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.async_api import Browser, Page
from pydantic import JsonValue

from flowise_dev_agent.api.routes import page as page_routes
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, PatchOp, canvas_view, compile_ops
from flowise_dev_agent.schemas.flows import FlowFacts, FlowView

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

_ZOOM_STEPS = 8
_DRAGS = 8
#: Slow 4G as Lighthouse has it, in bytes a second and ms.
_SLOW = {"offline": False, "latency": 150, "downloadThroughput": 1_638_400 / 8, "uploadThroughput": 768_000 / 8}
#: Collects the times between frames until `stopCounting` is called, in ms.
_COUNT_FRAMES = """() => {
    let last = performance.now(), on = true;
    const seen = [];
    const tick = (now) => {
        seen.push(now - last);
        last = now;
        if (on) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    window.stopCounting = () => { on = false; return seen; };
}"""
#: Goes to a flow and waits until all of its boxes are painted; ms.
_OPEN = """([path, boxes]) => new Promise((done) => {
    const begin = performance.now();
    const look = () => document.querySelectorAll(".react-flow__node").length === boxes
        ? requestAnimationFrame(() => done(performance.now() - begin)) : requestAnimationFrame(look);
    location.hash = path;
    look();
})"""
#: Watches from the first byte on: the largest paint (ms), when the field of the form is there (ms), the sum of shifts.
_WATCH = """
    window.seen = {paint: 0, usable: 0, shift: 0};
    const looking = new MutationObserver(() => {
        if (!document.getElementById("requirement")) return;
        window.seen.usable = performance.now();
        looking.disconnect();
    });
    looking.observe(document, {childList: true, subtree: true});
    new PerformanceObserver((list) => { for (const one of list.getEntries()) window.seen.paint = one.startTime; })
        .observe({type: "largest-contentful-paint", buffered: true});
    new PerformanceObserver((list) => {
        for (const one of list.getEntries()) if (!one.hadRecentInput) window.seen.shift += one.value;
    }).observe({type: "layout-shift", buffered: true});
"""


def flow_of(nodes: int, store: NodeStore) -> FlowView:
    """Conversations with model and memory, three nodes each, in rows and columns."""
    ops: list[PatchOp] = []
    for number in range(nodes // 3):
        chain, model, memory = f"conversationChain_{number}", f"chatOpenAI_{number}", f"bufferMemory_{number}"
        ops += [
            AddNode(node_name="conversationChain", node_id=chain),
            AddNode(node_name="chatOpenAI", node_id=model, params={"modelName": "gpt-4o", "temperature": 0.2}),
            AddNode(node_name="bufferMemory", node_id=memory),
            Connect(source_node_id=model, target_node_id=chain, target_anchor="model"),
            Connect(source_node_id=memory, target_node_id=chain, target_anchor="memory"),
        ]
    graph = canvas_view(compile_ops(GraphIR.empty(), ops, store.schemas).graph)
    across = math.ceil(math.sqrt(len(graph.nodes)))
    placed = [
        replace(node, x=index % across * 340.0, y=index // across * 300.0) for index, node in enumerate(graph.nodes)
    ]
    graph = replace(graph, nodes=tuple(placed))
    facts: dict[str, Any] = {"id": str(nodes), "name": f"{nodes} nodes", "type": "CHATFLOW", "instance": "bench"}
    facts |= {"url": None, "nodes": len(graph.nodes), "node_types": [], "categories": [], "updated": ""}
    return FlowView(flow=FlowFacts(**facts, deployed=False, public=False, draft=False), graph=graph)


@asynccontextmanager
async def served(flow: FlowView) -> AsyncGenerator[str]:
    """The address of the built page as the service sends it, and of an API that has this one flow."""
    app = FastAPI()
    page_routes.router.add_to(app)
    page_routes.mount_files(app)
    listed: list[JsonValue] = [flow.flow.model_dump(mode="json")]
    answers: dict[str, JsonValue] = {
        "flows": {"flows": listed, "total": 1, "searched": 1, "next_cursor": None},
        "sessions": {"sessions": [], "next_cursor": None, "totals": None},
        "health": {"flowise": {"bench": {"state": "ok"}}, "reasoning": {"engine": "deterministic"}},
        "graph": flow.model_dump(mode="json"),
        "conversation": {"sessions": [], "next_cursor": None},
        "current": {"name": "bench", "scopes": [], "signed_in": False},
    }

    @app.get("/{path:path}")
    async def _(path: str) -> JsonValue:
        return answers.get(path.rpartition("/")[2], {})

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - the server has no event for it
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await running


async def measured(browser: Browser, flow: FlowView) -> dict[str, float]:
    """One flow in a page of its own."""
    async with served(flow) as site:
        page = await browser.new_page(viewport={"width": 1280, "height": 900})
        await page.goto(site)
        await page.get_by_role("heading", level=1).wait_for()
        path = f"/f/{flow.flow.id}/bench"
        # The first time the files of the canvas are loaded too; what people wait for again and again is the second.
        await page.evaluate(_OPEN, [path, flow.flow.nodes])
        await page.evaluate("location.hash = '/'")
        await page.locator(".react-flow").wait_for(state="detached")
        opened = await page.evaluate(_OPEN, [path, flow.flow.nodes])
        boxes = page.locator(".react-flow__node")
        whole = await _dragged(page)
        zoom = page.get_by_role("button", name="Zoom In")
        for _ in range(_ZOOM_STEPS):
            await zoom.click()
        near = await _dragged(page)
        close = await boxes.count()
        await page.close()
    return {"opened": opened, "close": close, "whole_p95": _p95(whole), "near_p95": _p95(near), "longest": max(near)}


def _p95(frames: list[float]) -> float:
    return sorted(frames)[int(len(frames) * 0.95)]


async def start_page(browser: Browser, flow: FlowView) -> dict[str, float]:
    """Kilobytes, requests, times (ms) and layout shift of the start page on a slow line with a slow CPU."""
    async with served(flow) as site:
        page = await browser.new_page(viewport={"width": 1280, "height": 720})
        client = await page.context.new_cdp_session(page)
        sent: list[float] = []
        client.on("Network.loadingFinished", lambda event: sent.append(event["encodedDataLength"]))
        await client.send("Network.enable")
        await client.send("Network.emulateNetworkConditions", _SLOW)
        await client.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        await page.add_init_script(_WATCH)
        await page.goto(site)
        await page.locator(".flow-card").first.wait_for()
        await page.wait_for_load_state("networkidle")
        seen = await page.evaluate("window.seen")
        await page.close()
    return {**seen, "kilobytes": sum(sent) / 1000, "requests": len(sent)}


async def _dragged(page: Page) -> list[float]:
    box = await page.locator(".react-flow__pane").bounding_box()
    assert box
    left, top = box["x"], box["y"]
    await page.evaluate(_COUNT_FRAMES)
    for drag in range(_DRAGS):
        # There and back, so that the flow ends where it was.
        start, end = ((0.2, 0.2), (0.8, 0.6)) if drag % 2 == 0 else ((0.8, 0.6), (0.2, 0.2))
        await page.mouse.move(left + box["width"] * start[0], top + box["height"] * start[1])
        await page.mouse.down(button="middle")  # over a node, too
        await page.mouse.move(left + box["width"] * end[0], top + box["height"] * end[1], steps=6)
        await page.mouse.up(button="middle")
    return await page.evaluate("window.stopCounting()")


async def test_the_start_page_is_small_and_does_not_move_on_a_slow_line(
    browser: Browser, built_page: Path, record_property: Callable[[str, object], None]
) -> None:
    start = await start_page(browser, flow_of(30, NodeStore.from_snapshot()))
    for name, value in start.items():
        record_property(name, round(value, 3))
    assert start["kilobytes"] <= 150
    assert start["requests"] <= 36
    assert start["shift"] <= 0.05
    assert start["usable"] > 0
    assert start["paint"] > 0


async def test_400_nodes_open_and_are_dragged(
    browser: Browser, built_page: Path, record_property: Callable[[str, object], None]
) -> None:
    found = await measured(browser, flow_of(400, NodeStore.from_snapshot()))
    for name, value in found.items():
        record_property(name, round(value, 1))
    # Near by, what is out of sight is not there.
    assert found["close"] < 60
