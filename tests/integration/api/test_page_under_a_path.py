"""The page behind a proxy that has the service under a path of its own, which it takes off."""

import asyncio
import socket

import pytest
import uvicorn
from playwright.async_api import Browser
from starlette.types import Receive, Scope, Send

from tests.unit.api.service_double import EngineDouble, app_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("built_page")]

_PATH = "/tools/agent"


async def test_the_page_finds_its_files_and_the_service_under_a_path(browser: Browser) -> None:
    app, asked = app_of(EngineDouble()), set[str]()

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            asked.add(scope["path"])
            scope = {**scope, "path": scope["path"].removeprefix(_PATH)}
        await app(scope, receive, send)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(proxy, log_level="critical"))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{listener.getsockname()[1]}{_PATH}/#/api")
        await page.get_by_text("/sessions/{session_id}/resume").first.wait_for()
        await page.close()
        server.should_exit = True
        await running

    assert {f"{_PATH}/", f"{_PATH}/keys/current", f"{_PATH}/openapi.json"} <= asked
    assert [path for path in asked if not path.startswith(_PATH)] in ([], ["/favicon.ico"])
