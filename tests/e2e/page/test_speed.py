"""How fast the page is, by the program that measures it. The report of the tests prints all figures.

What is sent and what moves is the same on every machine and has a budget; times depend on the machine.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from playwright.async_api import Browser

from flowise_dev_agent.knowledge.nodes import NodeStore

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]


def program() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "scripts" / "bench" / "canvas.py"
    spec = importlib.util.spec_from_file_location("canvas_bench", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_start_page_is_small_and_does_not_move_on_a_slow_line(
    browser: Browser, built_page: Path, record_property: Callable[[str, object], None]
) -> None:
    bench = program()
    start = await bench.start_page(browser, bench.flow_of(30, NodeStore.from_snapshot()))
    for name, value in start.items():
        record_property(name, round(value, 3))
    assert start["kilobytes"] <= 150
    assert start["shift"] <= 0.05
    assert start["usable"] > 0
    assert start["paint"] > 0


async def test_400_nodes_open_and_are_dragged(
    browser: Browser, built_page: Path, record_property: Callable[[str, object], None]
) -> None:
    bench = program()
    found = await bench.measured(browser, bench.flow_of(400, NodeStore.from_snapshot()))
    for name, value in found.items():
        record_property(name, round(value, 1))
    # Near by, what is out of sight is not there.
    assert found["close"] < 60
