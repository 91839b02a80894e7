"""The model behind a door: answers of `tests/e2e/scripted.py` by requirement and phase, in the shape that was asked."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowise_dev_agent.devkit.standin.protocol import JsonSchema, RecordedRequest, Reply, StandInToolCall

#: The phase that a system prompt names.
_PHASE = re.compile(r"^# (Classify|Plan|Patch|Judge|Step)$", re.MULTILINE)
#: The beginning of a schema in a prompt.
_SCHEMA = re.compile(r'\{"(?:type|properties|\$defs|description|title)":')
LOOK_UP = "flowise__get_node"
_NODE = "chatOpenAI"


def phase_of(request: RecordedRequest) -> str:
    """Reasoning phase of a request, "other" for one outside of a session."""
    found = _PHASE.search(request.system)
    return found[1].lower() if found else "other"


def is_look_up(name: str) -> bool:
    """True for a tool that looks something up; the others are ways to give the answer."""
    return "__" in name


@dataclass(frozen=True)
class Script:
    """Answers: words of a requirement -> phase -> JSON. A plan begins with a look-up, where there are tools."""

    answers: Mapping[str, Mapping[str, Any]]
    #: What the model says when it was asked for look-ups only and wants none.
    beside: str = "I have what I need."

    def reply(self, request: RecordedRequest, phase: str, *, tools: bool, held: bool, closed: bool) -> Reply:
        """Answer as a model does that does what it is asked.

        Without `tools` it cannot call. With `held` its answer has the form of the schema, and with `closed` nothing
        that the schema does not name.
        """
        offered = {tool.name: tool.schema for tool in request.tools} if tools else {}
        looked = any(message.role == "tool" for message in request.messages)
        if phase == "plan" and LOOK_UP in offered and not looked:
            return Reply(tool_calls=(StandInToolCall(LOOK_UP, {"name": _NODE}, "call00001"),))
        answer_tool = next((name for name in offered if not is_look_up(name)), None)
        schema = offered[answer_tool] if answer_tool else request.json_schema
        told = None if schema else _told(request.prompt)
        if schema is None and offered and told is None:
            # It was not asked for an object, only whether it wants to look something up.
            return Reply(self.beside)
        value = self._answer(request, phase)
        if held and schema:
            value = fitted(value, schema, closed=closed)
        elif form := told or schema:
            value = fitted(value, form)
        if answer_tool:
            return Reply(tool_calls=(StandInToolCall(answer_tool, value, "call00002"),))
        return Reply(json.dumps(value))

    def has(self, phase: str) -> bool:
        """True if it answers this phase."""
        return any(phase in answers for answers in self.answers.values())

    def _answer(self, request: RecordedRequest, phase: str) -> Any:
        for words, answers in self.answers.items():
            if words in request.prompt and phase in answers:
                found = answers[phase]
                return found[0] if isinstance(found, list) else found
        return {"text": "Hello."}


def _told(prompt: str) -> JsonSchema | None:
    """The schema that a prompt tells in words; a model follows it, though nothing holds it to that."""
    decoder = json.JSONDecoder()
    for found in _SCHEMA.finditer(prompt):
        try:
            schema, _ = decoder.raw_decode(prompt, found.start())
        except ValueError:
            continue
        if isinstance(schema, dict) and "properties" in schema:
            return schema
    return None


def fitted(value: Any, schema: JsonSchema, *, closed: bool = False, root: JsonSchema | None = None) -> Any:
    """`value` as a model writes it that is held to `schema`: what must be there is, what may not be there is not.

    With `closed` an object without `additionalProperties` allows no others, as in the grammars of llama.cpp and
    xgrammar.
    """
    root = root or schema
    schema = _resolved(schema, root)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        best = max(choices, key=lambda choice: _likeness(value, _resolved(choice, root), root))
        return fitted(value, best, closed=closed, root=root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return value if value in schema["enum"] else schema["enum"][0]
    kinds = _kinds(schema)
    if value is None and "null" in kinds:
        return None
    if "properties" in schema or "object" in kinds:
        return _object(value, schema, closed, root)
    if "array" in kinds:
        items = schema.get("items")
        if isinstance(value, Mapping):
            # Params by name, where the schema wants a list of them.
            value = [{"name": name, "value": one} for name, one in value.items()]
        listed = value if isinstance(value, list) else []
        return [fitted(one, items, closed=closed, root=root) for one in listed] if items else listed
    if not kinds or _kind(value) in kinds or (_kind(value) == "integer" and "number" in kinds):
        return value
    return _empty(kinds, value)


def _object(value: Any, schema: JsonSchema, closed: bool, root: JsonSchema) -> Any:
    given: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {}
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", [])
    written = {
        name: fitted(given.get(name), part, closed=closed, root=root)
        for name, part in properties.items()
        if name in given or name in required
    }
    others = schema.get("additionalProperties", not (closed and properties))
    return written if others is False else {**given, **written}


def _likeness(value: Any, schema: JsonSchema, root: JsonSchema) -> int:
    """Points for how well a choice of a union fits a value; what tells objects apart counts most."""
    if not schema:
        return 1
    if isinstance(value, Mapping) and "properties" in schema:
        points = 2
        for name, part in schema["properties"].items():
            part = _resolved(part, root)
            allowed = [part["const"]] if "const" in part else part.get("enum") or []
            if name in value and allowed:
                points += 20 if value[name] in allowed else -20
            elif name in value:
                points += 1
        return points
    kinds = _kinds(schema)
    return 3 if _kind(value) in kinds or (_kind(value) == "integer" and "number" in kinds) else 0


def _resolved(schema: JsonSchema, root: JsonSchema) -> JsonSchema:
    while "$ref" in schema:
        found: Any = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        schema = found
    return schema


def _kinds(schema: JsonSchema) -> list[str]:
    kind = schema.get("type", [])
    kinds = [kind] if isinstance(kind, str) else [*kind]
    # `nullable` is Google's way to say it.
    return [*kinds, "null"] if schema.get("nullable") else kinds


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _empty(kinds: list[str], value: Any) -> Any:
    if "null" in kinds:
        return None
    if "string" in kinds:
        return "" if value is None else json.dumps(value)
    return {"integer": 0, "number": 0, "boolean": False}.get(kinds[0])
