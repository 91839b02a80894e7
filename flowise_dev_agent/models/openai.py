"""OpenAI's chat completions through its SDK, and compatible servers."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from typing import Any, ClassVar, Final

import httpx2
import openai
from openai.types import CompletionUsage
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionAssistantMessageParam,
    ChatCompletionMessageFunctionToolCallParam,
    ChatCompletionMessageParam,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from pydantic import BaseModel

from flowise_dev_agent.models.base import Refusal, SdkEngine, SdkErrors
from flowise_dev_agent.models.completion import Completion, ModelCapabilities, refuses_tools, strict_form
from flowise_dev_agent.models.messages import DeltaSink, Message
from flowise_dev_agent.models.response_buffer import ResponseBuffer, TokenCounts
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.settings import ReasoningSettings

_ENTRA_SCOPE: Final = "https://cognitiveservices.azure.com/.default"

#: Texts by which a server names the option for structured output.
_FORMAT_WORDS: Final = (
    "response_format",
    "response format",
    "json_schema",
    "json_object",
    "structured output",
    "json mode",
    "mime type",
)
#: Texts by which a server reports an unknown field (not an invalid value).
_UNKNOWN_WORDS: Final = (
    "unsupported",
    "not supported",
    "unknown",
    "unrecognized",
    "extra",
    "instead",
    "not permitted",
)


class OpenAIEngine(SdkEngine):
    """Engine for GPT models, or any compatible server under `OPENAI_BASE_URL` (OpenRouter, Ollama, vLLM, LM Studio).

    Structured output is the option `response_format`, strict where the schema has no open objects. Every request has
    it: the API takes it together with tools and applies it to the text only. A last request has the tools, too (the
    cached prefix begins with them), with `tool_choice: none`.
    """

    provider: ClassVar[str] = "OpenAI"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    price_list: ClassVar[str] = "openai"
    sdk_errors: ClassVar[SdkErrors] = SdkErrors(
        # OpenRouter answers 404 if no server of a model supports the requested options.
        rejected=(openai.BadRequestError, openai.UnprocessableEntityError, openai.NotFoundError),
        timeout=openai.APITimeoutError,
        connection=openai.APIConnectionError,
        any=openai.OpenAIError,
    )
    cut_by: ClassVar[tuple[str, ...]] = ("length",)
    refused_by: ClassVar[tuple[str, ...]] = ("content_filter",)

    def __init__(self, settings: ReasoningSettings) -> None:
        super().__init__(settings, settings.openai_api_key, settings.openai_base_url)
        self._client = openai.AsyncOpenAI(**self._client_options)

    async def aclose(self) -> None:
        await self._client.close()

    def _new_http_client(self, **options: Any) -> httpx2.AsyncClient:
        return openai.DefaultAioHttpClient(**options)

    def _assumed_capabilities(self) -> ModelCapabilities:
        return ModelCapabilities(
            formats=("strict_schema", "json_schema", "json_object", "prompt"),
            limit_name="max_tokens" if self._base_url else "max_completion_tokens",
        )

    def _learn(self, error: Exception, completion: Completion, capabilities: ModelCapabilities) -> bool:
        if not isinstance(error, openai.APIError):
            return False
        text = f"{error.param or ''} {error.message}".lower()
        way = completion.asked_by(capabilities)
        if way and _has(text, _FORMAT_WORDS) and capabilities.refuse(way):
            return True
        if capabilities.temperature and "temperature" in text:
            capabilities.temperature = False
        elif completion.effort and capabilities.effort and _has(text, ("reasoning_effort", "reasoning effort")):
            capabilities.effort = False
        elif capabilities.stream_usage and "stream_options" in text:
            capabilities.stream_usage = False
        elif not capabilities.limit_learned and capabilities.limit_name in text and _has(text, _UNKNOWN_WORDS):
            capabilities.limit_learned = True
            is_new_name = capabilities.limit_name == "max_completion_tokens"
            capabilities.limit_name = "max_tokens" if is_new_name else "max_completion_tokens"
        elif refuses_tools(text, completion, capabilities):
            capabilities.tools = False
        else:
            return False
        return True

    def _refusal(self, error: Exception) -> Refusal | None:
        if isinstance(error, openai.APIStatusError):
            return Refusal(error.status_code, _sentence(error))
        # An error event inside a stream.
        return Refusal(500, error.message) if isinstance(error, openai.APIError) else None

    async def _send(self, completion: Completion, capabilities: ModelCapabilities) -> ResponseBuffer:
        params = _params(completion, capabilities)
        if completion.on_delta is None:
            answer: Any = await self._client.chat.completions.create(**params)
            is_answer = isinstance(answer, ChatCompletion) and answer.choices
            return _from_completion(answer) if is_answer else ResponseBuffer()
        if capabilities.stream_usage:
            params["stream_options"] = {"include_usage": True}
        # The SDK's own models of chunks take most of the time of a stream: it gives them as they come.
        stream = await self._client.post(
            "/chat/completions",
            body={**params, "stream": True},
            cast_to=object,
            options={"timeout": self._stream_timeout},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        async with stream:
            return await _from_stream(stream, completion.on_delta)


class AzureEngine(OpenAIEngine):
    """OpenAI models on Azure, with a key of the resource or Entra tokens. The model is the name of a deployment."""

    provider: ClassVar[str] = "Azure OpenAI"
    key_variable: ClassVar[str] = "AZURE_OPENAI_API_KEY, or the Entra identity of this machine and its role"
    price_list: ClassVar[str] = "azure"
    credentials_package: ClassVar[str | None] = "azure"

    def __init__(self, settings: ReasoningSettings) -> None:
        SdkEngine.__init__(self, settings, settings.azure_api_key, None)
        key = settings.azure_api_key
        self._client = openai.AsyncAzureOpenAI(
            azure_endpoint=settings.azure_endpoint or "",
            api_version=settings.azure_api_version,
            api_key=key.get_secret_value() if key else None,
            azure_ad_token_provider=None if key else _entra_tokens(),
            timeout=self._client_options["timeout"],
            max_retries=self._client_options["max_retries"],
            http_client=self._client_options["http_client"],
        )


def _entra_tokens() -> Callable[[], Awaitable[str]]:
    """Provider of tokens for the identity found by azure-identity: environment, workload, managed identity, CLI."""
    identity: Any = import_module("azure.identity")
    token: Callable[[], str] = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _ENTRA_SCOPE)
    # It blocks while it asks for a token, and keeps it as long as it is valid.
    return lambda: asyncio.to_thread(token)


def _params(completion: Completion, capabilities: ModelCapabilities) -> CompletionCreateParamsBase:
    asked_by = completion.asked_by(capabilities)
    params: CompletionCreateParamsBase = {
        "model": completion.model,
        "messages": [
            {"role": "system", "content": clean_text(completion.system_for(asked_by))},
            *map(_turn, completion.messages),
        ],
    }
    params[capabilities.limit_name] = completion.max_tokens
    if completion.temperature is not None and capabilities.temperature:
        params["temperature"] = completion.temperature
    if completion.effort and capabilities.effort:
        params["reasoning_effort"] = completion.effort
    if completion.tools:
        params["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": {**tool.parameters}},
            }
            for tool in completion.tools
        ]
        if not completion.may_look_up:
            params["tool_choice"] = "none"
    if completion.output_schema is not None and asked_by in ("strict_schema", "json_schema"):
        strict = strict_form(completion.output_schema) if asked_by == "strict_schema" else None
        params["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": "answer",
                "schema": {**(strict or completion.output_schema)},
                "strict": strict is not None,
            },
        }
    elif asked_by == "json_object":
        params["response_format"] = {"type": "json_object"}
    return params


def _turn(message: Message) -> ChatCompletionMessageParam:
    text = clean_text(message.content)
    if message.role == "user":
        return {"role": "user", "content": text}
    if message.role == "tool":
        return {"role": "tool", "content": text, "tool_call_id": message.tool_call_id or ""}
    turn: ChatCompletionAssistantMessageParam = {"role": "assistant", "content": text}
    if message.tool_calls:
        calls: list[ChatCompletionMessageFunctionToolCallParam] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
        turn["tool_calls"] = calls
    return turn


def _from_completion(answer: ChatCompletion) -> ResponseBuffer:
    choice = answer.choices[0]
    buffer = ResponseBuffer(model=answer.model or "", stop_reason=choice.finish_reason or "")
    buffer.refusal = choice.message.refusal or ""
    buffer.add_text(choice.message.content or "")
    for call in choice.message.tool_calls or []:
        if call.type == "function":
            buffer.add_arguments(buffer.start_call(call.id, call.function.name), call.function.arguments)
    _count(buffer, answer.usage)
    return buffer


class _Details(BaseModel):
    cached_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Function(BaseModel):
    name: str | None = None
    arguments: str | None = None


class _Call(BaseModel):
    index: int = 0
    id: str | None = None
    function: _Function | None = None


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(BaseModel):
    """Fields read from a stream chunk. Compatible servers omit most of them."""

    model: str | None = None
    usage: _Usage | None = None
    choices: list[_Choice] | None = None


async def _from_stream(chunks: AsyncIterator[object], on_delta: DeltaSink) -> ResponseBuffer:
    """Collect the stream's chunks. Raises ValueError if an item is not a chunk."""
    buffer = ResponseBuffer()
    # Some compatible servers number every call 0: a new id begins a new call.
    at: dict[int, int] = {}
    async for item in chunks:
        chunk = _Chunk.model_validate(item)
        buffer.model = buffer.model or chunk.model or ""
        _count(buffer, chunk.usage)
        for choice in chunk.choices or []:
            buffer.stop_reason = choice.finish_reason or buffer.stop_reason
            if choice.delta is None:
                continue
            buffer.refusal += choice.delta.refusal or ""
            if text := choice.delta.content or "":
                buffer.add_text(text)
                on_delta(clean_text(text))
            for call in choice.delta.tool_calls or []:
                place = at.get(call.index)
                if place is None or (call.id and buffer.call_id(place) not in ("", call.id)):
                    place = at[call.index] = buffer.start_call(
                        call.id or "", (call.function and call.function.name) or ""
                    )
                buffer.add_arguments(place, (call.function and call.function.arguments) or "")
    return buffer


def _count(buffer: ResponseBuffer, usage: CompletionUsage | _Usage | None) -> None:
    if usage is None:
        return
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    buffer.counts = TokenCounts(
        uncached=(usage.prompt_tokens or 0) - cached, cache_read=cached, output=usage.completion_tokens or 0
    )


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _sentence(error: openai.APIStatusError) -> str:
    """Error message of the provider, without the SDK's prefix and the body."""
    body = error.body
    if isinstance(body, dict):
        said = body.get("message") or body.get("detail") or body.get("error")
        return said if isinstance(said, str) else ""
    return ""
