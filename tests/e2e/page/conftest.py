"""One service and one browser for all tests of the page; each test has a tab of its own."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.errors import FlowiseNotFoundError
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import Screen
from tests.e2e.people import LOCKED, SharedService
from tests.e2e.scripted import model_environment
from tests.e2e.service import ServiceProcess


@pytest_asyncio.fixture(loop_scope="session")
async def page_service(built_page: Path, shared_service: SharedService) -> ServiceProcess:
    """The service that serves the page and asks for a key."""
    return await shared_service(**LOCKED)


@pytest_asyncio.fixture(loop_scope="session")
async def screen(browser: Browser, page_service: ServiceProcess) -> AsyncIterator[Screen]:
    """A tab with the page; after the test the browser must have had nothing to complain about."""
    screen = await Screen.open(browser, page_service.url)
    yield screen
    await screen.page.context.close()
    assert screen.heard == []


@pytest_asyncio.fixture(loop_scope="session")
async def reading(
    built_page: Path, browser: Browser, shared_service: SharedService, standin: ModelStandIn
) -> AsyncIterator[Screen]:
    """A tab with the page of a service whose model the test scripts."""
    service = await shared_service(**LOCKED, **model_environment(standin))
    screen = await Screen.open(browser, service.url)
    yield screen
    await screen.page.context.close()
    assert screen.heard == []


@pytest_asyncio.fixture(loop_scope="session")
async def flowise_flows(flowise: FlowiseAccess) -> AsyncIterator[FlowiseClient]:
    """A client of the Flowise; what the test leaves there is deleted."""
    async with FlowiseClient(flowise.endpoint, flowise.api_key) as client:
        before = {row.id async for row in client.iter_chatflows()}
        yield client
        for row in [row async for row in client.iter_chatflows() if row.id not in before]:
            # The service removes drafts of its own meanwhile.
            with suppress(FlowiseNotFoundError):
                await client.delete_chatflow(row.id)
