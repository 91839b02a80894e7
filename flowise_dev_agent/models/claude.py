"""Anthropic's Messages API through its SDK."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar, Final, Protocol, cast

import anthropic
import httpx2
from anthropic.lib.bedrock import AsyncAnthropicBedrock
from anthropic.lib.vertex import AsyncAnthropicVertex
from anthropic.types import (
    ContentBlockParam,
    MessageParam,
    TextBlockParam,
    ToolParam,
    ToolResultBlockParam,
    ToolUseBlockParam,
)
from anthropic.types import Message as ClaudeMessage
from anthropic.types.message_create_params import MessageCreateParamsBase
from pydantic import BaseModel, ConfigDict

from flowise_dev_agent.models.base import Refusal, SdkEngine, SdkErrors
from flowise_dev_agent.models.completion import Completion, ModelCapabilities, refuses_tools
from flowise_dev_agent.models.messages import DeltaSink, Message
from flowise_dev_agent.models.response_buffer import ResponseBuffer, TokenCounts
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.settings import ReasoningSettings

_Client = anthropic.AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex

_ANSWER: Final = "give_answer"
#: A stream that fails half-way has an error type but the status 200.
_STATUS_OF: Final[dict[str, int]] = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    "invalid_request_error": 400,
}


class ClaudeEngine(SdkEngine):
    """Engine for Claude, or any server with the Messages API under `ANTHROPIC_BASE_URL`.

    Structured output is a forced tool: its schema may hold open objects (op params), which the API's own JSON output
    format cannot express, and every recent server supports it. It is on offer beside the tools to look things up with;
    then the model has to call one of them all, and at the end this one. The list of tools stays the same, since it is
    the beginning of the cached prefix. A model that refuses to be forced is asked by a text in the prompt, from then
    on. The API takes no sampling arguments any more (SDK 2.x), so `temperature` is not sent.
    """

    provider: ClassVar[str] = "Anthropic"
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"
    price_list: ClassVar[str] = "anthropic"
    sdk_errors: ClassVar[SdkErrors] = SdkErrors(
        rejected=(anthropic.BadRequestError,),
        timeout=anthropic.APITimeoutError,
        connection=anthropic.APIConnectionError,
        any=anthropic.AnthropicError,
    )
    cut_by: ClassVar[tuple[str, ...]] = ("max_tokens", "model_context_window_exceeded")
    refused_by: ClassVar[tuple[str, ...]] = ("refusal",)

    def __init__(self, settings: ReasoningSettings) -> None:
        super().__init__(settings, settings.anthropic_api_key, settings.anthropic_base_url)
        self._client: _Client = anthropic.AsyncAnthropic(**self._client_options)

    async def aclose(self) -> None:
        await self._client.close()

    def _new_http_client(self, **options: Any) -> httpx2.AsyncClient:
        return anthropic.DefaultAioHttpClient(**options)

    def _assumed_capabilities(self) -> ModelCapabilities:
        return ModelCapabilities(formats=("tool", "prompt"))

    def _learn(self, error: Exception, completion: Completion, capabilities: ModelCapabilities) -> bool:
        said = _sentence(error) if isinstance(error, anthropic.BadRequestError) else ""
        way = completion.asked_by(capabilities)
        if way and "tool_choice" in said and capabilities.refuse(way):
            return True
        if completion.effort and capabilities.effort and ("effort" in said or "output_config" in said):
            capabilities.effort = False
        elif completion.thinking and capabilities.thinking and "thinking" in said:
            capabilities.thinking = False
        elif refuses_tools(said, completion, capabilities):
            capabilities.tools = False
        else:
            return False
        return True

    def _refusal(self, error: Exception) -> Refusal | None:
        if not isinstance(error, anthropic.APIStatusError):
            return None
        status = error.status_code if error.status_code >= 400 else _STATUS_OF.get(error.type or "", 500)
        return Refusal(status, _sentence(error))

    async def _send(self, completion: Completion, capabilities: ModelCapabilities) -> ResponseBuffer:
        params = _params(completion, capabilities)
        if completion.on_delta is None:
            answer: Any = await self._client.messages.create(**params)
            # A proxy's HTML page arrives as plain text.
            buffer = _from_message(answer) if isinstance(answer, ClaudeMessage) else ResponseBuffer()
        else:
            # The events as they come: the SDK's own models of them take most of the time of a stream, and its
            # accumulator raises on a tool input that is broken JSON, which the reasoner must see in order to hand it
            # back to the model.
            stream = await self._client.post(
                "/v1/messages",
                body={**params, "stream": True},
                cast_to=object,
                options={"timeout": self._stream_timeout},
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
            async with stream:
                buffer = await _from_stream(stream, completion.on_delta)
        buffer.use_call_as_text(_ANSWER)
        return buffer


class BedrockEngine(ClaudeEngine):
    """Claude on Amazon Bedrock, with a Bedrock key or AWS credentials found by boto3."""

    provider: ClassVar[str] = "Amazon Bedrock"
    key_variable: ClassVar[str] = "AWS_BEARER_TOKEN_BEDROCK or the AWS credentials, and their access to the model"
    price_list: ClassVar[str] = "aws"
    credentials_package: ClassVar[str | None] = "botocore"

    def __init__(self, settings: ReasoningSettings) -> None:
        # A private endpoint of the platform has the platform's prices.
        SdkEngine.__init__(self, settings, settings.bedrock_api_key, None)
        key = settings.bedrock_api_key
        self._client = AsyncAnthropicBedrock(
            aws_region=settings.aws_region,
            aws_profile=None if key else settings.aws_profile,
            api_key=key.get_secret_value() if key else None,
            base_url=settings.bedrock_base_url,
            timeout=self._client_options["timeout"],
            max_retries=self._client_options["max_retries"],
            http_client=self._client_options["http_client"],
        )


class VertexEngine(ClaudeEngine):
    """Claude on Google Vertex AI, with credentials found by google-auth."""

    provider: ClassVar[str] = "Google Vertex AI"
    key_variable: ClassVar[str] = "the Google credentials of this machine, and their access to the model"
    price_list: ClassVar[str] = "google"
    credentials_package: ClassVar[str | None] = "google.auth"

    def __init__(self, settings: ReasoningSettings) -> None:
        SdkEngine.__init__(self, settings, None, None)
        self._client = AsyncAnthropicVertex(
            region=settings.vertex_region or "",
            project_id=settings.vertex_project or "",
            base_url=settings.vertex_base_url,
            timeout=self._client_options["timeout"],
            max_retries=self._client_options["max_retries"],
            http_client=self._client_options["http_client"],
        )


def _params(completion: Completion, capabilities: ModelCapabilities) -> MessageCreateParamsBase:
    asked_by = completion.asked_by(capabilities)
    # One breakpoint behind tools and system: everything up to it is the same in every call of a phase.
    prefix: TextBlockParam = {
        "type": "text",
        "text": clean_text(completion.system_for(asked_by)),
        "cache_control": {"type": "ephemeral"},
    }
    params: MessageCreateParamsBase = {
        "model": completion.model,
        "max_tokens": completion.max_tokens,
        "system": [prefix],
        "messages": _turns(completion.messages),
    }
    if completion.effort and capabilities.effort:
        params["output_config"] = {"effort": completion.effort}
    if completion.thinking and capabilities.thinking:
        params["thinking"] = {"type": "adaptive"} if completion.thinking == "adaptive" else {"type": "disabled"}
    tools = [ToolParam(name=t.name, description=t.description, input_schema={**t.parameters}) for t in completion.tools]
    if completion.output_schema is not None and asked_by == "tool":
        schema = completion.output_schema
        tools.append(ToolParam(name=_ANSWER, description="Give your whole answer here.", input_schema={**schema}))
        if completion.may_look_up:
            params["tool_choice"] = {"type": "any"}
        else:
            params["tool_choice"] = {"type": "tool", "name": _ANSWER, "disable_parallel_tool_use": True}
    elif tools and not completion.may_look_up:
        params["tool_choice"] = {"type": "none"}
    if tools:
        params["tools"] = tools
    return params


def _turns(messages: Sequence[Message]) -> list[MessageParam]:
    turns: list[MessageParam] = []
    #: The results of one answer's calls are one turn.
    results: list[ToolResultBlockParam] = []
    for message in messages:
        text = clean_text(message.content)
        if message.role != "tool":
            results = []
        if message.role == "tool":
            if not results:
                turns.append({"role": "user", "content": results})
            results.append(
                {"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": text or "(nothing)"}
            )
        elif message.role == "assistant" and message.tool_calls:
            blocks = [cast(ContentBlockParam, block) for block in message.thinking]
            if text:
                blocks.append({"type": "text", "text": text})
            blocks.extend(
                ToolUseBlockParam(type="tool_use", id=call.id, name=call.name, input={**call.arguments})
                for call in message.tool_calls
            )
            turns.append({"role": "assistant", "content": blocks})
        else:
            # The API refuses blank turns.
            content = text if text.strip() else "(nothing)"
            if message.role == "user":
                turns.append({"role": "user", "content": content})
            else:
                turns.append({"role": "assistant", "content": content})
    if results:
        # The next round sends all of this again.
        results[-1]["cache_control"] = {"type": "ephemeral"}
    return turns


def _from_message(answer: ClaudeMessage) -> ResponseBuffer:
    buffer = ResponseBuffer(model=answer.model, stop_reason=answer.stop_reason or "")
    for block in answer.content:
        if block.type == "text":
            buffer.add_text(block.text)
        elif block.type in ("thinking", "redacted_thinking"):
            buffer.thinking.append(block.model_dump(exclude_none=True))
        elif block.type == "tool_use":
            arguments = json.dumps(block.input, ensure_ascii=False)
            buffer.add_arguments(buffer.start_call(block.id, block.name), arguments)
    _count(buffer.counts, answer.usage)
    return buffer


class _Usage(BaseModel):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(BaseModel):
    model: str = ""
    usage: _Usage | None = None


class _Block(BaseModel):
    """Content block, kept whole: thinking blocks are returned to the provider unchanged."""

    model_config = ConfigDict(extra="allow")

    type: str
    id: str = ""
    name: str = ""


class _Delta(BaseModel):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Event(BaseModel):
    """Fields read from a stream event."""

    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None


async def _from_stream(events: AsyncIterator[object], on_delta: DeltaSink) -> ResponseBuffer:
    """Collect the stream's events. Raises ValueError if an item is not an event."""
    buffer = ResponseBuffer()
    places: dict[int, int] = {}
    thinking: dict[int, dict[str, Any]] = {}
    async for item in events:
        event = _Event.model_validate(item)
        if event.message is not None:
            buffer.model = event.message.model
            _count(buffer.counts, event.message.usage)
        elif (block := event.content_block) is not None:
            if block.type == "tool_use":
                places[event.index] = buffer.start_call(block.id, block.name)
            elif block.type in ("thinking", "redacted_thinking"):
                thinking[event.index] = block.model_dump(exclude_none=True, exclude_unset=True)
                buffer.thinking.append(thinking[event.index])
        elif event.type == "message_delta":
            buffer.stop_reason = (event.delta and event.delta.stop_reason) or ""
            _count(buffer.counts, event.usage)
        elif (delta := event.delta) is None:
            continue
        elif delta.type == "thinking_delta":
            kept = thinking.get(event.index, {})
            kept["thinking"] = kept.get("thinking", "") + delta.thinking
        elif delta.type == "signature_delta":
            thinking.get(event.index, {})["signature"] = delta.signature
        elif delta.type == "text_delta":
            buffer.add_text(delta.text)
            on_delta(clean_text(delta.text))
        elif delta.type == "input_json_delta" and (place := places.get(event.index)) is not None:
            buffer.add_arguments(place, delta.partial_json)
            if buffer.call_name(place) == _ANSWER:
                on_delta(clean_text(delta.partial_json))
    return buffer


class _Counts(Protocol):
    """Token counts of an answer or an event."""

    @property
    def input_tokens(self) -> int | None: ...
    @property
    def output_tokens(self) -> int | None: ...
    @property
    def cache_read_input_tokens(self) -> int | None: ...
    @property
    def cache_creation_input_tokens(self) -> int | None: ...


def _count(counts: TokenCounts, usage: _Counts | None) -> None:
    if usage is None:
        return
    # Later counts are cumulative and replace; what an event leaves out keeps its value.
    if usage.input_tokens is not None:
        counts.uncached = usage.input_tokens
    if usage.cache_read_input_tokens is not None:
        counts.cache_read = usage.cache_read_input_tokens
    if usage.cache_creation_input_tokens is not None:
        counts.cache_written = usage.cache_creation_input_tokens
    if usage.output_tokens is not None:
        counts.output = usage.output_tokens


def _sentence(error: anthropic.APIStatusError) -> str:
    """Error message of the provider; Bedrock omits the envelope."""
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    return error.api_message or (said if isinstance(said, str) else "")
