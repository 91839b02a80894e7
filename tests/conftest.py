"""Loads the shared fixtures. Each one starts what it names on first use, so unit tests start nothing."""

import gc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine's load and nothing about the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples in every run: a failure comes from the change at hand, not from the draw.
settings.register_profile("few", settings.get_profile("untimed"), max_examples=25, derandomize=True)
# Other examples every night; a failure prints what repeats it.
settings.register_profile("nightly", settings.get_profile("untimed"), max_examples=300, print_blob=True)
settings.load_profile("few")

# Every module of tests/fixtures is a plugin: whoever adds one there need not edit this file.
pytest_plugins = [
    f"tests.fixtures.{path.stem}"
    for path in sorted(Path(__file__).with_name("fixtures").glob("*.py"))
    if path.stem != "__init__"
]

_LONGEST_TEXT = 12


def pytest_make_parametrize_id(val: object) -> str | None:
    """Cut long texts in the names of tests; pytest numbers names that become equal."""
    text = val.decode("latin-1") if isinstance(val, bytes) else val
    if isinstance(text, str) and not (len(text) <= _LONGEST_TEXT and text.isascii()):
        # A letter that is not ASCII would take six.
        plain = text[:_LONGEST_TEXT].encode("ascii", "ignore").decode().strip()
        return plain.encode("unicode_escape").decode() or "text"
    return None


def pytest_sessionstart() -> None:
    """Collect no garbage while tests are imported: nearly all of it stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Take what is loaded by now out of the garbage collector's work: it took a fifth of the unit tests' time."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests have measured."""
    for report in terminalreporter.getreports("passed"):
        if figures := ", ".join(f"{name} {value}" for name, value in report.user_properties):
            terminalreporter.write_line(f"{report.nodeid}: {figures}")
