"""Installing Flowise with a fake npm: once, atomically, and with a sentence when it fails."""

import json
import stat
import sys
import threading
from pathlib import Path

import pytest

from flowise_dev_agent.devkit.flowise import FLOWISE_VERSION, FlowiseInstallation, LocalFlowise, install, server
from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.errors import ConfigurationError

HERE = Path(install.__file__).parent
OWN_SERVER = "FLOWISE_API_ENDPOINT"


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replaces npm by a Python script; returns the script, to be overwritten by tests."""
    script = tmp_path / "npm.py"
    script.write_text(
        "import os, sys; os.mkdir('node_modules'); open('../calls', 'a').write(' '.join(sys.argv[1:]) + '\\n')"
    )
    monkeypatch.setattr(install, "_npm_argv", lambda: [sys.executable, str(script)])
    return script


def test_lock_pins_the_version_and_names_no_registry() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text())
    package = json.loads((HERE / "package.json").read_text())
    assert lock["lockfileVersion"] == 3
    assert lock["packages"]["node_modules/flowise"]["version"] == FLOWISE_VERSION == package["dependencies"]["flowise"]
    entries = {name: entry for name, entry in lock["packages"].items() if name}
    assert [name for name, entry in entries.items() if "resolved" in entry or "integrity" not in entry] == []
    assert lock["packages"][""]["dependencies"] == package["dependencies"]


def test_an_installed_package_without_the_lock_says_where_a_flowise_can_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "_HERE", tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        FlowiseInstallation(tmp_path / "cache")
    assert OWN_SERVER in (refused.value.hint or "")


def test_install_runs_npm_ci_once_and_says_beforehand_what_comes(npm: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    lines: list[str] = []
    folder = FlowiseInstallation(cache).install(lines.append)
    assert (folder / "node_modules").is_dir()
    assert "3 GB" in lines[0]
    assert OWN_SERVER in lines[0]
    FlowiseInstallation(cache).install(lines.append)
    (call,) = (cache / "calls").read_text().splitlines()
    assert call.startswith("ci --ignore-scripts")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_two_at_once_install_once(npm: Path, tmp_path: Path) -> None:
    npm.write_text("import time; time.sleep(0.2)\n" + npm.read_text())
    threads = [threading.Thread(target=FlowiseInstallation(tmp_path / "cache").install) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len((tmp_path / "cache" / "calls").read_text().splitlines()) == 1


def test_failing_npm_leaves_nothing_that_looks_installed(npm: Path, tmp_path: Path) -> None:
    npm.write_text("import sys; print('noise'); print('npm error code ENOTFOUND'); sys.exit(1)")
    installation = FlowiseInstallation(tmp_path / "cache")
    with pytest.raises(ConfigurationError, match="ENOTFOUND") as caught:
        installation.install()
    assert "Check the network" in str(caught.value)
    assert OWN_SERVER in str(caught.value)
    assert not installation.complete
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_interrupted_install_is_swept_and_done_again(npm: Path, tmp_path: Path) -> None:
    left_over = tmp_path / "cache" / ".installing-old"
    (left_over / "node_modules").mkdir(parents=True)
    assert FlowiseInstallation(tmp_path / "cache").install().is_dir()
    assert not left_over.exists()


def test_slow_install_shows_progress(npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_PROGRESS_SECS", 0.05)
    npm.write_text("import os, time; os.mkdir('node_modules'); time.sleep(0.5)")
    lines: list[str] = []
    FlowiseInstallation(tmp_path / "cache").install(lines.append)
    assert any("s so far" in line for line in lines)


def test_missing_node_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"flowise-dev-agent\[devkit\]"):
        FlowiseInstallation(tmp_path).install()


class NoDatabase(PostgresServer):
    """Accepts what `LocalFlowise` asks of a server, without one."""

    def __init__(self) -> None:
        super().__init__("host=/nowhere port=5432 user=postgres dbname=postgres")


@pytest.fixture
def local(npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalFlowise:
    monkeypatch.setattr(LocalFlowise, "_prepare_database", lambda _: None)
    monkeypatch.setenv("OPENAI_API_KEY", "a-real-key")
    installation = FlowiseInstallation(tmp_path / "cache")
    return LocalFlowise(data_dir=tmp_path / "data", postgres=NoDatabase(), installation=installation)


def test_flowise_that_ends_is_reported_with_its_log(local: LocalFlowise, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ended with code 1") as caught:
        local.start()
    assert "node_modules/flowise/bin/run" in str(caught.value), "the tail of the log"
    assert OWN_SERVER in str(caught.value)
    assert local.pid is None


def test_flowise_that_never_answers_is_stopped(local: LocalFlowise, npm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm.write_text(
        "import os; os.makedirs('node_modules/flowise/bin');"
        "open('node_modules/flowise/bin/run', 'w').write('setTimeout(() => 0, 60000)')"
    )
    monkeypatch.setattr(server, "_READY_SECS", 0.3)
    with pytest.raises(ConfigurationError, match="did not answer"):
        local.start()
    assert local.pid is None


def test_flowise_sees_nothing_of_our_environment(local: LocalFlowise, tmp_path: Path) -> None:
    environment = local._environment()
    assert "a-real-key" not in environment.values()
    assert environment["HOST"] == "127.0.0.1"
    assert environment["DATABASE_HOST"] == "/nowhere"
    assert environment["HOME"].startswith(str(tmp_path))
    assert environment["DISABLE_FLOWISE_TELEMETRY"] == "true"
