"""Sentences for people that code writes, in the person's language."""

import tomllib
from functools import cache
from importlib.resources import files


def say(key: str, language: str, /, **values: object) -> str:
    """The phrase `key` filled in; English where the language or the phrase is missing."""
    table = _table()
    phrase = table.get(language, {}).get(key) or table["en"][key]
    return phrase.format(**values)


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(files(__package__ or "").joinpath("phrases.toml").read_text("utf-8"))
