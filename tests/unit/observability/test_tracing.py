"""Tracing is on exactly when a key and its switch are set, and sends no secrets."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import langsmith
import pytest
from langgraph.graph import StateGraph
from langsmith.run_helpers import get_tracing_context
from langsmith.run_trees import get_cached_client
from langsmith.utils import get_env_var, tracing_is_enabled

from flowise_dev_agent.observability import configure_tracing
from flowise_dev_agent.settings import TracingSettings

KEY = "ls-key"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("LANGCHAIN_", "LANGSMITH_")):
            monkeypatch.delenv(name)
    # Nothing is sent: a thread that sends would look for its server, and log that there is none.
    monkeypatch.setattr(langsmith, "Client", partial(langsmith.Client, auto_batch_tracing=False))
    get_env_var.cache_clear()
    yield
    langsmith.configure(client=None, enabled=None, project_name=None)
    get_env_var.cache_clear()


def settings() -> TracingSettings:
    return TracingSettings(_env_file=None)  # type: ignore[call-arg]


@pytest.mark.parametrize("value", ["true", "True", "1", "yes"])
@pytest.mark.parametrize(
    ("key", "switch"), [("LANGCHAIN_API_KEY", "LANGCHAIN_TRACING_V2"), ("LANGSMITH_API_KEY", "LANGSMITH_TRACING")]
)
def test_a_key_and_its_switch_turn_tracing_on(
    monkeypatch: pytest.MonkeyPatch, key: str, switch: str, value: str
) -> None:
    monkeypatch.setenv(key, KEY)
    monkeypatch.setenv(switch, value)
    monkeypatch.setenv("LANGCHAIN_PROJECT", "mine")
    assert configure_tracing(settings())
    assert tracing_is_enabled()
    assert get_cached_client().api_key == KEY
    assert get_tracing_context()["project_name"] == "mine"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"LANGCHAIN_API_KEY": KEY},
        {"LANGCHAIN_API_KEY": KEY, "LANGCHAIN_TRACING_V2": "false"},
        {"LANGCHAIN_API_KEY": KEY, "LANGCHAIN_TRACING_V2": "0"},
        {"LANGCHAIN_TRACING_V2": "true"},
        {"LANGSMITH_API_KEY": KEY},
        {"LANGSMITH_TRACING": "true"},
        # Each switch has its own key.
        {"LANGCHAIN_API_KEY": KEY, "LANGSMITH_TRACING": "true"},
        {"LANGSMITH_API_KEY": KEY, "LANGCHAIN_TRACING_V2": "true"},
        # Names that only the library knows.
        {"LANGCHAIN_API_KEY": KEY, "LANGSMITH_TRACING_V2": "true"},
    ],
)
def test_p101_less_than_a_key_and_its_switch_leaves_tracing_off(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert not configure_tracing(settings())
    assert not tracing_is_enabled()


def test_p102_what_is_traced_has_its_secrets_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    configure_tracing(settings())
    client = get_cached_client()
    planted = "sk-" + "a1" * 15
    traced: dict[str, Any] = {"messages": [f"use {planted}"], "headers": {"Authorization": "Basic dXNlcjpwYXNz"}}
    sent = [client._hide_run_inputs(traced), client._hide_run_outputs(traced), client._hide_run_error(planted)]
    assert planted not in str(sent)
    assert "dXNlcjpwYXNz" not in str(sent)


SWITCHES = (
    "TRACING",
    "TRACING_V1",
    "TRACING_V2",
    "HANDLER",
    "VERBOSE",
    "DEBUG",
    "SESSION",
    "PROJECT",
    "RUNS_ENDPOINTS",
)


@pytest.mark.parametrize("value", ["true", "1", "langchain", ""])
async def test_no_variable_of_the_library_fails_a_graph(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    for prefix in ("LANGCHAIN_", "LANGSMITH_"):
        for name in SWITCHES:
            monkeypatch.setenv(prefix + name, value)
            monkeypatch.setenv((prefix + name).lower(), value)
    for name in ("LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING"):  # settings of ours, in any case
        monkeypatch.setenv(name, "false")
        monkeypatch.delenv(name.lower())
    configure_tracing(settings())
    graph = StateGraph(dict)
    graph.add_node("one", lambda _: {"done": True})
    graph.set_entry_point("one")
    assert await graph.compile().ainvoke({}) == {"done": True}
    assert not tracing_is_enabled()
