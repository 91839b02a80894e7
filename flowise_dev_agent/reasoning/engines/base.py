"""What every model provider must offer, and what all of them share: a slot, a deadline, one way to name failures."""

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import httpx2
from pydantic import SecretStr

from flowise_dev_agent.errors import ModelAuthError, ModelOutputError, ModelUnavailableError, ReasoningError
from flowise_dev_agent.reasoning.contracts import DeltaSink, EngineResponse, Message, ToolDef, Usage
from flowise_dev_agent.reasoning.engines.prices import cost
from flowise_dev_agent.reasoning.text import clip
from flowise_dev_agent.settings import ReasoningSettings

#: Room for sixty ops with their prompt texts; small enough for every current model.
DEFAULT_MAX_TOKENS = 8_000
_KEY_LIKE = re.compile(r"\b(sk|key|gsk|pk)[-_][A-Za-z0-9_*-]{6,}")


class ReasoningEngine(ABC):
    """One provider's chat completion.

    An engine is shared by all sessions of a process and keeps nothing between calls except what it learnt about the
    server (`max_parallel_calls` bounds how many calls run at once).
    """

    @abstractmethod
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
        """One answer. With `output_schema` its `text` is meant to be one JSON object of that shape (not guaranteed).

        `system` is the stable prefix and is marked for the provider's prompt cache. `temperature` is sent only where
        the provider takes it. `on_delta` receives text as it is written and makes the call a streamed one.

        Raises:
            ModelUnavailableError: unreachable, overloaded, rate limited or out of time, after the SDK's own retries.
            ModelAuthError: the key or the model name is refused.
            ModelOutputError: the request is refused for another reason, or the answer cannot be read.
        """

    @abstractmethod
    def model_id(self) -> str:
        """The model that answers when a call names none."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections. Closing twice is fine."""


class SdkEngine(ReasoningEngine):
    """Common ground of the two engines that stand on a provider's SDK."""

    provider: ClassVar[str]
    key_variable: ClassVar[str]
    #: The id of the provider in price lists.
    price_list: ClassVar[str]

    def __init__(self, settings: ReasoningSettings, model: str, key: SecretStr | None, base_url: str | None) -> None:
        self._model = model
        self._key = key
        self._base_url = base_url
        self._timeout_secs = settings.timeout_secs
        self._slots = asyncio.Semaphore(settings.max_parallel_calls)
        #: What both SDKs' clients take. An explicit key keeps them from looking for one in files and the environment;
        #: local servers need none, the SDKs insist on some.
        self._client_options: dict[str, Any] = {
            "api_key": key.get_secret_value() if key else "not-needed",
            "base_url": base_url,
            "timeout": httpx2.Timeout(settings.timeout_secs, connect=settings.connect_timeout_secs),
            "max_retries": settings.max_retries,
        }

    def model_id(self) -> str:
        return self._model

    @asynccontextmanager
    async def _call(self, model: str) -> AsyncGenerator[None]:
        """A slot and the total time of one call, the SDK's retries included. Network failures become our errors."""
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout_secs):
                    yield
            except TimeoutError:
                raise self._unavailable(model, f"gave no complete answer within {self._timeout_secs:g} s") from None
            except httpx2.TransportError as error:
                # The SDKs wrap these when a request is made, but not while a stream is read.
                raise self._unavailable(model, f"broke off the connection ({type(error).__name__})") from None

    def _usage(self, model: str, *, total: int, output: int, cached: int, written: int = 0) -> Usage:
        """The counts of one call with its price, where that is known."""
        usd = cost(
            model,
            provider=self._price_list(),
            input_tokens=total,
            output_tokens=output,
            cached_tokens=cached,
            written_tokens=written,
        )
        return Usage(
            model_calls=1,
            input_tokens=total,
            output_tokens=output,
            cached_tokens=cached,
            usd=usd or 0.0,
            unpriced_calls=int(usd is None),
        )

    def _price_list(self) -> str | None:
        """Whose prices hold. Behind another address a model is known by its name alone."""
        if self._base_url is None:
            return self.price_list
        return "openrouter" if "openrouter.ai" in self._base_url else None

    def _unavailable(self, model: str, what: str) -> ModelUnavailableError:
        return ModelUnavailableError(
            f"{self._who(model)} {what}.",
            hint="Try again in a moment, or choose another engine with REASONING_ENGINE.",
            details=self._details(model),
        )

    def _unreadable(self, model: str, what: str) -> ModelOutputError:
        return ModelOutputError(
            f"{self._who(model)} {what}.",
            hint="Check that the base URL points to a server that speaks this provider's API.",
            details=self._details(model),
        )

    def _refused(self, model: str, status: int, detail: str) -> ReasoningError:
        """The error for an HTTP status; `detail` is the provider's own sentence."""
        said = f': "{clip(self._without_key(detail), 300)}"' if detail else ""
        details = {**self._details(model), "status": status}
        who = self._who(model)
        if status in (401, 403):
            return ModelAuthError(f"{who} refuses the key{said}.", hint=f"Check {self.key_variable}.", details=details)
        if status == 402:
            return ModelAuthError(
                f"{who} wants to be paid first{said}.", hint="Check the account's balance.", details=details
            )
        if status == 404:
            return ModelAuthError(
                f"{who} does not know this model or address{said}.",
                hint="Check REASONING_MODEL and the provider's base URL.",
                details=details,
            )
        if status in (408, 409, 429) or status >= 500:
            what = "limits the rate or the quota" if status == 429 else f"is not able to answer (HTTP {status})"
            return ModelUnavailableError(
                f"{who} {what}{said}.",
                hint="Try again later, or choose another engine with REASONING_ENGINE.",
                details=details,
            )
        return ModelOutputError(
            f"{who} refuses the request (HTTP {status}){said}.",
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


def schema_instruction(schema: dict[str, Any]) -> str:
    """Asks in words for what a server does not take as an option."""
    return (
        "\n\nAnswer with exactly one JSON object, no prose and no code fence, that fits this JSON schema:\n"
        + json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    )
