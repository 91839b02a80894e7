"""Every variable is documented where people look for it, with the default that it really has."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_settings import BaseSettings

from flowise_dev_agent.settings import Settings

ROOT = Path(__file__).resolve().parents[3]


def _variables() -> dict[str, str]:
    """Variable -> default as it is written in `.env.example`; "" without one."""
    found: dict[str, str] = {}
    for group in Settings.model_fields.values():
        factory = group.default_factory
        assert isinstance(factory, type)
        assert issubclass(factory, BaseSettings)
        for field in factory.model_fields.values():
            assert field.alias
            found[field.alias] = _written(field.default)
    return found


def _written(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).rstrip("/")


VARIABLES = _variables()
#: Shown with an example, since they have no default that could be shown.
EXAMPLES = {"FLOWISE_INSTANCES", "POSTGRES_DSN"}
#: Secrets that must have a shape.
SECRETS = {
    "POSTGRES_DSN": "postgresql://u:s3cr3t@h/d",
    "WEBHOOK_SECRET": "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0",
    "SECRETS_KEY": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=",
}


def _env_example() -> dict[str, str]:
    text = (ROOT / ".env.example").read_text()
    return dict(re.findall(r"^#([A-Z][A-Z0-9_]+)=(.*)$", text, flags=re.MULTILINE))


def test_the_example_file_names_exactly_the_variables_that_exist() -> None:
    assert set(_env_example()) == set(VARIABLES)


def test_the_example_file_shows_the_real_defaults() -> None:
    shown = _env_example()
    assert {name: shown[name] for name in VARIABLES if name not in EXAMPLES} == {
        name: default for name, default in VARIABLES.items() if name not in EXAMPLES
    }


def test_the_example_file_sets_nothing_by_itself() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == []


def _reference_tables() -> dict[str, str]:
    text = (ROOT / "docs" / "configuration.md").read_text()
    return dict(re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \|([^|]*)\|", text, flags=re.MULTILINE))


def test_the_reference_page_lists_every_variable_with_its_default() -> None:
    assert {name: default.strip().strip("`") for name, default in _reference_tables().items()} == VARIABLES


def test_no_secret_has_a_default_or_shows_in_a_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        if name.endswith(("_KEY", "_SECRET")) or name == "POSTGRES_DSN":
            assert VARIABLES[name] == ""
            monkeypatch.setenv(name, SECRETS.get(name, "s3cr3t"))
    settings: BaseModel = Settings()
    for secret in ("s3cr3t", *SECRETS.values()):
        assert secret not in repr(settings)
        assert secret not in settings.model_dump_json()
