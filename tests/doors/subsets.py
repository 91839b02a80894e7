"""Subsets of JSON Schema that the strict modes of OpenAI and Anthropic take: what they refuse in a schema."""

from collections.abc import Iterator
from typing import Any

#: https://developers.openai.com/api/docs/guides/structured-outputs, "Supported schemas".
OPENAI_MOST_PROPERTIES, OPENAI_DEEPEST, OPENAI_MOST_ENUM_VALUES = 5_000, 10, 1_000
_OPENAI_REFUSED = (
    "allOf",
    "not",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "then",
    "else",
    "default",
    "oneOf",
    "minLength",
    "maxLength",
)
#: https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations".
ANTHROPIC_MOST_OPTIONAL, ANTHROPIC_MOST_UNIONS = 24, 16
_ANTHROPIC_REFUSED = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)

Place = tuple[str, ...]


def openai_violations(schema: Any) -> list[str]:
    """Violations of what `strict: true` takes, in the words of the API."""
    found = list(_openai(schema, (), 0))
    if schema.get("type") != "object" or "anyOf" in schema:
        found.insert(0, "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.")
    parts = [part for _, part, _ in walk(schema)]
    if sum(len(part.get("properties", {})) for part in parts) > OPENAI_MOST_PROPERTIES:
        found.append(f"more than {OPENAI_MOST_PROPERTIES} properties.")
    if sum(len(part.get("enum", [])) for part in parts) > OPENAI_MOST_ENUM_VALUES:
        found.append(f"more than {OPENAI_MOST_ENUM_VALUES} enum values.")
    return found


def _openai(schema: Any, place: Place, depth: int) -> Iterator[str]:
    for at, part, level in walk(schema, place, depth):
        where = f"In context={at}, "
        for word in _OPENAI_REFUSED:
            if word in part:
                yield f"{where}'{word}' is not permitted."
        if not ({"type", "$ref", "anyOf", "enum", "const"} & part.keys()):
            yield f"{where}schema must have a 'type' key."
        if "enum" in part and "type" not in part:
            yield f"{where}schema must have a 'type' key."
        if part.get("type") == "array" and "items" not in part:
            yield f"{where}array schema missing items."
        if _is_object(part):
            named, required = part.get("properties", {}), part.get("required", [])
            if part.get("additionalProperties") is not False:
                yield f"{where}'additionalProperties' is required to be supplied and to be false."
            if missing := [name for name in named if name not in required]:
                yield (
                    f"{where}'required' is required to be supplied and to be an array including every key in "
                    f"properties. Missing '{missing[0]}'."
                )
        if level > OPENAI_DEEPEST:
            yield f"{level} levels of nesting exceeds limit of {OPENAI_DEEPEST}."


def anthropic_violations(schema: Any) -> list[str]:
    """Violations of what `output_config.format` and strict tools take, in the words of the API."""
    found: list[str] = []
    optional = unions = 0
    for place, part, _ in walk(schema):
        kind = part.get("type")
        found += [
            f"For '{kind}' type, property '{word}' is not supported" for word in _ANTHROPIC_REFUSED if word in part
        ]
        if part.get("minItems", 0) > 1:
            found.append("For 'array' type, 'minItems' values other than 0 or 1 are not supported")
        if _is_object(part):
            if part.get("additionalProperties") is not False:
                found.append("For 'object' type, 'additionalProperties' must be explicitly set to false")
            # Parts behind a reference are not counted (pydantic-ai, models/_anthropic_schema_limits.py).
            optional += 0 if "$defs" in place else len(part.get("properties", {}).keys() - {*part.get("required", [])})
        unions += "$defs" not in place and ("anyOf" in part or isinstance(kind, list))
    if optional > ANTHROPIC_MOST_OPTIONAL:
        found.append(f"Schemas contains too many optional parameters ({optional})")
    if unions > ANTHROPIC_MOST_UNIONS:
        found.append(
            f"Schemas contains too many parameters with union types ({unions} parameters with type arrays or anyOf)"
        )
    return found


def _is_object(part: Any) -> bool:
    kind = part.get("type")
    return kind == "object" or "properties" in part or (isinstance(kind, list) and "object" in kind)


def walk(schema: Any, place: Place = (), depth: int = 0) -> Iterator[tuple[Place, Any, int]]:
    """Each part of a schema that is a schema, with its place and the number of objects around it."""
    if not isinstance(schema, dict):
        return
    yield place, schema, depth
    inside = depth + ("properties" in schema)
    for word in ("properties", "$defs", "definitions"):
        for name, part in schema.get(word, {}).items():
            yield from walk(part, (*place, word, name), inside)
    for word in ("items", "additionalProperties"):
        yield from walk(schema.get(word), (*place, word), depth)
    for word in ("anyOf", "oneOf", "allOf"):
        for number, part in enumerate(schema.get(word, [])):
            yield from walk(part, (*place, word, str(number)), depth)
