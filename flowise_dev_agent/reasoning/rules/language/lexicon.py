"""What the words of a language mean: the tables of the `*.toml` files beside this module, as patterns."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final

NodeTable = tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]


def _tables() -> dict[str, Any]:
    """All files as one: lists of a name are joined, whatever file they are in."""
    found: dict[str, Any] = {}
    for file in sorted(files(__package__ or "").iterdir(), key=lambda one: one.name):
        if file.name.endswith(".toml"):
            _join(found, tomllib.loads(file.read_text("utf-8")))
    return found


def _join(into: dict[str, Any], table: dict[str, Any]) -> None:
    for name, value in table.items():
        if isinstance(value, dict):
            _join(into.setdefault(name, {}), value)
        else:
            into[name] = into[name] + value if name in into else value


_TABLE: Final = _tables()
#: The languages whose words are known here; of others only their function words.
READ: Final = frozenset({"en", "de", "es", "fr", "pt"})
FUNCTION_WORDS: Final = {code: frozenset(text.split()) for code, text in _TABLE["function_words"].items()}
NUMBER_WORDS: Final[dict[str, int]] = _TABLE["numbers"]
#: Where a word begins and ends. Japanese, Chinese and Korean put no space between theirs and others.
_LETTER: Final = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
BEGINS, ENDS = rf"(?<!{_LETTER})", rf"(?!{_LETTER})"
#: A number as people write it: 500, 1,000, 0.2, 0,2, ten.
NUMBER: Final = r"(\d{1,3}(?:[.,]\d{3})+(?!\d)|\d+(?:[.,]\d+)?|\.\d+|" + "|".join(NUMBER_WORDS) + r")"


@cache
def words(name: str) -> re.Pattern[str]:
    """Whole words, in upper or lower case."""
    return _whole(_TABLE["words"][name])


@cache
def wordset(name: str) -> frozenset[str]:
    return frozenset(str(_TABLE["lists"][name]).split())


@cache
def table(name: str) -> NodeTable:
    """(words, what they mean) of a table, in its order: node names in order of preference, or a kind of signal."""
    return tuple((_whole(row["words"]), tuple(row["means"])) for row in _TABLE[name])


@cache
def patterns(section: str, name: str) -> tuple[re.Pattern[str], ...]:
    found = _TABLE[section][name]
    return tuple(re.compile(one.replace("NUMBER", NUMBER)) for one in (found if isinstance(found, list) else [found]))


def pattern(section: str, name: str) -> re.Pattern[str]:
    return patterns(section, name)[0]


def rows(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a table that is more than words."""
    yield from _TABLE[name]


def constants(name: str) -> dict[str, Any]:
    return _TABLE[name]


def _whole(alternatives: list[str]) -> re.Pattern[str]:
    return re.compile(rf"{BEGINS}(?:{'|'.join(alternatives)}){ENDS}", re.IGNORECASE)
