"""The service of a test: a process in front of the test process's real Flowise, shared or of its own."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.timings import Timings
from tests.e2e.people import MakeService, SharedService
from tests.e2e.service import ServiceProcess


def _in_front_of(flowise: FlowiseAccess, dsn: str) -> dict[str, str]:
    return {
        "POSTGRES_DSN": dsn,
        "FLOWISE_API_ENDPOINT": flowise.endpoint,
        "FLOWISE_API_KEY": flowise.api_key.get_secret_value(),
    }


@pytest.fixture(scope="session")
def shared_services() -> Iterator[dict[frozenset[tuple[str, str]], ServiceProcess]]:
    """The running services by their settings; see `shared_service`."""
    services: dict[frozenset[tuple[str, str]], ServiceProcess] = {}
    yield services
    for service in services.values():
        service.close()


@pytest.fixture
def shared_service(
    shared_services: dict[frozenset[tuple[str, str]], ServiceProcess],
    postgres_server: PostgresServer,
    database_template: str,
    flowise: FlowiseAccess,
    tmp_path_factory: pytest.TempPathFactory,
) -> SharedService:
    """Gives a running service with these settings, one for all tests of this process that ask for the same.

    Its sessions of earlier tests are there; patterns of theirs, from which a new session would start, and notes, which
    a model reads, are not. A test that kills it, or that counts everything it has, takes `make_service`.
    """

    async def use(**settings: str) -> ServiceProcess:
        key = frozenset(settings.items())
        service = shared_services.get(key)
        if service is None:
            dsn = postgres_server.create_database(f"fda_{uuid.uuid4().hex[:12]}", template=database_template)
            service = ServiceProcess({**_in_front_of(flowise, dsn), **settings}, tmp_path_factory.mktemp("service"))
            await service.start()
            shared_services[key] = service
        with psycopg.connect(service.dsn) as connection:
            connection.execute("DELETE FROM patterns")
            connection.execute("DELETE FROM notes")
        return service

    return use


@pytest.fixture
async def make_service(database_dsn: str, flowise: FlowiseAccess, tmp_path: Path) -> AsyncIterator[MakeService]:
    """Makes services (not started) on the test's own database and the real Flowise; keywords are settings."""
    made: list[ServiceProcess] = []

    def make(timings: Timings | None = None, **settings: str) -> ServiceProcess:
        made.append(ServiceProcess({**_in_front_of(flowise, database_dsn), **settings}, tmp_path, timings=timings))
        return made[-1]

    yield make
    for process in made:
        await process.stop()
