"""What a line of a wish means for a prompt: the sentence that it speaks about, and how that would read."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from flowise_dev_agent.reasoning.rules.design.prompt import behaves
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, quoted_spans

_SENTENCE, _COUNT, _IF = pattern("values", "sentence"), pattern("values", "count"), pattern("prompt", "if")
#: Values of which one can take the place of another of its kind, the clearest first.
_SHAPES = {
    **{name: pattern("values", name) for name in ("address", "price", "time", "phone")},
    "language": words("languages"),
}
_TOPICS = tuple(f"about_{name}" for name in ("price", "phone", "hours", "place", "apology", "address", "length"))
#: Of these a prompt says one thing only.
_ONE_OF = frozenset({"about_apology", "about_address", "about_length", "about_place"})
_JOINT = re.compile(rf"[,;]?\s(?:{'|'.join(sorted(wordset('ands')))})\s|[,;]\s")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]{4,}|[\u30a0-\u30ff\u3400-\u9fff]{2,}")
_SHORTEST_STEM, _SHARE_OF_STEM, _RARE = 4, 0.57, 2
_LONGEST_OLD, _NEXT_TO = 60, 8
_CLAUSE_END = re.compile(r"[,;.!?](?:\s|$)|[、。]")


@dataclass(frozen=True)
class Value:
    """A value in a text. `kind` is its shape, of a number with its unit the unit."""

    kind: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Amendment:
    """A sentence of a prompt and what it would become; '' takes it out. `certain`: the wish says so itself; `swapped`:
    only a value of it changes."""

    start: int
    end: int
    old: str
    new: str
    certain: bool
    swapped: bool


def sentences(prompt: str) -> Iterator[re.Match[str]]:
    """The sentences of a prompt, without tags and bullets."""
    return (match for match in _SENTENCE.finditer(prompt) if not match.group().startswith("<"))


def values_in(text: str) -> list[Value]:
    """The values of a text in their order; each letter belongs to one at most."""
    found = [Value("quote", start, end, text[start:end]) for start, end in quoted_spans(text)]
    matches = [(kind, match) for kind, shape in _SHAPES.items() for match in shape.finditer(text)]
    counts = ((str(match["unit"]).casefold(), match) for match in _COUNT.finditer(text))
    for kind, match in [
        *matches,
        *(one for one in counts if not any(one[0] in words_ for words_ in FUNCTION_WORDS.values())),
    ]:
        if not any(value.start < match.end() and match.start() < value.end for value in found):
            found.append(Value(kind, *match.span(), match.group()))
    return sorted(found, key=lambda value: value.start)


def amendment(line: str, prompt: str, *, settled: bool = False) -> Amendment | None:
    """What a line says about a sentence that is there; None where it speaks of nothing in the prompt. `settled`: it is
    the answer to what the new value is."""
    found = [one for match in sentences(prompt) if (one := _about(line, match, prompt, settled=settled))]
    best = max((rank for rank, _ in found), default=0)
    top = [one for rank, one in found if rank == best]
    if not top or top[0].new == top[0].old:
        return None
    return top[0] if len(top) == 1 else replace(top[0], certain=False)


def relates(line: str, prompt: str) -> bool:
    """Whether a line speaks of anything that the prompt speaks of."""
    shares = (_shared(line, match.group(), prompt) or _topics(line, match.group()) for match in sentences(prompt))
    return any(shares) or amendment(line, prompt) is not None


def _about(line: str, match: re.Match[str], prompt: str, *, settled: bool) -> tuple[int, Amendment] | None:
    """(how much speaks for it, what becomes of this sentence); None where too little does."""
    sentence = match.group()
    wanted, former = _former(line)
    shared, topics = _shared(line, sentence, prompt), _topics(line, sentence)
    about = shared | {topic for topic in topics if not any(words(topic).search(word) for word in shared)}
    number = _numbered(wanted, former, sentence)
    swapped, named = (number, True) if number else _swapped(wanted, former, sentence, tied=bool(about))
    now, more, out = (words(name).search(line) is not None for name in ("now", "addition", "taken_out"))
    goes, opposed = out or words("goes").search(line) is not None, _opposed(line, sentence)
    if named or (former and _shared(former, sentence, prompt)):
        rank, certain = 9, True
    elif _IF.match(line) or (more and not now and not opposed):
        return None
    elif swapped:
        rank, certain = 6 + len(about), settled or (now and not more)
    elif goes and words("forbids").search(sentence) and not out:
        # It is forbidden already, or something else of the kind.
        return None
    elif goes and about:
        rank, certain = 4 + len(about), True
    elif (opposed and about) or topics & _ONE_OF or len(about) > 1 or (goes and _common(line, sentence)):
        rank, certain = 1 + len(about), False
    else:
        return None
    new = _in_part("", sentence, line, prompt) if out else swapped or _in_part(line, sentence, line, prompt)
    return rank, Amendment(*match.span(), sentence, new, certain, bool(swapped) or out)


def _former(line: str) -> tuple[str, str]:
    """(the line without what it says is to go: "... instead of ...", that)."""
    instead = words("instead_of").search(line)
    if instead is None:
        return line, ""
    rest = line[instead.end() : instead.end() + _LONGEST_OLD]
    first = next((value for value in values_in(rest) if value.start <= _NEXT_TO), None)
    former = rest[: first.end] if first else _CLAUSE_END.split(rest)[0]
    return line[: instead.start()] + line[instead.end() + len(former) :], former


def _in_part(new: str, sentence: str, line: str, prompt: str) -> str:
    """The sentence with new words in the place of the one part that the line speaks about, else these alone."""
    for joint in _JOINT.finditer(sentence):
        first, last = sentence[: joint.start()], sentence[joint.end() :]
        about = [bool(_shared(line, part, prompt) or _topics(line, part)) for part in (first, last)]
        if about == [False, True]:
            return f"{_ended(first, sentence)} {_ended(new, sentence)}".rstrip()
        if about == [True, False] and behaves(last):
            return f"{_ended(new, sentence)} {capital(last)}".lstrip()
    return _ended(new, sentence)


def _swapped(wanted: str, former: str, sentence: str, *, tied: bool) -> tuple[str, bool]:
    """(the sentence with the new values in the place of the old ones, '' for none; whether the wish names the old)."""
    new, old, there = values_in(wanted), values_in(former), values_in(sentence)
    for kind in dict.fromkeys(value.kind for value in new):
        mine = [value for value in new if value.kind == kind]
        same = [value for value in there if value.kind == kind or akin(value.kind, kind)]
        gone = [value for value in same if _plain(value) in {_plain(one) for one in old}]
        if gone and len(mine) == 1:
            return _with(sentence, {gone[0]: mine[0].text}), True
        speaks = tied if kind == "price" else kind != "language" or words("about_language").search(sentence)
        if not same or not speaks or kind == "quote" or (former and old):
            continue
        chosen = same if len(same) == len(mine) else _chosen(wanted, mine[0], sentence, same)
        pairs = dict(zip(chosen, (value.text for value in mine), strict=False))
        if pairs:
            return _with(sentence, pairs), False
    return "", False


def _numbered(wanted: str, former: str, sentence: str) -> str:
    """The sentence with a number changed that a wish gives without its unit ("150, not 100")."""
    old, new = _NUMBER.match(former.strip()), _NUMBER.search(wanted)
    places = list(re.finditer(rf"(?<![\d.,]){re.escape(old.group())}(?![\d]|[.,]\d)", sentence)) if old else []
    if not new or len(places) != 1 or values_in(former):
        return ""
    return sentence[: places[0].start()] + new.group() + sentence[places[0].end() :]


def _chosen(wanted: str, new: Value, sentence: str, same: Sequence[Value]) -> list[Value]:
    """The one of several values that a new one can be meant for."""
    if new.kind == "time" and len(same) == 2:
        before = wanted[: new.start]
        ends, begins = (words(name).search(before) is not None for name in ("ends_at", "begins_at"))
        return [same[1 if ends else 0]] if ends != begins else []
    starts = [0, *(value.end for value in same)]
    shared = [
        len(set(_akin_words(wanted, sentence[start : value.end]))) for start, value in zip(starts, same, strict=False)
    ]
    return [same[shared.index(max(shared))]] if shared.count(max(shared)) == 1 else []


def _with(sentence: str, pairs: dict[Value, str]) -> str:
    for value, text in sorted(pairs.items(), key=lambda pair: -pair[0].start):
        text = f"{text[0].lower()}{text[1:]}" if value.text[0].islower() else text
        sentence = sentence[: value.start] + text + sentence[value.end :]
    return sentence


def _plain(value: Value) -> str:
    return re.sub(r"[\W_]", "", value.text).casefold()


def _shared(line: str, sentence: str, prompt: str) -> set[str]:
    """Words of the sentence that the line speaks of and that few sentences of the prompt have."""
    found = _akin_words(line, sentence)
    others = [set(map(str.casefold, _WORD.findall(match.group()))) for match in sentences(prompt)] if found else []
    return {word for word in found if sum(any(akin(word, one) for one in other) for other in others) <= _RARE}


def _akin_words(line: str, sentence: str) -> list[str]:
    said = _telling_words(line)
    return [word for word in _telling_words(sentence) if any(akin(word, one) for one in said)]


def _telling_words(text: str) -> set[str]:
    """The words of a text but those that any wish and any prompt has."""
    folded = {word.casefold() for word in _WORD.findall(text)}
    plain = {word for word in folded if word not in wordset("glue") and not words("languages").fullmatch(word)}
    return {word for word in plain if not any(akin(word, one) for one in wordset("everyday"))}


def _common(line: str, sentence: str) -> set[str]:
    """Words that both have, everyday ones as well, but those that every text has."""
    said = [set(re.findall(r"[^\W\d_]{3,}", text.casefold())) for text in (line, sentence)]
    return (said[0] & said[1]).difference(*FUNCTION_WORDS.values())


def akin(one: str, other: str) -> bool:
    """Whether two words are forms of one, by how they begin.

    >>> akin("apologise", "apologising"), akin("station", "stay")
    (True, False)
    """
    if one == other:
        return True
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return common >= _SHORTEST_STEM and common >= _SHARE_OF_STEM * max(len(one), len(other))


def _topics(line: str, sentence: str) -> set[str]:
    return {topic for topic in _TOPICS if words(topic).search(line) and words(topic).search(sentence)}


def _opposed(line: str, sentence: str) -> bool:
    """Whether one allows or asks for what the other forbids; a plain fact forbids nothing."""
    forbids = [words("forbids").search(text) is not None for text in (line, sentence)]
    allows = words("allows").search(line) is not None
    return (forbids[1] and (allows or not forbids[0])) or (forbids[0] and not forbids[1] and behaves(sentence))


def _ended(line: str, sentence: str) -> str:
    """The line with the sign at its end that the sentence has."""
    end = sentence[-1]
    return (
        line if not line or line[-1:] in ".!?。！？" or end not in ".!?。" else f"{line}{end if end in '.。' else '.'}"
    )
