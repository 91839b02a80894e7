"""The service on a real Flowise with the built page, in a browser: shared by the tests of the views."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2
from playwright.async_api import Browser, Page, expect

from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from tests.e2e.page.screen import GIVE_KEY
from tests.fixtures.browser import complaints
from tests.fixtures.page import violations


@dataclass(frozen=True)
class Site:
    """A running service: its address, a client of its API and one of the Flowise behind it."""

    url: str
    http: httpx2.AsyncClient
    flowise: FlowiseClient
    browser: Browser

    @asynccontextmanager
    async def page(self, view: str, **context: Any) -> AsyncIterator[Page]:
        """A view of the page by its path behind the `#`. Fails when the console complains or axe finds a violation."""
        async with await self.browser.new_context(**context) as opened:
            await opened.add_init_script(GIVE_KEY)
            page = await opened.new_page()
            heard = complaints(page)
            await page.goto(f"{self.url}/#{view}")
            yield page
            assert await violations(page) == []
            assert heard == []

    async def start(self, requirement: str | None = None, **request: Any) -> dict[str, Any]:
        """A session at its first question."""
        return await self._settled("/sessions", {**request, **({"requirement": requirement} if requirement else {})})

    async def answer(self, view: dict[str, Any], **given: Any) -> dict[str, Any]:
        """The session at its next question or its end."""
        body = {"interrupt_id": view["interrupt"]["id"], "answer": given}
        return await self._settled(f"/sessions/{view['thread_id']}/resume", body)

    async def flow(self, flow: dict[str, Any], kind: str = "CHATFLOW") -> Chatflow:
        """A flow on the server."""
        name = f"Flow {uuid4().hex[:6]}"
        return await self.flowise.create_chatflow(ChatflowCreate(name=name, type=kind, flow_data=json.dumps(flow)))

    async def template(self, name: str) -> dict[str, Any]:
        """The flow of a marketplace template."""
        templates = await self.flowise.list_templates()
        return json.loads(next(item["flowData"] for item in templates if item["templateName"] == name))

    async def _settled(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = await self.http.post(f"{path}?wait=90", json=body)
        assert response.status_code == 200, response.text
        return response.json()


async def choose(page: Page, node: str) -> None:
    """Click the box of a node."""
    await page.locator(f'.react-flow__node[data-id="{node}"]').click()
    await expect(page.locator(".node-details")).to_be_visible()
