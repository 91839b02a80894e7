"""What a wish spells out: the one stretch of a prompt that it names word for word, and what takes its place."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, pattern, words
from flowise_dev_agent.reasoning.rules.language.text import detect_language

_SWAPS, _BY, _FROM, _SMALL = (pattern("exchange", name) for name in ("swaps", "by", "from", "small"))
_TIME, _SENTENCE = pattern("values", "time"), pattern("values", "sentence")
_QUOTE = r"(?<!\w)[\"“”„«「'‘’]\s*([^\"“”„«»「」\n]{1,400}?)\s*[\"“”»」'’](?!\w)"
_FIRST_QUOTE, _LAST_QUOTE, _ANY_QUOTE = (re.compile(one) for one in (rf"\W*{_QUOTE}", rf"{_QUOTE}\W*$", _QUOTE))
_HARD, _BARE = re.compile(r"\d|@|://"), re.compile(r"\d{1,3}")
_MOST_WORDS, _FEWEST_WORDS, _LONGEST_READ = 8, 3, 1_000


class Exchange(NamedTuple):
    """A stretch of a text and what it becomes; '' takes it out."""

    start: int
    end: int
    old: str
    new: str


def exchange(line: str, text: str) -> Exchange | None:
    """What a line exchanges in a text, or takes out; None unless it spells out a stretch that is there once, and says
    nothing else."""
    for old, new, rest in [*_pairs(line), *_removals(line)] if len(line) < _LONGEST_READ else ():
        there = [*whole(old).finditer(text)] if old else []
        if len(there) != 1 or _BARE.fullmatch(old) or words("languages").search(old):
            continue
        start, end = there[0].span()
        around = next((one for one in _SENTENCE.finditer(text) if one.start() <= start < one.end()), there[0])
        if all(_is_small(word) or word in _words(around[0]) for word in _words(rest)):
            if not new and end < around.end() and not re.search(r"\w", text[end : around.end()]):
                end = around.end()
            return Exchange(start, end, text[start:end], new)
    return None


def applied(text: str, change: Exchange) -> str:
    """The text after an exchange; what goes leaves no gap."""
    before, behind = text[: change.start], text[change.end :]
    if not change.new and before.strip(" ")[-1:] in ("", "\n"):
        behind = behind.lstrip()
    return f"{before}{change.new}{behind}" if change.new or behind else before.rstrip()


def whole(name: str) -> re.Pattern[str]:
    """Whole words in a text, in upper or lower case, with any space between them."""
    said = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!\w)(?<!\d[.,]){said}(?!\w)(?![.,]\d)", re.IGNORECASE)


def _pairs(line: str) -> Iterator[tuple[str, str, str]]:
    """(old, new, the rest of the line) for each way to read what is exchanged."""
    for match in words("instead_of").finditer(line):
        before, behind = line[: match.start()], line[match.end() :]
        quotes = _ANY_QUOTE.findall(behind)
        if not before.strip() and len(quotes) == 2:
            yield quotes[0], quotes[1], _ANY_QUOTE.sub(" ", behind)
        yield from ((old, new, f"{left} {right}") for new, old, left, right in _alike(before, behind))
    for match in _BY.finditer(line) if _SWAPS.search(line) else ():
        for old, new, left, right in _alike(line[: match.start()], line[match.end() :]):
            # "Change the hours to 9 am to 5 pm" names no old ones, and "from 9 am to 5 pm" are perhaps the new ones.
            begins, quoted = _FROM.search(left), _LAST_QUOTE.search(line[: match.start()])
            if not quoted and (_TIME.fullmatch(old) or not _HARD.search(old) if begins else _BY.search(f"{left} ")):
                continue
            # "From 28 to 32 Euro": the unit belongs to both.
            unit, _, behind = right.strip().partition(" ") if _BARE.fullmatch(old) else ("", "", right)
            yield f"{old} {unit}".strip(), f"{new} {unit}".strip(), f"{left} {behind}"


def _alike(left: str, right: str) -> Iterator[tuple[str, str, str, str]]:
    """(the last words of one text, as many first ones of another, what is left of both): quotations, or words of which
    the same ones hold numbers or addresses, or are names."""
    # In German any noun looks like a name.
    names = detect_language(f"{left} {right}") != "de"
    one, two = _LAST_QUOTE.search(left), _FIRST_QUOTE.match(right)
    if one and two:
        yield one[1], two[1], left[: one.start()], right[two.end() :]
    first, second = left.strip(" ,").split(), right.rstrip(" .!?").split()
    for size in range(min(_MOST_WORDS, len(first), len(second)), 0, -1):
        mine, theirs = first[-size:], [word.strip(".,;!?") for word in second[:size]]
        pairs = [*zip(mine, theirs, strict=True)]
        hard = {
            pair for pair in pairs if all(map(_HARD.search, pair)) or (names and all(w[:1].isupper() for w in pair))
        }
        if hard and all(pair in hard or pair[0].casefold() == pair[1].casefold() for pair in pairs):
            yield " ".join(mine), " ".join(theirs), " ".join(first[:-size]), " ".join(second[size:])
            return


def _removals(line: str) -> Iterator[tuple[str, str, str]]:
    verb = words("remove").search(line)
    quotes = _ANY_QUOTE.findall(line) if verb else []
    if len(quotes) == 1:
        yield quotes[0], "", words("remove").sub(" ", _ANY_QUOTE.sub(" ", line))
    elif verb and not line[: verb.start()].strip() and not quotes:
        said = line[verb.end() :].split()
        while said and _is_small(said[0].casefold().strip(":")):
            said.pop(0)
        if len(said) >= _FEWEST_WORDS:
            yield " ".join(said).rstrip(".!"), "", ""


def _is_small(word: str) -> bool:
    return word in FUNCTIONS or bool(_SMALL.fullmatch(word) or _SWAPS.fullmatch(word))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())
