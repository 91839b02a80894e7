"""Live, ready, health and what they tell."""

import httpx2
import pytest

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.schemas.service import DatabaseState, QueueState, Readiness
from tests.unit.api.conftest import MakeApp, client_of
from tests.unit.api.service_double import EngineDouble


async def test_live_needs_nothing(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    engine.db.failure = DatabaseUnavailableError("gone")
    assert (await http.get("/live")).json() == {"status": "ok"}


async def test_p42_ready_follows_the_database(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    response = await http.get("/ready")
    assert response.status_code == 200
    assert response.json() == {
        "status": "ok",
        "database": {"state": "ok", "latency_ms": 0.5, "pending_migrations": [], "newer_migrations": []},
        "queue": {"name": "runs", "queued": 1, "oldest_secs": 0.5, "workers": 2},
        "paused": False,
    }
    engine.db.failure = DatabaseUnavailableError("gone")
    response = await http.get("/ready")
    assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")


async def test_a_service_on_older_tables_is_not_ready(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    engine.health.missing = ["0300_new.sql"]
    response = await http.get("/ready")
    assert response.status_code == 503
    assert "0300_new.sql" in response.json()["detail"]


async def test_a_service_on_newer_tables_is_not_ready(
    http: httpx2.AsyncClient, engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def readiness() -> Readiness:
        return Readiness(
            database=DatabaseState(state="ok", newer_migrations=["9990_future.sql"]),
            queue=QueueState(name="runs", queued=0, oldest_secs=0, workers=1),
        )

    monkeypatch.setattr(engine.health, "readiness", readiness)
    response = await http.get("/ready")
    assert response.status_code == 503
    assert "9990_future.sql" in response.json()["detail"]


async def test_a_service_that_stops_is_not_ready(make_app: MakeApp) -> None:
    app = make_app()
    app.state.stopping = True
    async with client_of(app) as http:
        response = await http.get("/ready")
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")


async def test_health_tells_what_the_service_runs_on(http: httpx2.AsyncClient) -> None:
    response = await http.get("/health")
    body = response.json()
    assert response.status_code == 200
    assert body["reasoning"] == {"engine": "deterministic", "model": "none", "error": None}
    assert body["database"]["state"] == "ok"
    assert (body["model_stand_in"], body["drift_policy"]) == (False, "warn")
    assert (body["flowise"]["dev"]["state"], body["status"]) == ("unavailable", "degraded")
    assert body["flowise"]["dev"]["error"]["code"] == "flowise_unreachable"


async def test_health_labels_the_model_stand_in(make_app: MakeApp) -> None:
    async with client_of(make_app(model_stand_in=True)) as http:
        assert (await http.get("/health")).json()["model_stand_in"] is True


async def test_p42_health_is_503_only_without_the_database(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    engine.health.status = "degraded"
    assert (await http.get("/health")).status_code == 200
    engine.health.status = "unavailable"
    assert (await http.get("/health")).status_code == 503
