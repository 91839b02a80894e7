"""Loads the shared fixtures. Each one starts what it names on first use, so unit tests start nothing."""

from pathlib import Path

from hypothesis import settings

# How long an example takes says something about the machine's load and nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Every module of tests/fixtures is a plugin: whoever adds one there need not edit this file.
pytest_plugins = [
    f"tests.fixtures.{path.stem}"
    for path in sorted(Path(__file__).with_name("fixtures").glob("*.py"))
    if path.stem != "__init__"
]
