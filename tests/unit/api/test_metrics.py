"""What Prometheus is told about requests, and what a worker answers."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest
from pydantic import SecretStr

from flowise_dev_agent.api import create_worker_app
from flowise_dev_agent.settings import ServerSettings, Settings
from tests.fixtures.metrics import value_of
from tests.unit.api.conftest import client_of
from tests.unit.api.service_double import EngineDouble

COUNT = "fda_http_request_duration_seconds_count"


async def test_metrics_are_what_a_prometheus_reads(http: httpx2.AsyncClient) -> None:
    response = await http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE fda_runs_active gauge" in response.text
    assert "# TYPE process_resident_memory_bytes gauge" in response.text


async def test_requests_are_counted_by_route_and_status(http: httpx2.AsyncClient) -> None:
    labels = {"method": "GET", "route": "/sessions/{session_id}", "status": 404}
    before = value_of(COUNT, **labels)
    for _ in range(3):
        await http.get(f"/sessions/{uuid4()}")
    assert value_of(COUNT, **labels) == before + 3


async def test_what_nobody_knows_makes_no_new_series(http: httpx2.AsyncClient) -> None:
    await http.request("BREW", "/coffee")
    for number in range(5):
        await http.get(f"/nowhere/{number}")
    text = (await http.get("/metrics")).text
    assert "nowhere" not in text
    assert "BREW" not in text
    assert 'method="other",route="none"' in text


@pytest.fixture
def worker_http() -> httpx2.AsyncClient:
    engine: Any = EngineDouble()
    settings = Settings.model_construct(server=ServerSettings(api_key=SecretStr("s3cret")))
    return client_of(create_worker_app(settings, engine))


async def test_a_worker_tells_how_it_is_to_who_has_the_key_and_takes_no_orders(worker_http: httpx2.AsyncClient) -> None:
    async with worker_http as http:
        assert (await http.get("/live")).status_code == 200
        key = {"Authorization": "Bearer s3cret"}
        assert (await http.get("/ready")).status_code == 200
        assert (await http.get("/metrics")).status_code == 401
        assert (await http.get("/metrics", headers=key)).status_code == 200
        assert (await http.post("/sessions", headers=key, json={"requirement": "x"})).status_code == 404
