"""The service of a test: a process of its own on a fresh database, in front of the session's real Flowise."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from tests.e2e.people import MakeService
from tests.e2e.service import ServiceProcess


@pytest.fixture
async def make_service(database_dsn: str, flowise: FlowiseAccess, tmp_path: Path) -> AsyncIterator[MakeService]:
    """Makes services (not started) on a database of their own and the real Flowise; keywords are settings."""
    made: list[ServiceProcess] = []

    def make(**environment: str) -> ServiceProcess:
        process = ServiceProcess(
            {
                "POSTGRES_DSN": database_dsn,
                "FLOWISE_API_ENDPOINT": flowise.endpoint,
                "FLOWISE_API_KEY": flowise.api_key.get_secret_value(),
                **environment,
            },
            tmp_path,
        )
        made.append(process)
        return process

    yield make
    for process in made:
        await process.stop()
