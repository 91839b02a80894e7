"""The whole stack: up, down, up again with everything still there, and after a kill."""

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import psutil
import psycopg
import pytest

from flowise_dev_agent.devkit.stack import DevStack, embedded_database
from flowise_dev_agent.errors import ConfigurationError
from tests.support.folders import server_folder

pytestmark = pytest.mark.usefixtures("flowise_installed")


@pytest.fixture
def folder() -> Iterator[Path]:
    path = server_folder("stack")
    yield path
    shutil.rmtree(path, ignore_errors=True)


def processes_of(folder: Path) -> list[int]:
    """Live processes that have the folder in their command line or as their home."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.environ().get("HOME", "")]
        except (psutil.Error, OSError):
            continue
        if process.status() != psutil.STATUS_ZOMBIE and any(word.startswith(str(folder)) for word in words):
            found.append(process.pid)
    return found


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.nightly
def test_second_run_finds_what_the_first_one_made_and_nothing_stays_running(folder: Path) -> None:
    lines: list[str] = []
    stack = DevStack(folder, flowise_port=0).start(lines.append)
    with psycopg.connect(stack.dsn) as connection:
        connection.execute("CREATE TABLE kept ()")
    first = stack.flowise
    key = {"Authorization": f"Bearer {first.api_key.get_secret_value()}"}
    flow = {"name": "kept", "type": "CHATFLOW", "flowData": '{"nodes":[],"edges":[]}'}
    httpx2.post(f"{first.endpoint}/api/v1/chatflows", json=flow, headers=key).raise_for_status()
    stack.stop()
    assert processes_of(folder) == []
    assert any("stand-in" in line for line in lines)
    assert first.api_key.get_secret_value() not in str(first)
    assert stack.access_file.is_file()

    with DevStack(folder, flowise_port=0) as again:
        assert again.flowise.api_key == first.api_key
        flows = httpx2.get(f"{again.flowise.endpoint}/api/v1/chatflows", headers=key).json()
        with psycopg.connect(again.dsn) as connection:
            connection.execute("SELECT * FROM kept")
    assert [row["name"] for row in flows] == ["kept"]
    assert processes_of(folder) == []


@pytest.mark.nightly
def test_what_a_killed_run_left_behind_is_ended(folder: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from flowise_dev_agent.devkit.stack import DevStack;"
        "DevStack(Path(sys.argv[1]), flowise_port=0).start(); print('up', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "up\n"
        left = processes_of(folder)
        killed.send_signal(signal.SIGKILL)
    flowise = [pid for pid in left if pid != killed.pid and "postgres" not in psutil.Process(pid).name()]
    assert flowise
    with embedded_database(folder) as dsn, psycopg.connect(dsn) as connection:
        connection.execute("SELECT 1")
    assert until(lambda: all(gone(pid) for pid in flowise), 20)
    assert processes_of(folder) == []


def test_a_part_that_does_not_start_takes_the_others_down_again(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Port {port} .* is in use"):
            DevStack(folder, flowise_port=port).start()
    assert processes_of(folder) == []
