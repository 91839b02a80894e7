from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from flowise_dev_agent.api import middleware
from tests.unit.api.service_double import EngineDouble, app_of

MakeApp = Callable[..., FastAPI]


@pytest.fixture(autouse=True)
def _wrong_keys_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "SLOWEST_SECS", 0.0)


@pytest.fixture
def engine() -> EngineDouble:
    return EngineDouble()


@pytest.fixture
def make_app(engine: EngineDouble) -> MakeApp:
    """An app over the double; keyword arguments are server settings by field name."""

    return partial(app_of, engine)


@pytest.fixture
async def http(make_app: MakeApp) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an app with the default settings, no key."""
    async with client_of(make_app()) as client:
        yield client


def client_of(app: FastAPI, **options: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", **options)
