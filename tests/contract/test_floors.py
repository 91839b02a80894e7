"""The floors of the package: each imports only from those below it."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_import_goes_down() -> None:
    # In a process of its own: import-linter configures logging and with that silences every logger there is.
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_p100_only_publish_writes_chatflows() -> None:
    """Intent, guard, read-back and versions are there; a write from anywhere else would have none of them."""
    package = ROOT / "flowise_dev_agent"
    writes = {"create_chatflow", "update_chatflow", "delete_chatflow"}
    found = {
        f"{path.relative_to(package)}:{node.lineno}"
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] not in {"publish", "flowise"}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in writes)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/chatflows"))
    }
    assert found == set()


def test_nodes_reach_flowise_through_their_domain_and_the_write_path_only() -> None:
    nodes = ROOT / "flowise_dev_agent" / "agent" / "nodes"
    reaching = [
        f"{path.name}:{part.lineno}"
        for path in sorted(nodes.glob("*.py"))
        for part in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(part, ast.Attribute) and part.attr == "flowise"
    ]
    assert reaching == []
