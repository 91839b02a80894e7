"""Turn a typed function into a tool: a model sees its name, docstring and parameters."""

import inspect
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, create_model
from pydantic_core import from_json

from flowise_dev_agent.agent.tools import SUMMARY_LIMIT, ToolFunction, ToolResult
from flowise_dev_agent.models.messages import ToolDef
from flowise_dev_agent.schemas.base import JsonObject

#: Keys kept of a parameter's schema. Limits and defaults are applied here, not by the model.
_SHOWN: Final = frozenset({"type", "items", "enum", "description"})


def _from_text(value: object) -> object:
    return from_json(value) if isinstance(value, str) else value


#: A JSON object of any form. A model writes it as text: the libraries of its providers close objects, and an object
#: without named properties could then only be empty.
AnyObject: TypeAlias = Annotated[
    JsonObject, BeforeValidator(_from_text), WithJsonSchema({"type": "string", "description": "A JSON object as text."})
]
#: A list of them, as text.
AnyObjects: TypeAlias = Annotated[
    list[JsonObject],
    BeforeValidator(_from_text),
    WithJsonSchema({"type": "string", "description": "A JSON list of objects as text."}),
]


def as_tool(
    function: Callable[..., Awaitable[ToolResult]], *, limit: int = SUMMARY_LIMIT, answered_once: bool = True
) -> tuple[ToolDef, ToolFunction]:
    """Return (definition, function). The function checks its arguments and ignores unknown ones.

    `limit` and `answered_once` as in `ToolDef`.
    """
    plain = getattr(function, "__func__", function)
    shape = _shape(plain)

    async def call(**arguments: Any) -> ToolResult:
        given = shape.model.model_validate(arguments)
        return await function(**{field: getattr(given, field) for field in shape.model.model_fields})

    return _definition(plain, limit, answered_once), call


class _Shape(NamedTuple):
    """Metadata of a tool function."""

    model: type[BaseModel]
    description: str
    parameters: JsonObject


@lru_cache(maxsize=256)
def _definition(function: Callable[..., Any], limit: int, answered_once: bool) -> ToolDef:
    shape = _shape(function)
    return ToolDef(
        name=shape.model.__name__,
        description=shape.description,
        parameters=shape.parameters,
        summary_limit=limit,
        answered_once=answered_once,
    )


@lru_cache(maxsize=256)
def _shape(function: Callable[..., Any]) -> _Shape:
    """Metadata of a function, cached: tools are made for every run, and a Pydantic model takes milliseconds."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    }
    model: type[BaseModel] = create_model(function.__name__, __config__=ConfigDict(extra="ignore"), **fields)
    return _Shape(model, " ".join((inspect.getdoc(function) or "").split()), _parameters(model))


def _parameters(model: type[BaseModel]) -> JsonObject:
    """JSON schema without the keys that a model does not need: it is sent with every request."""
    schema = model.model_json_schema()
    properties: dict[str, JsonObject] = schema.get("properties", {})
    shown: JsonObject = {
        name: {key: value for key, value in entry.items() if key in _SHOWN} for name, entry in properties.items()
    }
    required: JsonObject = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": shown, **required}
