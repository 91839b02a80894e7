"""Measures how fast the page comes and how smoothly it draws large flows.

    python scripts/bench/canvas.py [NODES ...]

Opens generated flows in a headless Chromium of this machine, without a service: the time until all boxes are drawn, the
boxes after zooming in, and the frames while the flow is dragged. Then the start page on slow 4G with a CPU that is four
times slower: what is loaded (gzipped), the largest paint, and how much the layout shifts. The bytes and the shift are
the same on every machine; above their budget the exit code is 1. Times depend on the machine and are only printed.
Needs the built page (`make web`).
"""

import argparse
import asyncio
import gzip
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
_DRAGS = 8
#: Of the start page: kilobytes that are loaded, gzipped, and the layout shift.
_MOST_KB, _MOST_SHIFT = 150, 0.05
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
#: Watches the largest paint (ms) and the sum of layout shifts from the first byte on.
_WATCH = """
    window.seen = {paint: 0, shift: 0};
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


async def measured(browser: Browser, flow: FlowView) -> dict[str, float]:
    """One flow in a page of its own."""
    page = await browser.new_page(viewport={"width": 1280, "height": 900})
    await page.route(f"{_SITE}/**", lambda route: _answer(route, flow))
    await page.goto(_SITE)
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


async def start_page(browser: Browser, flow: FlowView) -> tuple[float, float, float]:
    """Kilobytes, largest paint (ms) and layout shift of the start page on a slow line with a slow CPU."""
    page = await browser.new_page(viewport={"width": 1280, "height": 720})
    loaded: list[Path] = []
    await page.route(f"{_SITE}/**", lambda route: _answer(route, flow, loaded))
    client = await page.context.new_cdp_session(page)
    await client.send("Network.enable")
    await client.send("Network.emulateNetworkConditions", _SLOW)
    await client.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    await page.add_init_script(_WATCH)
    await page.goto(_SITE)
    await page.locator(".flow-card").first.wait_for()
    await page.wait_for_load_state("networkidle")
    seen = await page.evaluate("window.seen")
    await page.close()
    bytes_ = sum(len(gzip.compress(path.read_bytes(), 6)) for path in set(loaded))
    return bytes_ / 1000, seen["paint"], seen["shift"]


async def _dragged(page: Page) -> list[float]:
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


async def _answer(route: Route, flow: FlowView, loaded: list[Path] | None = None) -> None:
    path = route.request.url.removeprefix(_SITE).partition("?")[0]
    if path.endswith("/graph"):
        await route.fulfill(json=json.loads(flow.model_dump_json()))
    elif path == "/flows":
        listed = {"flows": [json.loads(flow.flow.model_dump_json())], "total": 1, "searched": 1, "next_cursor": None}
        await route.fulfill(json=listed)
    elif path == "/sessions" or path.endswith("/conversation"):
        await route.fulfill(json={"sessions": [], "next_cursor": None, "totals": None})
    elif path == "/health":
        await route.fulfill(json={"flowise": {"bench": {"state": "ok"}}, "reasoning": {"engine": "deterministic"}})
    elif path == "/" or path.startswith("/assets/"):
        file = STATIC_DIR / ("index.html" if path == "/" else path.lstrip("/"))
        if loaded is not None:
            loaded.append(file)
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        await route.fulfill(body=file.read_bytes(), content_type=kind)
    else:
        await route.fulfill(json={})


async def main(sizes: list[int]) -> int:
    """Measure and print; the exit code is 1 when the start page is above its budget."""
    store = NodeStore.from_snapshot()
    path = next(found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name)))
    print(f"{'nodes':>6} {'open ms':>8} {'drag p95':>9} {'near p95':>9} {'longest':>8} {'boxes near':>11}")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for size in sizes:
            found = await measured(browser, flow_of(size, store))
            print(
                f"{size:>6} {found['opened']:>8.0f} {found['whole_p95']:>9.1f} {found['near_p95']:>9.1f}"
                f" {found['longest']:>8.0f} {found['close']:>11}"
            )
        kilobytes, paint, shift = await start_page(browser, flow_of(min(sizes), store))
        await browser.close()
    print(
        f"start page: {kilobytes:.0f} kB gzipped (at most {_MOST_KB}), largest paint {paint:.0f} ms on slow 4G with a"
    )
    print(f"quarter of the CPU, layout shift {shift:.3f} (at most {_MOST_SHIFT})")
    return int(kilobytes > _MOST_KB or shift > _MOST_SHIFT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=[30, 120, 399])
    sys.exit(asyncio.run(main(parser.parse_args().nodes)))
