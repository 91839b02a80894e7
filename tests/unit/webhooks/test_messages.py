"""What is signed and when it is tried again."""

import base64
import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from flowise_dev_agent.persistence import SessionRow
from flowise_dev_agent.sessions.webhook_payload import render
from flowise_dev_agent.webhooks.client import _judged, signature_headers
from flowise_dev_agent.webhooks.service import RETRY_SECS, WebhookConfig
from tests.fixtures.interrupts import interrupt_of

OLD, NEW, OTHER = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"o", b"n", b"x"))
BODY = '{"type":"session.waiting","data":{"session_name":"Grüße"}}'


def test_the_librarys_own_verifier_takes_the_signature_of_each_secret() -> None:
    id_ = uuid4()
    headers = signature_headers(id_, BODY, [NEW, OLD], datetime.now(UTC))
    assert headers["webhook-id"] == str(id_)
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (OLD, NEW):
        assert Webhook(secret).verify(BODY.encode(), headers) == json.loads(BODY)


def test_another_secret_body_or_id_does_not_verify() -> None:
    headers = signature_headers(uuid4(), BODY, [NEW, OLD], datetime.now(UTC))
    for secret, body, changed in (
        (OTHER, BODY, {}),
        (NEW, BODY + " ", {}),
        (NEW, BODY, {"webhook-id": str(uuid4())}),
        (NEW, BODY, {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body, headers | changed)


def test_eight_attempts_spread_over_a_day() -> None:
    config = WebhookConfig()
    pauses = [config.pause_after(number) for number in range(1, 9)]
    assert pauses[-1] is None
    assert len(pauses) == 8
    for pause, longest in zip(pauses, RETRY_SECS, strict=False):
        assert pause is not None
        assert 0.9 * longest <= pause <= longest
    assert list(RETRY_SECS) == sorted(RETRY_SECS)
    assert 20 * 3_600 < sum(RETRY_SECS) < 24 * 3_600


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),
        ("Fri, 02 Jan 2026 03:00:05 GMT", 0.0),
        ("-5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_receiver_says_when_to_come_back_in_seconds_or_as_a_date(header: str, seconds: float | None) -> None:
    response = httpx2.Response(503, headers={"Retry-After": header})
    assert _judged(response, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)).retry_after == seconds


def test_a_receiver_may_lengthen_a_pause_but_not_beyond_the_longest() -> None:
    config = WebhookConfig()
    assert config.pause_after(1, 60.0) == 60.0
    assert config.pause_after(1, 1e9) == max(RETRY_SECS)
    shorter = config.pause_after(2, 1.0)
    assert shorter is not None
    assert shorter > 60
    assert config.pause_after(8, 60.0) is None


def row(status: str = "waiting", **fields: Any) -> SessionRow:
    interrupt = interrupt_of("plan_approval", plan="# A plan of many pages").model_dump(mode="json")
    defaults: dict[str, Any] = {
        "id": uuid4(),
        "name": "Support bot",
        "requirement": "A bot",
        "request": {"webhook_url": "https://hooks.test/t0ken"},
        "instance_id": "default",
        "status": status,
        "outcome": None,
        "phase": "plan",
        "operation_mode": "create",
        "iteration": 0,
        "chatflow_id": "c1",
        "interrupt": interrupt if status == "waiting" else None,
        "interrupt_id": "i1" if status == "waiting" else None,
        "error": None,
        "totals": {"input_tokens": 5},
        "degraded": [],
        "event_seq": 7,
        "fingerprint": None,
        "created_at": datetime.now(UTC),
        "updated_at": datetime.now(UTC),
    }
    return SessionRow(**(defaults | fields))


def rendered(row: SessionRow, base_url: str = "https://agent.test") -> dict[str, Any]:
    message = render(row, lambda instance, id_: f"http://flowise.test/canvas/{id_}", base_url)
    payload = json.loads(message.body)
    assert payload["type"] == message.type
    assert len(message.body.encode()) < 20_000
    return payload


def test_a_question_comes_with_all_that_an_answer_needs_but_without_its_data() -> None:
    asking = row()
    payload = rendered(asking)
    data = payload["data"]
    assert datetime.fromisoformat(payload["timestamp"]) == asking.updated_at
    shown = {name: value for name, value in (asking.interrupt or {}).items() if name not in {"data", "version"}}
    assert data["interrupt"] == shown
    assert data["links"]["resume"] == f"https://agent.test/sessions/{asking.id}/resume"
    assert data["chatflow_url"] == "http://flowise.test/canvas/c1"
    assert data["totals"]["input_tokens"] == 5
    assert data["event_seq"] == 7
    assert "t0ken" not in json.dumps(payload)


@pytest.mark.parametrize(
    ("status", "type_"),
    [
        ("waiting", "session.waiting"),
        ("completed", "session.completed"),
        ("cancelled", "session.completed"),
        ("failed", "session.failed"),
    ],
)
def test_every_way_to_rest_has_its_event(status: str, type_: str) -> None:
    assert rendered(row(status))["type"] == type_


def test_without_a_base_url_the_links_are_paths() -> None:
    asking = row()
    assert rendered(asking, "")["data"]["links"]["resume"] == f"/sessions/{asking.id}/resume"


def test_a_payload_stays_small_whatever_the_session_holds() -> None:
    big = "ä" * 30_000
    asking = row(interrupt={**(row().interrupt or {}), "message": big, "response_schema": {"description": big}})
    interrupt = rendered(asking)["data"]["interrupt"]
    assert len(interrupt["message"]) == 2_000
    assert interrupt["id"] == "i1"
    assert interrupt["truncated"] == ["response_schema"]
    failed = row("failed", error={"code": "internal_error", "detail": big, "hint": "Retry."})
    assert rendered(failed)["data"]["error"]["code"] == "internal_error"
