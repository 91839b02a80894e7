"""How what a wish says gets into the texts of a flow: a value takes the place of the one that is named beside it, an
address to write to or a number to call of the only one of its kind; all else comes behind the text."""

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.reasoning.added_text import parted, with_added_text
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design import wording
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.values import without_braces
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS, FUNCTIONS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import (
    DONE,
    NUL,
    Span,
    capital,
    detect_language,
    quoted,
    quoted_spans,
)

_SENTENCE, _TAG = pattern("values", "sentence"), re.compile(r"<[^<>]{1,300}>")
_ROW_ENDS, _ROW_BEGINS = re.compile(r"^\s*?(?:\n|</p>|$)|^ +"), re.compile(r"(?:(?<![^\n])(?:[-•*]\s*)?|<p>)$")
_FEW_WORDS, _MOST_VALUES, _LONGEST_READ, _STEM, _ASIDE, _DIGITS, _BESIDE = 3, 300, 1_000, 4, 2, 7, 20
_HEDGED, _SMALL, _VALUES = (pattern("exchange", name) for name in ("hedged", "small", "values"))
_NOW, _NEW, _FORMER = (pattern("exchange", name) for name in ("now", "new", "former"))
#: What says that a value is another one.
_SWAPS, _BY = pattern("exchange", "swaps"), pattern("exchange", "by")
_MARKS = (_NOW, _SWAPS, _BY, pattern("exchange", "other"), pattern("exchange", "rises"), words("instead_of"))
_CORE, _NUMBER = re.compile(r"[1-9]\d*"), re.compile(r"\d[\d.,:]*")
_SIGNS = str.maketrans({"€": "euro", "$": "dollar", "£": "pound"})
_GOES_ON = re.compile(r"\s[A-ZÀ-Þ]")
#: "Bo instead of Ada", "Bo, not Ada".
_A_NAME = r"[\"“„«]?(?P<name>(?-i:[A-ZÀ-Þ])[\w'’-]*(?:\s(?-i:[A-ZÀ-Þ])[\w'’-]*)*)[\"”“»]?"
_NAMED_LAST, _NAMED_FIRST = re.compile(rf"(?<!\w){_A_NAME}$"), re.compile(_A_NAME)
_CASE = re.compile(rf"(?i)(?:{'|'.join(wordset('prepositions'))})\s")
_ENDS_AND = re.compile(rf"(?i)(?:^|\s)(?:{'|'.join(wordset('ands'))})\s$")
_NOT_BUT = re.compile(rf"(?i),?\s(?:{words('instead_of').pattern})\s|,\s(?:not|nicht|pas|no|non|não|niet|nie)\s")
_REMAINS, _FROM = pattern("change", "remains"), re.compile(r"(?i)(?<!\w)(?:from|vo[nm]|de|desde|dal?|van|z|od)\s$")
#: What reaches somebody, by its name.
_CONTACT = re.compile(
    r"(?i)tel[eé]?f|phone|mobil|handy|cell|num+[eé]?r|número|nummer|mail|correo|adres|address|dirección|indirizzo|"
    r"endereço|morada|stra(?:ss|ß)e|fax|hotline|line|numer|recapito|contact|kontakt"
)
#: Where one of them reaches somebody: each is another one wherever a text has it.
_CONTACTS = ("mail", "phone", "street")


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
        """Exchange what the sentences of a wish say anew, or the clauses of those that say more, in the texts that they
        are `near`. What was `taken` from it already is no fact of a text."""
        closed = quoted_spans(wish)
        for start, end, _ in wording.sentences(wish, closed):
            # In a copy all facts are other ones, and in a sentence that says so once.
            anew = copied or any(one.search(wish, start, end) for one in (_NOW, _NEW))
            whole = [(start + one.start, start + one.end) for one in values(wish[start:end])]
            cuts = [at for at in wording.borders(wish, start, end, closed) if not any(a < at < b for a, b in whole)]
            # A number to call alone is of whom is spoken in front of it.
            cuts = [at for at, to in pairwise([*sorted(cuts), end]) if wording.says(_VALUES.sub(" ", wish[at:to]))
                    or not any(one.kind in _CONTACTS for one in values(wish[at:to]))]  # fmt: skip
            for a, b in dict.fromkeys([(start, end), *pairwise([start, *cuts, end])]):
                free = not any(one.meets(a, b) for one in [*taken, *self.spans])
                if free and self._exchanged(wish, a, b, near, anew=anew) and (a, b) == (start, end):
                    break

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
    # "Se" is no "if" in Spanish.
    spanish = detect_language(line) == "es"
    if any(one[0].casefold() != "se" or not spanish for one in _HEDGED.finditer(line)):
        return None
    spots, after = _renamed(line, text), text
    if not spots and (cut := _removed(line, text)):
        return _without(text, *cut)
    spots = spots or _replaced(line, text, anew=anew)
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
    """A number, a time, a date, an address or a quotation in a text."""

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
        kind, said = one.lastgroup or "", one["quote"] or one[0]
        unit = re.search(r"\s?([^\W\d]+)$", said)
        if kind == "amount" and unit and not _tells(unit[1].casefold()):
            said = said[: unit.start()]
        kind = "number" if kind == "amount" and _NUMBER.fullmatch(said) else kind
        end = one.end() if kind == "quote" else one.start() + len(said)
        found.append(_Value(one.start(), end, kind, said))
    return found


def _replaced(line: str, text: str, *, anew: bool) -> list[tuple[int, int, str]]:
    """(start, end, what is there from now on) of the one value of a text that a line names beside another one, or of
    the only address of its kind."""
    mine, there = values(line), values(text)
    plain = line
    for one in reversed(mine):
        plain = f"{plain[: one.start]} {plain[one.end :]}"
    marked = any(one.search(plain) for one in _MARKS)
    if not (marked or anew) or len(there) > _MOST_VALUES or (len(mine) > 1 and _REMAINS.search(plain)):
        return []
    old = 0
    if (
        len(mine) == 1
        and mine[0].kind in _CONTACTS
        and (mine[0].kind != "phone" or len(re.sub(r"\D", "", mine[0].said)) >= _DIGITS)
    ):
        new, spots = mine[0], [one for one in there if one.kind == mine[0].kind]
        spots = spots if len({one.said for one in spots}) == 1 else []
    elif len(mine) == 2 and marked and mine[0].akin(mine[1]) and _is_between(line, *mine):
        held = [_holding(one, there, text) for one in mine]
        old = 0 if held[0] else 1
        new, spots = mine[1 - old], held[old] if bool(held[0]) != bool(held[1]) else []
    else:
        return []
    if not spots or (len(spots) > 1 and new.kind not in (*_CONTACTS, "quote")):
        return []
    for mark in _MARKS:
        plain = mark.sub(" ", plain)
    around = wording.words_of(" ".join(_around(one, text) for one in spots))
    # What the text does not speak of would be lost.
    tells = [word for word in wording.words_of(plain) if _tells(word)]
    other = [word for word in tells if not any(_alike(word, one) for one in around)]
    # "The new caretaker is at 555 0175" is about somebody else.
    fresh = _NEW.search(line) if new.kind in _CONTACTS else None
    if len(other) > _ASIDE or (fresh and {*wording.words_of(line[fresh.end() :])[:1]} & {*other}):
        return []
    # A number alone may be that of anything else, and an address that of anybody: what it is is said of both.
    same = spots[0].said.casefold() == mine[old].said.casefold() and not _NUMBER.fullmatch(mine[old].said)
    # "From 48 to 72 hours" says both.
    same = same or (
        old == 0 and len(mine) == 2 and _FROM.search(line[: mine[0].start]) and _BY.search(line, mine[0].end)
    )
    told = (_CONTACT.search(plain) or len(mine) == 2) if new.kind in _CONTACTS else same
    if tells == other and (tells or new.kind in _CONTACTS) and not (told or anew) and new.kind != "quote":
        return []
    # "30 Urlaubstage" for "27 days" is 30 days.
    bare = new.kind == "number" or (new.kind == "amount" and (spots[0].kind == "number" or not spots[0].akin(new)))
    number = next(iter(_NUMBER.findall(new.said)), "")
    return [(one.start, one.end, _NUMBER.sub(number, one.said, count=1) if bare else new.said) for one in spots]


def _is_between(line: str, one: _Value, two: _Value) -> bool:
    """Whether what says that a value is another one stands beside them, and is not said of something else."""
    around = f"{line[max(0, one.start - _BESIDE) : one.start]}\n{line[two.end : two.end + _BESIDE]}"
    beside = any(mark.search(around) for mark in (_NOW, _SWAPS, _FORMER))
    return beside or any(mark.search(line, one.end, two.start) for mark in (*_MARKS, _FORMER))


def _renamed(line: str, text: str) -> list[tuple[int, int, str]]:
    """The same of a name that a line says to replace by another one: "Replace Ada by Bo", "Bo instead of Ada"."""
    plain, pairs = line.rstrip(" .!?"), list[tuple[str, str]]()
    if swaps := _SWAPS.search(plain):
        pairs = [(plain[swaps.end() : one.start()], plain[one.end() :]) for one in _BY.finditer(plain, swaps.end())]
    for one in _NOT_BUT.finditer(plain):
        new, old = _NAMED_LAST.search(plain[: one.start()]), _NAMED_FIRST.match(plain, one.end())
        # "Kim and Bo instead of Ada" are two, and a language is no name.
        if new and old and not (words("languages").search(old["name"]) or _ENDS_AND.search(plain[: new.start()])):
            # A sentence begins with a capital, too: "Call Bo instead of Ada".
            first = new.start() == 0 and " " in new["name"]
            pairs.append((old["name"], new["name"].partition(" ")[2] if first else new["name"]))
    for old, new in ((old.strip(), new.strip()) for old, new in pairs):
        there = [*wording.whole(old).finditer(text)] if old[:1].isupper() else []
        # A part of a name is not the name.
        there = [] if any(_GOES_ON.match(text, found.end()) for found in there) else there
        other = [word for word in wording.words_of(line) if _tells(word) and word not in f"{old} {new}".casefold()]
        few = len(new.split()) <= _FEW_WORDS >= len(other)
        # Of two that are there already, and in a case ("for refunds ..."), it is no other name.
        both = wording.whole(new).search(text) or _CASE.match(line)
        if there and few and new[:1].isupper() and not (both or _VALUES.search(line)):
            return [(*found.span(), new) for found in there]
    return []


def _holding(value: _Value, there: Sequence[_Value], text: str) -> list[_Value]:
    """Where a text has a value."""
    if value.kind != "quote":
        return [one for one in there if one.akin(value) and _CORE.findall(one.said) == _CORE.findall(value.said)]
    return [_Value(*one.span(), "quote", one[0]) for one in wording.whole(value.said).finditer(text)]


def _around(value: _Value, text: str) -> str:
    return next((one[0] for one in _SENTENCE.finditer(text) if one.start() <= value.start < one.end()), "")


def _removed(line: str, text: str) -> tuple[int, int] | None:
    """Where a text holds the one quotation that a line takes out of it."""
    quotes = quoted(line) if words("remove").search(line) else []
    there = [one.span() for one in wording.whole(quotes[0]).finditer(text)] if len(quotes) == 1 else []
    rest = words("remove").sub(" ", line.replace(quotes[0], " ")) if quotes else ""
    return there[0] if len(there) == 1 and not any(map(_tells, wording.words_of(rest))) else None


def _alike(one: str, two: str) -> bool:
    """Whether two words are one, but for its ending."""
    shorter, longer = sorted((len(one), len(two)))
    size = max(min(shorter, _STEM), shorter - 2)
    return one == two or (one.isalpha() and one[:size] == two[:size] and longer - shorter < size - 1)


def _tells(word: str) -> bool:
    """Whether a word tells what something is, and not that it is another one."""
    return len(word) > 1 and not (word in FUNCTIONS or _SMALL.fullmatch(word) or any(
        mark.fullmatch(word) for mark in _MARKS))  # fmt: skip
