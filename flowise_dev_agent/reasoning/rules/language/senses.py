"""What a clause of a wish is about, by a linear classifier over its words and parts of words.

Lists of words do not reach what people write; which words speak for what is learned from labelled clauses instead
(`scripts/train/`). The classifier decides nothing that is built: it says what has to be told.
"""

import math
import re
from array import array
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from flowise_dev_agent.reasoning.rules import language

#: Weights are kept in eight bits each, in units of 1/64: a row of four for each bucket.
BUCKETS, UNIT = 1 << 15, 64
_WORD = re.compile(r"https?://\S+|[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,:]\d+)*|[%€$£?!:→]")
_LONGEST, _LONGEST_WORD, _SIZES = 500, 18, (3, 4, 5)


class Senses(NamedTuple):
    """How probable it is that a clause tells the bot something, asks for a part or a setting of the flow, says what is
    to stay, or asks for nothing. They add up to 1."""

    told: float
    part: float
    keep: float
    aside: float


@lru_cache(maxsize=512)
def senses(clause: str, *, change: bool) -> Senses:
    """`change`: the wish is for a flow that is there."""
    weights, count, said = _weights(), len(Senses._fields), buckets(clause, change=change)
    scores = [sum(weights[bucket * count + n] for bucket in said) for n in range(count)]
    top = max(scores)
    shares = [math.exp((score - top) / UNIT) for score in scores]
    return Senses(*(share / sum(shares) for share in shares))


def buckets(clause: str, *, change: bool) -> set[int]:
    return {crc32(feature.encode()) % BUCKETS for feature in _features(clause, change=change)}


def _features(clause: str, *, change: bool) -> Iterator[str]:
    said = ["://" if "://" in word else "#" if word[0].isdigit() else word
            for word in _WORD.findall(clause[:_LONGEST].casefold())]  # fmt: skip
    yield "@change" if change else "@new"
    yield f"@{min(len(said) // 4, 6)}"
    yield from (f"^{' '.join(said[:n])}" for n in (1, 2))
    yield from map(" ".join, pairwise(said))
    for word in said:
        yield f"={word}"
        framed = f"<{word[:_LONGEST_WORD]}>"
        yield from (framed[at : at + size] for size in _SIZES for at in range(len(framed) - size + 1) if len(word) > 3)


@cache
def _weights() -> "array[int]":
    return array("b", files(language).joinpath("senses.bin").read_bytes())
