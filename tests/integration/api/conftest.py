"""A running service over HTTP: by named keys, and at an address of its own."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from flowise_dev_agent.api import create_app
from flowise_dev_agent.api.server import Server, bind, url_of
from flowise_dev_agent.settings import ServerSettings, load_settings
from tests.integration.api.test_keys import Keys, service
from tests.runtime_world import running_engine


@pytest.fixture
async def keys(database_dsn: str) -> AsyncIterator[Keys]:
    async with service(database_dsn) as running:
        yield running


@pytest.fixture
async def url(database_dsn: str) -> AsyncIterator[str]:
    """Address of a running service."""
    server = ServerSettings(host="127.0.0.1", port=0, rate_limit_sessions_per_min=0, wait_secs=20, api_key=None)
    async with running_engine(database_dsn) as engine:
        running = Server(create_app(load_settings(server=server), engine))
        listener = bind(server)
        serving = asyncio.create_task(running.serve(sockets=[listener]))
        listener.listen()
        yield url_of(listener)
        running.stop()
        await serving


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=url, timeout=30) as client:
        yield client
