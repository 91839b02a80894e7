"""A release names its version, its materials and their licences."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_of_a_test", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bill_of_materials_has_every_locked_package_with_its_licence(release: ModuleType) -> None:
    document = release.sbom()
    pins = re.findall(r"^([\w.-]+)(?:\[.*?\])?==([^\s;]+)", (ROOT / "locks/runtime.lock").read_text(), re.MULTILINE)
    assert [(one["name"], one["version"]) for one in document["components"]] == pins
    without = {one["name"] for one in document["components"] if "licenses" not in one}
    # Those of other systems are not installed here.
    assert without <= {"colorama", "httpx2-jsfetch", "pywin32", "tzdata"}
    # Copyleft beyond what is known and used as a library.
    copyleft = {one["name"] for one in document["components"] if "GPL" in str(one.get("licenses"))}
    assert copyleft == {"psycopg", "psycopg-binary", "psycopg-pool"}


@pytest.mark.nightly
@pytest.mark.usefixtures("built_page")
def test_the_same_sources_give_the_same_bytes(release: ModuleType, tmp_path: Path) -> None:
    for name in ("first", "second"):
        assert release.main([str(tmp_path / name)]) == 0
    sums = [(tmp_path / name / "SHA256SUMS").read_text() for name in ("first", "second")]
    assert sums[0] == sums[1]
    assert [line.split()[1].partition("-")[0] for line in sums[0].splitlines()] == [
        "flowise_dev_agent",
        "flowise_dev_agent",
        "sbom.cdx.json",
    ]
