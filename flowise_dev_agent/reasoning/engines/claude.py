"""Anthropic's Messages API through its SDK."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar, Protocol

import anthropic
from anthropic.types import Message as ClaudeMessage
from anthropic.types import MessageParam, RawMessageStreamEvent, TextBlockParam, ToolChoiceParam, ToolParam

from flowise_dev_agent.reasoning.contracts import DeltaSink, EngineResponse, Message, ToolDef
from flowise_dev_agent.reasoning.engines.base import DEFAULT_MAX_TOKENS, SdkEngine, schema_instruction
from flowise_dev_agent.reasoning.engines.response_buffer import ResponseBuffer
from flowise_dev_agent.reasoning.text import clean
from flowise_dev_agent.settings import DEFAULT_MODELS, ReasoningSettings

_ANSWER = "give_answer"
#: A stream that fails half-way carries an error type but the status 200.
_STATUS_OF: dict[str, int] = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    "invalid_request_error": 400,
}
_CUT = ("max_tokens", "model_context_window_exceeded")


class ClaudeEngine(SdkEngine):
    """Claude, or any server that speaks the Messages API under `ANTHROPIC_BASE_URL`.

    Structured output is a forced tool: its schema may hold open objects (op params), which the API's own JSON output
    format cannot express, and every server of the last years knows it. A model that refuses to be forced is asked in
    words, from then on. The API takes no sampling arguments any more (SDK 2.x), so `temperature` is not sent.
    """

    provider: ClassVar[str] = "Anthropic"
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"
    price_list: ClassVar[str] = "anthropic"

    def __init__(self, settings: ReasoningSettings, model: str | None = None) -> None:
        super().__init__(
            settings,
            model or settings.model_choice or DEFAULT_MODELS["claude"],
            settings.anthropic_api_key,
            settings.anthropic_base_url,
        )
        self._client = anthropic.AsyncAnthropic(**self._client_options)
        self._unforced: set[str] = set()

    async def aclose(self) -> None:
        await self._client.close()

    async def complete(
        self,
        messages: Sequence[Message],
        system: str,
        tools: Sequence[ToolDef] = (),
        temperature: float | None = None,
        *,
        output_schema: dict[str, Any] | None = None,
        model: str | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        on_delta: DeltaSink | None = None,
    ) -> EngineResponse:
        model = model or self._model
        async with self._call(model):
            try:
                if output_schema is None:
                    return await self._send(model, messages, system, tools, None, max_tokens, on_delta)
                return await self._structured(model, messages, system, tools, output_schema, max_tokens, on_delta)
            except anthropic.APIStatusError as error:
                status = error.status_code if error.status_code >= 400 else _STATUS_OF.get(error.type or "", 500)
                raise self._refused(model, status, error.api_message or "") from None
            except anthropic.APITimeoutError:
                raise self._unavailable(model, f"gave no answer within {self._timeout_secs:g} s") from None
            except anthropic.APIConnectionError:
                raise self._unavailable(model, "cannot be reached") from None
            except (anthropic.AnthropicError, ValueError):
                raise self._unreadable(model, "sent something that is not an answer of its API") from None

    async def _structured(
        self,
        model: str,
        messages: Sequence[Message],
        system: str,
        tools: Sequence[ToolDef],
        schema: dict[str, Any],
        max_tokens: int,
        on_delta: DeltaSink | None,
    ) -> EngineResponse:
        if model not in self._unforced:
            try:
                return await self._send(model, messages, system, tools, schema, max_tokens, on_delta)
            except anthropic.BadRequestError as error:
                if "tool_choice" not in (error.api_message or ""):
                    raise
            self._unforced.add(model)
        asked = system + schema_instruction(schema)
        return await self._send(model, messages, asked, tools, None, max_tokens, on_delta)

    async def _send(
        self,
        model: str,
        messages: Sequence[Message],
        system: str,
        tools: Sequence[ToolDef],
        schema: dict[str, Any] | None,
        max_tokens: int,
        on_delta: DeltaSink | None,
    ) -> EngineResponse:
        offered = [ToolParam(name=t.name, description=t.description, input_schema={**t.parameters}) for t in tools]
        choice: ToolChoiceParam | anthropic.Omit = anthropic.omit
        if schema is not None:
            offered.append(ToolParam(name=_ANSWER, description="Give your whole answer here.", input_schema=schema))
            choice = {"type": "tool", "name": _ANSWER, "disable_parallel_tool_use": True}
        # One breakpoint behind tools and system: everything up to it is the same in every call of a phase.
        prefix: list[TextBlockParam] = [{"type": "text", "text": clean(system), "cache_control": {"type": "ephemeral"}}]
        turns = _turns(messages)
        offer = offered or anthropic.omit
        if on_delta is None:
            answer: Any = await self._client.messages.create(
                model=model, max_tokens=max_tokens, system=prefix, messages=turns, tools=offer, tool_choice=choice
            )
            if not isinstance(answer, ClaudeMessage):  # a proxy's HTML page arrives as plain text
                raise self._unreadable(model, "sent a page instead of an answer")
            buffer = _from_message(answer)
        else:
            # The raw events and not the SDK's accumulator: that one raises on a tool input that is broken JSON,
            # which is for the reasoner to see and to hand back to the model.
            stream = await self._client.messages.create(
                model=model,
                max_tokens=max_tokens,
                system=prefix,
                messages=turns,
                tools=offer,
                tool_choice=choice,
                stream=True,
            )
            async with stream:
                buffer = await _from_stream(stream, on_delta)
            if buffer.is_blank:
                raise self._unreadable(model, "sent something that is not an answer of its API")
        return self._respond(buffer, model)

    def _respond(self, buffer: ResponseBuffer, model: str) -> EngineResponse:
        answer = buffer.take_call(_ANSWER)
        read = buffer.counts.get("cache_read_input_tokens", 0)
        written = buffer.counts.get("cache_creation_input_tokens", 0)
        total = buffer.counts.get("input_tokens", 0) + read + written
        output = buffer.counts.get("output_tokens", 0)
        usage = self._usage(model, total=total, output=output, cached=read, written=written)
        return buffer.response(
            text=answer if answer is not None else buffer.text, usage=usage, fallback_model=model, cut_by=_CUT
        )


class _Counts(Protocol):
    """The token counts that `Usage` and `MessageDeltaUsage` have in common."""

    @property
    def input_tokens(self) -> int | None: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cache_read_input_tokens(self) -> int | None: ...
    @property
    def cache_creation_input_tokens(self) -> int | None: ...


def _count(buffer: ResponseBuffer, usage: _Counts) -> None:
    # Later counts are cumulative and replace; what an event leaves out keeps its value.
    for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
        value = getattr(usage, name)
        if value is not None:
            buffer.counts[name] = value


def _from_message(answer: ClaudeMessage) -> ResponseBuffer:
    buffer = ResponseBuffer(model=answer.model, stop_reason=answer.stop_reason or "")
    for index, block in enumerate(answer.content):
        if block.type == "text":
            buffer.add_text(block.text)
        elif block.type == "tool_use":
            buffer.start_call(index, block.id, block.name)
            buffer.add_arguments(index, json.dumps(block.input, ensure_ascii=False))
    _count(buffer, answer.usage)
    return buffer


async def _from_stream(events: AsyncIterator[RawMessageStreamEvent], on_delta: DeltaSink) -> ResponseBuffer:
    buffer = ResponseBuffer()
    async for event in events:
        if event.type == "message_start":
            buffer.model = event.message.model
            _count(buffer, event.message.usage)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            buffer.start_call(event.index, event.content_block.id, event.content_block.name)
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            buffer.add_text(event.delta.text)
            on_delta(clean(event.delta.text))
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            buffer.add_arguments(event.index, event.delta.partial_json)
            if buffer.call_name(event.index) == _ANSWER:
                on_delta(clean(event.delta.partial_json))
        elif event.type == "message_delta":
            buffer.stop_reason = event.delta.stop_reason or ""
            _count(buffer, event.usage)
    return buffer


def _turns(messages: Sequence[Message]) -> list[MessageParam]:
    turns: list[MessageParam] = []
    for message in messages:
        text = clean(message.content)
        if message.role == "tool":
            turns.append(
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": text}],
                }
            )
        elif message.role == "assistant" and message.tool_calls:
            blocks: list[Any] = [{"type": "text", "text": text}] if text else []
            blocks += [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
                for call in message.tool_calls
            ]
            turns.append({"role": "assistant", "content": blocks})
        else:
            # The API refuses blank turns.
            content = text if text.strip() else "(nothing)"
            turns.append({"role": "user", "content": content} if message.role == "user" else _said(content))
    return turns


def _said(content: str) -> MessageParam:
    return {"role": "assistant", "content": content}
