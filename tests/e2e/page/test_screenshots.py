"""The pictures of the README are of the page as it is."""

import importlib.util
import re
import struct
from pathlib import Path
from types import ModuleType

import pytest
from playwright.async_api import Browser

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import KEY, LOCKED, SharedService
from tests.e2e.scripted import model_environment

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[3]


def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("screenshots", ROOT / "scripts" / "screenshots.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_shows_the_pictures_that_the_program_takes() -> None:
    shown = re.findall(r"docs/images/(\w+)\.png\b", (ROOT / "README.md").read_text("utf-8"))
    assert sorted(shown) == sorted(program().NAMES)
    assert sorted(path.stem for path in (ROOT / "docs" / "images").glob("*.png")) == sorted(shown)


@pytest.mark.asyncio(loop_scope="session")
async def test_all_pictures_can_be_taken_from_the_page_as_it_is(
    browser: Browser,
    built_page: Path,
    shared_service: SharedService,
    standin: ModelStandIn,
    flowise_flows: FlowiseClient,
    tmp_path: Path,
) -> None:
    del flowise_flows  # deletes what the tour leaves on the server
    module = program()
    module.play(standin)
    service = await shared_service(**LOCKED, **model_environment(standin))
    await module.take_all(browser, service.url, tmp_path, KEY)
    for name in module.NAMES:
        width, height = struct.unpack(">II", (tmp_path / f"{name}.png").read_bytes()[16:24])
        assert (width, height) == ((390, 844) if name == "phone" else (1280, 800)), name
