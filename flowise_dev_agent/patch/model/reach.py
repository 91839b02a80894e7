"""Reach of field values: addresses, files of the server, code, tools, other flows, credentials.

A field is judged by its definition and by its value: an address is one wherever it is written, except in texts for
models and people. Everything is matched in linear time; nothing of a flow is run.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from flowise_dev_agent.patch.model.addresses import Address, addresses_in, bare_address
from flowise_dev_agent.patch.model.field_kinds import GUARDED, FieldKind, classified, free_texts, kind_of
from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.patch.model.schema import NodeSchema
from flowise_dev_agent.patch.model.values import is_empty, on_one_line

#: Names of fields with text for models and people; the definition must be a plain text too.
_PROSE_FIELD: Final = re.compile(
    r"(?:prompt|messages?|instructions?|description|desc|template|prefix|suffix|examples?|title|scenario|content|text|"
    r"label|question|reply|placeholder|name)$",
    re.IGNORECASE,
)
_PROSE_TYPES: Final = frozenset({"string", "array"})
_TOOL_FIELD: Final = re.compile(r"selectedtool$", re.IGNORECASE)
#: Names of fields that start another flow or assistant.
_FLOW_FIELD: Final = re.compile(r"(?:selected(?:chat|agent)?flow|selectedassistant)$", re.IGNORECASE)
_CREDENTIAL_FIELDS: Final = frozenset({CREDENTIAL_KEY.casefold(), "credential", "credentialid"})
#: Sampling parameters and limits: an approved change of a node may adjust them although the plan does not name them.
_SETTING: Final = re.compile(
    r"(?:temperature|top[kpn]|fetchk|k|lambda|penalty|seed|tokens?|tokenlimit|timeout|searchtimeout|streaming|"
    r"chunksize|chunkoverlap|maxiterations|maxloopcount|windowsize|batchsize|maxresults|topkresults|numresults|"
    r"limit|similaritythreshold|maxretries)$",
    re.IGNORECASE,
)
_DEEPEST = 8
_SEGMENTS: Final = re.compile(r"[^.\[\]]+")


def reached(path: str, value: JsonValue, schema: NodeSchema | None) -> list[Address]:
    """Addresses that Flowise could call because of this value, and `file:` for a local file."""
    definition = definition_of(schema, path)
    found = [
        address
        for name, text, inside_json, type_ in _fields(path, value, schema.name if schema else "")
        if inside_json or not _is_prose(name, path, definition, schema)
        for address in _addresses(text, bare=_is_address(name, definition, type_))
    ]
    return sorted(set(found))


def unclear_address(path: str, value: JsonValue, schema: NodeSchema | None) -> str | None:
    """First address of a value that readers take for different ones; None if all are clear."""
    return next((one.origin for one in reached(path, value, schema) if not one.clear), None)


class Acting(NamedTuple):
    """Value of a field that a plan has to name: code, a command, a file of the server, a secret, parts of a request."""

    kind: FieldKind
    path: str
    value: JsonValue

    @property
    def text(self) -> str:
        """The value as text, the same for JSON and its text."""
        return on_one_line(self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False))

    @property
    def identity(self) -> tuple[FieldKind, str]:
        """Kind and value, wherever the field is."""
        inner = _parsed(self.value) if isinstance(self.value, str) else None
        given = self.value if inner is None else inner
        return self.kind, json.dumps(given, sort_keys=True, ensure_ascii=False)


def acting(path: str, value: JsonValue, schema: NodeSchema | None) -> Iterator[Acting]:
    """Values that act, wherever they stand in the value of a field: in rows, nested settings and JSON."""
    names = _SEGMENTS.findall(path) or [""]
    definition, type_ = definition_of(schema, path), schema.name if schema else ""
    kinds = [kind_of(names[0], definition, type_)]
    kinds += [_kind_inside(name, around) for around, name in pairwise(names)]
    if kind := next((kind for kind in kinds if kind in GUARDED), None):
        yield from _filled(kind, path, value)
    else:
        yield from _acting_inside(
            path, value, FieldKind.ADDRESS if _is_address(path, definition, type_) else kinds[-1], 0
        )


def _acting_inside(path: str, value: JsonValue, kind: FieldKind, deep: int) -> Iterator[Acting]:
    if isinstance(value, str):
        if (inner := _parsed(value)) is not None and deep < _DEEPEST:
            yield from _acting_inside(path, inner, kind, deep + 1)
        elif kind is FieldKind.ADDRESS and not _addresses(value, bare=True):
            yield from _filled(FieldKind.FILE, path, value)
    elif isinstance(value, dict):
        type_ = _component(path, value)
        for name, item in value.items():
            found = _kind_inside(name, path, type_)
            where = f"{path}.{name}"
            yield from _filled(found, where, item) if found in GUARDED else _acting_inside(where, item, found, deep)
    elif isinstance(value, list):
        for item in value:
            yield from _acting_inside(path, item, kind, deep)


def _kind_inside(name: str, around: str, type_: str = "") -> FieldKind:
    """Kind of a field inside another one. The settings of a nested node are its fields; other keys are anybody's."""
    return kind_of(name, type_=type_) if around.endswith("Config") else classified(name) or FieldKind.PLAIN


def _component(path: str, settings: Mapping[str, JsonValue]) -> str:
    """Type of the node that settings are of, which they name themselves; empty if they do not."""
    owner, is_config, _ = path.rpartition(".")[2].partition("Config")
    return str(settings.get(owner) or "") if is_config else ""


def _filled(kind: FieldKind, path: str, value: JsonValue) -> Iterator[Acting]:
    # Code may begin like a placeholder and still act.
    runs = kind in (FieldKind.CODE, FieldKind.COMMAND)
    if not is_empty(value) and (runs or not (isinstance(value, str) and stands_in(value))):
        yield Acting(kind, path, value)


def _parsed(text: str) -> JsonValue:
    """Object or list of a JSON text; None for other texts."""
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return None


def tools_in(values: Mapping[str, JsonValue]) -> Iterator[str]:
    """Names of the tools that the values give to an agent. A placeholder names none."""
    return _named_by(values, _TOOL_FIELD)


def flows_in(values: Mapping[str, JsonValue]) -> Iterator[str]:
    """Ids of other flows and assistants that the values start. A placeholder names none."""
    return _named_by(values, _FLOW_FIELD)


def sets_credential(path: str, value: JsonValue) -> bool:
    """True if a value sets a credential: only BindCredential may, for a type that the plan names."""
    last = path.rpartition(".")[2].casefold()
    return (last in _CREDENTIAL_FIELDS and value not in ("", None)) or any(
        key.casefold() in _CREDENTIAL_FIELDS and item not in ("", None) for key, item in _pairs(value)
    )


def is_setting(path: str, value: JsonValue) -> bool:
    """True if a field is a sampling parameter or a limit, and its value a number or a boolean."""
    plain = isinstance(value, bool | int | float) or bool(re.fullmatch(r"-?[\d.]{1,20}|true|false|", str(value)))
    return plain and bool(_SETTING.search(path.rpartition(".")[2]))


def holds_code(schema: NodeSchema) -> bool:
    """True if a node type runs code or commands that have to be written in its fields."""
    return any(_runs(entry) for entry in free_texts(schema.input_definitions))


def _runs(definition: InputEntry) -> bool:
    """True for a field with code or a command that has to be filled."""
    kind = kind_of(definition["name"], definition)
    return kind in (FieldKind.CODE, FieldKind.COMMAND) and not definition.get("optional")


def definition_of(schema: NodeSchema | None, path: str) -> InputEntry | None:
    """Definition of the field that a path begins with."""
    root = re.split(r"[.\[]", path, maxsplit=1)[0]
    return next((entry for entry in schema.input_definitions if entry["name"] == root), None) if schema else None


def _addresses(text: str, *, bare: bool) -> list[Address]:
    """Addresses in a text; `bare`: all of it is one, also without a scheme. There a placeholder reaches nothing."""
    if not bare:
        return addresses_in(text)
    return [] if stands_in(text) else addresses_in(text) or bare_address(text)


def _is_address(name: str, definition: InputEntry | None, type_: str) -> bool:
    last = name.rpartition(".")[2]
    if kind_of(last, type_=type_) is FieldKind.ADDRESS:
        return True
    shown = (
        (definition.get("default"), definition.get("placeholder")) if definition and definition["name"] == last else ()
    )
    return any(isinstance(text, str) and addresses_in(text.strip()) for text in shown)


def _is_prose(name: str, path: str, definition: InputEntry | None, schema: NodeSchema | None) -> bool:
    last = name.rpartition(".")[2]
    if not _PROSE_FIELD.search(last) or kind_of(last) is FieldKind.ADDRESS:
        return False
    if schema is None or definition is None:
        return False
    inside_config = "Config" in path or "Config" in name
    return not inside_config and str(definition.get("type")) in _PROSE_TYPES


def _named_by(values: Mapping[str, JsonValue], field: re.Pattern[str]) -> Iterator[str]:
    for path, value in values.items():
        for name, text, *_ in _fields(path, value):
            if field.search(name.rpartition(".")[2]) and text and not stands_in(text):
                yield text


def _fields(
    name: str, value: JsonValue, type_: str = "", *, inside_json: bool = False, deep: int = 0
) -> Iterator[tuple[str, str, bool, str]]:
    """Yield (field name, text, inside JSON text, node type) for every string in a value."""
    if isinstance(value, str):
        yield name, value, inside_json, type_
        if deep < _DEEPEST and (inner := _parsed(value)) is not None:
            yield from _fields(name, inner, type_, inside_json=True, deep=deep + 1)
    elif isinstance(value, dict):
        inner_type = _component(name, value)
        for key, item in value.items():
            yield from _fields(f"{name}.{key}", item, inner_type, inside_json=inside_json, deep=deep)
    elif isinstance(value, list):
        for item in value:
            yield from _fields(name, item, type_, inside_json=inside_json, deep=deep)


def _pairs(value: Any, deep: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield (key, value) for every object in a value, also in strings that hold JSON."""
    if isinstance(value, str) and deep < _DEEPEST and (inner := _parsed(value)) is not None:
        yield from _pairs(inner, deep + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key), item
            yield from _pairs(item, deep)
    elif isinstance(value, list):
        for item in value:
            yield from _pairs(item, deep)
