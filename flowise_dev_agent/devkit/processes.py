"""Child processes recorded in a pid file, so that a later run can end processes left behind by a killed run."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import platformdirs
import psutil

_TERM_SECS = 10.0
_KILL_SECS = 5.0


class ManagedProcess:
    """A child process in its own process group, with its output in `log_file` and its identity in `pid_file`.

    The pid file holds the process id together with its creation time: a pid that the system has given to another
    program since is never touched.
    """

    def __init__(self, pid_file: Path, log_file: Path) -> None:
        self._pid_file = pid_file
        self.log_file = log_file
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        """End a process left by an earlier run, then start `argv` with exactly the environment `env`."""
        self.end_stale()
        with self.log_file.open("wb") as log:
            self._child = subprocess.Popen(  # noqa: S603 - argv is ours
                list(argv),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        with contextlib.suppress(psutil.NoSuchProcess):
            identity = {"pid": self._child.pid, "created": psutil.Process(self._child.pid).create_time()}
            self._pid_file.write_text(json.dumps(identity))

    def exit_code(self) -> int | None:
        """The child's exit code, or None while it runs."""
        return None if self._child is None else self._child.poll()

    def stop(self) -> None:
        """End the child and its group: SIGTERM, then SIGKILL if it has not ended within 10 s."""
        child, self._child = self._child, None
        if child is not None:
            _end_group(psutil.Process(child.pid) if child.poll() is None else None, child.pid)
            child.wait(_KILL_SECS)
        self._pid_file.unlink(missing_ok=True)

    def end_stale(self) -> bool:
        """End the process that the pid file names if it is still the same one. True if there was one."""
        try:
            identity = json.loads(self._pid_file.read_text())
            process = psutil.Process(int(identity["pid"]))
            ours = abs(process.create_time() - float(identity["created"])) < 1
        except (OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
            ours = False
            process = None
        if ours and process is not None:
            _end_group(process, process.pid)
        self._pid_file.unlink(missing_ok=True)
        return ours

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of the child's output."""
        try:
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""


def _end_group(process: psutil.Process | None, group: int) -> None:
    """Send SIGTERM to the group of `process`, then SIGKILL to the rest."""
    if process is not None:
        _signal_group(group, signal.SIGTERM)
        with contextlib.suppress(psutil.TimeoutExpired, psutil.NoSuchProcess):
            process.wait(_TERM_SECS)
    _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


APP_NAME = "flowise-dev-agent"


def is_root() -> bool:
    """True for uid 0; always False on systems without user ids."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def default_cache_dir() -> Path:
    """Cache folder of installations that can be repeated, e.g. Flowise's `node_modules` (about 3 GB)."""
    return platformdirs.user_cache_path(APP_NAME, appauthor=False)


def default_data_dir() -> Path:
    """Data folder of the local stack: databases, access data and logs.

    For root it is outside the home folder: Postgres refuses to run as root, so the embedded server runs as a separate
    user, and every folder above its data becomes readable.
    """
    if is_root():
        return Path("/var/lib") / APP_NAME
    return platformdirs.user_data_path(APP_NAME, appauthor=False)
