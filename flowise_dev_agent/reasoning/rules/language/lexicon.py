"""What the words of a language mean: one file of words per language, and what they are put into.

`en.toml`, `de.toml`, ...: the words of one language. `shapes.toml`: sentences in which `{name}` is the words of that
name in all languages. `nodes.toml`, `names.toml`: the node types and products that words ask for. `concepts.toml`: what
people call the parts and settings of a flow.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

NodeTable = tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]


def _tables() -> dict[str, dict[str, Any]]:
    found = {
        one.name.removesuffix(".toml"): one for one in files(__package__ or "").iterdir() if one.name[-5:] == ".toml"
    }
    # English first: it is what a text is in when nothing speaks for another language.
    names = sorted(found, key=lambda name: (name != "en", name))
    return {name: tomllib.loads(found[name].read_text("utf-8")) for name in names}


_TABLES: Final = _tables()
_SPOKEN: Final = {code: table for code, table in _TABLES.items() if len(code) == 2}
_SHAPES: Final = _TABLES["shapes"]
_NAMED: Final = {**_TABLES["nodes"], **_TABLES["names"]}
_SLOTS: Final = {**_NAMED["slots"], **_TABLES["concepts"]["slots"]}
#: The languages whose words are known well enough to build by them.
READ: Final = frozenset(code for code, table in _SPOKEN.items() if table["read"])
FUNCTION_WORDS: Final = {code: frozenset(table.get("function_words", "").split()) for code, table in _SPOKEN.items()}
FUNCTIONS: Final = frozenset[str]().union(*FUNCTION_WORDS.values())
#: A letter that tells the language -> its code.
MARKS: Final = {mark: code for code, table in _SPOKEN.items() for mark in table.get("marks", "")}
_COUNTED: Final = (pair.split("=") for table in _SPOKEN.values() for pair in table.get("numbers", "").split())
NUMBER_WORDS: Final = {word: int(value) for word, value in _COUNTED}
#: Where a word begins and ends. Japanese, Chinese and Korean put no space between theirs and others.
_LETTER: Final = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
BEGINS, ENDS = rf"(?<!{_LETTER})", rf"(?!{_LETTER})"
#: A number as people write it: 500, 1,000, 0.2, 0,2, ten.
NUMBER: Final = rf"(\d{{1,3}}(?:[.,]\d{{3}})+(?!\d)|\d+(?:[.,]\d+)?|\.\d+|{BEGINS}(?:{'|'.join(NUMBER_WORDS)}){ENDS})"


_SLOT: Final = re.compile(r"\{([a-z_]\w*)\}")
#: Parts of a pattern: a set of characters, an escape, a word. In short words marks make another word ("ou", "où").
_TOKEN: Final = re.compile(r"\[\^?(?:\\.|[^\]\\])*\]|\\.|[^\W\d_]{4,}")
_PLAIN: Final = str.maketrans("łŁøØ", "lLoO")
_UMLAUTS: Final = {"ä": "(?:ä|ae?)", "ö": "(?:ö|oe?)", "ü": "(?:ü|ue?)", "ß": "(?:ß|ss)"}


def bare(text: str) -> str:
    """The text without marks on its letters; all letters stay where they are."""
    return "".join(unicodedata.normalize("NFD", char)[0] for char in text.translate(_PLAIN))


def _compiled(source: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern whose words are found where they are typed without marks, too: "pamieci", "fuer"."""
    try:
        return re.compile(_TOKEN.sub(lambda one: _typed(one[0], _UMLAUTS), source), flags)
    except re.error:
        # What looks behind finds one letter for one.
        return re.compile(_TOKEN.sub(lambda one: _typed(one[0], {}), source), flags)


def _typed(token: str, longer: Mapping[str, str]) -> str:
    if token[0] == "\\" or token[:2] == "[^":
        return token
    if token[0] == "[":
        return token[:-1] + "".join(bare(char) for char in token if bare(char) != char) + "]"
    return "".join(longer.get(char) or (f"[{char}{bare(char)}]" if bare(char) != char else char) for char in token)


def _said(section: str, name: str) -> list[str]:
    """The words of all languages."""
    return list(dict.fromkeys(word for table in _SPOKEN.values() for word in table.get(section, {}).get(name, ())))


@cache
def words(name: str) -> re.Pattern[str]:
    """Whole words, in upper or lower case."""
    return _whole(_said("words", name))


@cache
def wordset(name: str, language: str = "") -> frozenset[str]:
    """The words of a list, of one language or of all."""
    tables = (table for code, table in _SPOKEN.items() if language in ("", code))
    said = [word for table in tables for word in table.get("lists", {}).get(name, "").split()]
    return frozenset([*said, *(bare(word) for word in said if len(word) > 3)])


@cache
def table(name: str) -> NodeTable:
    """(words, what they mean) of a table, in its order: node names in order of preference, or a kind of signal."""
    rows = ((row, [*row.get("words", ()), *_said(name, row["key"])]) for row in _NAMED[name])
    return tuple((_whole(said), tuple(row.get("means", [row["key"]]))) for row, said in rows)


def means(name: str, key: str) -> tuple[str, ...]:
    """What one row of a table means."""
    return next(tuple(row.get("means", [key])) for row in _NAMED[name] if row["key"] == key)


@cache
def patterns(section: str, name: str) -> tuple[re.Pattern[str], ...]:
    found = _SHAPES[section][name]
    return tuple(_compiled(_SLOT.sub(_filled, one)) for one in (found if isinstance(found, list) else [found]))


def _filled(slot: re.Match[str]) -> str:
    alternatives = [*_SLOTS.get(slot[1], ()), *_said("slots", slot[1])]
    return NUMBER if slot[1] == "number" else f"(?:{'|'.join(alternatives)})"


def pattern(section: str, name: str) -> re.Pattern[str]:
    return patterns(section, name)[0]


@cache
def concept(group: str, name: str = "") -> re.Pattern[str]:
    """The words for one part or setting of a flow, or for any of a group; the group that matched is its name."""
    rows = ((one, "|".join(said)) for one, said in _TABLES["concepts"][group].items() if name in ("", one))
    return _whole([f"(?P<{one}>{said})" for one, said in rows])


def constants(name: str) -> Any:
    """A table that is more than words: a dictionary, or its rows."""
    return _NAMED[name]


def _whole(alternatives: list[str]) -> re.Pattern[str]:
    return _compiled(rf"{BEGINS}(?:{_SLOT.sub(_filled, '|'.join(alternatives))}){ENDS}", re.IGNORECASE)
