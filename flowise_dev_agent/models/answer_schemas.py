"""JSON schemas of the models' answers: closed, so that every door holds a model to them, and built once.

Every object names all its properties and no others; what may be left out is null, or empty where that says the same.
Objects of any shape are lists of names and values, whose names may be paths (`llmMessages[0].content`). So the schemas
keep to the strict subsets of OpenAI and Anthropic, and a grammar made of them admits a complete answer only.
"""

import json
from functools import cache
from typing import Any, Final

from flowise_dev_agent.patch import OP_TYPES
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.plan import AmendAnswer, FunctionSample, Intent, ProposedPlan
from flowise_dev_agent.schemas.verdict import Judgement
from flowise_dev_agent.settings import Phase

#: A value of a field: grammars admit no values of any shape that are worth having.
VALUE: Final[JsonObject] = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": "array", "items": {"type": "string"}},
    ]
}
#: Keys that are sent. Bounds are sent, too; the model layer leaves out those that a provider refuses.
_KEPT: Final = frozenset(
    {"type", "enum", "description", "pattern", "minLength", "minimum", "maximum", "minItems", "maxItems"}
)
#: Longer repetitions make a grammar too large: the parser reports what is out of bounds.
_MOST_ITEMS: Final = 50


@cache
def answer_schema(phase: Phase) -> JsonObject:
    """Schema of a phase's answer."""
    if phase == "patch":
        return _unshared(_patch())
    model = {"classify": Intent, "plan": ProposedPlan, "judge": Judgement}[phase]
    return closed(model.model_json_schema())


def closed(schema: JsonObject) -> JsonObject:
    """Closed form of a model's schema."""
    definitions: Any = schema.get("$defs", {})
    return _unshared(_closed(schema, definitions, required=True))


def _unshared(schema: JsonObject) -> JsonObject:
    """Schema in which no part stands twice: the model layer takes parts out of one, and the other would lose them."""
    return json.loads(json.dumps(schema))


def _patch() -> JsonObject:
    """One schema for the three answers: ops, an amendment of the plan, nothing to change."""
    ops = [_op(op.model_json_schema()) for op in OP_TYPES.values()]
    amendment: Any = closed(AmendAnswer.model_json_schema())["properties"]
    properties: JsonObject = {
        "kind": {"type": "string", "enum": ["ops", "amend", "nothing_to_change"]},
        "ops": {"type": "array", "items": {"anyOf": ops}},
        "samples": {"type": "array", "items": closed(FunctionSample.model_json_schema())},
        **{
            name: amendment[name]
            for name in ("nodes", "removals", "values", "connections", "disconnections", "new_tools", "reason")
        },
    }
    return _object(properties)


def _op(schema: JsonObject) -> Any:
    """Closed form of an op. The op reference in the prompt describes its fields."""
    return _undescribed(_closed(schema, schema.get("$defs", {}), required=True))


def _undescribed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_undescribed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    properties = {name: _undescribed(part) for name, part in schema.get("properties", {}).items()}
    rest = {key: _undescribed(value) for key, value in schema.items() if key not in ("description", "properties")}
    return {**rest, **({"properties": properties} if properties else {})}


def _closed(schema: Any, definitions: Any, *, required: bool) -> Any:
    """Closed form of a part of a schema; without `required`, what has no empty value may be null."""
    if "$ref" in schema:
        described = {key: schema[key] for key in ("description",) if key in schema}
        return _closed({**definitions[schema["$ref"].rpartition("/")[2]], **described}, definitions, required=required)
    choices = schema.get("anyOf", [])
    known = [choice for choice in choices if choice.get("type") != "null"]
    if choices and len(known) == 1:
        described = {key: schema[key] for key in ("description",) if key in schema}
        return _nullable(_closed({**known[0], **described}, definitions, required=True))
    kept = {key: value for key, value in schema.items() if key in _KEPT}
    if "const" in schema:
        kept |= {"type": "string", "enum": [schema["const"]]}
    if kept.get("maxItems", 0) > _MOST_ITEMS:
        del kept["maxItems"]
    match schema.get("type"):
        case "object" if "properties" in schema:
            parts: Any = schema["properties"]
            needed = schema.get("required", [])
            properties = {
                name: _closed(part, definitions, required=name in needed or _has_empty_value(part))
                for name, part in parts.items()
                if not part.get("readOnly")
            }
            return _object(properties)
        case "object":
            return _described(_pairs(), kept)
        case "array":
            return {**kept, "items": _closed(schema["items"], definitions, required=True)}
        case "string" | "integer" | "number" | "boolean":
            return kept if required else _nullable(kept)
        case _ if "enum" in kept:
            return {**kept, "type": "string"} if required else _nullable({**kept, "type": "string"})
        case _:
            return _described(VALUE, kept)


def _has_empty_value(schema: Any) -> bool:
    """True for a part whose default can be written: a list, a text, a choice, an object of such."""
    if "$ref" in schema:
        return True
    return ("default" in schema and schema["default"] is not None) or schema.get("type") in ("array", "object")


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _pairs() -> JsonObject:
    """An object of any shape: its fields as names, or paths, and values."""
    return {"type": "array", "items": _object({"name": {"type": "string"}, "value": VALUE})}


def _nullable(schema: JsonObject) -> JsonObject:
    described = {key: schema[key] for key in ("description",) if key in schema}
    bare = {key: value for key, value in schema.items() if key not in described}
    return {**described, "anyOf": [bare, {"type": "null"}]}


def _described(schema: JsonObject, kept: JsonObject) -> JsonObject:
    return {**({"description": kept["description"]} if "description" in kept else {}), **schema}
