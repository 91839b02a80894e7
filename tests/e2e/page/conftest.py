"""One service and one browser for all tests of the page; each test has a tab of its own."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import KEY, Screen
from tests.e2e.service import ServiceProcess


@pytest.fixture(scope="session")
def page_settings(
    postgres_server: PostgresServer, database_template: str, flowise: FlowiseAccess
) -> Iterator[dict[str, str]]:
    """Settings of a service that asks for a key, on a database that the tests of the page share."""
    name = f"fda_{uuid.uuid4().hex[:12]}"
    yield {
        "POSTGRES_DSN": postgres_server.create_database(name, template=database_template),
        "FLOWISE_API_ENDPOINT": flowise.endpoint,
        "FLOWISE_API_KEY": flowise.api_key.get_secret_value(),
        "AGENT_API_KEY": KEY,
        "WEBHOOK_SECRET": "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0",
        "WEBHOOK_ALLOW": "127.0.0.0/8",
    }
    postgres_server.drop_database(name)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def page_service(
    built_page: Path, page_settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServiceProcess]:
    """The service that serves the page."""
    process = ServiceProcess(page_settings, tmp_path_factory.mktemp("service"))
    await process.start()
    yield process
    await process.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def screen(browser: Browser, page_service: ServiceProcess) -> AsyncIterator[Screen]:
    """A tab with the page; after the test the browser must have had nothing to complain about."""
    screen = await Screen.open(browser, page_service.url)
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
            await client.delete_chatflow(row.id)
