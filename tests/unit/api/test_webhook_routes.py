"""The webhook half of the HTTP floor: the secret that is shown once, deliveries, replay."""

from uuid import uuid4

import httpx2
import pytest

from flowise_dev_agent.errors import WebhookUrlError
from tests.unit.api.service_double import SECRET, EngineDouble

HOOKED = {"requirement": "Build a bot", "webhook_url": "https://hooks.example.com/"}


@pytest.mark.parametrize("wait", ["0", "0.01"])
async def test_the_own_secret_is_in_the_answer_to_the_start_and_in_no_other(
    http: httpx2.AsyncClient, wait: str
) -> None:
    started = await http.post(f"/sessions?wait={wait}", json=HOOKED | {"webhook_own_secret": True})
    assert started.json()["webhook_secret"] == SECRET
    path = started.headers["location"]
    for response in (await http.get(path), await http.get("/sessions"), await http.get(f"{path}/deliveries")):
        assert response.status_code == 200
        assert SECRET not in response.text
    assert "webhook_secret" not in (await http.post("/sessions", json=HOOKED)).json()


async def test_a_stream_has_no_place_for_a_secret(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    response = await http.post("/sessions/stream", json=HOOKED | {"webhook_own_secret": True})
    assert (response.status_code, response.json()["code"]) == (422, "webhook_secret_unavailable")
    assert engine.service.calls == []


async def test_a_refused_url_is_422_with_the_rule(http: httpx2.AsyncClient, engine: EngineDouble) -> None:
    engine.service.failure = WebhookUrlError("No.", hint="Use https.", details={"reason": "not_https"})
    body = (await http.post("/sessions", json=HOOKED)).json()
    assert (body["status"], body["code"], body["details"]) == (422, "webhook_url_refused", {"reason": "not_https"})


async def test_deliveries_of_an_unknown_session_and_unknown_deliveries_are_404(http: httpx2.AsyncClient) -> None:
    unknown = f"/sessions/{uuid4()}/deliveries"
    for response in (await http.get(unknown), await http.post(f"{unknown}/{uuid4()}/replay")):
        assert (response.status_code, response.json()["code"]) == (404, "session_not_found")
    path = (await http.post("/sessions", json=HOOKED)).headers["location"]
    assert (await http.get(f"{path}/deliveries")).json() == {"endpoint": None, "deliveries": []}
    missing = await http.post(f"{path}/deliveries/{uuid4()}/replay")
    assert (missing.status_code, missing.json()["code"]) == (404, "delivery_not_found")
    assert (await http.post(f"{path}/deliveries/x/replay")).status_code == 422
