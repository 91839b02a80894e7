"""JSON schemas of the models' answers: small, since every call carries one, and built once."""

from functools import cache
from typing import Any, Final

from flowise_dev_agent.patch import OP_TYPES
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.plan import Intent, ProposedPlan
from flowise_dev_agent.schemas.verdict import Judgement
from flowise_dev_agent.settings import Phase

#: Schema keys that a model does not need: the parser applies defaults and reports values out of bounds.
_LEFT_OUT: Final = frozenset(
    {"$defs", "title", "default", "maxLength", "minLength", "maxItems", "minItems", "pattern", "additionalProperties"}
)


@cache
def answer_schema(phase: Phase) -> JsonObject:
    """Schema of a phase's answer."""
    if phase == "patch":
        return _ops()
    model = {"classify": Intent, "plan": ProposedPlan, "judge": Judgement}[phase]
    schema = model.model_json_schema()
    if phase in ("classify", "plan"):
        # An answer without them can be read, and is then asked for them.
        schema["required"].append("parts")
    return _compact(schema, schema.get("$defs", {}))


def _ops() -> JsonObject:
    """One schema for all answers and all ops: the op reference in the prompt lists the fields of each op; an amendment
    has the form of the plan.
    """
    op: JsonObject = {"type": "object", "properties": {"op_type": {"enum": [*OP_TYPES]}}, "required": ["op_type"]}
    kinds: JsonObject = {"kind": {"enum": ["ops", "amend", "nothing_to_change"]}, "ops": {"type": "array", "items": op}}
    kinds["samples"] = {"type": "array"}
    amendment: JsonObject = {name: {"type": "array"} for name in ("nodes", "removals", "values")}
    return {
        "type": "object",
        "properties": {**kinds, **amendment, "reason": {"type": "string"}},
        "required": ["kind"],
    }


def _compact(schema: Any, definitions: JsonObject) -> Any:
    """Schema with references resolved, reduced to types, names, choices and short descriptions."""
    if isinstance(schema, list):
        return [_compact(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _compact(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    choices = schema.get("anyOf", [])
    if {"type": "null"} in choices and len(choices) == 2:
        known = next(choice for choice in choices if choice != {"type": "null"})
        return _compact({**known, **{key: schema[key] for key in ("description",) if key in schema}}, definitions)
    kept = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if "properties" in kept:
        kept.pop("description", None)
        kept["properties"] = {name: _compact(value, definitions) for name, value in kept["properties"].items()}
        return kept
    return {key: _compact(value, definitions) for key, value in kept.items()}
