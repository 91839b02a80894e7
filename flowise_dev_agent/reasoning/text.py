"""Cleaning and shortening of text that goes to a model or comes from one."""

import re
from typing import Any

_UNSAFE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` without NUL, which Postgres refuses, and lone surrogates, which UTF-8 cannot encode."""
    return _UNSAFE.sub("\ufffd", text) if _UNSAFE.search(text) else text


def clean_json(value: Any) -> Any:
    """`clean` on every string of a JSON value, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    return value


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, an ellipsis marking the cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
