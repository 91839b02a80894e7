"""`python -m flowise_dev_agent.knowledge.refresh`: what it writes, refuses and finds wrong."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.knowledge import refresh as refresh_module
from flowise_dev_agent.knowledge.reference import REFERENCE_FILE
from flowise_dev_agent.knowledge.refresh import Refresh, main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the CLI reads and writes."""
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas", ignore=shutil.ignore_patterns("flowise_credentials.*"))
    for name in (REFERENCE_FILE, "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(refresh_module, "_ROOT", tmp_path)
    return tmp_path


def _files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_nodes_without_a_server_writes_the_page_again(checkout: Path) -> None:
    before = _files(checkout)
    (checkout / REFERENCE_FILE).unlink()

    assert main(["--nodes"]) == 0
    assert _files(checkout) == before


def test_dry_run_writes_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / REFERENCE_FILE).unlink()
    before = _files(checkout)

    assert main(["--nodes", "--dry-run", "--workday-api", "--workday-mcp"]) == 0

    assert capsys.readouterr().out.count("nothing written") == 3
    assert _files(checkout) == before


def test_validate_finds_an_edited_page(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = checkout / REFERENCE_FILE
    page.write_text(page.read_text(encoding="utf-8").replace('default `"gpt-4o-mini"`', 'default `"gpt-5"`', 1))

    assert main(["--nodes", "--validate"]) == 1
    assert REFERENCE_FILE in capsys.readouterr().err


def test_outside_a_checkout_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(refresh_module, "_ROOT", tmp_path)

    assert main(["--nodes"]) == 1
    assert "in a checkout" in capsys.readouterr().err


def test_nothing_asked_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert "--workday-mcp" in capsys.readouterr().err


def test_an_unreachable_server_is_one_sentence(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLOWISE_API_ENDPOINT", "http://127.0.0.1:9")
    before = _files(checkout)

    assert main(["--templates"]) == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert _files(checkout) == before


def test_the_committed_files_are_in_order() -> None:
    command = [sys.executable, "-m", "flowise_dev_agent.knowledge.refresh", "--validate"]
    kinds = ["--nodes", "--templates", "--credentials", "--workday-mcp", "--workday-api"]

    done = subprocess.run([*command, *kinds], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("in order") == 5


Change = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("kind", "file", "change"),
    [
        ("nodes", "flowise_nodes.snapshot.json", lambda nodes: nodes[1:]),
        ("nodes", "flowise_nodes.snapshot.json", lambda nodes: [nodes[0], *nodes]),
        ("nodes", "flowise_nodes.snapshot.json", lambda nodes: [{"name": "x"}]),
        ("nodes", "flowise_nodes.snapshot.json", lambda nodes: [nodes[0] | {"icon": "/x"}]),
        ("nodes", "flowise_nodes.snapshot.json", lambda nodes: [nodes[0] | {"hint": "x"}]),
        ("nodes", "flowise_nodes.snapshot.json", lambda nodes: {}),
        ("nodes", "flowise_nodes.meta.json", lambda meta: meta | {"flowise_version": "3.0"}),
        ("nodes", "flowise_nodes.meta.json", lambda meta: {"x": 1}),
        ("templates", "flowise_templates.snapshot.json", lambda rows: [rows[0] | {"description": "x"}]),
        ("templates", "flowise_templates.snapshot.json", lambda rows: [rows[0] | {"flowData": "{}"}]),
        ("workday-mcp", "workday_mcp.snapshot.json", lambda rows: []),
        (
            "workday-mcp",
            "workday_mcp.snapshot.json",
            lambda rows: [rows[0] | {"selectedToolConfig": {"mcpServerConfig": {}, "mcpActions": ["a"]}}],
        ),
        ("workday-api", "workday_api.snapshot.json", lambda rows: [{}]),
        ("workday-api", "workday_api.meta.json", lambda meta: meta | {"status": "ok"}),
    ],
)
def test_validate_only_finds_mistakes(
    checkout: Path, capsys: pytest.CaptureFixture[str], kind: str, file: str, change: Change
) -> None:
    path = checkout / "schemas" / file
    path.write_text(json.dumps(change(json.loads(path.read_bytes()))))
    before = _files(checkout)

    assert main([f"--{kind}", "--validate"]) == 1
    assert capsys.readouterr().err.startswith(kind.replace("-", "_"))
    assert _files(checkout) == before


@pytest.mark.parametrize("file", ["flowise_nodes.snapshot.json", "flowise_templates.meta.json"])
def test_validate_names_a_missing_file(checkout: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    (checkout / "schemas" / file).unlink()

    assert main(["--nodes", "--templates", "--validate"]) == 1
    assert file in capsys.readouterr().err


def test_validate_lints_the_credential_snapshot_by_its_allowlist(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"credential_id": "i", "name": "mine", "type": "openAIApi", "encryptedData": "s3cr3t"}
    (checkout / "schemas" / "flowise_credentials.snapshot.json").write_text(json.dumps([entry]))

    assert main(["--credentials", "--validate"]) == 1

    said = capsys.readouterr().err
    assert "entry 0 holds encryptedData" in said
    assert "s3cr3t" not in said


async def test_workday_mcp_dates_a_changed_blueprint_and_leaves_others_alone(checkout: Path) -> None:
    meta = checkout / "schemas" / "workday_mcp.meta.json"
    before = meta.read_bytes()
    await Refresh(checkout).workday_mcp()
    assert meta.read_bytes() == before

    path = checkout / "schemas" / "workday_mcp.snapshot.json"
    path.write_text(path.read_text().replace("searchForWorker", "findWorker"))
    await Refresh(checkout).workday_mcp()

    assert meta.read_bytes() != before
    assert main(["--workday-mcp", "--validate"]) == 0
