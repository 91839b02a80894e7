"""The engine: all providers through pydantic-ai's model layer."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, cast

import httpx2
from opentelemetry.trace import SpanKind
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from flowise_dev_agent.models.base import UNKNOWN_WINDOW, ReasoningEngine
from flowise_dev_agent.models.capabilities import (
    Capabilities,
    CapabilityStore,
    Kind,
    Loss,
    Way,
    learn,
    prompt_named,
    window_named,
)
from flowise_dev_agent.models.limiter import CallLimiter
from flowise_dev_agent.models.messages import DeltaSink, EngineResponse, Message, ToolDef
from flowise_dev_agent.models.prices import usage_of
from flowise_dev_agent.models.providers import Connection, connect, price_list, server_of
from flowise_dev_agent.models.refusals import ErrorTexts, error_detail, is_too_long
from flowise_dev_agent.models.requests import ANSWER, answer_text, model_messages, sendable, tool_calls, wire_name
from flowise_dev_agent.models.servers import Server, find_out
from flowise_dev_agent.observability.metrics import MODEL_SECONDS, timed
from flowise_dev_agent.observability.tracing import span
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.settings import EngineName, ReasoningSettings, Route

#: Most refusals of one request that teach something.
_LESSONS: Final = 8
#: Refusals by which a server may name an option. OpenRouter answers 404 if no server of a model supports the options.
_TEACHES: Final = frozenset({400, 404, 405, 413, 422, 500, 501})
#: Characters per token of a prompt, until the model's own are known; above the second no text was ever read whole.
_CHARS_PER_TOKEN, _NO_MODEL_READS = 4.0, 7.0
#: A prompt of fewer characters fits every window.
_SMALL: Final = 8_000
#: A prompt that needs this share fewer tokens than others of its model was cut.
_CUT: Final = 1.6
#: Tokens kept free between prompt and answer, and the fewest an answer needs.
_MARGIN, _LEAST_ANSWER = 64, 256
#: The limit of an answer is raised by this factor, once, if thinking used it up.
_RAISED: Final = 3
#: After this time stored capabilities are read again: another process may have checked the model.
_READ_AGAIN_SECS: Final = 60.0


@dataclass
class _Request:
    """One request to a model: what is asked, and how."""

    route: Route
    phase: str
    messages: list[ModelMessage]
    system: str
    tools: Sequence[ToolDef]
    may_look_up: bool
    output_schema: JsonObject | None
    temperature: float | None
    max_tokens: int
    on_delta: DeltaSink | None
    kind: Kind = "answer"
    way: Way | None = None
    #: The limit was raised already.
    raised: bool = False

    @property
    def chars(self) -> int:
        """Characters of the prompt, tools and schema included as far as they are sent."""
        parts: list[Any] = [self.system, *(_text_of(message) for message in self.messages)]
        parts += [json.dumps(tool.parameters) + tool.description for tool in self.tools if self.kind != "answer"]
        if self.output_schema is not None and self.way is not None:
            parts.append(json.dumps(self.output_schema))
        return sum(len(part) for part in parts)


class ModelEngine(ReasoningEngine):
    """Engine for the models of all providers.

    How a model takes a request is known by its profile and learned from refusals, see `Capabilities`. Where a model or
    server takes no tools beside a schema, a request that may look something up has the tools only; the answer is asked
    for by another request (`EngineResponse.kind`).
    """

    def __init__(
        self,
        settings: ReasoningSettings,
        store: CapabilityStore | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._limiters: dict[EngineName, CallLimiter] = {}
        self._connections: dict[EngineName, Connection] = {}
        self._known: dict[tuple[str, str], Capabilities] = {}
        self._read_at: dict[tuple[str, str], float] = {}
        self._servers: dict[tuple[str, str], Server] = {}
        self._loading = asyncio.Lock()
        # Settings of a provider that is not installed are told at the start.
        self._connection(settings.engine)

    def model_id(self) -> str:
        return self._settings.general_model

    async def aclose(self) -> None:
        for connection in self._connections.values():
            await connection.close()

    async def window(self, model: str | None = None) -> int:
        route = self._settings.route(model or self.model_id())
        connection = self._connection(route.engine)
        known = await self._capabilities(connection, route)
        return self._window(connection, route, known)

    async def capabilities(self, model: str | None = None) -> Capabilities:
        """Capabilities known of a model."""
        route = self._settings.route(model or self.model_id())
        return await self._capabilities(self._connection(route.engine), route)

    def output_limit(self, known: Capabilities) -> int:
        """Most tokens of an answer, thinking included."""
        return min(self._settings.max_output_tokens, known.output_limit or self._settings.max_output_tokens)

    async def keep(self, model: str | None = None) -> None:
        """Keep what is known about a model, after it was changed."""
        route = self._settings.route(model or self.model_id())
        if self._store:
            await self._store.save(*self._key(route), await self._capabilities(self._connection(route.engine), route))

    async def complete(
        self,
        messages: Sequence[Message],
        system: str,
        tools: Sequence[ToolDef] = (),
        temperature: float | None = None,
        *,
        may_look_up: bool = True,
        output_schema: JsonObject | None = None,
        model: str | None = None,
        phase: str = "",
        max_tokens: int | None = None,
        on_delta: DeltaSink | None = None,
    ) -> EngineResponse:
        route = self._settings.route(model or self.model_id())
        request = _Request(
            route,
            phase,
            model_messages(messages),
            clean_text(system),
            tools,
            may_look_up and bool(tools),
            output_schema,
            temperature,
            max_tokens or self._settings.max_output_tokens,
            on_delta,
        )
        connection = self._connection(route.engine)
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": connection.provider.traced_as or route.engine,
            "gen_ai.request.model": route.model,
            "fda.phase": phase,
        }
        with (
            span(f"chat {route.model}", about, kind=SpanKind.CLIENT) as current,
            timed(MODEL_SECONDS, route.engine, phase or "other"),
        ):
            answer = await self._in_turn(connection, request)
            current.set_attribute("gen_ai.response.model", answer.model)
            current.set_attribute("gen_ai.response.finish_reasons", [answer.stop_reason])
            current.set_attribute("gen_ai.usage.input_tokens", answer.usage.input_tokens)
            current.set_attribute("gen_ai.usage.output_tokens", answer.usage.output_tokens)
        return answer

    async def _in_turn(self, connection: Connection, request: _Request) -> EngineResponse:
        """Make a call when it is its turn, and read its answer."""
        texts = self._texts(connection, request.route)
        async with self._limiter(request.route.engine).turn():
            try:
                async with asyncio.timeout(self._settings.timeout_secs):
                    response = await self._negotiate(connection, request, texts)
            except TimeoutError:
                secs = f"{self._settings.timeout_secs:g}"
                raise texts.unavailable("incomplete", seconds=secs) from None
        return self._answer(request, response, texts)

    # --- One request, until it is taken --------------------------------------------------------------------------

    async def _negotiate(self, connection: Connection, request: _Request, texts: ErrorTexts) -> ModelResponse:
        """Send the request, and again without each option that the model refuses."""
        known = await self._capabilities(connection, request.route)
        refused: ModelAPIError | None = None
        for _ in range(_LESSONS):
            model, settings, parameters = self._prepared(connection, request, known, texts)
            assumed = known.model_copy(deep=True)
            try:
                response = await self._send(model, request, settings, parameters, streamed=_is_streamed(request, known))
            except ModelAPIError as error:
                # A parallel call may have learned it in the meantime: then just send it again.
                if assumed != known or self._learned(known, request, error):
                    refused = error
                    await self._save_lesson(request.route, known)
                    continue
                if is_too_long(error):
                    raise texts.too_long(error_detail(error), window=known.window) from None
                raise texts.of(error, silence_secs=self._silence_secs(request)) from None
            except (UnexpectedModelBehavior, UserError, ValueError):
                raise texts.unreadable() from None
            except httpx2.TransportError as error:
                # The SDKs wrap these while a request is made, but not while a stream is read.
                raise texts.unavailable("broke_off_by", name=type(error).__name__) from None
            except Exception as error:
                if not self._lacks_credentials(connection, error):
                    raise
                raise texts.no_credentials(error) from None
            if await self._measure(connection, request, known, response, texts):
                return response
        raise texts.of(refused, silence_secs=self._silence_secs(request)) if refused else texts.unreadable()

    def _learned(self, known: Capabilities, request: _Request, error: ModelAPIError) -> bool:
        """True if the refusal taught something, so that the request may be sent again."""
        said = error_detail(error)
        if is_too_long(error):
            before = known.window, known.chars_per_token
            known.window = window_named(said) or known.window
            if prompt := prompt_named(said):
                known.chars_per_token = min(known.chars_per_token or _CHARS_PER_TOKEN, round(request.chars / prompt, 2))
            if known.window is None or before == (known.window, known.chars_per_token):
                return False
            # Worth another try if only the answer was given too much room.
            return self._left(known.window, request, known) >= _LEAST_ANSWER
        if isinstance(error, ModelHTTPError) and error.status_code not in _TEACHES:
            return False
        return learn(
            known,
            said,
            phase=request.phase,
            kind=request.kind,
            way=request.way,
            effort=self._settings.effort is not None,
            thinking=self._settings.thinking is not None,
        )

    async def _measure(
        self,
        connection: Connection,
        request: _Request,
        known: Capabilities,
        response: ModelResponse,
        texts: ErrorTexts,
    ) -> bool:
        """Check how much of the prompt was read, and of the answer written. False: send it again.

        Raises ModelContextError if the server cut the prompt.
        """
        chars, read = request.chars, response.usage.input_tokens
        if read:
            ratio = chars / read
            expected = known.chars_per_token
            if chars >= _SMALL and connection.address and ratio > (expected * _CUT if expected else _NO_MODEL_READS):
                raise texts.cut(sent=round(chars / (expected or _CHARS_PER_TOKEN)), read=read)
            if chars >= _SMALL // 8 and ratio < _NO_MODEL_READS and (expected is None or ratio < expected * 0.9):
                known.chars_per_token = round(ratio, 2)
                await self._save_lesson(request.route, known)
        if response.finish_reason == "length" and not request.raised and not _says_anything(response):
            request.raised = True
            request.max_tokens *= _RAISED
            return False
        return True

    def _prepared(
        self, connection: Connection, request: _Request, known: Capabilities, texts: ErrorTexts
    ) -> tuple[Model[Any], ModelSettings, ModelRequestParameters]:
        """The request as the model takes it, by what is known about it."""
        name = request.route.model
        if request.route.api:
            known = known.model_copy(update={"api": request.route.api})
        server = self._servers.get(self._key(request.route), Server())
        model = connection.make(name, known, server.kind)
        offered = request.tools if known.tools else ()
        looks_up = request.may_look_up and bool(offered)
        both = connection.takes_both(name, known, server.kind)
        if request.output_schema is None:
            request.kind = "look_up" if offered else "answer"
        elif looks_up:
            request.kind = "both" if both else "look_up"
        else:
            # The cached prefix begins with the tools, which belong to the conversation so far.
            request.kind = "both" if both and offered else "answer"
        wants_object = request.output_schema is not None and request.kind != "look_up"
        ways = connection.ways(model.profile, server.kind)
        request.way = known.ways_left(ways, request.phase, request.kind)[0] if wants_object else None
        settings = self._model_settings(connection, request, known, texts)
        if model.profile.get("openai_supports_reasoning") or model.profile.get("anthropic_disallows_sampling_settings"):
            # The model layer would warn that it leaves it out.
            settings.pop("temperature", None)
        if offered and not looks_up and request.kind == "both":
            settings["tool_choice"] = "none"
        return model, settings, _parameters(request, offered)

    def _model_settings(
        self, connection: Connection, request: _Request, known: Capabilities, texts: ErrorTexts
    ) -> ModelSettings:
        settings = cast("ModelSettings", {**connection.extra_settings})
        limit = min(request.max_tokens, known.output_limit or request.max_tokens)
        left = self._left(self._window(connection, request.route, known), request, known)
        if left < min(limit, _LEAST_ANSWER):
            raise texts.too_long(window=self._window(connection, request.route, known))
        settings["max_tokens"] = min(limit, left)
        if request.temperature is not None and known.temperature and connection.engine not in ("claude", "vertex"):
            settings["temperature"] = request.temperature
        effort = self._settings.effort if known.effort else None
        thinking = self._settings.thinking if known.thinking else None
        settings.update(cast("Any", connection.effort_settings(effort, thinking)))
        # Nothing of the conversation is a system message, so nothing is to be explained about them.
        settings["framing_announcement"] = "never"
        settings["cache"] = True
        if _is_streamed(request, known) and connection.stream_timeout is not None:
            settings["timeout"] = cast("Any", connection.stream_timeout)
        return settings

    async def _send(
        self,
        model: Model[Any],
        request: _Request,
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        *,
        streamed: bool,
    ) -> ModelResponse:
        sink = request.on_delta
        messages = model.prepare_messages(request.messages, parameters)
        if sink is None or not streamed:
            return await model.request(messages, settings, parameters)
        answering = -1
        async with model.request_stream(messages, settings, parameters) as stream:
            async for event in stream:
                piece = ""
                match event:
                    case PartStartEvent(part=TextPart(content=text)):
                        piece = text
                    case PartStartEvent(index=index, part=ToolCallPart(tool_name=name, args=args)) if name == ANSWER:
                        answering, piece = index, args if isinstance(args, str) else ""
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                        piece = text
                    case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=args)) if index == answering:
                        piece = args if isinstance(args, str) else ""
                    case _:
                        pass
                if piece:
                    sink(clean_text(piece))
            return stream.get()

    def _answer(self, request: _Request, response: ModelResponse, texts: ErrorTexts) -> EngineResponse:
        details = response.provider_details or {}
        known = self._known[self._key(request.route)]
        usage = usage_of(response.usage, request.route.model, provider=price_list(request.route.engine, self._settings))
        calls = tool_calls(response, request.tools)
        text = answer_text(response)
        if response.finish_reason == "content_filter":
            raise texts.declined(str(details.get("refusal") or details.get("explanation") or ""), usage)
        if not (response.parts or response.finish_reason or response.usage.output_tokens):
            raise texts.unreadable()
        reason = str(details.get("finish_reason") or response.finish_reason or "")
        return EngineResponse(
            text=text,
            tool_calls=calls,
            turn=sendable(response, calls),
            usage=usage,
            model=response.model_name or request.route.model,
            stop_reason=reason,
            truncated=response.finish_reason in (None, "length"),
            kind=request.kind,
            lost=tuple(self._lost(request, known)),
        )

    def _lost(self, request: _Request, known: Capabilities) -> list[Loss]:
        """Features that the settings or the phase want and the model does not take."""
        lost: list[Loss] = []
        if request.tools and not known.tools:
            lost.append("tools")
        if request.way == "prompt":
            lost.append("prompt_only")
        elif request.way == "object":
            lost.append("schema")
        if (self._settings.effort and not known.effort) or (self._settings.thinking and not known.thinking):
            lost.append("thinking")
        return lost

    # --- What is known -------------------------------------------------------------------------------------------

    def _connection(self, engine: EngineName) -> Connection:
        if engine not in self._connections:
            self._connections[engine] = connect(engine, self._settings, self._limiter(engine).observe)
        return self._connections[engine]

    def _limiter(self, engine: EngineName) -> CallLimiter:
        if engine not in self._limiters:
            self._limiters[engine] = CallLimiter(engine, self._settings.max_parallel_calls)
        return self._limiters[engine]

    async def _capabilities(self, connection: Connection, route: Route) -> Capabilities:
        key = self._key(route)
        if key in self._known:
            await self._read_again(key)
            return self._known[key]
        async with self._loading:
            if key not in self._known:
                self._read_at[key] = self._clock()
                known = await self._store.load(*key) if self._store else None
                server = Server()
                if connection.is_compatible and connection.address:
                    api_key = connection.key.get_secret_value() if connection.key else None
                    server = await find_out(connection.address, route.model, api_key)
                self._servers[key] = server
                known = known or Capabilities()
                if server.window and server.window != known.window:
                    known.window = server.window
                    await self._save_lesson(route, known)
                self._known[key] = known
        return self._known[key]

    async def _read_again(self, key: tuple[str, str]) -> None:
        """Take over what other processes stored since it was read."""
        if self._store is None or self._clock() < self._read_at[key] + _READ_AGAIN_SECS:
            return
        # Requests that come meanwhile do not wait.
        self._read_at[key] = self._clock()
        if stored := await self._store.load(*key):
            for name in stored.model_fields_set:
                setattr(self._known[key], name, getattr(stored, name))

    def _key(self, route: Route) -> tuple[str, str]:
        """Server and model, by which capabilities are kept."""
        return server_of(route.engine, self._settings), route.model

    async def _save_lesson(self, route: Route, known: Capabilities) -> None:
        """Keep what a request taught, without the check: another process may have made a newer one."""
        if self._store:
            await self._store.save(*self._key(route), known.model_copy(update={"checked": None}))

    def _window(self, connection: Connection, route: Route, known: Capabilities) -> int:
        own = self._settings.context_tokens
        if own is not None:
            return min(own, known.window or own)
        server = self._servers.get(self._key(route), Server())
        profile = None if connection.is_compatible else connection.make(route.model, known, server.kind).context_window
        return known.window or profile or UNKNOWN_WINDOW

    def _left(self, window: int, request: _Request, known: Capabilities) -> int:
        """Tokens of the window that the prompt leaves for the answer."""
        return window - round(request.chars / (known.chars_per_token or _CHARS_PER_TOKEN)) - _MARGIN

    def _texts(self, connection: Connection, route: Route) -> ErrorTexts:
        provider = connection.provider
        key = connection.key.get_secret_value() if connection.key else None
        return ErrorTexts(provider.title, route.model, key_variable=provider.key_variable, key=key)

    def _silence_secs(self, request: _Request) -> float:
        whole = self._settings.timeout_secs
        return (
            min(self._settings.first_token_timeout_secs, whole)
            if request.on_delta and request.kind != "look_up"
            else whole
        )

    def _lacks_credentials(self, connection: Connection, error: Exception) -> bool:
        """True if the SDK found no credentials: it raises such errors unwrapped."""
        package = connection.provider.credentials_package
        return package is not None and (type(error).__module__.startswith(package) or "Could not resolve" in str(error))


def _parameters(request: _Request, offered: Sequence[ToolDef]) -> ModelRequestParameters:
    schema, way = request.output_schema, request.way
    system = request.system
    if schema is not None and way in ("object", "prompt"):
        compact = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        system = (
            f"{system}\n\nAnswer with exactly one JSON object, no prose and no code fence, that fits this JSON schema:"
            f"\n{compact}"
        )
    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=wire_name(tool.name), description=tool.description, parameters_json_schema={**tool.parameters}
            )
            for tool in (offered if request.kind != "answer" else ())
        ],
        instruction_parts=[InstructionPart(content=system)] if system else None,
    )
    match way:
        case "strict" | "schema":
            parameters.output_mode = "native"
            parameters.output_object = OutputObjectDefinition({**(schema or {})}, name="answer", strict=way == "strict")
        case "tool":
            parameters.output_mode = "tool"
            parameters.allow_text_output = False
            parameters.output_tools = [
                ToolDefinition(
                    name=ANSWER,
                    description="Give your whole answer here.",
                    parameters_json_schema={**(schema or {})},
                    kind="output",
                )
            ]
        case "object":
            parameters.output_mode = "prompted"
            # The schema stands in the system prompt already.
            parameters.prompted_output_template = False
            parameters.output_object = OutputObjectDefinition({**(schema or {})}, name="answer")
        case "prompt" | None:
            parameters.output_mode = "text"
    return parameters


def _is_streamed(request: _Request, known: Capabilities) -> bool:
    """True if the answer is read as it is written. Look-ups are not: nobody reads them, and some servers number all
    calls of a stream alike.
    """
    return request.on_delta is not None and request.kind != "look_up" and known.streaming


def _says_anything(response: ModelResponse) -> bool:
    return any(isinstance(part, TextPart | ToolCallPart) for part in response.parts) and bool(
        answer_text(response).strip() or response.tool_calls
    )


def _text_of(message: ModelMessage) -> str:
    return "".join(str(getattr(part, "content", None) or getattr(part, "args", None) or "") for part in message.parts)
