"""Command lines over a service on a real Postgres, whose Flowise servers are doubles in memory."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.knowledge.nodes import NodeStore
from tests.unit.api.service_double import app_of
from tests.unit.cli.conftest import _clean_environment, run
from tests.writing_world import Servers, writing_service

__all__ = ["_clean_environment", "run"]


class Service(BackgroundServer):
    """The service with a worker, for as long as a test takes."""

    def __init__(self, dsn: str, servers: Servers) -> None:
        super().__init__("service")
        self._dsn = dsn
        self._servers = servers

    def app(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with writing_service(self._dsn, self._servers) as runtime:
                engine: Any = runtime
                app.mount("/", app_of(engine))
                yield

        return Starlette(lifespan=lifespan)


@pytest.fixture
def servers(catalogue: NodeStore, database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """The Flowise servers of a service that answers at the port that commands look at."""
    # A command that ran in another test may have left a handler whose stream is closed; the service logs as it starts.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    servers = Servers(catalogue)
    service = Service(database_dsn, servers).start()
    monkeypatch.setenv("AGENT_API_PORT", service.endpoint.rpartition(":")[2])
    yield servers
    service.stop()
