"""How what a wish says gets into the texts of a flow: a value that it gives anew in the place of the one of its kind,
words for the model under a heading by which they hold."""

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.reasoning.added_text import parted, with_added_text
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design import wording
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.values import without_braces
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import (
    FUNCTION_WORDS,
    FUNCTIONS,
    pattern,
    patterns,
    words,
    wordset,
)
from flowise_dev_agent.reasoning.rules.language.text import (
    DONE,
    NUL,
    Span,
    capital,
    detect_language,
    quoted,
    quoted_spans,
)

_SENTENCE = pattern("values", "sentence")
_TAG, _ROW_ENDS = re.compile(r"<[^<>]{1,300}>"), re.compile(r"^\s*?(?:\n|</p>|$)|^ +")
_ROW_BEGINS, _CORE = re.compile(r"(?:(?<![^\n])(?:[-•*]\s*)?|<p>)$"), re.compile(r"[1-9]\d*")
_LISTED = re.compile(r"(?i)\s*(?:[,/&]|and|or|und|oder|et|ou|y|o|e|en|of|i|lub)\s*")
_FEW_WORDS, _MOST_CLAUSES, _MOST_VALUES, _LONGEST_READ, _STEM = 3, 8, 300, 1_000, 4
_SWAPS, _BY, _SMALL, _A_LINE = (pattern("exchange", name) for name in ("swaps", "by", "small", "a_line"))
_HEDGED, _NEUTRAL = (pattern("exchange", name) for name in ("hedged", "neutral"))
_NOW, _NEW, _OTHER, _VALUES = (pattern("exchange", name) for name in ("now", "new", "other", "values"))
#: What says that a value is another one.
_MARKS = (_NOW, _OTHER, _SWAPS, pattern("exchange", "rises"), words("instead_of"))
_REMAINS = pattern("change", "remains")
_ARTICLE, _NUMBER = pattern("exchange", "article"), re.compile(r"\d[\d.,:]*")
_SIGNS, _CLAUSE_ENDS = str.maketrans({"€": "euro", "$": "dollar", "£": "pound"}), re.compile(r"[,;:.!?]\s|\n")
_ITEM_ENDS = re.compile(rf"{_CLAUSE_ENDS.pattern}|\s(?:{'|'.join(wordset('ands'))})\s")
#: Names and addresses are other ones wherever a text has them.
_EVERYWHERE = ("name", "mail", "phone", "street")


class Exchange(NamedTuple):
    """What became what in a text ('': it goes), and the text after that."""

    pairs: tuple[tuple[str, str], ...]
    after: str


@dataclass
class Texts:
    """The texts of a flow (`node.field`) while a wish changes them. `changed` are the places of those that did, `spans`
    where that is said, `steps` what is told of it, `written` what they say and `already` what they said before."""

    held: dict[str, str]
    world: World
    changed: dict[str, None] = field(default_factory=dict[str, None])
    spans: list[Span] = field(default_factory=list[Span])
    steps: list[str] = field(default_factory=list[str])
    written: list[str] = field(default_factory=list[str])
    already: list[str] = field(default_factory=list[str])
    added: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def values(self) -> list[PlannedValue]:
        return [*(_value(place, self.held[place], "set") for place in self.changed),
                *(_value(place, text, "append") for place, text in self.added.items())]  # fmt: skip

    def become(self, place: str, text: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Another text, in which the first of each pair became the second."""
        self.held[place] = text
        for old, new in pairs:
            if old == new:
                self.already.append(f"«{old}»")
                continue
            self.changed[place] = None
            self.written.append(new)
            self.steps.append(self.world.say("step_reword" if new else "step_cut", where=place, old=old, new=new))

    def swap(self, swaps: Mapping[str, str]) -> None:
        """What goes by another name or address does so in all of them."""
        for place, text in self.held.items():
            for old, new in swaps.items():
                if old in text:
                    text = text.replace(old, new)
                    self.become(place, text, [(old, new)])

    def reword(self, wish: str, taken: Sequence[Span], near: Callable[[str], Sequence[str]], *, copied: bool) -> None:
        """Exchange what the clauses of a wish say anew, as many as say one thing together, in the texts that they are
        `near`. What was `taken` from it already is no fact of a text."""
        closed = quoted_spans(wish)
        for start, end, _ in wording.sentences(wish, closed):
            ends = {*wording.borders(wish, start, end, closed), wish.find(": ", start, end) + 1} - {0}
            whole = [(start + one.start, start + one.end) for one in values(wish[start:end])]
            cuts = [at for at in sorted(ends) if _is_own(wish[at:end]) and not any(a < at < b for a, b in whole)]
            # In a copy all facts are other ones, and in a sentence that says so once.
            anew = copied or any(one.search(wish, start, end) for one in (_NOW, _NEW))
            cuts, blocked = [start, *cuts[:_MOST_CLAUSES], end], False
            while len(cuts) > 1 and not blocked:
                # In a copy each fact is said for itself, and beside it what else is to be different.
                last = next(
                    (n for n in range(2, len(cuts)) if copied and values(wish[cuts[n - 1] : cuts[n]])), len(cuts)
                )
                tries = (n for n in range(1, last) if not any(one.meets(cuts[0], cuts[n]) for one in taken))
                size = next((n for n in tries if self._exchanged(wish, cuts[0], cuts[n], near, anew=anew)), 0)
                # A clause that says in which case belongs to the next one.
                said = wish[cuts[0] : cuts[1]]
                blocked = not (size or anew or said.rstrip().endswith(":") or _is_own(said))
                cuts = cuts[size or 1 :]

    def _exchanged(self, wish: str, start: int, end: int, near: Callable[[str], Sequence[str]], *, anew: bool) -> bool:
        line = wording.line_of(wish[start:end].replace(NUL, " "))
        found = {place: one for place in near(wish[start:end]) if (one := exchange(line, self.held[place], anew=anew))}
        for place, one in found.items():
            self.become(place, one.after, one.pairs)
        self.spans += [Span(start, end, frozenset({DONE}))] * bool(found)
        return bool(found)

    def give(self, place: str, empty: str, change: Reading, lines: dict[str, list[str]]) -> None:
        """The text that a wish spells out takes the place of the one that is there, or comes behind the `lines`."""
        given = change.system_text or change.prompt_text or ""
        # What the text says is in it.
        mine = [line for line in lines.pop(place, []) if line.strip(" .") not in given]
        lines |= {place: [*mine, *[given] * change.adds]} if mine or change.adds else {}
        if not change.adds:
            # Of a template the braces are its variables.
            text = given if place.endswith(".template") else without_braces(given)
            text += f"\n\n{empty}" if "{context}" in empty and "{context}" not in text else ""
            self.held[place], self.changed[place] = text, None
            self.written.append(text)

    def tell(self, place: str, lines: Sequence[str], *, named: bool, fresh: bool) -> None:
        """Lines for the model behind a text. In which step they hold is said by the place that is `named`."""
        text = self.held[place]
        lines = [capital(wording.STEP.sub("", one)) if named else one for one in lines]
        low = text.casefold()
        there = [one for one in lines if len(one.split()) >= _FEW_WORDS and one.strip(" .!").casefold() in low]
        self.already += [f"«{one}»" for one in there]
        self.written += lines
        more = _headed([capital(one) for one in lines if one not in there], parted(text)[0], self.world)
        if more and (place in self.changed or (fresh and text)):
            self.held[place], self.changed[place] = with_added_text(text, [more]), None
        elif more:
            self.added[place] = more


def _value(place: str, text: str, mode: Literal["set", "append"]) -> PlannedValue:
    node_id, _, param = place.partition(".")
    return PlannedValue(node_id=node_id, param=param, value=text, mode=mode)


def _headed(said: Sequence[str], text: str, world: World) -> str:
    """The lines as they come behind a text: in an empty one as they are, else under the heading by which they hold."""
    if not text.strip() or not said:
        return "\n".join(said)
    plain = _TAG.sub("", text)
    language = detect_language(plain if len(plain.split()) > _FEW_WORDS else f"{plain} {said[0]}")
    headings = {say("prompt_from_now_on", code) for code in (*FUNCTION_WORDS, world.language)}
    # What stands below an empty line is no item of the list.
    there = any(one in plain and "\n\n" not in plain[plain.rindex(one) :].strip() for one in headings)
    rows = [*([] if there else [say("prompt_from_now_on", language)]), *(f"- {one.removeprefix('- ')}" for one in said)]
    marked = "".join(f"<p>{html.escape(row, quote=False)}</p>" for one in rows for row in one.split("\n"))
    return marked if text.lstrip().startswith("<p") else "\n".join(rows)


def _is_own(said: str) -> bool:
    """Whether a clause says a fact or a rule of its own."""
    return bool(wording.instructs(said) or values(said) or _REMAINS.search(said))


def held(request: PlanRequest, place: str) -> str:
    """What a prompt holds, or will hold by a plan that is not written yet."""
    node_id, _, param = place.partition(".")
    stored = request.stored(node_id, param) if request.base else request.texts.get(place)
    text = stored if isinstance(stored, str) else ""
    for value in request.previous.values if request.previous else ():
        if (value.node_id, value.param) == (node_id, param) and str(value.value) not in text:
            text = f"{text}\n{value.value}".lstrip() if value.mode == "append" else str(value.value)
    return text


def exchange(line: str, text: str, *, anew: bool = False) -> Exchange | None:
    """What a line exchanges in a text, or takes out; None unless that is certain, and the line says nothing else. Where
    all facts are said `anew` it need not say so."""
    if len(line) >= _LONGEST_READ:
        return None
    if cut := _removed(line, text):
        return _without(text, *cut)
    spots, after = _replaced(line, text, anew=anew), text
    for start, end, new in sorted(spots, reverse=True):
        after = f"{after[:start]}{new}{after[end:]}"
    pairs = dict.fromkeys((text[start:end], new) for start, end, new in spots)
    return Exchange(tuple(pairs), after) if spots else None


def _without(text: str, start: int, end: int) -> Exchange:
    """The text without a stretch, and without the sentence of which nothing is left."""
    close = next(one.end() for one in _SENTENCE.finditer(text) if one.end() > start)
    before, behind = text[:start], text[end if re.search(r"\w", text[end:close]) else max(end, close) :]
    if _ROW_BEGINS.search(before):
        # Of a row that goes its mark and its end go, too.
        before, behind = _ROW_BEGINS.sub("", before), _ROW_ENDS.sub("", behind, count=1)
    return Exchange(((text[start:end], ""),), before + behind if behind else before.rstrip())


class _Value(NamedTuple):
    """A number, a time, a date, an address, a name or a quotation in a text."""

    start: int
    end: int
    kind: str
    said: str

    def akin(self, other: "_Value") -> bool:
        """Whether one may take the place of the other."""
        if "number" in (kinds := {self.kind, other.kind}):
            return kinds <= {"number", "time"} or kinds <= {"number", "amount"}
        units = {_NUMBER.sub("", one.said).strip(" .").casefold().translate(_SIGNS)[:3] for one in (self, other)}
        return self.kind == other.kind and (self.kind != "amount" or len(units) == 1)


@lru_cache(maxsize=64)
def values(text: str) -> list[_Value]:
    found = list[_Value]()
    for one in _VALUES.finditer(text):
        kind, said, start = one.lastgroup or "", one["quote"] or one[0], one.start()
        unit, (first, _, more) = re.search(r"\s?([^\W\d]+)$", said), said.partition(" ")
        if kind == "amount" and unit and not _names(unit[1]):
            said = said[: unit.start()]
        kind = "number" if kind == "amount" and _NUMBER.fullmatch(said) else kind
        if kind == "name" and (wording.asks(first) or not _names(first)):
            said, start = more, start + len(first) + 1
        if kind != "name" or (said and not (words("languages").search(said) or _ARTICLE.search(text[:start]))):
            found.append(_Value(start, start + len(one[0] if kind == "quote" else said), kind, said))
    return found


def _names(word: str) -> bool:
    """Whether a word tells what something is, and not that it is another one."""
    return _tells(word.casefold()) and not any(mark.fullmatch(word) for mark in _MARKS)


def _replaced(line: str, text: str, *, anew: bool) -> list[tuple[int, int, str]]:
    """(start, end, what is there from now on) where a text holds what a line says is another one. Of values in pairs
    those that stand there are the old ones; one alone is for the one of its kind of which the text says the same."""
    mine, there = values(line), values(text)
    mine = [one for one in mine if one.kind != "name"] or mine
    marked = any(one.search(line) for one in _MARKS)
    if _HEDGED.search(line) or not mine or len(there) > _MOST_VALUES:
        return []
    plain = line
    for one in reversed(mine):
        plain = f"{plain[: one.start]} {plain[one.end :]}"
    own = [word for word in wording.words_of(plain) if len(word) >= _STEM]
    sought = _alone(mine[0], there, text, marked=marked or anew, insists=words("insists").search(plain) is not None)
    if len(mine) > 1:
        sought = _paired(mine, there, line, text) if marked else []
    for one in (*_MARKS, _NEUTRAL, _BY):
        plain = one.sub(" ", plain)
    own_days = _days(line)
    rest, found = [word for word in wording.words_of(plain) if _tells(word)], list[tuple[int, int, str]]()
    # Beside what is told to be another one, other words may be about the wish.
    all_of = any if rest and len(mine) > 1 else all
    for new, spots, least in sought:
        every = new.kind in _EVERYWHERE
        near = [one for one in spots if all_of(_among([word], wording.words_of(_around(one, text))) for word in rest)]
        shared = {one: _shared(own, one, there, text) for one in near}
        best = [one for one, share in shared.items() if share == max(shared.values()) and share[0] >= least]
        best = [*spots] if every and shared else best
        # What holds on other days, too, is not exchanged for these.
        other = (
            own_days and any(_days(_near_by(one, text)) - own_days for one in best) and new.kind in ("hours", "time")
        )
        if not best or (len(best) > 1 and not every) or other:
            return []
        found += [(one.start, one.end, _NUMBER.sub(new.said, one.said, count=1) if new.kind == "number" else new.said)
                  for one in best]  # fmt: skip
    return found


def _alone(
    new: _Value, there: Sequence[_Value], text: str, *, marked: bool, insists: bool
) -> list[tuple[_Value, list[_Value], int]]:
    """(a value, where it may stand, of how many words both have to speak) of a line that has no other one."""
    if new.kind in ("name", "quote") or insists:
        return []
    if new.kind in _EVERYWHERE:
        spots = [one for one in there if one.kind == new.kind]
        # Of several numbers to call the one of the same place.
        near = [one for one in spots if re.findall(r"\d+", one.said)[:1] == re.findall(r"\d+", new.said)[:1]]
        spots = near if new.kind == "phone" and near else spots
        return [(new, spots, 0)] if len({one.said for one in spots}) == 1 else []
    spots = [one for one in there if one.akin(new) and _clause(one, there, text)
             and (marked or (one.kind == "amount") == (new.kind == "amount"))]  # fmt: skip
    return [(new, spots, 1 if marked else 2)]


def _paired(
    mine: Sequence[_Value], there: Sequence[_Value], line: str, text: str
) -> list[tuple[_Value, list[_Value], int]]:
    """The same of values of which the first half takes the place of the second, or the other way round."""
    half = len(mine) // 2
    sides = [mine[:half], mine[half:]]
    # Names with nothing but "or" between them are a list.
    listed = mine[0].kind == "name" and _LISTED.fullmatch(line[sides[0][-1].end : sides[1][0].start])
    if listed or len(sides[0]) != len(sides[1]) or not all(one.akin(two) for one, two in zip(*sides, strict=True)):
        return []
    holding = [[_holding(one, other, there, line, text) for one, other in zip(side, sides[1 - n], strict=True)]
               for n, side in enumerate(sides)]  # fmt: skip
    if all(holding[0]) == all(holding[1]):
        return []
    old = 0 if all(holding[0]) else 1
    return [(new, spots, 0) for new, spots in zip(sides[1 - old], holding[old], strict=True)]


def _holding(value: _Value, other: _Value, there: Sequence[_Value], line: str, text: str) -> list[_Value]:
    """Where a text has a value; a name with what follows of it, unless a line spells it out and the `other` one is no
    longer: beside "Joris Hendriks" the "Dijkstra" of "Femke Dijkstra" goes, too. In German a noun may follow."""
    if value.kind not in ("name", "quote"):
        return [one for one in there if one.akin(value) and _CORE.findall(one.said) == _CORE.findall(value.said)]
    parts = [re.escape(one) for one in value.said.split()]
    said, more = r"\s+".join(parts), ""
    longer = len(other.said.split()) > len(parts)
    if value.kind == "name" and (longer or not _SWAPS.search(line)):
        said, more = f"{parts[0]}(?:{said.removeprefix(parts[0])})?", r"(?:\s[A-ZÀ-Þ][\w'’-]+)*"
        more = r"(?!\s[A-ZÀ-Þ])" if longer and detect_language(text) == "de" else more
    found = re.finditer(rf"(?<!\w){said}{more}(?!\w)", text, re.IGNORECASE if value.kind == "quote" else re.NOFLAG)
    return [_Value(*one.span(), value.kind, one[0]) for one in found]


def _clause(value: _Value, there: Sequence[_Value], text: str) -> str:
    """The clause around a value; empty where it has another one of its kind."""
    for ends in (_CLAUSE_ENDS, _ITEM_ENDS):
        start = max((one.end() for one in ends.finditer(text, 0, value.start)), default=0)
        end = min((one.start() for one in ends.finditer(text, value.end)), default=len(text))
        if sum(start <= one.start < end and one.akin(value) for one in there) == 1:
            return text[start:end]
    return ""


def _shared(words_: Sequence[str], value: _Value, there: Sequence[_Value], text: str) -> tuple[int, int]:
    """(how many of some words are said of a value, how near to it the nearest one is)."""
    said = _clause(value, there, text) or _around(value, text)
    found = [word for word in words_ if _among([word], wording.words_of(said))]
    before = wording.words_of(said.partition(value.said)[0])
    places = [number for number, word in enumerate(before) if any(_alike(word, one) for one in found)]
    return len(found), places[-1] - len(before) if places else -len(said) * bool(found)


def _days(said: str) -> set[int]:
    return {number for number, day in enumerate(patterns("days", "names")) if day.search(said)}


def _near_by(value: _Value, text: str) -> str:
    """What is said since the value before it."""
    former = (one.end for one in values(text) if one.end <= value.start and one.kind != "name")
    return text[max(former, default=0) : value.start]


def _around(value: _Value, text: str) -> str:
    return next((one[0] for one in _SENTENCE.finditer(text) if one.start() <= value.start < one.end()), "")


def _removed(line: str, text: str) -> tuple[int, int] | None:
    """Where a text holds what a line takes out of it: a quotation, or the one sentence about something."""
    verb, quotes = words("remove").search(line), quoted(line)
    if not verb:
        return None
    if len(quotes) == 1:
        there = [one.span() for one in wording.whole(quotes[0]).finditer(text)]
        rest = words("remove").sub(" ", line.replace(quotes[0], " "))
        return there[0] if len(there) == 1 and not any(map(_tells, wording.words_of(rest))) else None
    if quotes or line[: verb.start()].strip(" -•*"):
        return None
    what, _, why = line[verb.end() :].partition(", ")
    what = what if why and not (wording.instructs(why) or _NUMBER.search(why)) else line[verb.end() :]
    said = [word for word in wording.words_of(_A_LINE.sub(" ", what)) if word not in FUNCTIONS]
    spoken = [one for one in _SENTENCE.finditer(text) if said and _among(said, wording.words_of(one[0]))]
    whole = len(spoken) == 1 and (_A_LINE.search(line) or _among(filter(_tells, wording.words_of(spoken[0][0])), said))
    return spoken[0].span() if whole else None


def _among(some: Iterable[str], others: Sequence[str]) -> bool:
    """Whether each word is among the others, but for its ending."""
    return all(any(_alike(one, two) for two in others) for one in some)


def _alike(one: str, two: str) -> bool:
    shorter, longer = sorted((len(one), len(two)))
    size = max(min(shorter, _STEM), shorter - 2)
    return one == two or (one.isalpha() and one[:size] == two[:size] and longer - shorter < size - 1)


def _tells(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTIONS and not (_SMALL.fullmatch(word) or _SWAPS.fullmatch(word))
