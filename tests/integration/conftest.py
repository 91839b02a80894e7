"""Services on a fresh database: with the small agent of `runtime_world`, and before Flowise servers in memory."""

from collections.abc import AsyncIterator

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.ops import Runtime
from tests.runtime_world import World, running_engine
from tests.writing_world import Servers, writing_service


@pytest.fixture
async def engine(database_dsn: str) -> AsyncIterator[Runtime]:
    """Service and worker in this process."""
    async with running_engine(database_dsn) as engine:
        yield engine


@pytest.fixture
def world(database_dsn: str) -> World:
    return World(database_dsn)


@pytest.fixture
def servers(catalogue: NodeStore) -> Servers:
    return Servers(catalogue)


@pytest.fixture
async def runtime(database_dsn: str, servers: Servers) -> AsyncIterator[Runtime]:
    """A service that writes to these servers."""
    async with writing_service(database_dsn, servers) as runtime:
        yield runtime
