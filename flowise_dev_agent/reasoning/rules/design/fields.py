"""Fields of a structured answer, taken from how people list them."""

import re
import unicodedata
from dataclasses import dataclass

from flowise_dev_agent.reasoning.rules.language import grammar
from flowise_dev_agent.reasoning.rules.language.text import squeeze

STRUCTURED = grammar.pattern("fields", "structured")
WANTS_LIST = grammar.pattern("fields", "wants_list")
_LISTS = grammar.patterns("fields", "lists")
_SEPARATOR = grammar.pattern("fields", "separator")
_ARTICLE = grammar.pattern("fields", "article")
_NUMBER_LIKE = grammar.pattern("fields", "number_like")
_NOT_NUMBER = grammar.pattern("fields", "not_number")
_BOOLEAN_LIKE = grammar.pattern("fields", "boolean_like")
_MAX_FIELDS = 20


@dataclass(frozen=True)
class Field:
    """One property: JSON-safe `name`, `kind` string, number or boolean, and what people call it."""

    name: str
    kind: str
    description: str


def find_fields(text: str) -> tuple[Field, ...]:
    """The fields that the text lists, () when it lists none."""
    # What stands in brackets explains a field and is none.
    text = re.sub(r"\s?\([^()\n]{0,40}\)", "", text)
    for pattern in _LISTS:
        for match in pattern.finditer(text):
            fields = _read(match.group(1))
            if fields:
                return fields
    return ()


def _read(listing: str) -> tuple[Field, ...]:
    fields: dict[str, Field] = {}
    for part in _SEPARATOR.split(listing):
        words = _ARTICLE.sub("", squeeze(part).strip(" \"'`“”«»"))
        name = _identifier(words)
        # A long stretch is prose, not the name of a field.
        if name and len(words.split()) <= 5 and name not in ("json", "data", "information", "text", "it", "them"):
            fields.setdefault(name, Field(name=name, kind=_kind(words), description=words))
    return tuple(fields.values())[:_MAX_FIELDS]


def _kind(words: str) -> str:
    if _BOOLEAN_LIKE.search(words):
        return "boolean"
    return "number" if _NUMBER_LIKE.search(words) and not _NOT_NUMBER.search(words) else "string"


def _identifier(words: str) -> str:
    plain = unicodedata.normalize("NFKD", words.replace("ß", "ss")).encode("ascii", "ignore").decode()
    parts = re.findall(r"[A-Za-z0-9]+", re.sub(r"'s\b", "", plain))
    name = "_".join(parts).lower()
    return name if name and not name[0].isdigit() else ""
