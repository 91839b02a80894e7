"""Interface of model providers, and the shared `complete` of SDK engines: turns, deadlines, retries without refused
options, errors, usage with price.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, TypedDict

import httpx2
from pydantic import SecretStr

from flowise_dev_agent.errors import (
    ModelAuthError,
    ModelContextError,
    ModelOutputError,
    ModelRefusedError,
    ModelUnavailableError,
    ReasoningError,
)
from flowise_dev_agent.models.completion import (
    Completion,
    ModelCapabilities,
    wire_name,
    with_registry_names,
    with_wire_names,
)
from flowise_dev_agent.models.limiter import CallLimiter
from flowise_dev_agent.models.messages import DeltaSink, EngineResponse, Message, ToolDef
from flowise_dev_agent.models.response_buffer import ResponseBuffer
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.settings import Effort, ReasoningSettings, Thinking

#: Provider messages for a prompt that is too long, and for one that a filter stopped.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|(?:prompt|input) is too long|too many (?:input )?tokens", re.IGNORECASE
)
_FILTERED = re.compile(r"content[ _](?:filter|management policy|policy)", re.IGNORECASE)
_KEY_LIKE = re.compile(r"\b(sk|key|gsk|pk)[-_][A-Za-z0-9_*-]{6,}")


class ReasoningEngine(ABC):
    """Chat completion of one provider.

    An engine is shared by all sessions of a process. Between calls it keeps only what it has learned about the models
    of its server, and how many calls that takes at once (`max_parallel_calls` is the most).
    """

    @abstractmethod
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
        max_tokens: int | None = None,
        on_delta: DeltaSink | None = None,
    ) -> EngineResponse:
        """Ask the model once. With `output_schema`, `text` should be one JSON object of that shape (not guaranteed).

        `system` is the stable prefix and is marked for the provider's prompt cache. `temperature` is sent only where
        the provider takes it, without `max_tokens` the limit of the settings. `on_delta` receives text as it is written
        and makes the call a streamed one. Tools have the names of the registry (`flowise.get_node`) here and in the
        answer. Without `may_look_up` they are only named (they belong to the conversation so far, and to the cached
        prefix) and the answer holds no call.

        Raises:
            ModelUnavailableError: unreachable, overloaded, rate limited or out of time, after the SDK's own retries.
            ModelAuthError: the key or the model name is refused.
            ModelContextError: the prompt is longer than what the model reads at once.
            ModelRefusedError: the model or a filter of the provider declines; `details.usage` is what that cost.
            ModelOutputError: the request is refused for another reason, or the answer cannot be read.
        """

    @abstractmethod
    def model_id(self) -> str:
        """Default model of a call."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections. Closing twice is fine."""


class ClientOptions(TypedDict):
    """Arguments for the clients of both SDKs."""

    api_key: str
    base_url: str | None
    timeout: httpx2.Timeout
    max_retries: int
    http_client: httpx2.AsyncClient


class SdkErrors(NamedTuple):
    """Exception classes of a provider's SDK, from specific to general."""

    rejected: tuple[type[Exception], ...]
    timeout: type[Exception]
    connection: type[Exception]
    any: type[Exception]


class Refusal(NamedTuple):
    """Error response of a provider: its HTTP status and its message."""

    status: int
    detail: str


class SdkEngine(ReasoningEngine):
    """Engine that uses its provider's SDK. Subclasses build requests, read answers and map the SDK's errors."""

    provider: ClassVar[str]
    key_variable: ClassVar[str]
    #: The id of the provider in price lists.
    price_list: ClassVar[str]
    sdk_errors: ClassVar[SdkErrors]
    #: The stop reasons that mean "output limit reached".
    cut_by: ClassVar[tuple[str, ...]]
    #: The stop reasons that mean "declined to answer".
    refused_by: ClassVar[tuple[str, ...]]
    #: The package that looks for credentials on the machine, where the SDK leaves that to one.
    credentials_package: ClassVar[str | None] = None

    def __init__(self, settings: ReasoningSettings, key: SecretStr | None, base_url: str | None) -> None:
        self._model = settings.general_model
        self._key = key
        self._base_url = base_url
        self._max_tokens = settings.max_output_tokens
        self._effort: Effort | None = settings.effort
        self._thinking: Thinking | None = settings.thinking
        self._timeout_secs = settings.timeout_secs
        self._silence_secs = min(settings.first_token_timeout_secs, settings.timeout_secs)
        #: Timeout of a streamed request: it ends if no data arrives for this time.
        self._stream_timeout = httpx2.Timeout(
            settings.timeout_secs, connect=settings.connect_timeout_secs, read=self._silence_secs
        )
        self._limiter = CallLimiter(self.provider, settings.max_parallel_calls)
        self._capabilities: dict[str, ModelCapabilities] = {}
        # An explicit key keeps the SDKs from looking for one in files and the environment; local servers need none,
        # but the SDKs require one.
        self._client_options = ClientOptions(
            api_key=key.get_secret_value() if key else "not-needed",
            base_url=base_url,
            timeout=httpx2.Timeout(settings.timeout_secs, connect=settings.connect_timeout_secs),
            max_retries=settings.max_retries,
            http_client=self._new_http_client(
                limits=httpx2.Limits(max_connections=settings.max_parallel_calls, max_keepalive_connections=100),
                event_hooks={"response": [self._limiter.observe]},
            ),
        )

    @abstractmethod
    def _new_http_client(self, **options: Any) -> httpx2.AsyncClient:
        """Create the SDK's HTTP client over aiohttp, with these httpx2 options."""

    @abstractmethod
    def _assumed_capabilities(self) -> ModelCapabilities:
        """Initial assumptions about a model's capabilities."""

    @abstractmethod
    async def _send(self, completion: Completion, capabilities: ModelCapabilities) -> ResponseBuffer:
        """Send one request and read its whole answer. The buffer stays blank if the answer does not follow the
        provider's API.

        Raises the SDK's errors.
        """

    @abstractmethod
    def _learn(self, error: Exception, completion: Completion, capabilities: ModelCapabilities) -> bool:
        """Remove from `capabilities` the option that `error` refuses; False if it names none."""

    @abstractmethod
    def _refusal(self, error: Exception) -> Refusal | None:
        """Error response of the provider; None for an error of the SDK itself."""

    def model_id(self) -> str:
        return self._model

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
        max_tokens: int | None = None,
        on_delta: DeltaSink | None = None,
    ) -> EngineResponse:
        model = model or self._model
        completion = Completion(
            model,
            [with_wire_names(message) for message in messages],
            system,
            [tool.model_copy(update={"name": wire_name(tool.name)}) for tool in tools],
            temperature,
            may_look_up and bool(tools),
            output_schema,
            max_tokens or self._max_tokens,
            on_delta,
            self._effort,
            self._thinking,
        )
        async with self._limiter.turn():
            buffer = await self._answer(completion)
        if buffer.is_blank:
            raise self._unreadable(model)
        usage = buffer.counts.usage(model, provider=self._price_list())
        if buffer.stop_reason in self.refused_by or buffer.refusal:
            raise self._declined(model, buffer.refusal, usage)
        response = buffer.response(usage=usage, fallback_model=model, cut_by=self.cut_by)
        return with_registry_names(response, tools)

    async def _answer(self, completion: Completion) -> ResponseBuffer:
        """Get an answer within the time limit of one call, including the SDK's retries. Failures become our errors."""
        model = completion.model
        try:
            async with asyncio.timeout(self._timeout_secs):
                return await self._negotiate(completion)
        except TimeoutError:
            raise self._unavailable(model, f"gave no complete answer within {self._timeout_secs:g} s") from None
        except (self.sdk_errors.timeout, httpx2.ReadTimeout) as error:
            # aiohttp's client calls every failure to connect so.
            if isinstance(error.__cause__, httpx2.ConnectTimeout):
                raise self._unavailable(model, "cannot be reached") from None
            silence = self._timeout_secs if completion.on_delta is None else self._silence_secs
            raise self._unavailable(model, f"sent nothing within {silence:g} s") from None
        except self.sdk_errors.connection:
            raise self._unavailable(model, "cannot be reached") from None
        except self.sdk_errors.any as error:
            refusal = self._refusal(error)
            raise (self._refused(model, refusal) if refusal else self._unreadable(model)) from None
        except httpx2.TransportError as error:
            # The SDKs wrap these while a request is made, but not while a stream is read.
            raise self._unavailable(model, f"broke off the connection ({type(error).__name__})") from None
        except ValueError:
            raise self._unreadable(model) from None
        except Exception as error:
            if not self._lacks_credentials(error):
                raise
            raise ModelAuthError(
                f"{self._who(model)} got no request: there are no credentials for it ({type(error).__name__}).",
                hint=f"Check {self.key_variable}.",
                details=self._details(model),
            ) from None

    def _lacks_credentials(self, error: Exception) -> bool:
        """True if the SDK found no credentials: it raises such errors unwrapped."""
        package = self.credentials_package
        return package is not None and (type(error).__module__.startswith(package) or "Could not resolve" in str(error))

    async def _negotiate(self, completion: Completion) -> ResponseBuffer:
        """Send the request, and repeat it without each option that the model refuses."""
        capabilities = self._capabilities.setdefault(completion.model, self._assumed_capabilities())
        while True:
            assumed = replace(capabilities)
            try:
                return await self._send(completion if capabilities.tools else completion.without_tools(), capabilities)
            except self.sdk_errors.rejected as error:
                # A parallel call may have learned it in the meantime: then just send it again.
                if assumed == capabilities and not self._learn(error, completion, capabilities):
                    raise

    def _price_list(self) -> str | None:
        """Provider whose prices apply; None for a custom address, where prices are looked up by model name only."""
        if self._base_url is None:
            return self.price_list
        return "openrouter" if "openrouter.ai" in self._base_url else None

    def _unavailable(self, model: str, what: str) -> ModelUnavailableError:
        return ModelUnavailableError(
            f"{self._who(model)} {what}.",
            hint="Try again in a moment, or choose another engine with REASONING_ENGINE.",
            details=self._details(model),
        )

    def _declined(self, model: str, said: str, usage: Usage | None = None) -> ModelRefusedError:
        quoted = f': "{shortened(self._without_key(said), 300)}"' if said else ""
        return ModelRefusedError(
            f"{self._who(model)} declined to answer{quoted}.",
            hint="Say the requirement in other words, or name another model with REASONING_MODEL.",
            details={**self._details(model), **({"usage": usage.model_dump()} if usage else {})},
        )

    def _unreadable(self, model: str) -> ModelOutputError:
        return ModelOutputError(
            f"{self._who(model)} sent something that is not an answer of its API.",
            hint="Check that the base URL points to a server that speaks this provider's API.",
            details=self._details(model),
        )

    def _refused(self, model: str, refusal: Refusal) -> ReasoningError:
        status = refusal.status
        detail = f': "{shortened(self._without_key(refusal.detail), 300)}"' if refusal.detail else ""
        details = {**self._details(model), "status": status}
        who = self._who(model)
        if status in (401, 403):
            return ModelAuthError(
                f"{who} refuses the key{detail}.", hint=f"Check {self.key_variable}.", details=details
            )
        if status == 402:
            return ModelAuthError(
                f"{who} requires payment{detail}.", hint="Check the account's balance.", details=details
            )
        if status == 404:
            return ModelAuthError(
                f"{who} does not know this model or address{detail}.",
                hint="Check REASONING_MODEL and the provider's base URL.",
                details=details,
            )
        if status in (408, 409, 429) or status >= 500:
            what = "limits the rate or the quota" if status == 429 else f"cannot answer (HTTP {status})"
            return ModelUnavailableError(
                f"{who} {what}{detail}.",
                hint="Try again later, or choose another engine with REASONING_ENGINE.",
                details=details,
            )
        if _FILTERED.search(refusal.detail):
            return self._declined(model, refusal.detail)
        if status == 413 or _TOO_LONG.search(refusal.detail):
            return ModelContextError(
                f"{who} cannot read a prompt of this length{detail}.",
                hint="Name a model that reads more at once, or set REASONING_CONTEXT_TOKENS to what this one reads.",
                details=details,
            )
        return ModelOutputError(
            f"{who} refuses the request (HTTP {status}){detail}.",
            hint="Check that the model fits the task (context length, structured output), or name another one.",
            details=details,
        )

    def _who(self, model: str) -> str:
        return f"{self.provider} (model {model})"

    def _details(self, model: str) -> dict[str, Any]:
        return {"provider": self.provider, "model": model}

    def _without_key(self, text: str) -> str:
        if self._key and self._key.get_secret_value():
            text = text.replace(self._key.get_secret_value(), "***")
        return _KEY_LIKE.sub("***", text)
