from collections.abc import Callable
from pathlib import Path

import pytest

from flowise_dev_agent.cli import main
from flowise_dev_agent.settings import Settings

#: Runs a command line; returns (exit code, stdout, stderr).
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for group in Settings.model_fields.values():
        for field in group.default_factory.model_fields.values():  # type: ignore[union-attr]
            monkeypatch.delenv(field.alias, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def invoke(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["flowise-dev-agent", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return invoke
