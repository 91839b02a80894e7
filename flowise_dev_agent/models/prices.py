"""List prices of model calls."""

from typing import TYPE_CHECKING

from flowise_dev_agent.schemas.usage import Usage

if TYPE_CHECKING:
    from pydantic_ai.usage import RequestUsage


def usage_of(usage: "RequestUsage", model: str, *, provider: str | None) -> Usage:
    """Tokens of one call with their price; see `cost` for `provider`."""
    usd = cost(
        model,
        provider=provider,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        written_tokens=usage.cache_write_tokens,
    )
    return Usage(
        model_calls=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        usd=usd or 0.0,
        unpriced_calls=int(usd is None),
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
