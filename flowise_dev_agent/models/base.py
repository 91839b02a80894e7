"""Interface of model providers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.models.messages import DeltaSink, EngineResponse, Message, ToolDef
from flowise_dev_agent.schemas.base import JsonObject

#: Window of a model of which nothing is known, in tokens.
UNKNOWN_WINDOW: Final = 128_000


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
        phase: str = "",
        max_tokens: int | None = None,
        on_delta: DeltaSink | None = None,
    ) -> EngineResponse:
        """Ask the model once. With `output_schema`, `text` should be one JSON object of that shape (not guaranteed).

        `system` is the stable prefix and is marked for the provider's prompt cache. `temperature` is sent only where
        the provider takes it, without `max_tokens` the limit of the settings. `on_delta` receives text as it is written
        and makes the call a streamed one. Tools have the names of the registry (`flowise.get_node`) here and in the
        answer. Without `may_look_up` they are only named (they belong to the conversation so far, and to the cached
        prefix) and the answer holds no call.

        Where the model takes no tools beside a schema, `may_look_up` asks for look-ups only: the answer's `kind` is
        then "look_up", and its text need not be the object. `phase` is where capabilities are kept by.

        Raises:
            ModelUnavailableError: unreachable, overloaded, rate limited or out of time, after the SDK's own retries.
            ModelAuthError: the key or the model name is refused.
            ModelContextError: the prompt is longer than what the model reads at once.
            ModelRefusedError: the model or a filter of the provider declines; `details.usage` is what that cost.
            ModelOutputError: the request is refused for another reason, or the answer cannot be read.
        """

    async def window(self, model: str | None = None) -> int:
        """Tokens that this model reads at once, its answer included."""
        del model
        return UNKNOWN_WINDOW

    @abstractmethod
    def model_id(self) -> str:
        """Default model of a call."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections. Closing twice is fine."""
