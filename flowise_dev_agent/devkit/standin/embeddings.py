"""Deterministic embeddings: texts that share words are close to each other."""

import hashlib
import math
import re
from collections import Counter

_WORD = re.compile(r"\w+")
_ENDINGS = ("ing", "ed", "es", "s")


def words(text: str) -> list[str]:
    """The words of `text` in lower case, without common English endings."""
    return [_stem(word) for word in _WORD.findall(text.lower())]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def embed(text: str, size: int) -> list[float]:
    """A unit vector of `size` numbers: every word adds to one position, chosen by its hash."""
    vector = [0.0] * size
    for word, count in Counter(words(text)).items():
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        sign = 1.0 if digest[7] & 1 else -1.0
        vector[int.from_bytes(digest[:7], "big") % size] += sign * (1.0 + math.log(count))
    length = math.sqrt(sum(value * value for value in vector))
    if length == 0.0:
        return [1.0] + [0.0] * (size - 1)
    return [value / length for value in vector]
