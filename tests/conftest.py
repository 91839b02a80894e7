"""Loads the shared fixtures. Each one starts what it names on first use, so unit tests start nothing."""

from pathlib import Path

# Every module of tests/fixtures is a plugin: whoever adds one there need not edit this file.
pytest_plugins = [
    f"tests.fixtures.{path.stem}"
    for path in sorted(Path(__file__).with_name("fixtures").glob("*.py"))
    if path.stem != "__init__"
]
