"""OpenAI's chat completions through its SDK, and every server that speaks them."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from flowise_dev_agent.reasoning.contracts import DeltaSink, EngineResponse, Message, ToolDef
from flowise_dev_agent.reasoning.engines.base import DEFAULT_MAX_TOKENS, SdkEngine, schema_instruction
from flowise_dev_agent.reasoning.engines.response_buffer import ResponseBuffer
from flowise_dev_agent.reasoning.text import clean
from flowise_dev_agent.settings import DEFAULT_MODELS, ReasoningSettings

#: How an object may be asked for, best first; a server that refuses one is asked by the next.
_FORMATS = ("json_schema", "json_object", "words")
_FORMAT_WORDS = ("response_format", "response format", "json_schema", "json_object", "structured output")
#: How servers say that they do not know a field, as opposed to not liking its value.
_UNKNOWN_WORDS = ("unsupported", "not supported", "unknown", "unrecognized", "extra", "instead", "not permitted")
_CUT = ("length",)


@dataclass
class ModelCapabilities:
    """What a model has turned out to take. Kept per model, so that each refusal is paid for once."""

    format: int = 0
    temperature: bool = True
    stream_usage: bool = True
    #: Newer OpenAI models know only `max_completion_tokens`, most compatible servers only `max_tokens`.
    limit_name: str = "max_tokens"
    limit_learnt: bool = False

    def learn(self, error: openai.BadRequestError | openai.UnprocessableEntityError, *, wants_object: bool) -> bool:
        """Give way on what the refusal names; False when it names nothing that could be left out."""
        said = f"{error.param or ''} {error.message}".lower()
        if self.temperature and "temperature" in said:
            self.temperature = False
        elif self.stream_usage and "stream_options" in said:
            self.stream_usage = False
        elif not self.limit_learnt and self.limit_name in said and any(word in said for word in _UNKNOWN_WORDS):
            self.limit_learnt = True
            self.limit_name = "max_tokens" if self.limit_name == "max_completion_tokens" else "max_completion_tokens"
        elif wants_object and self.format + 1 < len(_FORMATS) and any(word in said for word in _FORMAT_WORDS):
            self.format += 1
        else:
            return False
        return True


class OpenAIEngine(SdkEngine):
    """GPT models, or any compatible server under `OPENAI_BASE_URL` (OpenRouter, Ollama, vLLM, LM Studio)."""

    provider: ClassVar[str] = "OpenAI"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    price_list: ClassVar[str] = "openai"

    def __init__(self, settings: ReasoningSettings, model: str | None = None) -> None:
        super().__init__(
            settings,
            model or settings.model_choice or DEFAULT_MODELS["openai"],
            settings.openai_api_key,
            settings.openai_base_url,
        )
        self._client = openai.AsyncOpenAI(**self._client_options)
        self._capabilities: dict[str, ModelCapabilities] = {}

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
        first = ModelCapabilities(limit_name="max_tokens" if self._base_url else "max_completion_tokens")
        capabilities = self._capabilities.setdefault(model, first)
        async with self._call(model):
            try:
                # Each round gives way on one more point, of which there are five.
                for _ in range(6):
                    known = replace(capabilities)
                    request = _request(
                        capabilities, model, messages, system, tools, temperature, output_schema, max_tokens
                    )
                    try:
                        buffer = await self._send(model, request, capabilities, on_delta)
                        break
                    except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                        # A call alongside may have learnt it meanwhile: then just ask again.
                        if known == capabilities and not capabilities.learn(
                            error, wants_object=output_schema is not None
                        ):
                            raise
                else:
                    raise self._unreadable(model, "refuses every form of the request")
            except openai.APIStatusError as error:
                raise self._refused(model, error.status_code, _said(error)) from None
            except openai.APITimeoutError:
                raise self._unavailable(model, f"gave no answer within {self._timeout_secs:g} s") from None
            except openai.APIConnectionError:
                raise self._unavailable(model, "cannot be reached") from None
            except openai.APIError as error:  # an error event inside a stream
                raise self._refused(model, 500, error.message) from None
            except (openai.OpenAIError, ValueError):
                raise self._unreadable(model, "sent something that is not an answer of its API") from None
        read, total, output = (buffer.counts.get(name, 0) for name in ("cached", "input", "output"))
        usage = self._usage(model, total=total, output=output, cached=read)
        return buffer.response(text=buffer.text, usage=usage, fallback_model=model, cut_by=_CUT)

    async def _send(
        self, model: str, request: dict[str, Any], capabilities: ModelCapabilities, on_delta: DeltaSink | None
    ) -> ResponseBuffer:
        if on_delta is None:
            answer: Any = await self._client.chat.completions.create(**request)
            if not isinstance(answer, ChatCompletion) or not answer.choices:
                raise self._unreadable(model, "sent something that is not an answer of its API")
            return _from_completion(answer)
        if capabilities.stream_usage:
            request["stream_options"] = {"include_usage": True}
        stream: Any = await self._client.chat.completions.create(**request, stream=True)
        async with stream:
            buffer = await _from_stream(stream, on_delta)
        if buffer.is_blank:
            raise self._unreadable(model, "sent something that is not an answer of its API")
        return buffer


def _request(
    capabilities: ModelCapabilities,
    model: str,
    messages: Sequence[Message],
    system: str,
    tools: Sequence[ToolDef],
    temperature: float | None,
    schema: dict[str, Any] | None,
    max_tokens: int,
) -> dict[str, Any]:
    request: dict[str, Any] = {"model": model, capabilities.limit_name: max_tokens}
    if temperature is not None and capabilities.temperature:
        request["temperature"] = temperature
    if tools:
        request["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in tools
        ]
    if schema is not None:
        form = _FORMATS[capabilities.format]
        if form == "json_schema":
            # Not `strict`: that dialect has no open objects, which the params of an op are.
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": False},
            }
        else:
            system += schema_instruction(schema)
            if form == "json_object":
                request["response_format"] = {"type": "json_object"}
    request["messages"] = [{"role": "system", "content": clean(system)}, *map(_turn, messages)]
    return request


def _turn(message: Message) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": clean(message.content)}
    if message.role == "tool":
        turn["tool_call_id"] = message.tool_call_id or ""
    if message.tool_calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return turn


def _count(buffer: ResponseBuffer, usage: CompletionUsage | None) -> None:
    if usage is None:
        return
    details = usage.prompt_tokens_details
    buffer.counts = {
        "input": usage.prompt_tokens or 0,
        "output": usage.completion_tokens or 0,
        "cached": (details.cached_tokens or 0) if details else 0,
    }


def _from_completion(answer: ChatCompletion) -> ResponseBuffer:
    choice = answer.choices[0]
    buffer = ResponseBuffer(model=answer.model or "", stop_reason=choice.finish_reason or "")
    buffer.add_text(choice.message.content or choice.message.refusal or "")
    for index, call in enumerate(choice.message.tool_calls or []):
        if call.type == "function":
            buffer.start_call(index, call.id, call.function.name)
            buffer.add_arguments(index, call.function.arguments)
    _count(buffer, answer.usage)
    return buffer


async def _from_stream(chunks: AsyncIterator[ChatCompletionChunk], on_delta: DeltaSink) -> ResponseBuffer:
    buffer = ResponseBuffer()
    async for chunk in chunks:
        buffer.model = buffer.model or chunk.model or ""
        _count(buffer, chunk.usage)
        for choice in chunk.choices or []:
            buffer.stop_reason = choice.finish_reason or buffer.stop_reason
            text = choice.delta.content or choice.delta.refusal or ""
            if text:
                buffer.add_text(text)
                on_delta(clean(text))
            for call in choice.delta.tool_calls or []:
                if not buffer.has_call(call.index):
                    buffer.start_call(call.index, call.id or "", (call.function and call.function.name) or "")
                buffer.add_arguments(call.index, (call.function and call.function.arguments) or "")
    return buffer


def _said(error: openai.APIStatusError) -> str:
    """The provider's own sentence, without the SDK's preamble and the dump of the body."""
    body: Any = error.body
    if isinstance(body, dict):
        said = body.get("message") or body.get("detail") or body.get("error")
        return said if isinstance(said, str) else ""
    return ""
