"""Names for people: of fields as the canvas shows them or in words, of nodes, of credential types."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.nested import parse_path

#: Id of a node; in a reference to what it gives, the words behind it are part of the id.
_NODE_ID: Final = re.compile(r"(?<![\w/=&?-])([A-Za-z]\w*_\d+)(?:\.data\.instance)?(?![\w/=&-])")

_ID_AND_NAME: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:(.+)", re.DOTALL)


def field_label(entries: Iterable[InputEntry], param: str) -> str:
    """Label of a field, of one in a row that of its column; '' where the definitions do not have it."""
    label = ""
    for step in parse_path(param) or ():
        if isinstance(step, str):
            entry = next((one for one in entries if one["name"] == step), None)
            if entry is None:
                return ""
            label, entries = str(entry.get("label") or ""), entry.get("array") or ()
    return label


def words_of(entries: Iterable[InputEntry], param: str) -> dict[str, str]:
    """Labels of a field, of those in its rows, and of their options, which stand as `field=option`."""
    steps = [one for one in parse_path(param) or () if isinstance(one, str)]
    for step in steps[:-1]:
        entries = [inner for one in entries if one["name"] == step for inner in one.get("array") or ()]
    return _labels_in([one for one in entries if one["name"] in steps[-1:]])


def _labels_in(entries: Iterable[InputEntry]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in entries:
        found[one["name"]] = str(one.get("label") or "")
        found |= {f"{one['name']}={option['name']}": option.get("label", "") for option in one.get("options") or ()}
        found |= _labels_in(one.get("array") or ())
    return found


def without_id(value: str) -> str:
    """Name of a store, which Flowise keeps as `id:name`; another text as it is."""
    named = _ID_AND_NAME.fullmatch(value)
    return named[1] if named else value


def titled(words: str, titles: Mapping[str, str]) -> str:
    """Words with titles in place of the ids of nodes."""
    return _NODE_ID.sub(lambda found: titles.get(found[1], found[0]), words)


def field_name(param: str) -> str:
    """Last name of a path in words."""
    parts = [one for one in re.split(r"[.\[\]]+", param) if one]
    last = parts[-1] if parts else param
    return in_words(last if not last.isdigit() else param)


def in_words(name: str) -> str:
    """Name of a field in words: `startInputType` is "Start input type"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.\[\]]+", " ", name).strip()
    return words[:1].upper() + words[1:].lower() if not words.isupper() else words


def credential_name(type_: str) -> str:
    """Name of a credential type for people: `redisCacheUrlApi` is "Redis Cache Url"."""
    words = re.sub(r"(?<=\w)(?:OAuth2?|Api|OAuth2?Api)$", "", type_)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", " ", words)
    return words[:1].upper() + words[1:]
