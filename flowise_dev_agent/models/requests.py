"""Conversion between the conversation of a phase and pydantic-ai's messages."""

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from flowise_dev_agent.models.messages import Message, ToolCall, ToolDef
from flowise_dev_agent.models.parsing import UnusableOutputError, parse_object
from flowise_dev_agent.sanitize import clean_json, clean_text, shortened
from flowise_dev_agent.schemas.base import JsonObject

#: The tool that carries a structured answer.
ANSWER: Final = "give_answer"
#: Providers accept no dots in the names of tools.
_DOT: Final = "__"
#: Providers refuse blank turns.
_NOTHING: Final = "(nothing)"
#: Characters of malformed arguments shown to the model.
_SHOWN: Final = 300


def wire_name(name: str) -> str:
    """Tool name as providers accept it: `flowise__get_node` for `flowise.get_node`."""
    return name.replace(".", _DOT)


def registry_name(name: str, tools: Sequence[ToolDef]) -> str:
    """Registry name of a tool called in an answer, also of an unknown tool."""
    offered = {wire_name(tool.name): tool.name for tool in tools}
    return offered.get(name, name.replace(_DOT, ".", 1))


def model_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """The conversation for pydantic-ai. Answers go back as the provider gave them, with their reasoning state."""
    names: dict[str, str] = {}
    turns: list[ModelMessage] = []
    for message in messages:
        if message.role == "assistant":
            turn = message.turn or _response(message)
            names |= {part.tool_call_id: part.tool_name for part in turn.parts if isinstance(part, ToolCallPart)}
            turns.append(turn)
            continue
        part = _request_part(message, names)
        last = turns[-1] if turns else None
        if isinstance(last, ModelRequest):
            # The results of one answer's calls are one turn.
            turns[-1] = ModelRequest(parts=[*last.parts, part])
        else:
            turns.append(ModelRequest(parts=[part]))
    return turns


def _request_part(message: Message, names: dict[str, str]) -> ModelRequestPart:
    text = clean_text(message.content).strip() and clean_text(message.content)
    if message.role == "tool":
        call_id = message.tool_call_id or ""
        return ToolReturnPart(names.get(call_id, "tool"), text or _NOTHING, tool_call_id=call_id)
    return UserPromptPart(text or _NOTHING)


def _response(message: Message) -> ModelResponse:
    calls = [
        ToolCallPart(wire_name(call.name), {**call.arguments}, tool_call_id=call.id) for call in message.tool_calls
    ]
    text = clean_text(message.content)
    parts: list[ModelResponsePart] = [TextPart(text if text.strip() else _NOTHING)] if text.strip() or not calls else []
    return ModelResponse(parts=[*parts, *calls])


def answer_text(response: ModelResponse) -> str:
    """Text of an answer: the arguments of the answering tool if it was called, else what the model wrote."""
    for part in response.parts:
        if isinstance(part, ToolCallPart) and part.tool_name == ANSWER:
            return clean_text(_as_json(part.args))
    return clean_text("".join(part.content for part in response.parts if isinstance(part, TextPart)))


def tool_calls(response: ModelResponse, tools: Sequence[ToolDef]) -> tuple[ToolCall, ...]:
    """Calls of tools in an answer, under their registry names; none if the answering tool was called."""
    calls = [part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_name]
    if any(part.tool_name == ANSWER for part in calls):
        return ()
    return tuple(_tool_call(part, tools) for part in calls)


def sendable(response: ModelResponse, calls: Sequence[ToolCall]) -> ModelResponse | None:
    """The answer to send back in the next request; None where it is written anew from its text and calls.

    A call with arguments that are no JSON cannot be sent back: servers parse them.
    """
    if any(call.malformed for call in calls) or not response.parts:
        return None
    if any(isinstance(part, ToolCallPart) and part.tool_name == ANSWER for part in response.parts):
        return None
    return response


def _tool_call(part: ToolCallPart, tools: Sequence[ToolDef]) -> ToolCall:
    arguments, malformed = _arguments(part.args)
    # Every result has to name its call.
    call_id = part.tool_call_id or f"call_{uuid4().hex}"
    return ToolCall(id=call_id, name=registry_name(part.tool_name, tools), arguments=arguments, malformed=malformed)


def _arguments(args: str | dict[str, Any] | None) -> tuple[JsonObject, str]:
    """Parse arguments: (object, raw text if it is not one whole object)."""
    if isinstance(args, dict):
        return clean_json(args), ""
    text = (args or "").strip()
    if text in ("", "{}", "null"):
        return {}, ""
    try:
        return parse_object(text), ""
    except UnusableOutputError:
        return {}, shortened(text, _SHOWN)


def _as_json(args: str | dict[str, Any] | None) -> str:
    return args if isinstance(args, str) else json.dumps(args or {}, ensure_ascii=False)
