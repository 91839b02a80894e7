from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from flowise_dev_agent.api import create_app
from flowise_dev_agent.settings import (
    DatabaseSettings,
    FlowiseSettings,
    LimitSettings,
    ReasoningSettings,
    RetentionSettings,
    ServerSettings,
    Settings,
    TracingSettings,
)
from tests.unit.api.service_double import EngineDouble

MakeApp = Callable[..., FastAPI]


@pytest.fixture
def engine() -> EngineDouble:
    return EngineDouble()


@pytest.fixture
def make_app(engine: EngineDouble) -> MakeApp:
    """An app over the double; keyword arguments are server settings by field name."""

    def make(*, model_stand_in: bool = False, **server: Any) -> FastAPI:
        if "api_key" in server:
            server["api_key"] = SecretStr(server["api_key"])
        settings = Settings.model_construct(
            reasoning=ReasoningSettings(engine_choice="deterministic"),
            # A port where nothing listens: reachability fails at once.
            flowise=FlowiseSettings(api_endpoint="http://127.0.0.1:1", instances_json=None),
            database=DatabaseSettings(),
            limits=LimitSettings(),
            retention=RetentionSettings(),
            tracing=TracingSettings(),
            server=ServerSettings(**{"wait_secs": 0, "api_key": None} | server),
        )
        return create_app(settings, engine, model_stand_in=model_stand_in)  # type: ignore[arg-type]

    return make


@pytest.fixture
async def http(make_app: MakeApp) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an app with the default settings, no key."""
    async with client_of(make_app()) as client:
        yield client


def client_of(app: FastAPI, **options: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://test", **options)
