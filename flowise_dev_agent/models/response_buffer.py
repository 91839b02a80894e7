"""Buffer for a provider's answer, whole or streamed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from flowise_dev_agent.models.messages import EngineResponse, ToolCall
from flowise_dev_agent.models.parsing import UnusableOutputError, parse_object
from flowise_dev_agent.sanitize import clean_text, shortened
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.usage import Usage

#: Characters of malformed arguments shown to the model.
_SHOWN = 300


@dataclass
class TokenCounts:
    """Tokens of one call. The three input counts do not overlap."""

    uncached: int = 0
    cache_read: int = 0
    cache_written: int = 0
    output: int = 0

    def usage(self, model: str, *, provider: str | None) -> Usage:
        """Token counts with their price; see `cost` for `provider`."""
        total = self.uncached + self.cache_read + self.cache_written
        usd = cost(
            model,
            provider=provider,
            input_tokens=total,
            output_tokens=self.output,
            cached_tokens=self.cache_read,
            written_tokens=self.cache_written,
        )
        return Usage(
            model_calls=1,
            input_tokens=total,
            output_tokens=self.output,
            cached_tokens=self.cache_read,
            usd=usd or 0.0,
            unpriced_calls=int(usd is None),
        )


@dataclass
class _Call:
    id: str
    name: str
    arguments: str = ""


@dataclass
class ResponseBuffer:
    """Collects text, tool calls and token counts."""

    model: str = ""
    #: Empty until the provider says why it stopped; an answer that never says so was cut off.
    stop_reason: str = ""
    #: The model's own words when it declines.
    refusal: str = ""
    #: Blocks of thinking as the provider wants to see them again.
    thinking: list[JsonObject] = field(default_factory=list)
    counts: TokenCounts = field(default_factory=TokenCounts)
    _text: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)

    @property
    def is_blank(self) -> bool:
        """True if nothing was read, not even one event of the provider's protocol."""
        return not (self.model or self.stop_reason or self.refusal or self._text or self._calls)

    def add_text(self, text: str) -> None:
        self._text.append(text)

    def start_call(self, call_id: str, name: str) -> int:
        """Begin a tool call; return its index for `add_arguments`."""
        self._calls.append(_Call(id=call_id, name=name))
        return len(self._calls) - 1

    def add_arguments(self, place: int, part: str) -> None:
        self._calls[place].arguments += part

    def call_id(self, place: int) -> str:
        return self._calls[place].id

    def call_name(self, place: int) -> str:
        return self._calls[place].name

    def use_call_as_text(self, name: str) -> None:
        """Use the raw arguments of the call `name`, if there is one, as the text of the answer."""
        for call in self._calls:
            if call.name == name:
                self._calls = []
                self._text = [call.arguments]
                return

    def response(self, *, usage: Usage, fallback_model: str, cut_by: Sequence[str]) -> EngineResponse:
        """Build the response; `cut_by` are the stop reasons that mean "output limit reached"."""
        return EngineResponse(
            text=clean_text("".join(self._text)),
            tool_calls=tuple(_tool_call(call) for call in self._calls if call.name),
            thinking=tuple(self.thinking),
            usage=usage,
            model=self.model or fallback_model,
            stop_reason=self.stop_reason,
            truncated=not self.stop_reason or self.stop_reason in cut_by,
        )


def cost(
    model: str,
    *,
    provider: str | None,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int = 0,
    written_tokens: int = 0,
) -> float | None:
    """Price of a call in US dollars by list price; None if the model's price is unknown.

    `provider` is the id of the company that serves it ("anthropic", "openai"); None looks up the model by name alone.
    `cached_tokens` (read from the provider's cache) and `written_tokens` (written to it) are parts of `input_tokens`.
    """
    # Its tables take a tenth of a second to load; without a model nothing has a price.
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    usage = PricedUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cached_tokens,
        cache_write_tokens=written_tokens,
    )
    vendor, _, bare = model.rpartition("/")
    for name, where in ((model, provider), (bare, vendor or provider)):
        try:
            return round(float(calc_price(usage, name, provider_id=where).total_price), 6)
        except LookupError:
            continue
    return None


def _tool_call(call: _Call) -> ToolCall:
    arguments, malformed = _arguments(call.arguments)
    # Some compatible servers send no ids, but every result has to name its call.
    return ToolCall(id=call.id or f"call_{uuid4().hex}", name=call.name, arguments=arguments, malformed=malformed)


def _arguments(text: str) -> tuple[JsonObject, str]:
    """Parse arguments: (object, raw text if it is not one whole object)."""
    if text.strip() in ("", "{}", "null"):
        return {}, ""
    try:
        return parse_object(text), ""
    except UnusableOutputError:
        return {}, shortened(text, _SHOWN)
