"""The key that a service makes for itself where its operator sets none."""

from pathlib import Path

import pytest

from flowise_dev_agent.cli.startup import with_secrets_key
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.settings import base, load_settings


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of the key; its folder is not there yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SECRETS_KEY", raising=False)
    monkeypatch.setattr(base, "user_data_path", lambda *_, **__: tmp_path / "data")
    return tmp_path / "data" / "secrets.key"


def test_the_first_start_makes_a_key_for_its_user_alone_and_later_ones_use_it(kept: Path) -> None:
    first = with_secrets_key(load_settings(), make=True)
    assert [len(key) for key in first.database.secrets_keys] == [32]
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    for make in (True, False):
        again = with_secrets_key(load_settings(), make=make)
        assert again.database.secrets_keys == first.database.secrets_keys


def test_a_key_of_the_operator_comes_first_and_a_worker_makes_none(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_secrets_key(load_settings(), make=False).database.secrets_keys == ()
    monkeypatch.setenv("SECRETS_KEY", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=")
    assert with_secrets_key(load_settings(), make=True).database.secrets_keys == (b"secret-secret-secret-secret-secr",)
    assert not kept.exists()


def test_where_nothing_can_be_written_there_is_no_key_and_the_service_says_so(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.parent.write_text("a file where the folder would be")
    assert with_secrets_key(load_settings(), make=True).database.secrets_keys == ()
    told = "".join(capsys.readouterr())
    assert "SECRETS_KEY" in told


@pytest.mark.parametrize("content", ["", "no key", "é"])
def test_a_spoilt_file_is_named_and_not_written_over(kept: Path, content: str) -> None:
    kept.parent.mkdir()
    kept.write_text(content)
    with pytest.raises(ConfigurationError, match="holds no key"):
        with_secrets_key(load_settings(), make=True)
    assert kept.read_text() == content
