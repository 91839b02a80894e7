"""What a line of a wish means for a prompt: the value or the sentence that it speaks about, and how that would read."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise, takewhile
from typing import NamedTuple

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.rules.design.prompt import behaves
from flowise_dev_agent.reasoning.rules.language import lexicon
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, patterns, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, detect_language, quoted_spans, squeeze

_SENTENCE, _COUNT, IF = pattern("values", "sentence"), pattern("values", "count"), pattern("prompt", "if")
_ROLE, _TELLS = pattern("prompt", "role"), pattern("facts", "tells")
_WHENEVER = re.compile(rf"(?i)(?<!\w)(?:{IF.pattern[4:]})")
_DAYS, _DAY_TO, _SINCE = patterns("days", "names"), pattern("days", "to"), pattern("days", "since")
#: Values of which one can take the place of another of its kind, the clearest first.
_SHAPES = {name: pattern("values", name) for name in ("mail", "address", "price", "time", "phone", "length")}
_SHAPES["language"] = re.compile(f"{pattern('values', 'their_language').pattern}|{words('languages').pattern}", re.I)
#: What a value is about, whatever it belongs to, and of what a prompt says one thing only.
_TOPICS, _GENERIC, _ONE_OF, _SHAPED = lexicon.constants("about").values()
_CLASS_WORDS, _VERB, _TOO, _HELPS = (pattern("about", name) for name in ("tone", "verb", "too", "helps"))
_AGAINST, _CONTACTS = patterns("about", "against"), frozenset({"mail", "address", "phone"})
_NO_NUMBERS = frozenset({"quote", "language", *_CONTACTS})
_BECOMES = re.compile(r"(?i)\d\D{0,12}?(?:\sto|auf|à|para|naar|\sna|zu|→|->|=>|から|を)\s?\D{0,3}\d")
_INSTEAD = re.compile(f"{pattern('about', 'rather').pattern}|{words('instead_of').pattern}", re.IGNORECASE)
_JOINT = re.compile(rf"[,;]?\s(?:{'|'.join(sorted(wordset('ands')))})\s|[,;]\s")
_AT_END = re.compile(rf"(?:{_JOINT.pattern})$")
_CLAUSE_JOINT = re.compile(rf"{_JOINT.pattern}|[.!?\n]\s*(?!\d)|。")
_NUMBER, _NAME = re.compile(r"\d+(?:[.,]\d+)?"), re.compile(r"(?<=[\w,] )[A-ZÀ-Ý][\wà-ÿ]+")
_COUNTED, _NAMES = re.compile(lexicon.NUMBER, re.IGNORECASE), re.compile(r"[A-ZÀ-Ý][\w'’-]+(?:\s[A-ZÀ-Ý][\w'’-]+)*")
_WORD, _FUNCTION_WORDS = pattern("values", "word"), lexicon.FUNCTIONS
_EVERYDAY = tuple(word for word in wordset("everyday") if len(word) > 3)
_SHORTEST_STEM, _SHORTEST_FORM, _FAINT, _SHARE_OF_STEM, _RARE = 5, 4, 3, 0.57, 2
#: `_ALIKE`: from which likeness on a sentence is asked about; `_MOST_ASKED`: how many are.
_LONGEST_OLD, _NEXT_TO, _LONGEST_SHORT, _LONGEST_READ, _ALIKE, _MOST_ASKED = 60, 8, 4, 600, 10, 4
_CLAUSE_END = re.compile(r"[,;:.!?](?:\s|$)|[、。]")


class Value(NamedTuple):
    """A value in a text. `kind` is its shape, of a number with its unit the unit."""

    kind: str
    start: int
    end: int
    text: str


class Group(NamedTuple):
    """Values of one kind in one clause, and the words and the days that they belong to."""

    values: tuple[Value, ...]
    owner: frozenset[str]
    days: frozenset[int]


@dataclass(frozen=True)
class Amendment:
    """A stretch of a prompt and what it would become: '' takes it out. `certain`: the wish leaves nothing open;
    `others`: what it may mean as well."""

    start: int
    end: int
    old: str
    new: str
    certain: bool = True
    others: tuple["Amendment", ...] = ()


def sentences(prompt: str) -> Iterator[re.Match[str]]:
    """The sentences of a prompt, without tags and bullets."""
    return (match for match in _SENTENCE.finditer(prompt) if not match.group().startswith("<"))


def values_in(text: str, *, bare: bool = False) -> list[Value]:
    """The values of a text in their order; each letter belongs to one at most. With `bare` plain numbers, too."""
    quotes = (Value("quote", start, end, text[start:end]) for start, end in quoted_spans(text))
    shaped = (Value(kind, *m.span(), m.group()) for kind, shape in _SHAPES.items() for m in shape.finditer(text))
    counts = (Value(str(m["unit"]).casefold(), *m.span(), m.group()) for m in _COUNT.finditer(text))
    numbers = (Value("", *m.span(), m.group()) for m in _NUMBER.finditer(text if bare else ""))
    found: list[Value] = []
    for value in chain(quotes, shaped, (one for one in counts if one.kind not in _FUNCTION_WORDS), numbers):
        if not any(one.start < value.end and value.start < one.end for one in found):
            found.append(value)
    return sorted(found, key=lambda value: value.start)


def amendment(line: str, prompt: str, near: tuple[int, int] = (0, 0), *, new: bool = False) -> Amendment | None:
    """What a line says about something that is there; None where it speaks of nothing in the prompt. `near` is what the
    line before it changed; `new`: it is known to be about what is different."""
    wanted, former = _former(line)
    # What a line is about it says at its beginning.
    said, is_new = verbatim(wanted[:_LONGEST_READ]), new or _is_new(line)
    found = _of_known(line, former, wanted, prompt)
    found = found or (None if IF.match(line) else _of_values(said, prompt, near, new=new, whole=wanted))
    found = found or _of_rule(said, former, prompt, whole=wanted, new=is_new)
    return None if found is None or found.new == found.old else found


def speaking(prompt: str, gone: Sequence[NodeSchema]) -> list[Amendment]:
    """The sentences of a prompt that speak of tools that go."""
    said = [
        looked_for for looked_for, means in lexicon.table("tools") if {one.name for one in gone}.intersection(means)
    ]
    said += [re.compile(re.escape(schema.label), re.IGNORECASE) for schema in gone]
    return [Amendment(*match.span(), match.group(), "", certain=False) for match in sentences(prompt)
            if any(one.search(match.group()) for one in said)]  # fmt: skip


def verbatim(line: str) -> str:
    """The line with NULs for what answers are to hold word for word."""
    for start, end in quoted_spans(line):
        line = line[:start] + "\x00" * (end - start) + line[end:]
    return line


def relates(line: str, prompt: str) -> bool:
    """Whether a line speaks of anything that the prompt speaks of."""
    return any(_shared(line, one.group(), prompt) or _topics(line, one.group()) for one in sentences(prompt))


def speaks_of(answer: str, sentence: str) -> bool:
    """Whether an answer names a thing of a sentence."""
    long = [word for word in _WORD.findall(answer.casefold()) if len(word) >= _SHORTEST_STEM]
    return any(_is_among(word, _WORD.findall(sentence.casefold())) for word in long)


# --- Values -------------------------------------------------------------------------------------------------------


def _former(line: str) -> tuple[str, str]:
    """(the line without what it says is to go: "... instead of ...", that)."""
    instead = _INSTEAD.search(line)
    if instead is None:
        return line, ""
    rest = line[instead.end() : instead.end() + _LONGEST_OLD]
    first = next((value for value in values_in(rest, bare=True) if value.start <= _NEXT_TO), None)
    former = rest[: first.end] if first else _CLAUSE_END.split(rest)[0]
    kept = squeeze(f"{line[: instead.start()].rstrip(' ,')} {line[instead.end() + len(former) :].lstrip(' ,')}")
    return capital(re.sub(r"\s(?=[.,;!])", "", kept)), former.strip()


def _of_known(line: str, former: str, wanted: str, prompt: str) -> Amendment | None:
    """The new value in the place of the one that a line names as the old one: "45 instead of 40", "from 9 to 5 to 9 to
    6", "60 words is too short, make it 120"."""
    if former:
        old = values_in(former, bare=True)[:1]
        names = [*_NAMES.finditer(line[: line.find(former)])]
        if not old and names and _NAMES.fullmatch(former) and len(there := [*whole(former).finditer(prompt)]) == 1:
            return _changed(prompt, [(Value("name", *there[0].span(), former), names[-1].group())])
        new = [one for one in values_in(wanted, bare=True) if old and _comparable(old[0], one)]
        # What follows is about something else; what stands right before is meant.
        before = [one for one in new if one.start < line.find(former)]
        return _swapped(old, before[-1:] or new[:1], prompt, wanted)
    values = [one for one in values_in(line, bare=True) if one.kind != "quote"]
    half = len(values) // 2
    more = words("addition").search(_TOO.sub(" ", line))
    if not half or len(values) % 2 or more or not (_BECOMES.search(line) or _TOO.search(line) or _is_new(line)):
        return None
    return _swapped(values[:half], values[half:], prompt, line)


def _comparable(one: Value, other: Value) -> bool:
    return one.kind == other.kind or not ((one.kind and other.kind) or {one.kind, other.kind} & _NO_NUMBERS)


def _swapped(old: Sequence[Value], new: Sequence[Value], prompt: str, about: str) -> Amendment | None:
    """Values in the place of others, which follow one another there, too: in the one clause that is about the same."""
    if not old or len(old) != len(new):
        return None
    there, own = values_in(prompt, bare=True), own_words(about)
    windows = (there[start : start + len(old)] for start in range(len(there) - len(old) + 1))
    places = [one for one in windows if [*map(_said, one)] == [*map(_said, old)] and _comparable(one[0], new[0])]
    ends = [0, *(joint.end() for joint in _CLAUSE_JOINT.finditer(prompt)), len(prompt)]

    def likeness(place: Sequence[Value]) -> tuple[int, bool]:
        start, end = max(one for one in ends if one <= place[0].start), min(one for one in ends if one >= place[-1].end)
        theirs, days = own_words(prompt[start:end]), _days(prompt[start:end]) & _days(about)
        faint = any(_in_common(one, two) >= _FAINT for one in theirs for two in own)
        return sum(_is_among(word, own) for word in theirs) + len(days), faint

    likely = sorted(places, key=likeness, reverse=True)
    # Beside one that is about the same another counts that may be: "zwrócić" beside "zwrot".
    likely = [one for one in likely if likeness(one)[0] == likeness(likely[0])[0] or likeness(one)[1]]
    # A bare number is another one in each sentence: only that of a sentence about the same thing is meant.
    if not likely or not (old[0].kind or new[0].kind or likeness(likely[0])[0]):
        return None
    first, *others = [_changed(prompt, _exchanged(one, new)) for one in likely]
    spoken = {*map(_said, old), *map(_said, new)}
    more = [one for one in values_in(about) if one.kind not in ("quote", "language") and _said(one) not in spoken]
    return replace(first, certain=not (more or others), others=tuple(others[: _MOST_ASKED - 1]))


def _said(value: Value) -> str:
    """The numbers of a value; of one without numbers its letters."""
    return " ".join(_NUMBER.findall(value.text)) or re.sub(r"[\W_]", "", value.text).casefold()


def _of_values(line: str, prompt: str, near: tuple[int, int], *, new: bool, whole: str) -> Amendment | None:
    """The values of a line in the place of those that belong to the same thing. None where it speaks of another thing
    or another day, or says that it is one thing more."""
    is_new = new or _is_new(line)
    if words("addition").search(line) and not is_new:
        return None
    known, pairs = _groups(prompt), list[tuple[Value, str]]()
    foreign = [word for word in _thing(line) if not _is_among(word, own_words(prompt))]
    for group in _groups(line, whole=True):
        rivals = _rivals(group, known, foreign, is_new=is_new)
        close = [one for one in rivals if near[0] <= one.values[0].start < near[1]]
        rivals = close if len(close) == 1 and not group.owner else rivals
        fitting = _paired(line, group, rivals[0]) if len(rivals) == 1 else []
        if fitting and group.values[0].kind == "length":
            old = next(one.group() for one in sentences(prompt) if one.start() <= fitting[0][0].start < one.end())
            fitting = [] if words("about_length").search(old.replace(fitting[0][0].text, " ")) else fitting
        if rivals and not fitting:
            return None
        pairs += fitting
    more = (bool(foreign) and not new) or len(pairs) < sum(one.kind != "quote" for one in values_in(line))
    found = _changed(prompt, pairs) if pairs else None
    if not (found and more):
        return found
    one = [_replaced(whole, line, one, prompt) for one in sentences(prompt) if one.span() == (found.start, found.end)]
    return replace(one[0] if one else replace(found, new=ended(whole, found.old)), certain=False)


def _groups(text: str, *, whole: bool = False) -> list[Group]:
    """The values of a text by what they belong to: the words in front of them in their clause, else those behind.
    With `whole` all words of the clause."""
    found: list[Group] = []
    for match in sentences(text):
        sentence, groups = match.group(), list[Group]()
        values = values_in(sentence, bare=whole)
        speaks = words("about_language").search(sentence) and not IF.match(sentence)
        kinds = {one.kind for one in values} - {"quote", *([] if speaks else ["language"])}
        for mine in ([one for one in values if one.kind == kind] for kind in sorted(kinds)):
            cuts = [0]
            for one, two in pairwise(values if whole else mine):
                between = [joint.end() for joint in _JOINT.finditer(sentence, one.end, two.start)]
                owned = [cut for cut in between if _thing(sentence[cut : two.end]) or _days(sentence[cut : two.end])]
                cuts += [*owned[-1:], *between[:1]][:1]
            for start, end in pairwise([*cuts, len(sentence)]):
                own = [one for one in mine if start <= one.start < end]
                if not own:
                    continue
                clause, days = sentence[start:end], _days(sentence[start:end])
                owner = (not whole and own_words(sentence[start : own[0].start])) or _thing(clause)
                at = tuple(one._replace(start=one.start + match.start(), end=one.end + match.start()) for one in own)
                if start and groups and not owner and not days:
                    # "9 to 12 and 14 to 18": a second pair of the same.
                    groups[-1] = groups[-1]._replace(values=groups[-1].values + at)
                else:
                    groups.append(Group(at, owner, days))
        found += groups
    return found


def _thing(text: str) -> frozenset[str]:
    """The own words of a text without its values and their units."""
    for value in values_in(text):
        text = text.replace(value.text, " ")
    return own_words(text)


def _rivals(group: Group, known: Sequence[Group], foreign: Sequence[str], *, is_new: bool) -> list[Group]:
    """The values of a prompt that those of a line can be meant for; none where they belong to something new."""
    kind, rivals = group.values[0].kind, [one for one in known if _same(one.values[0].kind, group.values[0].kind)]
    rivals = [one for one in rivals if one.days == group.days] if group.days else rivals
    named = [one for one in rivals if (one.owner or group.days) and all(_is_among(w, group.owner) for w in one.owner)]
    if named:
        most = max(len(one.owner) for one in named)
        return [one for one in named if len(one.owner) == most]
    if is_new and kind in _CONTACTS and len(rivals) == 1:
        return rivals
    partly = [one for one in rivals if any(_is_among(word, group.owner) for word in one.owner)]
    if not kind:
        # A bare number may be anything: a year, the number of a house.
        return partly if is_new else []
    if foreign or group.owner:
        return [] if foreign else partly
    # A number to call, without a word that it is a new one, is not that of something else.
    return [one for one in rivals if is_new or kind not in _CONTACTS or not one.owner]


def _same(known: str, kind: str) -> bool:
    """Whether values are of one kind: "mins" is "minutes", and a bare number can be one of anything."""
    if not kind:
        return known not in _NO_NUMBERS
    short = min(len(known), len(kind)) <= _LONGEST_SHORT and known[:3] == kind[:3]
    return known == kind or akin(known, kind) or short


def _paired(line: str, group: Group, chosen: Group) -> list[tuple[Value, str]]:
    """Each value that changes with the new one; none where it is not clear which is which."""
    old, new = chosen.values, group.values
    if len(old) == 2 and len(new) == 1 and new[0].kind == "time":
        said = (words(name).finditer(line[: new[0].start]) for name in ("begins_at", "ends_at"))
        last = [max((one.end() for one in found), default=-1) for found in said]
        return [(old[last.index(max(last))], new[0].text)] if last[0] != last[1] else []
    return _exchanged(old, new) if len(old) == len(new) else []


def _exchanged(old: Sequence[Value], new: Sequence[Value]) -> list[tuple[Value, str]]:
    """Each value with its new text; of a number with the same unit, and of one without, the unit stays."""
    return [(one, _new_text(one, two)) for one, two in zip(old, new, strict=True)]


def _new_text(old: Value, new: Value) -> str:
    number, units = _COUNTED.search(new.text), [_WORD.findall(_COUNTED.sub(" ", one.text))[-1:] for one in (old, new)]
    unit = new.kind not in {*_NO_NUMBERS, "time"} and all(units) and akin(units[0][0], units[1][0])
    return _COUNTED.sub(number[0], old.text, count=1) if number and (unit or new.kind in ("", "price")) else new.text


def _changed(prompt: str, pairs: Sequence[tuple[Value, str]]) -> Amendment:
    """The stretch of whole sentences around some values, with others in their place."""
    first, last = min(value.start for value, _ in pairs), max(value.end for value, _ in pairs)
    spans = [match.span() for match in sentences(prompt)]
    start, end = max(one for one, _ in spans if one <= first), min(one for _, one in spans if one >= last)
    new = prompt[start:end]
    for value, text in sorted(pairs, key=lambda pair: -pair[0].start):
        text = f"{text[:1].lower()}{text[1:]}" if value.text[0].islower() else text
        new = new[: value.start - start] + text + new[value.end - start :]
    return Amendment(start, end, prompt[start:end], new)


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
def own_words(text: str) -> frozenset[str]:
    """What a text speaks of: its words without those that any wish, any prompt, and any value of a kind has."""
    for name in _GENERIC:
        text = words(name).sub(" ", text)
    for day, name in enumerate(_DAYS):
        text = name.sub(" ", text) if day in _days(text) else text
    return frozenset(_telling_words(text))


# --- Rules --------------------------------------------------------------------------------------------------------


def _of_rule(line: str, former: str, prompt: str, *, whole: str, new: bool) -> Amendment | None:
    """The sentences that a line may be meant to replace, the most alike first. It is certain where there is one, of
    which nothing is lost. `whole` is what it would be replaced by."""
    about = [(_likeness(line, former, match.group(), prompt, new=new), match) for match in sentences(prompt)
             if not (_HELPS.match(match.group()) or (match.start() == 0 and _ROLE.match(match.group())))]  # fmt: skip
    about = sorted((one for one in about if one[0]), key=lambda one: -one[0])
    chosen = [match for likeness, match in about if likeness >= min(about[0][0], _ALIKE)]
    taken = words("taken_out").search(line)
    found = [_replaced("" if taken else whole, line, match, prompt) for match in chosen[:_MOST_ASKED]]
    return replace(found[0], certain=found[0].certain and not found[1:], others=tuple(found[1:])) if found else None


def _likeness(line: str, former: str, sentence: str, prompt: str, *, new: bool) -> int:
    """How much a line is about what a sentence says: 0 where both can well be true; from _ALIKE on it is against it or
    a rule of which a prompt has one."""
    shared, classes = _shared(line, sentence, prompt), classes_of(line) & classes_of(sentence)
    if words("taken_out").search(line):
        return len(shared | _topics(line, sentence))
    if former and _shared(former, sentence, prompt):
        return _ALIKE + len(shared) + 1
    if _opposed(line, sentence, shared) or _ruled(line, sentence, classes, new=new):
        return _ALIKE + len(shared) + len(classes)
    if words("addition").search(line) and not new:
        return 0
    own, theirs, days = own_words(line), own_words(sentence), (_days(line), _days(sentence))
    shared &= theirs
    if all(days) and not days[0] & days[1]:
        return len(shared) * (len(shared) > 1 or new)
    kinds = {one.kind for one in values_in(sentence)} - {"quote", "language"}
    value = any(_same(kind, one.kind) for one in values_in(line) for kind in kinds)
    # Opening hours without a day are those of every day.
    topic = _topics(line, sentence) if new or (value and bool(days[0]) != bool(days[1])) else set[str]()
    whole = any(all(_is_among(word, two) for word in one) for one, two in ((own, theirs), (theirs, own)))
    close = shared and (value or new or days[0] or (whole and not IF.match(line)))
    return 1 + len(shared) if len(shared) > 1 or close or topic or (value and (new or not own)) else 0


def _ruled(line: str, sentence: str, classes: frozenset[str], *, new: bool) -> bool:
    """Whether both are rules of which a prompt has one: another language, length, tone, way to address or to end."""
    said = [set(map(str.casefold, words("languages").findall(text))) for text in (line, sentence)]
    if ("language" in classes and not said[0] <= said[1]) or ("about_place" in classes and new):
        return True
    rest = [word for word in _thing(_CLASS_WORDS.sub(" ", line)) if not _is_among(word, own_words(sentence))]
    # "Mention the short way" is about the way.
    narrow = classes & {"about_length", "tone"} and len(rest) <= 1 and not _TELLS.search(line)
    return bool(narrow or classes - {"about_length", "tone", "language", "about_place"})


def _is_new(line: str) -> bool:
    """Whether a line says that something is different from now on. That it costs something is not that."""
    return any(words(name).search(words("about_price").sub(" ", line)) for name in ("now", "by_amount"))


def classes_of(text: str) -> frozenset[str]:
    """What of which a prompt says one thing a text speaks about."""
    found = {name for name in _SHAPED if pattern("about", name).search(text)}
    found |= {topic for topic in _ONE_OF if words(topic).search(text)}
    speaks = words("languages").search(text) and words("about_language").search(text)
    return frozenset({*found, "language"} if speaks else found)


def _opposed(line: str, sentence: str, shared: set[str]) -> bool:
    """Whether one allows or asks for what the other forbids, or says that is open what is closed."""
    against, allowed = _forbidden(sentence)
    mine, wanted = _forbidden(line)
    meant = any(
        word in against and _is_among(word, wanted, loosely=True) and not _is_among(word, mine) for word in shared
    )
    if meant or (behaves(sentence) and any(word in allowed and _is_among(word, mine) for word in shared)):
        return True
    orders = any(behaves(clause.strip()) for clause in _CLAUSE_END.split(sentence))
    both = {n for n, topic in enumerate(_AGAINST) if topic.search(line) and topic.search(sentence)}
    if mine and not against and orders and (len(both) > 1 or (both and shared)):
        return True
    if words("goes").search(line) and not against:
        return bool(shared)
    shut = [words("shut").search(text) is not None for text in (line, sentence)]
    hours = words("about_hours").search(line) and words("about_hours").search(sentence)
    return bool(hours) and shut[0] != shut[1] and _days(line) == _days(sentence)


@lru_cache(maxsize=512)
def _forbidden(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """(the words of clauses that forbid, those of the others)."""
    found = [set[str](), set[str]()]
    for clause in [text] if IF.match(text) else _CLAUSE_END.split(text):
        found[not words("forbids").search(clause)].update(_telling_words(clause))
    return frozenset(found[0]), frozenset(found[1])


def _replaced(new: str, line: str, match: re.Match[str], prompt: str) -> Amendment:
    """The sentence with new words in the place of the parts that the line speaks about. It is certain where no fact
    and no further rule is lost."""
    sentence = match.group()
    joints = [joint.end() for joint in _JOINT.finditer(sentence) if not words("even").match(sentence, joint.end())]
    parts = [sentence[start:end] for start, end in pairwise([0, *joints, len(sentence)])]
    classes = classes_of(line) & classes_of(sentence)
    kinds = {one.kind for one in values_in(line)} & _CONTACTS
    about = [n for n, part in enumerate(parts) if _shared(line, part, prompt) or classes_of(part) & classes
             or any(one.kind in kinds for one in values_in(part))]  # fmt: skip
    first, last = (about[0], about[-1] + 1) if about else (0, len(parts))
    # "Greet the men and women" has no second rule, and what is in front stays where it is a rule of its own.
    rule = behaves(parts[0]) and (behaves(parts[first]) or _VERB.match(parts[first]) or not new)
    first = first if rule or (values_in("".join(parts[:first])) and not classes) else 0
    front, gone, behind = ("".join(some) for some in (parts[:first], parts[first:last], parts[last:]))
    own, allowed = own_words(line), bool(classes or words("goes").search(line)) + ("about_length" in classes)
    said = words("even").split(gone)[0]
    open_ = [one for one in own_words(said) if new and "about_place" not in classes and not _is_among(one, own)]
    # "Never X, Y or Z" is a list of which each part leans on its beginning.
    leans = words("forbids").search(sentence) is not None and len(parts) > 1 and not behaves(behind)
    front, behind = ("", "") if leans else (_AT_END.sub("", front), behind)
    if new and behind and not (behaves(behind) or _VERB.match(behind)):
        # "..., at most one for each cottage" goes on behind what is new, "on Tuesdays and Fridays" does not.
        listed = not (classes or gone.rstrip().endswith((",", ";")))
        leans, gone, joint = leans or listed, gone + behind * listed, gone[len(_AT_END.sub("", gone)) :] or " "
        new, behind = new if listed else f"{new.rstrip('.。 ')}{joint}{behind}", ""
    lost = facts(gone) - facts(line) if not classes & {"about_length", "about_place", "greeting", "closing"} else set()
    kept = [ended(one, sentence) for one in (front, new) if one]
    text = " ".join([*kept, *([capital(behind)] if behind else [])])
    certain = not (leans or lost or len(open_) > allowed or IF.match(sentence) or _WHENEVER.search(line))
    return Amendment(*match.span(), sentence, text, certain)


def facts(text: str) -> set[str]:
    """Numbers, addresses, quotations and names of a text, which must not get lost."""
    names = () if detect_language(text) == "de" else _NAME.findall(words("languages").sub(" ", text))
    return {one.text.casefold() for one in values_in(text, bare=True) if one.kind != "language"} | {*names}


def _shared(line: str, sentence: str, prompt: str) -> set[str]:
    """Words of the sentence that the line speaks of and that few sentences of the prompt have."""
    said = _telling_words(line)
    found = [word for word in _telling_words(sentence) if _is_among(word, said, loosely=True)]
    return {word for word in found if sum(_is_among(word, other) for other in _words_of(prompt)) <= _RARE}


@lru_cache(maxsize=64)
def _words_of(prompt: str) -> list[set[str]]:
    """The words of each sentence."""
    return [set(map(str.casefold, _WORD.findall(match.group()))) for match in sentences(prompt)]


@lru_cache(maxsize=512)
def _telling_words(text: str) -> frozenset[str]:
    """The words of a text but those that any wish and any prompt has."""
    folded = {word.casefold() for word in _WORD.findall(text)}.difference(wordset("glue"), _FUNCTION_WORDS)
    return frozenset(one for one in folded if not (one.startswith(_EVERYDAY) or words("languages").fullmatch(one)))


def whole(name: str) -> re.Pattern[str]:
    """The whole name in a text."""
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)


def _is_among(word: str, others: Iterable[str], *, loosely: bool = False) -> bool:
    """Whether a word is a form of one of others; `loosely`: or has something to do with one, which may be another thing
    of its kind: "legal advice" and "legality", in German "Reitstunde" and "Stunde"."""
    near = [one for one in others if loosely and len(one) >= _SHORTEST_STEM]
    alike = any(_in_common(word, one) > _SHORTEST_STEM or one in word for one in near)
    inside = len(word) >= _SHORTEST_STEM and any(word in one for one in near)
    return alike or inside or any(akin(word, one) for one in others)


def akin(one: str, other: str) -> bool:
    """Whether two words are forms of one, by how they begin.

    >>> akin("apologise", "apologising"), akin("station", "stay")
    (True, False)
    """
    if "-" in one or "-" in other or (one.isascii() and min(len(one), len(other)) < _SHORTEST_FORM):
        return one == other
    common = _in_common(one, other)
    shortest = min(len(one), len(other), _SHORTEST_STEM)
    return one == other or (3 <= common >= shortest and common >= _SHARE_OF_STEM * max(len(one), len(other)))


def _in_common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _topics(line: str, sentence: str) -> set[str]:
    return {topic for topic in _TOPICS if words(topic).search(line) and words(topic).search(sentence)}


def ended(line: str, sentence: str) -> str:
    """The line with the sign at its end that the sentence has."""
    done = line[-1:] in ".!?。！？" or sentence[-1] not in ".!?。"
    return line if done else f"{line}{sentence[-1] if sentence[-1] in '.。' else '.'}"
