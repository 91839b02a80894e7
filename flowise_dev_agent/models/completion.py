"""Request to a provider, and the known capabilities of the model."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar

from flowise_dev_agent.models.messages import DeltaSink, EngineResponse, Message, ToolCall, ToolDef
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.settings import Effort, Thinking

#: Server messages for missing tool support: "does not support tools", "no endpoints that support tool use".
_NO_TOOLS = re.compile(
    r"(?:not support|unsupported|no endpoints|not available|not allowed|requires --)[^.]*(?:tool|function)"
    r"|(?:tool|function)[^.]*(?:not support|unsupported|not available|not allowed|requires --)",
    re.IGNORECASE,
)
#: Providers accept no dots in the names of tools.
_DOT: Final = "__"
_HasCalls = TypeVar("_HasCalls", Message, EngineResponse)


def wire_name(name: str) -> str:
    """Tool name as providers accept it: `flowise__get_node` for `flowise.get_node`."""
    return name.replace(".", _DOT)


def _with_names(item: _HasCalls, renamed: Callable[[str], str]) -> _HasCalls:
    if not item.tool_calls:
        return item
    calls: tuple[ToolCall, ...] = tuple(
        call.model_copy(update={"name": renamed(call.name)}) for call in item.tool_calls
    )
    return item.model_copy(update={"tool_calls": calls})


def with_wire_names(message: Message) -> Message:
    return _with_names(message, wire_name)


def with_registry_names(response: EngineResponse, tools: Sequence[ToolDef]) -> EngineResponse:
    """Restore the registry names of the tools called in a response, also of unknown tools."""
    offered = {wire_name(tool.name): tool.name for tool in tools}
    return _with_names(response, lambda name: offered.get(name, name.replace(_DOT, ".", 1)))


#: How an object can be asked for: by a tool that must be called, by an option of the API, or by a text in the prompt.
OutputFormat = Literal["tool", "strict_schema", "json_schema", "json_object", "prompt"]


@dataclass
class ModelCapabilities:
    """Options that a model accepts, as learned from its refusals. Kept per model, so that each refusal occurs once."""

    #: The ways to ask for an object that are not refused yet, best first; the last one is never refused.
    formats: tuple[OutputFormat, ...]
    tools: bool = True
    temperature: bool = True
    effort: bool = True
    thinking: bool = True
    stream_usage: bool = True
    #: Newer OpenAI models accept only `max_completion_tokens`, most compatible servers only `max_tokens`.
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    limit_learned: bool = False

    def refuse(self, way: OutputFormat) -> bool:
        """Stop asking for the object in this way; False if it is the last way."""
        left = self.formats[self.formats.index(way) + 1 :]
        self.formats = left or self.formats
        return bool(left)


@dataclass(frozen=True)
class Completion:
    """Arguments of one `complete`, with the model in force."""

    model: str
    messages: Sequence[Message]
    system: str
    tools: Sequence[ToolDef]
    temperature: float | None
    may_look_up: bool
    output_schema: JsonObject | None
    max_tokens: int
    on_delta: DeltaSink | None
    effort: Effort | None
    thinking: Thinking | None

    def without_tools(self) -> "Completion":
        """Completion without tools, for models and servers that do not support them."""
        return replace(self, tools=(), may_look_up=False)

    def asked_by(self, capabilities: ModelCapabilities) -> OutputFormat | None:
        """Best way to ask for the object; None if no object is wanted."""
        if self.output_schema is None:
            return None
        strict = strict_form(self.output_schema) is not None
        return next(way for way in capabilities.formats if strict or way != "strict_schema")

    def system_for(self, asked_by: OutputFormat | None) -> str:
        """System prompt; it contains the schema if the request has no option for it."""
        if self.output_schema is None or asked_by in ("tool", "strict_schema", "json_schema"):
            return self.system
        schema = json.dumps(self.output_schema, separators=(",", ":"), ensure_ascii=False)
        return (
            f"{self.system}\n\n"
            f"Answer with exactly one JSON object, no prose and no code fence, that fits this JSON schema:\n{schema}"
        )


def strict_form(schema: JsonObject) -> JsonObject | None:
    """Convert a schema to strict structured output: closed objects, all fields required, optional ones nullable. None
    for schemas with open objects or untyped values, which the dialect cannot express.
    """
    try:
        return _strict(schema)
    except _OpenSchemaError:
        return None


class _OpenSchemaError(Exception):
    """Raised for a part of a schema without a type."""


def _strict(schema: Any) -> Any:
    properties, required = schema.get("properties"), schema.get("required", [])
    if properties:
        closed = {
            name: _strict(part) if name in required else {"anyOf": [_strict(part), {"type": "null"}]}
            for name, part in properties.items()
        }
        return {**schema, "properties": closed, "required": [*closed], "additionalProperties": False}
    if isinstance(schema.get("items"), dict):
        return {**schema, "items": _strict(schema["items"])}
    if schema.get("type") not in ("string", "integer", "number", "boolean"):
        raise _OpenSchemaError
    return schema


def refuses_tools(said: str, completion: Completion, capabilities: ModelCapabilities) -> bool:
    """True if the refusal says that the model or server does not support tools."""
    return bool(completion.tools) and capabilities.tools and _NO_TOOLS.search(said) is not None
