"""What a call costs by list price, for the budget and the cost display."""

from genai_prices import Usage, calc_price


def cost(
    model: str,
    *,
    provider: str | None,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int = 0,
    written_tokens: int = 0,
) -> float | None:
    """US dollars of one call, None when nobody knows the price of this model there.

    `provider` is the id of whoever serves it ("anthropic", "openai"); None asks by the name of the model alone.
    `cached_tokens` (read from the provider's cache) and `written_tokens` (written to it) are parts of `input_tokens`.
    """
    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cached_tokens,
        cache_write_tokens=written_tokens,
    )
    house, _, bare = model.rpartition("/")
    for name, where in ((model, provider), (bare, house or provider)):
        try:
            return round(float(calc_price(usage, name, provider_id=where).total_price), 6)
        except LookupError:
            continue
    return None
