"""The catalogue of texts: every sentence that the product itself says to people, by its code.

`en.json` holds the English texts, a file for each further language of the page the same keys as far as they are
translated. A key is `<area>.<code>[.<part>]`; `{{name}}` stands for a parameter. A text that counts has the two keys
`<key>_one` and `<key>_other` and the parameter `count`. The page reads the same files with i18next, so the format is
its own: https://www.i18next.com/misc/json-format.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from importlib.resources import files
from typing import Final, Literal, TypeAlias, get_args

from flowise_dev_agent.sanitize import shortened

Param: TypeAlias = str | int | float | bool | list[str]
Language: TypeAlias = Literal["en", "de", "fr", "es"]
LANGUAGES: Final = get_args(Language)
_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")


class Text(str):
    """A text as it reads in English, which knows its code and parameters: models that hold it keep them (`Worded`).

    A parameter may be such a text itself.
    """

    __slots__ = ("code", "params")
    code: str
    params: Mapping[str, "Param"]

    def __new__(cls, code: str, english: str, params: Mapping[str, "Param"]) -> "Text":
        made = super().__new__(cls, english)
        made.code = code
        made.params = params
        return made

    def __reduce__(self) -> tuple[type["Text"], tuple[str, str, Mapping[str, "Param"]]]:
        return Text, (self.code, str(self), self.params)


def text(code: str, /, **params: Param) -> Text:
    """A text of the catalogue with its parameters."""
    return Text(code, say(code, **params), params)


def counted(code: str, number: int) -> str:
    """A number of things, by the code of their name: `1 node`, `2 nodes`."""
    return text(f"count.{code}", count=number)


def quoted(words: str) -> str:
    """Words of a person, in the quotation marks of the language."""
    return text("quoted", words=words)


def sentences(*texts: str) -> str:
    """Sentences one after the other; empty ones are left out."""
    given = [one for one in texts if one]
    return reduce(lambda one, other: text("sentences", one=one, other=other), given) if given else ""


def lines(*texts: str) -> str:
    """Texts below each other."""
    return reduce(lambda one, other: text("lines", one=one, other=other), texts) if texts else ""


def listed(texts: Sequence[str]) -> str:
    """Texts in one line, with semicolons between them."""
    return reduce(lambda one, other: text("listed", one=one, other=other), texts)


def translated(words: str, language: str) -> str:
    """A text in a language; words without a code stay as they are, as does a stored text whose code is gone."""
    if not isinstance(words, Text):
        return words
    params: dict[str, Param] = {
        name: translated(value, language) if isinstance(value, Text) else value for name, value in words.params.items()
    }
    try:
        return say_in(language, words.code, **params)
    except KeyError:
        return str(words)


def in_brief(words: str, most: int) -> str:
    """A text whose foreign words are in one line of at most so many characters, cut between words; our own sentences
    stay whole and keep their codes.
    """
    if not isinstance(words, Text):
        return shortened(" ".join(words.split()), most)
    params = {name: in_brief(one, most) if isinstance(one, str) else one for name, one in words.params.items()}
    return text(words.code, **params)


def in_language(words: str, language: str) -> str:
    """A text that reads in a language and keeps its code; words without a code stay as they are."""
    return Text(words.code, translated(words, language), words.params) if isinstance(words, Text) else words


def say(code: str, /, **params: Param) -> str:
    """The English text of a code. Raises KeyError for a code that the catalogue does not have."""
    return _filled(_pattern(catalogue("en"), code, params, "en") or catalogue("en")[code], params)


def say_in(language: str, code: str, /, **params: Param) -> str:
    """The text of a code in a language (ISO 639-1), in English where it is not translated."""
    found = _pattern(catalogue(language), code, params, language) if language in LANGUAGES else None
    return say(code, **params) if found is None else _filled(found, params)


def has(code: str) -> bool:
    """True if the catalogue has the code."""
    return code in catalogue("en")


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """The texts of a language by their keys."""
    return json.loads(files(__package__ or "").joinpath(f"{language}.json").read_text("utf-8"))


def _pattern(texts: Mapping[str, str], code: str, params: Mapping[str, Param], language: str) -> str | None:
    if "count" not in params or code in texts:
        return texts.get(code)
    single = (0, 1) if language == "fr" else (1,)
    return texts.get(f"{code}_{'one' if params['count'] in single else 'other'}")


def _filled(pattern: str, params: Mapping[str, Param]) -> str:
    """The text with its parameters, which are never read as patterns themselves."""

    def value(match: re.Match[str]) -> str:
        found = params.get(match[1], match[0])
        return ", ".join(found) if isinstance(found, list) else str(found)

    return _PLACE.sub(value, pattern)
