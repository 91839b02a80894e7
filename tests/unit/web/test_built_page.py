"""What is built from the page's sources: its own tests pass, it is small, and it needs nobody else."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flowise_dev_agent.web import STATIC_DIR

ROOT = Path(__file__).resolve().parents[3]
APP = STATIC_DIR.with_name("app")
#: All files that one person can load but the editor: parts that come when they are opened, and one language.
MOST_BYTES = 430_000
#: The editor for texts and code, loaded with the first field that has one.
EDITOR_BYTES = 150_000
FIRST_BYTES = 150_000


@pytest.mark.usefixtures("built_page")
def test_the_tests_of_the_page_sources_pass() -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / "build_page.py", "--test"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-4_000:] + run.stderr[-1_000:]


@pytest.mark.usefixtures("built_page")
def test_page_sources_fit_the_types_of_the_committed_api_document_and_pass_lint() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "build_page.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_all_of_the_page_in_one_language_is_below_430_kb_on_the_wire(built_page: Path) -> None:
    sizes = {
        path.name: len(gzip.compress(path.read_bytes()))
        for path in built_page.rglob("*")
        if path.suffix in {".js", ".css", ".html"}
    }
    (editor,) = [size for name, size in sizes.items() if re.match(r"CodeField-.*js", name)]
    assert editor < EDITOR_BYTES
    languages = [size for name, size in sizes.items() if re.match(r"(de|es|fr)-", name)]
    assert len(languages) == 3
    assert sum(sizes.values()) - editor - sum(languages) + max(languages) < MOST_BYTES, sizes


def test_the_start_page_is_below_150_kb_on_the_wire_and_the_canvas_comes_later(built_page: Path) -> None:
    assets = built_page / "assets"
    home = next(assets.glob("SessionsPage-*.js"))
    entry = next(path for path in assets.glob("index-*.js") if path.name in (built_page / "index.html").read_text())
    wanted, known = [home, entry], set[Path]()
    while wanted:
        path = wanted.pop()
        if path in known:
            continue
        known.add(path)
        # What a file imports at once; `import(...)` is loaded when it is needed.
        wanted += [assets / name for name in re.findall(r'(?:from|import)"\./([^"]+)"', path.read_text())]
    assert sum(len(gzip.compress(path.read_bytes())) for path in known) < FIRST_BYTES, sorted(known)
    assert not any("react-flow__pane" in path.read_text() for path in known)


def test_p70_the_built_page_loads_only_its_own_files_and_has_nothing_inline(built_page: Path) -> None:
    html = (built_page / "index.html").read_text()
    addresses = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert addresses
    assert all(address.startswith("./assets/") for address in addresses)
    assert "style=" not in html
    assert not re.search(r"<script[^>]*>[^<]", html)
    for sheet in (built_page / "assets").glob("*.css"):
        assert "url(http" not in sheet.read_text()


def test_the_lock_is_whole_and_names_no_registry() -> None:
    lock = json.loads((APP / "package-lock.json").read_text())
    assert not [name for name, one in lock["packages"].items() if "resolved" in one]
    # What a machine of another kind needs is in it too, else `npm ci` refuses the lock there and here.
    wanted = {name for one in lock["packages"].values() for name in one.get("optionalDependencies", {})}
    assert {f"node_modules/{name}" for name in wanted} <= lock["packages"].keys()
    assert all(one["integrity"].startswith("sha512-") for name, one in lock["packages"].items() if name)
