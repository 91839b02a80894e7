"""The public shape of a session."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from flowise_dev_agent.cursors import decode_cursor, encode_cursor
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.persistence import SessionRow
from flowise_dev_agent.persistence.read_model import row_statuses
from flowise_dev_agent.sessions.views import session_view

ROW = SessionRow(
    id=uuid4(),
    name=None,
    requirement="r",
    request={},
    instance_id="main",
    status="running",
    outcome=None,
    phase="plan",
    operation_mode="create",
    iteration=0,
    chatflow_id="c1",
    interrupt=None,
    interrupt_id=None,
    error=None,
    totals={"input_tokens": 3, "phase_durations_ms": {"plan": 10}},
    degraded=[],
    event_seq=4,
    fingerprint=None,
    created_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    updated_at=datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC),
)


def test_a_view_carries_both_names_of_the_id_and_the_link() -> None:
    view = session_view(ROW, lambda instance, chatflow: f"http://{instance}/canvas/{chatflow}")
    assert view.thread_id == view.session_id == ROW.id
    assert view.status == "in_progress"
    assert view.chatflow_url == "http://main/canvas/c1"
    assert view.runtime_mode == "capability_first"
    assert view.totals.input_tokens == 3
    assert view.totals.usd == 0


def test_every_row_status_has_a_public_one_and_back() -> None:
    assert row_statuses("in_progress") == ["queued", "running"]
    assert row_statuses("error") == ["failed"]
    with pytest.raises(InvalidInputError, match="pending_interrupt"):
        row_statuses("running")


def test_a_cursor_survives_the_way_to_the_client_and_back() -> None:
    assert decode_cursor(encode_cursor(ROW)) == (ROW.created_at, ROW.id)


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "bnVsbA", encode_cursor(ROW)[:-6], "Ä", "W10"])
def test_a_cursor_that_we_did_not_make_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInputError, match="cursor"):
        decode_cursor(cursor)


def test_a_naive_time_in_a_cursor_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        decode_cursor(encode_cursor(replace(ROW, created_at=datetime(2026, 1, 2))))  # noqa: DTZ001
