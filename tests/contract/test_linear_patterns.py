"""Every compiled pattern of the packages that read foreign text takes time that grows linearly with it."""

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flowise_dev_agent

PACKAGES = ("approval", "forms", "patch", "planning", "schemas", "sanitize", "redaction")
UNITS = (
    *(" ", "\n", "a", "a ", "A1", "{", "{{", "}}", "{{a", "[", "]", "(", "<", ".", "a.", "-", "_", "a_0 ", '"', "'"),
    *("`", "\\", "://", "http://a", "@", ":", ",", "/", "0", "1.", "=", "$vars.", "*", "#", "| ", "é", "x: ", "data:"),
)
SHORT = 4_000
#: Characters of a text that is read for so long at most, in seconds of the processor.
LONG, MOST = 16_000, 0.2


def modules() -> Iterator[Any]:
    for package in PACKAGES:
        root = importlib.import_module(f"flowise_dev_agent.{package}")
        yield root
        for found in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{root.__name__}."):
            yield importlib.import_module(found.name)


def patterns() -> dict[str, tuple[re.Pattern[str], str]]:
    """Patterns by name, each once, with the source that uses them."""
    everything = "\n".join(path.read_text("utf-8") for path in Path(flowise_dev_agent.__file__).parent.rglob("*.py"))
    found: dict[int, tuple[str, re.Pattern[str], str]] = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                source = inspect.getsource(module) if name.startswith("_") else everything
                found.setdefault(id(value), (f"{module.__name__}.{name}", value, source))
    return {name: (value, source) for name, value, source in found.values()}


def uses(name: str, pattern: re.Pattern[str], source: str) -> Iterator[Callable[[str], object]]:
    """The ways in which a pattern is used; searching is the slowest, and stands for what cannot be told."""
    found = set(re.findall(rf"\b{name.rpartition('.')[2]}\.(\w+)\(", source)) or {"search"}
    if "fullmatch" in found:
        yield pattern.fullmatch
    if "match" in found:
        yield pattern.match
    if found - {"fullmatch", "match"}:
        yield lambda text: [None for _ in pattern.finditer(text)]


def seconds(use: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    use(text)
    return time.process_time() - began


FOUND = patterns()


def test_the_patterns_are_found() -> None:
    assert len(FOUND) > 80


@pytest.mark.parametrize("name", sorted(FOUND))
def test_p86_a_pattern_is_matched_in_linear_time(name: str) -> None:
    pattern, source = FOUND[name]
    for use in uses(name, pattern, source):
        for unit in UNITS:
            for begin, end in (("", ""), ("a", "!")):
                texts = [f"{begin}{(unit * size)[:size]}{end}" for size in (SHORT, LONG)]
                if (took := seconds(use, texts[1])) > MOST:
                    assert took < 8 * seconds(use, texts[0]), (pattern.pattern, unit)
