"""What a clause of a wish is about, and which part of a flow it asks for.

Lists of words do not reach what people write. Which words speak for what a linear classifier learns from labelled
clauses instead (`scripts/train/`), over words and parts of words. It is the second reader: what the rules find is built
where both agree, and told where they do not.
"""

import math
import re
from array import array
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, NamedTuple
from zlib import crc32, decompress

from flowise_dev_agent.reasoning.rules import language

#: What a clause does; the next three are ways of saying nothing to do, and `off` goes with a part that is not wanted.
SENSES: Final = ("told", "part", "keep", "idle", "aside", "complaint", "order", "off")
#: The parts and settings that a clause may ask for.
CONCEPTS: Final = (
    "approval", "branch", "cache", "calculator", "channel", "copy", "credential", "csv", "date_time", "deny_words",
    "embeddings", "file_upload", "fixed_reply", "for_each", "form", "http", "impossible", "json_fields", "kind", "loop",
    "max_tokens", "memory", "memory_store", "memory_window", "model", "moderation", "number_condition", "other_flow",
    "other_setting", "other_source", "other_tool", "pdf", "prompt_delete", "prompt_replace", "rename", "schedule",
    "send_out", "show_sources", "speech", "splitter", "state", "step", "temperature", "text_source", "top_k", "vague",
    "vector_store", "web_search", "webhook", "webpage", "word",
)  # fmt: skip
LABELS: Final = (*SENSES, *CONCEPTS)
#: Behind the digest of what was learned from come a bias for each label and a row for each bucket: how much it counts
#: for the length of a clause, and its weights, in eight bits and units of 4.
BUCKETS, UNIT, DIGEST = 1 << 17, 4, 32
_WORD = re.compile(r"https?://\S+|[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,:]\d+)*|[%€$£?!:→]")
_LONGEST, _LONGEST_WORD, _SIZES = 500, 20, (3, 4, 5, 6)
#: The clauses in front of a clause and behind it.
Around = tuple[str, str]
#: How probable something has to be: one scale for all who ask.
LITTLE, PERHAPS, MAYBE, RATHER, HALF, LIKELY, MOSTLY, SURE, CERTAIN = 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8, 0.9


class Sense(NamedTuple):
    """How probable it is that a clause tells the bot something, asks for a part or a setting of the flow, says what is
    to stay, or says nothing to do (`idle`: an aside, a complaint or an order to whoever builds), and that a part is not
    wanted; and which parts. A clause may do several."""

    told: float
    part: float
    keep: float
    idle: float
    aside: float
    complaint: float
    order: float
    off: float
    concepts: Mapping[str, float]

    @property
    def tells(self) -> bool:
        """Whether it tells the bot something, more than anything else."""
        return self.told > max(self.part, self.keep, self.idle)


@lru_cache(maxsize=1024)
def sense(clause: str, *, change: bool, around: Around | None = None) -> Sense:
    """`change`: the wish is for a flow that is there. `around`: the clauses in front of and behind it, where they are
    known ("": there is none)."""
    (biases, table), width = _learned(), len(LABELS) + 1
    rows = [table[bucket * width : (bucket + 1) * width] for bucket in buckets(clause, change=change, around=around)]
    length, *scores = map(sum, zip(*rows, strict=True))
    unit = UNIT / math.sqrt(max(length, 1))
    shares = [1 / (1 + math.exp(-bias - unit * score)) for bias, score in zip(biases, scores, strict=True)]
    named = dict(zip(CONCEPTS, shares[len(SENSES) :], strict=True))
    return Sense._make([*shares[: len(SENSES)], {name: share for name, share in named.items() if share > LITTLE}])


def buckets(clause: str, *, change: bool, around: Around | None = None) -> set[int]:
    return {crc32(feature.encode()) % BUCKETS for feature in _features(clause, change=change, around=around)}


def _features(clause: str, *, change: bool, around: Around | None) -> Iterator[str]:
    said = _words(clause)
    yield "@change" if change else "@new"
    yield f"@{min(len(said) // 3, 8)}"
    yield from (f"^{' '.join(said[:n])}" for n in (1, 2, 3))
    yield f"${' '.join(said[-1:])}"
    yield from map(" ".join, pairwise(said))
    for word in said:
        yield f"={word}"
        framed = f"<{word[:_LONGEST_WORD]}>"
        yield from (framed[at : at + size] for size in _SIZES for at in range(len(framed) - size + 1) if len(word) > 3)
    for side, other in zip("<>", map(_words, around), strict=True) if around else ():
        yield f"{side}@{min(len(other) // 3, 5) if other else ''}"
        yield from (f"{side}={word}" for word in other)
        yield from (f"{side}^{other[0]}", f"{side}${other[-1]}") if other else ()


def _words(said: str) -> list[str]:
    return ["://" if "://" in word else "#" if word[0].isdigit() else word
            for word in _WORD.findall(said[:_LONGEST].casefold())]  # fmt: skip


@cache
def _learned() -> "tuple[array[float], array[int]]":
    data, size = decompress(files(language).joinpath("senses.bin").read_bytes()[DIGEST:]), 4 * len(LABELS)
    return array("f", data[:size]), array("b", data[size:])
