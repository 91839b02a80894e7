"""JSON values that fit a schema, filled from a text as far as simple rules can."""

import math
import re
from collections.abc import Iterator
from typing import Any

from flowise_dev_agent.devkit.standin.protocol import JsonSchema

_PROPER_NOUN = re.compile(r"\b[A-Z][\w'-]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_MAX_DEPTH = 8


def sample(schema: JsonSchema, text: str) -> Any:
    """A value that fits `schema`. Strings take the names in `text` one after the other, numbers its numbers."""
    names, numbers = iter(_PROPER_NOUN.findall(text)), iter(_NUMBER.findall(text))
    return _Sampler(schema, text, names, numbers).value(schema, 0)


class _Sampler:
    def __init__(self, root: JsonSchema, text: str, names: Iterator[str], numbers: Iterator[str]) -> None:
        self._root = root
        self._text = " ".join(text.split())[:200] or "stand-in"
        self._names = names
        self._numbers = numbers

    def value(self, schema: Any, depth: int) -> Any:
        schema = self._resolve(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][0]
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                options = [option for option in schema[key] if self._resolve(option).get("type") != "null"]
                return self.value(options[0], depth + 1) if options else None
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((item for item in kind if item != "null"), "null")
        return self._of_kind(kind, schema, depth)

    def _of_kind(self, kind: str, schema: JsonSchema, depth: int) -> Any:
        if kind == "object":
            properties = schema.get("properties", {})
            wanted = properties if depth < _MAX_DEPTH else schema.get("required", [])
            return {name: self.value(properties.get(name, {}), depth + 1) for name in wanted}
        if kind == "array":
            count = max(int(schema.get("minItems", 0)), 1 if depth < _MAX_DEPTH else 0)
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            return self._number(kind, schema)
        if kind == "boolean":
            return True
        if kind == "null":
            return None
        text = next(self._names, self._text)
        return text.ljust(int(schema.get("minLength", 0)), ".")[: int(schema.get("maxLength", 10_000))]

    def _number(self, kind: str, schema: JsonSchema) -> float | int:
        number = float(next(self._numbers, "1"))
        number = max(number, float(schema.get("minimum", -math.inf)))
        number = min(number, float(schema.get("maximum", math.inf)))
        return int(number) if kind == "integer" or number.is_integer() else number

    def _resolve(self, schema: Any) -> JsonSchema:
        if not isinstance(schema, dict):
            return {}
        if "$ref" in schema:
            target: Any = self._root
            for part in str(schema["$ref"]).removeprefix("#/").split("/"):
                target = target.get(part, {})
            return self._resolve(target)
        if schema.get("allOf"):
            merged: JsonSchema = {}
            for part in schema["allOf"]:
                merged |= self._resolve(part)
            return merged
        return schema
