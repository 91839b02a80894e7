"""Measures how smoothly the page draws large flows.

    python scripts/bench/canvas.py [NODES ...]

Opens generated flows in a headless Chromium of this machine, without a service. Counts the boxes drawn when the whole
flow is visible and after zooming in, and the frames while it is dragged, relative to the smallest flow. Needs the built
page (`make web`).
"""

import argparse
import asyncio
import json
import math
import mimetypes
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from playwright.async_api import Browser, Page, Route, async_playwright

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, PatchOp, canvas_view, compile_ops
from flowise_dev_agent.runtime.flows.views import FlowFacts, FlowView
from flowise_dev_agent.web import STATIC_DIR

_SITE = "http://page.test"
_ZOOM_STEPS = 8
_DRAGS = 40
#: Counts frames until `stop` is called; then how many there were and how long the longest took, in ms.
_COUNT_FRAMES = """() => {
    let last = performance.now(), on = true;
    const seen = {frames: 0, longest: 0};
    const tick = (now) => {
        seen.frames += 1;
        seen.longest = Math.max(seen.longest, now - last);
        last = now;
        if (on) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    window.stopCounting = () => { on = false; return seen; };
}"""


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


async def measured(browser: Browser, flow: FlowView) -> dict[str, float]:
    """One flow in a page of its own."""
    page = await browser.new_page(viewport={"width": 1280, "height": 900})
    await page.route(f"{_SITE}/**", lambda route: _answer(route, flow))
    await page.goto(f"{_SITE}/#/flow/bench/{flow.flow.id}")
    boxes = page.locator(".react-flow__node")
    await boxes.first.wait_for()
    await page.wait_for_function(f"document.querySelectorAll('.react-flow__node').length === {flow.flow.nodes}")
    whole = await boxes.count()
    zoom = page.get_by_role("button", name="Zoom In")
    for _ in range(_ZOOM_STEPS):
        await zoom.click()
    counted = await _dragged(page)
    close = await boxes.count()
    await page.close()
    return {"whole": whole, "close": close, **counted}


async def _dragged(page: Page) -> dict[str, float]:
    box = await page.locator(".react-flow__pane").bounding_box()
    assert box is not None  # noqa: S101 - the canvas is there
    left, top = box["x"], box["y"]
    await page.evaluate(_COUNT_FRAMES)
    for drag in range(_DRAGS):
        # There and back, so that the flow ends where it was.
        start, end = ((0.2, 0.2), (0.8, 0.6)) if drag % 2 == 0 else ((0.8, 0.6), (0.2, 0.2))
        await page.mouse.move(left + box["width"] * start[0], top + box["height"] * start[1])
        await page.mouse.down()
        await page.mouse.move(left + box["width"] * end[0], top + box["height"] * end[1], steps=6)
        await page.mouse.up()
    return await page.evaluate("window.stopCounting()")


async def _answer(route: Route, flow: FlowView) -> None:
    path = route.request.url.removeprefix(_SITE).partition("?")[0]
    if path.startswith("/flows/"):
        await route.fulfill(json=json.loads(flow.model_dump_json()))
        return
    file = STATIC_DIR / ("index.html" if path == "/" else path.lstrip("/"))
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    await route.fulfill(body=file.read_bytes(), content_type=kind)


async def main(sizes: list[int]) -> None:
    """Measure and print."""
    store = NodeStore.from_snapshot()
    path = next(found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name)))
    print(f"{'nodes':>6} {'whole':>6} {'close':>6} {'frames':>7} {'share':>6} {'longest ms':>11}")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        first: float | None = None
        for size in sizes:
            found = await measured(browser, flow_of(size, store))
            first = first or found["frames"]
            print(
                f"{size:>6} {found['whole']:>6} {found['close']:>6} {found['frames']:>7}"
                f" {found['frames'] / first:>6.2f} {found['longest']:>11.0f}"
            )
        await browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=[30, 120, 399])
    asyncio.run(main(parser.parse_args().nodes))
