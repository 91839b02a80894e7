"""The fields of a node type as a JSON Schema, for building a form."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from flowise_dev_agent.patch import InputEntry, NodeSchema, OptionEntry
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.nodes import OptionView

_TEXT_CHARS: Final = 600
_DEEPEST: Final = 4
#: Editor of a text field.
_FORMATS: Final[Mapping[str, str]] = {
    "password": "password",
    "code": "code",
    "json": "json",
    "conditionFunction": "code",
    "file": "file",
    "folder": "folder",
    "date": "date",
    "datePicker": "date",
    "timePicker": "time",
}
#: Load methods that list what the flow itself holds.
_FROM_FLOW: Final[Mapping[str, str]] = {"listPreviousNodes": "steps", "listRuntimeStateKeys": "state"}
_LISTS: Final = frozenset({"options", "asyncOptions", "tabs"})
_SEVERAL: Final = frozenset({"multiOptions", "asyncMultiOptions", "weekDaysPicker", "monthDaysPicker"})


def node_form(schema: NodeSchema, listed: Mapping[str, Sequence[OptionView]]) -> JsonObject:
    """JSON Schema (2020-12) of the fields of a node type, without its connections and its credential; `listed` are the
    options that the server has, by field.

    Keys beginning with `x-`: `x-show`, `x-hide` (conditions on other fields), `x-lists-options` (the server lists what
    may be set), `x-from-flow` (`steps` before the node, or keys of the flow's `state`), `x-config` (the field that
    holds the settings of the type that is chosen here: `GET /nodes/{type}` has their form), `x-variables` (takes values
    of other nodes), `x-additional` (behind a button in the editor), `x-rows`.
    """
    entries = [entry for entry in schema.input_definitions if entry["type"] in PARAM_TYPES and not entry.get("hidden")]
    return {"title": schema.label, **_object(entries, listed, 0)}


def _object(entries: Iterable[InputEntry], listed: Mapping[str, Sequence[OptionView]], depth: int) -> JsonObject:
    properties: JsonObject = {}
    required: list[JsonValue] = []
    for entry in entries:
        name = entry["name"]
        made = _field(entry, listed.get(name, ()), depth)
        # A name may come more than once, told apart by its conditions.
        if isinstance(known := properties.get(name), dict):
            others = known.get("anyOf", [known])
            properties[name] = {"anyOf": [*(others if isinstance(others, list) else []), made]}
            continue
        properties[name] = made
        if not entry.get("optional") and is_empty(entry.get("default")) and not entry.get("show"):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _field(entry: InputEntry, listed: Sequence[OptionView], depth: int) -> JsonObject:
    kind = entry["type"]
    about: JsonObject = {"title": entry.get("label") or entry["name"]}
    if text := entry.get("description"):
        about["description"] = str(text)[:_TEXT_CHARS]
    if not is_empty(entry.get("default")):
        about["default"] = entry.get("default")
    for key, name in (("show", "x-show"), ("hide", "x-hide"), ("rows", "x-rows")):
        if value := entry.get(key):
            about[name] = value  # pyright: ignore[reportArgumentType] - JSON of the node type
    for key, name in (
        ("acceptVariable", "x-variables"), ("additionalParams", "x-additional"),
    ):  # fmt: skip
        if entry.get(key):
            about[name] = True
    if method := entry.get("loadMethod"):
        about |= {"x-from-flow": _FROM_FLOW[method]} if method in _FROM_FLOW else {"x-lists-options": True}
    if entry.get("loadConfig"):
        about["x-config"] = f"{entry['name']}Config"
    return about | _type(entry, kind, listed, depth)


def _type(entry: InputEntry, kind: str, listed: Sequence[OptionView], depth: int) -> JsonObject:
    choices = _choices(entry.get("options") or (), listed)
    if kind == "number":
        return {"type": "number"}
    if kind == "boolean":
        return {"type": "boolean"}
    if kind in _LISTS:
        # Options listed by the server may change, and some fields accept other names as well.
        closed = kind == "options" and not entry.get("freeSolo")
        return {"type": "string", **({"oneOf" if closed else "x-options": choices} if choices else {})}
    if kind in _SEVERAL:
        return {"type": "array", "items": {"type": "string"}, **({"x-options": choices} if choices else {})}
    if kind in ("array", "datagrid"):
        rows = entry.get("array") or ()
        inner: JsonObject = {"type": "object"}
        return {"type": "array", "items": _object(rows, {}, depth + 1) if depth < _DEEPEST else inner}
    found: JsonObject = {"type": "string"}
    if kind in _FORMATS:
        found["format"] = _FORMATS[kind]
    if kind == "file" and (types := entry.get("fileType")):
        found["x-file-types"] = str(types)
    return found


def _choices(options: Sequence[OptionEntry], listed: Sequence[OptionView]) -> list[JsonValue]:
    known = [(str(one["name"]), str(one.get("label") or one["name"])) for one in options]
    more = [(one.name, one.label) for one in listed]
    return [{"const": name, "title": label} for name, label in dict([*known, *more]).items()]
