"""Tracing is on exactly when a key is set."""

import os

import pytest
from langsmith.utils import get_env_var, tracing_is_enabled

from flowise_dev_agent.observability import configure_tracing
from flowise_dev_agent.settings import TracingSettings


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("LANGCHAIN_", "LANGSMITH_")):
            monkeypatch.delenv(name)
    # So that what the code under test sets is taken back as well.
    for name in ("LANGCHAIN_API_KEY", "LANGCHAIN_TRACING_V2", "LANGCHAIN_PROJECT", "LANGCHAIN_ENDPOINT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    get_env_var.cache_clear()


def settings(**values: object) -> TracingSettings:
    return TracingSettings(_env_file=None, **values)  # type: ignore[call-arg, arg-type]


def test_a_key_turns_tracing_on_for_the_library() -> None:
    assert configure_tracing(settings(LANGCHAIN_API_KEY="ls-key", LANGCHAIN_PROJECT="mine"))
    assert tracing_is_enabled()
    assert get_env_var("PROJECT") == "mine"


def test_without_a_key_tracing_is_off_even_when_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGCHAIN_TRACING_V2", "true")
    assert not configure_tracing(settings())
    assert not tracing_is_enabled()
