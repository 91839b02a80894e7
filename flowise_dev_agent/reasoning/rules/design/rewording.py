"""What a line of a wish means for a prompt: the value or the sentence that it speaks about, and how that would read."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise, takewhile

from flowise_dev_agent.reasoning.rules.design.prompt import behaves
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS, pattern, patterns, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, quoted_spans, squeeze

_SENTENCE, _COUNT, _IF = pattern("values", "sentence"), pattern("values", "count"), pattern("prompt", "if")
_ROLE, _OR = pattern("prompt", "role"), pattern("values", "or")
_OURS, _TELLS = pattern("facts", "ours"), pattern("facts", "tells")
_DAYS, _DAY_TO, _SINCE = patterns("days", "names"), pattern("days", "to"), pattern("days", "since")
#: Values of which one can take the place of another of its kind, the clearest first.
_SHAPES = {
    **{name: pattern("values", name) for name in ("mail", "address", "price", "time", "phone")},
    "language": words("languages"),
}
_TOPICS = tuple(f"about_{name}" for name in ("price", "phone", "hours", "place", "apology", "address", "length"))
#: What a value is about, whatever it belongs to.
_GENERIC = (*_TOPICS, "about_language", "languages", "now", "addition", "forbids", "allows", "begins_at", "ends_at")
#: Of these a prompt says one thing only.
_ONE_OF = frozenset({"about_apology", "about_address", "about_length", "about_place"})
_CONTACTS = frozenset({"mail", "address", "phone"})
_JOINT = re.compile(rf"[,;]?\s(?:{'|'.join(sorted(wordset('ands')))})\s|[,;]\s")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]{3,}|[\u30a0-\u30ff\u3400-\u9fff]{2,}")
_FUNCTION_WORDS = frozenset(chain.from_iterable(FUNCTION_WORDS.values()))
_EVERYDAY = tuple(word for word in wordset("everyday") if len(word) > 3)
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
class Group:
    """Values of one kind in one clause: the words and the days that they belong to, and where their sentence begins."""

    place: int
    values: tuple[Value, ...]
    owner: frozenset[str]
    days: frozenset[int]


@dataclass(frozen=True)
class Amendment:
    """A stretch of a prompt and what it would become: '' takes it out, None is not known. `certain`: the wish leaves
    nothing open; `swapped`: only values of it change; `adds`: the line says more than that, and is added, too."""

    start: int
    end: int
    old: str
    new: str | None
    certain: bool = True
    swapped: bool = False
    adds: bool = False


def sentences(prompt: str) -> Iterator[re.Match[str]]:
    """The sentences of a prompt, without tags and bullets."""
    return (match for match in _SENTENCE.finditer(prompt) if not match.group().startswith("<"))


def values_in(text: str) -> list[Value]:
    """The values of a text in their order; each letter belongs to one at most."""
    quotes = (Value("quote", start, end, text[start:end]) for start, end in quoted_spans(text))
    shaped = (Value(kind, *m.span(), m.group()) for kind, shape in _SHAPES.items() for m in shape.finditer(text))
    counts = (Value(str(m["unit"]).casefold(), *m.span(), m.group()) for m in _COUNT.finditer(text))
    found: list[Value] = []
    for value in chain(quotes, shaped, (one for one in counts if one.kind not in _FUNCTION_WORDS)):
        if not any(one.start < value.end and value.start < one.end for one in found):
            found.append(value)
    return sorted(found, key=lambda value: value.start)


def amendment(line: str, prompt: str, *, settled: bool = False) -> Amendment | None:
    """What a line says about something that is there; None where it speaks of nothing in the prompt. `settled`: it is
    the answer to what the new value is."""
    wanted, former = _former(line)
    found = _of_former(wanted, former, prompt) if former else None
    found = found or (None if _IF.match(line) else _of_values(wanted, prompt) or _of_rule(wanted, former, prompt))
    if found is None or found.new == found.old:
        return None
    return replace(found, certain=True) if settled and found.new is not None else found


def relates(line: str, prompt: str) -> bool:
    """Whether a line speaks of anything that the prompt speaks of."""
    found = [match.group() for match in sentences(prompt)]
    return any(_shared(line, one, prompt) or _topics(line, one) for one in found) or amendment(line, prompt) is not None


# --- Values -------------------------------------------------------------------------------------------------------


def _former(line: str) -> tuple[str, str]:
    """(the line without what it says is to go: "... instead of ...", that)."""
    instead = words("instead_of").search(line)
    if instead is None:
        return line, ""
    rest = line[instead.end() : instead.end() + _LONGEST_OLD]
    first = next((value for value in values_in(rest) if value.start <= _NEXT_TO), None)
    former = rest[: first.end] if first else _CLAUSE_END.split(rest)[0]
    return capital(squeeze(f"{line[: instead.start()]} {line[instead.end() + len(former) :]}").strip(" ,")), former


def _of_former(wanted: str, former: str, prompt: str) -> Amendment | None:
    """The one place of the value that the line says is to go, with the new one there."""
    old, mine = (values_in(former) or _numbers(former))[:1], [one.text for one in _numbers(wanted)[:1]]
    if old and old[0].kind:
        known, mine = values_in(prompt), [one.text for one in values_in(wanted) if one.kind == old[0].kind]
    else:
        # A bare number is another one in each sentence: only that of a sentence about the same thing is meant.
        own = _own_words(wanted)
        about = [m.span() for m in sentences(prompt) if any(_is_among(word, own) for word in _own_words(m.group()))]
        known = [one for one in _numbers(prompt) if any(start <= one.start < end for start, end in about)]
    places = [one for one in known if old and _plain(one) == _plain(old[0])]
    return _changed(prompt, [(places[0], mine[0])]) if len(places) == 1 == len(mine) else None


def _numbers(text: str) -> list[Value]:
    return [Value("", *match.span(), match.group()) for match in _NUMBER.finditer(text)]


def _of_values(line: str, prompt: str) -> Amendment | None:
    """The values of a line in the place of those that belong to the same thing. None where it speaks of another thing
    or another day, or says that it is one thing more."""
    if words("addition").search(line) and not words("now").search(line):
        return None
    known, pairs = _groups(prompt), list[tuple[Value, str]]()
    kinds = {"price", *(one.kind for one in values_in(line))} if words("by_amount").search(line) else set[str]()
    unclear = [one for one in known if one.values[0].kind in kinds]
    foreign = [word for word in _own_words(line) if not _is_among(word, _own_words(prompt))]
    for group in _groups(line, whole=True):
        rivals = _rivals(group, known, foreign, is_new=words("now").search(line) is not None)
        fitting = _paired(line, group, rivals[0]) if len(rivals) == 1 else []
        unclear += rivals[:1] if not fitting else []
        pairs += fitting
    if unclear:
        return replace(_changed(prompt, [(unclear[0].values[0], "")]), new=None, certain=False)
    adds = bool(foreign) or len(pairs) < sum(one.kind != "quote" for one in values_in(line))
    return replace(_changed(prompt, pairs), adds=adds) if pairs else None


def _groups(text: str, *, whole: bool = False) -> list[Group]:
    """The values of a text by what they belong to: the words in front of them in their clause, else those behind.
    With `whole` all words of the clause."""
    found: list[Group] = []
    for match in sentences(text):
        sentence, values, groups = match.group(), values_in(match.group()), list[Group]()
        speaks = words("about_language").search(sentence) and not _IF.match(sentence)
        kinds = {one.kind for one in values} - {"quote", *([] if speaks else ["language"])}
        for mine in ([one for one in values if one.kind == kind] for kind in sorted(kinds)):
            cuts = [0]
            for one, two in pairwise(mine):
                between = [joint.end() for joint in _JOINT.finditer(sentence, one.end, two.start)]
                owned = [
                    cut for cut in between if _own_words(sentence[cut : two.end]) or _days(sentence[cut : two.end])
                ]
                cuts += [*owned[-1:], *between[:1]][:1]
            for start, end in pairwise([*cuts, len(sentence)]):
                own = [one for one in mine if start <= one.start < end]
                clause, days = sentence[start:end], _days(sentence[start:end])
                owner = (not whole and _own_words(sentence[start : own[0].start])) or _own_words(clause)
                at = tuple(replace(one, start=one.start + match.start(), end=one.end + match.start()) for one in own)
                if start and not owner and not days:
                    # "9 to 12 and 14 to 18": a second pair of the same.
                    groups[-1] = replace(groups[-1], values=groups[-1].values + at)
                else:
                    groups.append(Group(match.start(), at, owner, days))
        found += groups
    return found


def _rivals(group: Group, known: Sequence[Group], foreign: Sequence[str], *, is_new: bool) -> list[Group]:
    """The values of a prompt that those of a line can be meant for; none where they belong to something new."""
    kind = group.values[0].kind
    rivals = [one for one in known if one.values[0].kind == kind or akin(one.values[0].kind, kind)]
    rivals = [one for one in rivals if one.days == group.days] if group.days else rivals
    named = [one for one in rivals if (one.owner or group.days) and all(_is_among(w, group.owner) for w in one.owner)]
    if named:
        most = max(len(one.owner) for one in named)
        return [one for one in named if len(one.owner) == most]
    partly = [one for one in rivals if any(_is_among(word, group.owner) for word in one.owner)]
    # What is named once may be left out behind: "a class for adults is £9, for children £5".
    beside = [one for one in rivals if one not in partly and one.place in [other.place for other in partly]]
    if group.owner:
        return [] if foreign else [*partly, *beside]
    # A number to call, without a word that it is a new one, is not that of something else.
    return [one for one in rivals if is_new or kind not in _CONTACTS or not one.owner] if not foreign else []


def _paired(line: str, group: Group, chosen: Group) -> list[tuple[Value, str]]:
    """Each value that changes with the new one; none where it is not clear which is which."""
    old, new = chosen.values, group.values
    if len(old) == 2 and len(new) == 1 and new[0].kind == "time":
        before = line[: new[0].start]
        last = [
            max((one.end() for one in words(name).finditer(before)), default=-1) for name in ("begins_at", "ends_at")
        ]
        return [(old[last.index(max(last))], new[0].text)] if last[0] != last[1] else []
    return [(one, two.text) for one, two in zip(old, new, strict=True)] if len(old) == len(new) else []


def _changed(prompt: str, pairs: Sequence[tuple[Value, str]]) -> Amendment:
    """The stretch of whole sentences around some values, with others in their place."""
    first, last = min(value.start for value, _ in pairs), max(value.end for value, _ in pairs)
    spans = [match.span() for match in sentences(prompt)]
    start, end = max(one for one, _ in spans if one <= first), min(one for _, one in spans if one >= last)
    new = prompt[start:end]
    for value, text in sorted(pairs, key=lambda pair: -pair[0].start):
        text = f"{text[:1].lower()}{text[1:]}" if value.text[0].islower() else text
        new = new[: value.start - start] + text + new[value.end - start :]
    return Amendment(start, end, prompt[start:end], new, swapped=True)


def _plain(value: Value) -> str:
    return re.sub(r"[\W_]", "", value.text).casefold()


@lru_cache(maxsize=512)
def _days(text: str) -> frozenset[int]:
    """The days of the week that a text names, 0 for Monday; one from which on something holds is none of them."""
    named = sorted((match.start(), match.end(), day) for day, name in enumerate(_DAYS) for match in name.finditer(text))
    found: set[int] = set()
    for (start, end, day), behind in zip(named, [*named[1:], None], strict=False):
        if behind and _DAY_TO.fullmatch(text[end : behind[0]]):
            found |= {(day + step) % 7 for step in range((behind[2] - day) % 7 + 1)}
        elif not _SINCE.search(text[:start]) or day in found:
            found.add(day)
    return frozenset(found)


@lru_cache(maxsize=512)
def _own_words(text: str) -> frozenset[str]:
    """What a text speaks of: its words without those that any wish, any prompt, and any value of a kind has."""
    for name in _GENERIC:
        text = words(name).sub(" ", text)
    for day, name in enumerate(_DAYS):
        text = name.sub(" ", text) if day in _days(text) else text
    return frozenset(_telling_words(text))


# --- Rules --------------------------------------------------------------------------------------------------------


def _of_rule(line: str, former: str, prompt: str) -> Amendment | None:
    """The sentence that a line contradicts, takes out, or says in another way; of several none is certain."""
    candidates = [match for n, match in enumerate(sentences(prompt)) if n or not _ROLE.match(match.group())]
    about = [(_contradicted(line, former, match.group(), prompt), match) for match in candidates]
    most = max((shared for shared, _ in about if shared is not None), default=0)
    chosen = [match for shared, match in about if shared == most]
    if not chosen:
        return None
    old, out = chosen[0].group(), words("taken_out").search(line) is not None
    new = _in_part("" if out else line, old, line, prompt)
    certain = len(chosen) == 1 and new is not None and not _IF.match(old)
    return Amendment(*chosen[0].span(), old, new, certain, swapped=out)


def _contradicted(line: str, former: str, sentence: str, prompt: str) -> int | None:
    """How many words a line shares with a sentence that it says is to go; 0 for one whose rule it says in another way,
    None for any other."""
    shared, topics = _shared(line, sentence, prompt), _topics(line, sentence)
    forbidden = words("forbids").search(sentence) is not None
    about = len(shared | {topic for topic in topics if not any(words(topic).search(word) for word in shared)})
    if words("taken_out").search(line) or (words("goes").search(line) and not forbidden):
        return about or None
    if former and _shared(former, sentence, prompt):
        return about + 1
    opposed = _opposed(line, sentence, shared, topics)
    if words("addition").search(line) and not words("now").search(line) and not opposed:
        return None
    return 0 if opposed or _is_one_thing(line, sentence, topics) else None


def _is_one_thing(line: str, sentence: str, topics: set[str]) -> bool:
    """Whether both say how something is of which there is one: the length of answers, the place, how people are
    addressed. "Mention the long way round" is about the way."""
    of = topics & _ONE_OF
    if "about_place" in of and (words("now").search(line) or _OURS.search(line)):
        return True
    own = _own_words(sentence)
    more = [word for word in _own_words(line) if not _is_among(word, own)]
    return bool(of - {"about_place"}) and len(more) <= 1 and not _TELLS.search(line)


def _opposed(line: str, sentence: str, shared: set[str], topics: set[str]) -> bool:
    """Whether one allows or asks for what the other forbids, or says that is open what is closed."""
    forbids = [words("forbids").search(text) is not None for text in (line, sentence)]
    allows = words("allows").search(line) is not None
    own = _own_words(line)
    open_ = [word for word in _own_words(sentence) if not _is_among(word, own)]
    if forbids[1] and (allows or not forbids[0]):
        return bool(shared) and len(open_) <= (1 if allows or words("now").search(line) else 0)
    if forbids[0] and not forbids[1] and behaves(sentence):
        return bool(shared) and len(open_) <= 1
    shut = [words("shut").search(text) is not None for text in (line, sentence)]
    return "about_hours" in topics and shut[0] != shut[1] and _days(line) == _days(sentence) and not open_


def _in_part(new: str, sentence: str, line: str, prompt: str) -> str | None:
    """The sentence with new words in the place of the parts that the line speaks about, else these alone; None where
    something would be lost that the line does not speak of."""
    cuts = [0, *(joint.end() for joint in _JOINT.finditer(sentence)), len(sentence)]
    parts = [sentence[start:end] for start, end in pairwise(cuts)]
    about = [number for number, part in enumerate(parts) if _shared(line, part, prompt) or _topics(line, part)]
    first, last = (about[0], about[-1] + 1) if about else (0, len(parts))
    front, gone, behind = ("".join(some) for some in (parts[:first], parts[first:last], parts[last:]))
    front = _JOINT.sub("", front) if len(parts[:first]) == 1 else re.sub(rf"(?:{_JOINT.pattern})$", "", front)
    topics = _topics(line, gone)
    left = [
        one for one in values_in(gone) if one.text not in line and not any(words(t).search(one.text) for t in topics)
    ]
    listed = _OR.search(gone) and any(not _is_among(word, _own_words(line)) for word in _telling_words(gone))
    if words("goes").search(line):
        # What goes takes its values with it.
        left = left if len(parts) > 1 and gone == sentence else []
    if (behind and not behaves(behind)) or (left and "about_place" not in topics) or (listed and not topics & _ONE_OF):
        return None
    kept = [_ended(one, sentence) for one in (front, new) if one]
    return " ".join([*kept, *([capital(behind)] if behind else [])])


def _shared(line: str, sentence: str, prompt: str) -> set[str]:
    """Words of the sentence that the line speaks of and that few sentences of the prompt have."""
    said = _telling_words(line)
    found = [word for word in _telling_words(sentence) if _is_among(word, said)]
    others = [set(map(str.casefold, _WORD.findall(match.group()))) for match in sentences(prompt)] if found else []
    return {word for word in found if sum(_is_among(word, other) for other in others) <= _RARE}


@lru_cache(maxsize=512)
def _telling_words(text: str) -> frozenset[str]:
    """The words of a text but those that any wish and any prompt has."""
    folded = {word.casefold() for word in _WORD.findall(text)}.difference(wordset("glue"), *FUNCTION_WORDS.values())
    return frozenset(one for one in folded if not (one.startswith(_EVERYDAY) or words("languages").fullmatch(one)))


def _is_among(word: str, others: Iterable[str]) -> bool:
    return any(akin(word, one) for one in others)


def akin(one: str, other: str) -> bool:
    """Whether two words are forms of one, by how they begin.

    >>> akin("apologise", "apologising"), akin("station", "stay")
    (True, False)
    """
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or (common >= _SHORTEST_STEM and common >= _SHARE_OF_STEM * max(len(one), len(other)))


def _topics(line: str, sentence: str) -> set[str]:
    return {topic for topic in _TOPICS if words(topic).search(line) and words(topic).search(sentence)}


def _ended(line: str, sentence: str) -> str:
    """The line with the sign at its end that the sentence has."""
    done = line[-1:] in ".!?。！？" or sentence[-1] not in ".!?。"
    return line if done else f"{line}{sentence[-1] if sentence[-1] in '.。' else '.'}"
