"""Reading the environment: defaults, choices that follow from others, mistakes as sentences."""

import base64
from pathlib import Path

import pytest
from pydantic import SecretStr

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.settings import Settings, load_settings, unknown_settings
from flowise_dev_agent.settings.reasoning import DEFAULT_MODELS


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for group in Settings.model_fields.values():
        for field in group.default_factory.model_fields.values():  # type: ignore[union-attr]
            monkeypatch.delenv(field.alias, raising=False)
    monkeypatch.chdir(str(tmp_path))


@pytest.mark.parametrize(
    ("environment", "engine", "model"),
    [
        ({}, "deterministic", "none"),
        ({"ANTHROPIC_API_KEY": "a"}, "claude", DEFAULT_MODELS["claude"]),
        ({"OPENAI_API_KEY": "o"}, "openai", DEFAULT_MODELS["openai"]),
        ({"OPENAI_BASE_URL": "http://localhost:11434/v1"}, "openai", DEFAULT_MODELS["openai"]),
        ({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, "claude", DEFAULT_MODELS["claude"]),
        ({"ANTHROPIC_API_KEY": "a", "REASONING_ENGINE": "deterministic"}, "deterministic", "none"),
    ],
)
def test_the_engine_follows_from_the_keys_unless_named(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], engine: str, model: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    reasoning = load_settings().reasoning
    assert reasoning.engine == engine
    assert reasoning.model_for("plan") == model


def test_misspelt_and_renamed_settings_are_found_and_those_of_others_are_not() -> None:
    given = {"RETENTION_TREADS_DAYS": "1", "LEG_ATTEMPTS": "9", "FLOWISE_SPEED": "2", "PATH": "/", "POSTGRES_USER": "p"}
    assert unknown_settings(given) == {
        "FLOWISE_SPEED": None,
        "LEG_ATTEMPTS": "RUN_ATTEMPTS",
        "RETENTION_TREADS_DAYS": "RETENTION_THREADS_DAYS",
    }
    Path(".env").write_text("RATE_LIMIT_CHATS_PER_MIN=1\n")
    assert unknown_settings({}) == {"RATE_LIMIT_CHATS_PER_MIN": "RATE_LIMIT_CHAT_PER_MIN"}


@pytest.mark.parametrize("engine", ["claude", "openai", "azure", "bedrock", "vertex"])
def test_a_named_engine_without_what_it_needs_stops_the_start(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    monkeypatch.setenv("REASONING_ENGINE", engine)
    with pytest.raises(ConfigurationError, match=f"REASONING_ENGINE={engine} needs"):
        load_settings()


def test_a_phase_may_have_a_model_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONING_MODEL", "general")
    monkeypatch.setenv("REASONING_MODEL_JUDGE", "judge")
    reasoning = load_settings().reasoning
    assert reasoning.model_for("judge", "of-the-session") == "judge"
    assert reasoning.model_for("plan", "of-the-session") == "of-the-session"
    assert reasoning.model_for("plan") == "general"


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_API_KEY", "")
    monkeypatch.setenv("AGENT_API_PORT", "")
    server = load_settings().server
    assert server.api_key is None
    assert server.port == 8000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AGENT_API_PORT", "70000"),
        ("RATE_LIMIT_SESSIONS_PER_MIN", "-1"),
        ("REASONING_RETRY_COUNT", "6"),
        ("FLOWISE_INSTANCES", "not json"),
        ("WEBHOOK_SECRET", "whsec_c2hvcnQ="),
        ("WEBHOOK_SECRET", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"),
        ("WEBHOOK_SECRET", "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0,whsec_?"),
        ("WEBHOOK_ALLOW", "10.0.0.0/33"),
        ("WEBHOOK_ALLOW", "hooks.corp.example, https://hooks"),
        ("FLOWISE_INSTANCES", '[{"id": "a", "endpoint": "http://h"}, {"id": "a", "endpoint": "http://i"}]'),
    ],
)
def test_a_mistake_names_the_variable(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name) as caught:
        load_settings()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLOWISE_INSTANCES", '[{"id": "bad id!", "endpoint": "http://h", "api_key": "s3cr3t"}]'),
        ("WEBHOOK_SECRET", "s3cr3t"),
    ],
)
def test_a_mistake_does_not_repeat_a_secret(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert "s3cr3t" not in str(caught.value)


def test_webhook_settings_are_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"a", b"b"))
    monkeypatch.setenv("WEBHOOK_SECRET", f"{first}, {second}")
    monkeypatch.setenv("WEBHOOK_ALLOW", "Hooks.Corp.example., 10.0.0.0/8,127.0.0.1, fd00::/8")
    server = load_settings().server
    hosts, networks = server.webhook_allowed
    assert server.webhook_secrets == (first, second)
    assert hosts == {"hooks.corp.example"}
    assert [str(network) for network in networks] == ["10.0.0.0/8", "127.0.0.1/32", "fd00::/8"]


def test_instances_replace_the_single_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [instance.id for instance in load_settings().flowise.instances] == ["default"]
    monkeypatch.setenv("FLOWISE_INSTANCES", '[{"id": "dev", "endpoint": "http://h:1", "api_key": "k"}]')
    (instance,) = load_settings().flowise.instances
    assert (instance.id, str(instance.endpoint)) == ("dev", "http://h:1/")


def test_a_secret_may_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    monkeypatch.setenv("AGENT_API_KEY_FILE", str(tmp_path / "key"))
    Path(".env").write_text(f"FLOWISE_INSTANCES_FILE={tmp_path / 'instances'}\n")
    (tmp_path / "instances").write_text('[{"id": "dev", "endpoint": "http://dev:3000", "headers": {"X-Gate": "open"}}]')
    settings = load_settings()
    assert settings.server.api_key is not None
    assert settings.server.api_key.get_secret_value() == "from-a-file"
    assert settings.flowise.instances[0].headers == {"X-Gate": SecretStr("open")}
    assert unknown_settings() == {}

    monkeypatch.setenv("AGENT_API_KEY", "set")
    assert [key.get_secret_value() for key in load_settings().server.api_keys] == ["set"]
    monkeypatch.setenv("POSTGRES_DSN_FILE", str(tmp_path / "gone"))
    with pytest.raises(ConfigurationError, match="POSTGRES_DSN_FILE names a file that cannot be read"):
        load_settings()


@pytest.mark.parametrize("headers", ['{"X Gate": "a"}', '{"X-Gate": "a\\r\\nHost: b"}', '{"X-Gate": ""}'])
def test_headers_for_flowise_are_headers(monkeypatch: pytest.MonkeyPatch, headers: str) -> None:
    monkeypatch.setenv("FLOWISE_HEADERS", headers)
    with pytest.raises(ConfigurationError, match="headers must have names"):
        load_settings()
