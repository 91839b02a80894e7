"""Children are ended with their groups, and a pid file never hits a stranger."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from flowise_dev_agent.devkit import processes
from flowise_dev_agent.devkit.processes import ManagedProcess

# A child with a grandchild; both ignore SIGTERM when asked to.
SCRIPT = """
import signal, subprocess, sys, time
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(grandchild.pid, flush=True)
time.sleep(60)
"""


def managed(tmp_path: Path) -> ManagedProcess:
    return ManagedProcess(tmp_path / "x.pid", tmp_path / "x.log")


def start(process: ManagedProcess, tmp_path: Path, kind: str = "meek") -> int:
    """Start the script; returns the grandchild's pid."""
    process.start([sys.executable, "-c", SCRIPT, kind], env={"PATH": os.environ["PATH"]}, cwd=tmp_path)
    deadline = time.monotonic() + 10
    while not (line := process.log_tail(1)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(line)


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


@pytest.mark.parametrize("kind", ["meek", "stubborn"])
def test_stop_ends_child_and_grandchild(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_TERM_SECS", 0.3)
    process = managed(tmp_path)
    grandchild = start(process, tmp_path, kind)
    child = process.pid
    assert child is not None
    process.stop()
    assert ends(child)
    assert ends(grandchild)
    assert not (tmp_path / "x.pid").exists()
    process.stop()


def test_next_run_ends_what_the_last_one_left(tmp_path: Path) -> None:
    first = managed(tmp_path)
    grandchild = start(first, tmp_path)
    assert first.pid is not None
    assert managed(tmp_path).end_stale() is True
    assert ends(first.pid or 0)
    assert ends(grandchild)
    first.stop()


def test_pid_that_belongs_to_somebody_else_now_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (tmp_path / "x.pid").write_text(json.dumps({"pid": stranger.pid, "created": 12345.0}))
        assert managed(tmp_path).end_stale() is False
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("content", ["", "nonsense", "[]", '{"pid": 99999999, "created": 1}', '{"pid": "x"}'])
def test_broken_pid_file_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.pid").write_text(content)
    assert managed(tmp_path).end_stale() is False


def test_child_gets_only_the_environment_given(tmp_path: Path) -> None:
    process = managed(tmp_path)
    process.start([sys.executable, "-c", "import os; print(sorted(os.environ))"], env={"A": "1"}, cwd=tmp_path)
    deadline = time.monotonic() + 10
    while process.exit_code() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "'A'" in process.log_tail()
    assert "HOME" not in process.log_tail()
    process.stop()
