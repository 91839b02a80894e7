"""List prices, for the budget and the cost display.

US dollars per million tokens as published by the providers for their own endpoints. A model that is not here costs 0,
which means "unknown", never "free".
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens; `cached` is for input read from the provider's prompt cache."""

    input: float
    cached: float
    output: float


_PRICES: dict[str, Price] = {
    "claude-opus-4-6": Price(5, 0.5, 25),
    "claude-opus-4-5": Price(5, 0.5, 25),
    "claude-sonnet-4-6": Price(3, 0.3, 15),
    "claude-sonnet-4-5": Price(3, 0.3, 15),
    "claude-haiku-4-5": Price(1, 0.1, 5),
    "gpt-5": Price(1.25, 0.125, 10),
    "gpt-5-mini": Price(0.25, 0.025, 2),
    "gpt-5-nano": Price(0.05, 0.005, 0.4),
    "gpt-4.1": Price(2, 0.5, 8),
    "gpt-4.1-mini": Price(0.4, 0.1, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.025, 0.4),
    "gpt-4o": Price(2.5, 1.25, 10),
    "gpt-4o-mini": Price(0.15, 0.075, 0.6),
    "o3": Price(2, 0.5, 8),
    "o4-mini": Price(1.1, 0.275, 4.4),
}
#: Anthropic takes a quarter more for input that it writes into its cache.
_CACHE_WRITE = 1.25
_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def cost(
    model: str, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int = 0
) -> float:
    """Dollars of one call, 0.0 for an unknown model.

    `cached_tokens` (read from the cache) and `written_tokens` (written to it) are parts of `input_tokens`.
    """
    price = _PRICES.get(_DATED.sub("", model.rsplit("/", 1)[-1]))
    if price is None:
        return 0.0
    plain = input_tokens - cached_tokens - written_tokens
    total = (plain + written_tokens * _CACHE_WRITE) * price.input + cached_tokens * price.cached
    return round((total + output_tokens * price.output) / 1_000_000, 6)
