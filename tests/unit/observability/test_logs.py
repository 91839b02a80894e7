"""A record of the log is one line, as text or JSON, with what it belongs to."""

import json
import logging
import re
from collections.abc import Iterator

import pytest

from flowise_dev_agent.observability import configure_logging, log_context

LOGGER = logging.getLogger("flowise_dev_agent.of_a_test")


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


def test_a_record_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "json")
    with log_context(session="s1", request=None), log_context(ms=12, code="plan_approval"):
        LOGGER.info("The run\nended: %s.", "waiting")
    try:
        int("of a test")
    except ValueError:
        LOGGER.exception("Broken")
    told, broken = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told.pop("time"))
    assert told == {
        "level": "INFO",
        "logger": "flowise_dev_agent.of_a_test",
        "message": "The run\nended: waiting.",
        "session": "s1",
        "ms": 12,
        "code": "plan_approval",
    }
    assert broken["exception"].endswith("'of a test'")


def test_a_record_as_text_has_its_context_and_a_time_with_its_zone(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO")
    with log_context(session="s1"), log_context(session="s2", ms=12):
        LOGGER.info("It ended.")
    time, rest = capsys.readouterr().err.split(" ", 1)
    assert time.endswith("Z")
    assert rest == "INFO    flowise_dev_agent.of_a_test session=s2 ms=12: It ended.\n"
