"""JSON as Flowise stores it: text, hash, and ids."""

import hashlib
import json
import re
from typing import Annotated, Any, TypeAlias, cast

from pydantic import GetCoreSchemaHandler
from pydantic import JsonValue as PydanticJson
from pydantic_core import CoreSchema, core_schema, to_json

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIRS = {")": "(", "]": "[", "}": "{"}


class _AsItIs:
    """Marker of a JSON type that is serialised without inspecting each value again.

    In pydantic the inspection costs a function call per value.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return cast("CoreSchema", {**handler(source), "serialization": core_schema.simple_ser_schema("any")})


JsonValue: TypeAlias = Annotated[PydanticJson, _AsItIs()]
#: JSON of a foreign shape: a JSON Schema, a tool's arguments, facts of an error.
JsonObject: TypeAlias = Annotated[dict[str, PydanticJson], _AsItIs()]


def dump_json(value: Any) -> str:
    """Compact JSON, non-ASCII kept.

    Lone surrogates of a model's answer are escaped, so that the text is valid UTF-8.
    """
    try:
        return to_json(value).decode()
    except ValueError:
        # Half of a surrogate pair, or nesting too deep for the fast encoder.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def inner_json(text: str) -> dict[str, Any] | list[Any] | None:
    """The object or list that a text encodes; None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty if the value is not a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def payload_sha256(flow_data: str) -> str:
    """Lower-case hex SHA-256 of the exact ``flowData`` text. Validation, write guard and read-back compare by it."""
    return hashlib.sha256(flow_data.encode("utf-8")).hexdigest()


def is_uuid(text: str) -> bool:
    """True for the canonical text form of a UUID, the only one that the Postgres behind Flowise surely accepts."""
    return _UUID.fullmatch(text) is not None


def unbalanced(text: str) -> str:
    """The reason why brackets or quotation marks of a text in JavaScript's syntax do not match; '' if they do."""
    opened: list[str] = []
    quote, escaped = "", False
    for one in text:
        if quote:
            quote = "" if one == quote and not escaped else quote
            escaped = one == "\\" and not escaped
        elif one in "\"'`":
            quote = one
        elif one in _PAIRS.values():
            opened.append(one)
        elif one in _PAIRS and (not opened or opened.pop() != _PAIRS[one]):
            return f"a {one} has no {_PAIRS[one]}"
    return f"{quote or opened[-1]} is not closed" if quote or opened else ""
