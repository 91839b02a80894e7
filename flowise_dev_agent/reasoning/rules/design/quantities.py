"""Numbers and switches of a requirement: temperature, window, chunk sizes and the like."""

from dataclasses import dataclass, fields
from typing import Any

from flowise_dev_agent.reasoning.rules.language import grammar
from flowise_dev_agent.reasoning.rules.language.scan import Scan
from flowise_dev_agent.reasoning.rules.language.text import to_number

_OFF, _STREAMING, _IMAGES = (grammar.pattern("quantities", name) for name in ("off", "streaming", "images"))
#: Field of `Quantities` -> the fields of nodes that it ends up in.
_NUMBERS = {
    "temperature": "temperature",
    "max_tokens": "maxTokens maxTokensToSample maxOutputTokens maxCompletionTokens",
    "top_p": "topP",
    "memory_window": "k llmMemoryWindowSize agentMemoryWindowSize",
    "memory_tokens": "maxTokenLimit",
    "chunk_size": "chunkSize",
    "chunk_overlap": "chunkOverlap",
    "top_k": "topK",
    "max_iterations": "maxIterations",
    "similarity": "minSimilarityScore",
    "list_length": "",
}
_PATTERNS = {name: grammar.patterns("quantities", name) for name in _NUMBERS}
_EXACT = ("temperature", "top_p")


@dataclass(frozen=True)
class Quantities:
    """Values that the text gives; None where it gives none."""

    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    memory_window: int | None = None
    memory_tokens: int | None = None
    chunk_size: int | None = None
    chunk_overlap: int | None = None
    top_k: int | None = None
    max_iterations: int | None = None
    similarity: int | None = None
    list_length: int | None = None
    streaming: bool | None = None
    image_uploads: bool | None = None

    @property
    def any(self) -> bool:
        return any(getattr(self, item.name) is not None for item in fields(self) if item.name != "list_length")


def read_quantities(scan: Scan) -> Quantities:
    """The numbers and switches of a text; of contradicting ones the last counts."""
    found: dict[str, Any] = {}
    for name, places in _NUMBERS.items():
        params = places.split()
        matches = [match for one in _PATTERNS[name] for match in scan.find(one, params=params, task=not params)]
        if matches:
            match = max(matches, key=lambda item: item.start())
            number = to_number(next(group for group in match.groups() if group))
            found[name] = number if name in _EXACT and number != int(number) else round(number)
    off, on = scan.has(_OFF, params=["streaming"]), scan.has(_STREAMING, params=["streaming"])
    images = scan.has(_IMAGES, params=["allowImageUploads"])
    return Quantities(**found, streaming=False if off else True if on else None, image_uploads=images or None)
