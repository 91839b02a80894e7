"""The patterns of `grammar.toml`, by the module that reads with them."""

import re
import tomllib
from importlib.resources import files
from typing import Any

_TABLE: dict[str, dict[str, Any]] = tomllib.loads(files(__package__ or "").joinpath("grammar.toml").read_text("utf-8"))

NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100,
    "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "zwölf": 12,
    "zwanzig": 20, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9,
    "diez": 10, "doce": 12, "veinte": 20, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "sept": 7, "huit": 8,
    "neuf": 9, "dix": 10, "douze": 12, "vingt": 20, "dois": 2, "duas": 2, "três": 3, "quatro": 4, "sete": 7, "oito": 8,
    "nove": 9, "dez": 10, "doze": 12, "vinte": 20,
}  # fmt: skip
#: A number as people write it: 500, 1,000, 0.2, 0,2, ten.
NUMBER = r"(\d{1,3}(?:[.,]\d{3})+(?!\d)|\d+(?:[.,]\d+)?|" + "|".join(NUMBER_WORDS) + r")"


def pattern(section: str, name: str) -> re.Pattern[str]:
    return _compiled(_TABLE[section][name])


def patterns(section: str, name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(_compiled(text) for text in _TABLE[section][name])


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("NUMBER", NUMBER))
