"""What a session keeps of its last review, for whoever looks at it after the answer."""

from collections.abc import Mapping
from typing import Any

_MAX_CHANGE_CHARS = 8_000


def result_of(interrupt: Mapping[str, Any]) -> dict[str, Any] | None:
    """Tests, verdict and what else is worth keeping of a `result_review`; None for every other question."""
    if interrupt.get("type") != "result_review":
        return None
    data: Mapping[str, Any] = interrupt["data"]
    return {
        "summary": interrupt["message"],
        "verdict": data["verdict"],
        "tests": data["tests"],
        "regressions": data["regressions"],
        "change": (data["change"] or {}).get("text", "")[:_MAX_CHANGE_CHARS],
        "warnings": data["warnings"],
        "placeholders": data["placeholders"],
    }
