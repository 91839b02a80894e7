"""Suggestions: the names that a person or a model probably meant."""

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher

_NOT_ALNUM = re.compile(r"[^a-z0-9]+")

#: Names of products and vendors -> the word that names of their node types contain instead.
_VENDORS: Mapping[str, str] = {
    "bing": "websearch",
    "chatgpt": "chatopenai",
    "claude": "anthropic",
    "deepseek": "deepseek",
    "gemini": "googlegenerativeai",
    "gemma": "ollama",
    "gpt": "chatopenai",
    "grok": "xai",
    "llama": "ollama",
    "mistral": "mistralai",
    "mixtral": "mistralai",
    "pgvector": "postgres",
    "postgresql": "postgres",
    "qwen": "alibabatongyi",
    "vertex": "googlevertexai",
    "website": "cheerio",
}


def fold(name: str) -> str:
    """Normalise a name: ``Chat_OpenAI``, ``chatopenai`` and ``chat OpenAI`` are the same."""
    return _NOT_ALNUM.sub("", name.lower())


def resolve_case(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate equal to ``name``, exactly or except for case and separators; None if there is none or several."""
    names = list(candidates)
    if name in names:
        return name
    folded = fold(name)
    matches = {candidate for candidate in names if fold(candidate) == folded}
    return matches.pop() if len(matches) == 1 else None


#: Score from which a name is a misspelling or a synonym, and not only the nearest of all.
ALIKE = 0.6


def closest(name: str, candidates: Iterable[str], n: int = 3, *, least: float = 0.3) -> tuple[str, ...]:
    """Up to ``n`` candidates, best first. Scored by similar spelling, and by one name containing the other.

    >>> closest("timeout", ["method", "url"], least=ALIKE)
    ()
    """
    folded = fold(name)
    scored: list[tuple[float, str]] = []
    for candidate in dict.fromkeys(candidates):
        other = fold(candidate)
        contained = 0.3 if folded and other and (folded in other or other in folded) else 0.0
        matcher = SequenceMatcher(None, folded, other)
        # The lengths alone say of most candidates that they are not alike; a hostile name is very long.
        if matcher.real_quick_ratio() + contained > least and (score := matcher.ratio() + contained) > least:
            scored.append((score, candidate))
    scored.sort(key=lambda pair: (-pair[0], pair[1]))
    return tuple(candidate for _, candidate in scored[:n])


def closest_types(name: str, candidates: Iterable[str], n: int = 3) -> tuple[str, ...]:
    """As `closest`, for node types: types that match a vendor's or product's name come first.

    >>> closest_types("pgvector", ["vectara", "postgresRecordManager", "postgres"])
    ('postgres', 'postgresRecordManager', 'vectara')
    """
    names = list(candidates)
    folded = fold(name)
    words = [word for vendor, word in _VENDORS.items() if vendor in folded]
    meant = sorted((one for one in names if any(word in fold(one) for word in words)), key=lambda one: (len(one), one))
    return tuple(dict.fromkeys([*meant, *closest(name, names, n)]))[:n]
