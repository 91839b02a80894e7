"""How what a wish says to the model gets into the prompts of a flow: in place where it says another value of the same,
else under a heading by which it holds."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Literal, NamedTuple

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.reasoning.added_text import parted, with_added_text
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design import wishes, wording
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.values import without_braces
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS, FUNCTIONS, pattern, words
from flowise_dev_agent.reasoning.rules.language.text import capital, detect_language, quoted, quoted_spans

_SENTENCE = pattern("values", "sentence")
_TAG, _ROW_ENDS = re.compile(r"<[^<>]{1,300}>"), re.compile(r"^\s*?(?:\n|</p>|$)|^ +")
_ROW_BEGINS, _CORE = re.compile(r"(?:(?<![^\n])(?:[-•*]\s*)?|<p>)$"), re.compile(r"[1-9]\d*")
_FEW_WORDS, _MOST_CLAUSES, _MOST_VALUES, _LONGEST_READ, _STEM = 3, 8, 300, 1_000, 4
_SWAPS, _BY, _SMALL, _A_LINE = (pattern("exchange", name) for name in ("swaps", "by", "small", "a_line"))
_IN_PROMPT, _HEDGED, _NEUTRAL = (pattern("exchange", name) for name in ("in_prompt", "hedged", "neutral"))
_NOW, _OTHER, _VALUES = (pattern("exchange", name) for name in ("now", "other", "values"))
#: What says that a value is another one.
_MARKS = (_NOW, _OTHER, _SWAPS, pattern("exchange", "rises"), words("instead_of"))
_REMAINS = pattern("change", "remains")
_ARTICLE, _NUMBER = pattern("exchange", "article"), re.compile(r"\d[\d.,:]*")
_SIGNS, _CLAUSE_ENDS = str.maketrans({"€": "euro", "$": "dollar", "£": "pound"}), re.compile(r"[,;:.!?]\s|\n")
#: Names and addresses are other ones wherever a text has them.
_EVERYWHERE = ("name", "mail", "phone")


class Exchange(NamedTuple):
    """A stretch of a text, what it becomes ('': it goes), and the text after that."""

    old: str
    new: str
    after: str


def worded(
    request: PlanRequest, wishes: Sequence[str], change: Reading, places: Mapping[str, str], chosen: Sequence[str],
    swaps: Mapping[str, str], world: World,
) -> tuple[list[PlannedValue], list[str], list[str], list[str]]:  # fmt: skip
    """(values, steps that tell of stretches that change, what is written, what is so already) of what the model is told
    in one of `places`, the prompts (`node.field`) with what they hold while they are empty; `chosen` are those that the
    wish names, `swaps` what is another address in all of them. Raises DeclinedError."""
    given = change.system_text or change.prompt_text
    # What another prompt says is in it.
    wishes = [line for line in wishes if line.strip(" .") not in (given or "")]
    steps, written, already, added = (list[str]() for _ in range(4))
    texts = {place: held(request, place) or default for place, default in places.items()}
    # An address that is another one is so in each of them.
    other = {place: new for place, (old, new) in product(texts, swaps.items()) if old in texts[place]}
    for place, (old, new) in product(other, swaps.items()):
        steps += [world.say("step_reword", where=place, old=old, new=new)] if old in texts[place] else []
        texts[place] = texts[place].replace(old, new)
    values = [_value(place, texts[place], "set") for place in other]
    if not (wishes or given):
        return values, steps, written, already
    # In which step it is to be is said by the place.
    wishes = [capital(wording.STEP.sub("", line)) for line in wishes] if chosen else wishes
    said = [sentence for line in wishes for sentence in _SENTENCE.findall(line)]
    spelled = [place for place, text in texts.items() if any(_changed(one, text)[2] for one in said)]
    # The one that is named, else the only one, else the only one in which a wish exchanges something.
    open_ = [place for place in chosen or list(texts) if place in spelled] or chosen or list(texts)
    if len(open_) != 1:
        names = ", ".join(request.labels.get(id_) or id_ for id_ in (place.partition(".")[0] for place in open_))
        raise world.decline("declined_which", nodes=names) if names else world.decline("declined_no_prompt")
    place = open_[0]
    text, anew = texts[place], (not held(request, place) and bool(texts[place])) or place in other
    if given and not change.adds:
        # Of a template the braces are its variables.
        text, anew = given if place.endswith(".template") else without_braces(given), True
        text += f"\n\n{places[place]}" if "{context}" in places[place] and "{context}" not in text else ""
        written.append(text)
    for line in map(without_braces, [*wishes, *([given] if given and change.adds else [])]):
        written.append(line)
        for sentence in _SENTENCE.findall(line):
            left, text, found = _changed(sentence, text)
            done = [one for one in found if one.old != one.new]
            steps += [world.say("step_reword" if one.new else "step_cut", where=place, old=one.old, new=one.new)
                      for one in done]  # fmt: skip
            already += [f"«{one.old}»" for one in found if one not in done]
            left = wording.ended(left, sentence) if found else left
            line, anew = wording.line_of(line.replace(sentence, left, 1)) if found else line, anew or bool(done)
        rest = "\n".join(row for row in line.split("\n") if re.search(r"\w", row)).strip()
        there = len(rest.split()) >= _FEW_WORDS and rest.strip(" .!").casefold() in text.casefold()
        already.extend([f"«{rest}»"] * there)
        added += [capital(rest)] if rest and not there else []
    more = _headed(added, parted(text)[0], world)
    if anew or more:
        own = _value(place, with_added_text(text, [more]) if anew else more, "set" if anew else "append")
        values = [*(one for one in values if one.node_id != own.node_id), own]
    return values, steps, written, already


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


def _changed(sentence: str, text: str) -> tuple[str, str, list[Exchange]]:
    """(what is left of a sentence, the text, what of it is another one): of clauses that each say something, as many
    as say one thing together."""
    ends = {*wording.borders(sentence, 0, len(sentence), quoted_spans(sentence)), sentence.find(": ") + 1}
    cuts = [at for at in sorted(ends - {0})
            if wording.instructs(sentence[at:]) or _values(sentence[at:])
            or _REMAINS.search(sentence[at:])]  # fmt: skip
    cuts, left, found = [0, *cuts[:_MOST_CLAUSES], len(sentence)], "", list[Exchange]()
    while len(cuts) > 1:
        read = ((n, exchange(sentence[cuts[0] : cuts[n]], text)) for n in range(len(cuts) - 1, 0, -1))
        size, one = next(((n, one) for n, one in read if one), (1, None))
        said = sentence[cuts[0] : cuts[1]]
        # Beside what changes it is not to be told what stays: "the full service 105, the other prices stay".
        left += "" if one or (found and _REMAINS.search(said) and not _values(said)) else said
        found, text, cuts = [*found, one] if one else found, one.after if one else text, cuts[size:]
    return left, text, found


def settled(said: Sequence[wishes.Piece], text: str, held: Sequence[str]) -> list[wishes.Piece]:
    """With commands to edit a text as not done where none of the texts holds what they speak of."""
    found, closed = list[wishes.Piece](), quoted_spans(text)
    for one in said:
        command = one.kind == "wish" and _edits(wording.line_of(text[one.start : one.end]))
        joints = [at for at in wording.borders(text, one.start, one.end, closed)
                  if command and wording.asks(text[at : one.end].strip())]  # fmt: skip
        for start, end in pairwise([one.start, *joints, one.end]):
            line = wording.line_of(text[start:end])
            edited = _SENTENCE.findall(line) if one.kind == "wish" and _edits(line) else []
            stays = any(_changed(part, there)[2] for there in held for part in edited)
            found.append(one._replace(start=start, end=end, kind="undone" if edited and not stays else one.kind))
    return found


def _edits(line: str) -> bool:
    """Whether a line only makes sense to who edits a text."""
    value = re.search(r"\d", line) is not None and not quoted(line)
    commands = (_SWAPS.match(line) or words("remove").match(line)) and (value or _A_LINE.search(line))
    return bool(commands or words("rename").match(line) or (value and _IN_PROMPT.search(line)))


def held(request: PlanRequest, place: str) -> str:
    """What a prompt holds, or will hold by a plan that is not written yet."""
    node_id, _, param = place.partition(".")
    stored = request.stored(node_id, param) if request.base else request.texts.get(place)
    text = stored if isinstance(stored, str) else ""
    for value in request.previous.values if request.previous else ():
        if (value.node_id, value.param) == (node_id, param) and str(value.value) not in text:
            text = f"{text}\n{value.value}".lstrip() if value.mode == "append" else str(value.value)
    return text


def exchange(line: str, text: str) -> Exchange | None:
    """What a line exchanges in a text, or takes out; None unless that is certain, and the line says nothing else."""
    spots = (_removed(line, text) or _replaced(line, text)) if len(line) < _LONGEST_READ else []
    if not spots:
        return None
    start, end, new = spots[0]
    old, before, behind = text[start:end], text[:start], text[end:]
    if new:
        for start, end, one in sorted(spots, reverse=True):
            text = f"{text[:start]}{one}{text[end:]}"
        return Exchange(old, new, text)
    close = next(one.end() for one in _SENTENCE.finditer(text) if one.end() > start)
    behind = behind if re.search(r"\w", text[end:close]) else text[max(end, close) :]
    if _ROW_BEGINS.search(before):
        # Of a row that goes its mark and its end go, too.
        before, behind = _ROW_BEGINS.sub("", before), _ROW_ENDS.sub("", behind, count=1)
    return Exchange(old, "", before + behind if behind else before.rstrip())


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
def _values(text: str) -> list[_Value]:
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


def _replaced(line: str, text: str) -> list[tuple[int, int, str]]:
    """(start, end, what is there from now on) where a text holds what a line says is another one: of two values the
    one that stands there is the old one, and one alone is for the one of its kind of which the text says the same."""
    mine, there = _values(line), _values(text)
    mine = [one for one in mine if one.kind != "name"] or mine
    marked = any(one.search(line) for one in _MARKS)
    if _HEDGED.search(line) or not 0 < len(mine) < 3 or len(there) > _MOST_VALUES or not mine[0].akin(mine[-1]):
        return []
    plain = line
    for one in reversed(mine):
        plain = f"{plain[: one.start]} {plain[one.end :]}"
    new, least, every = mine[0], 1 if marked else 2, mine[0].kind in _EVERYWHERE
    if len(mine) == 2:
        held = [_holding(one, there, line, text) for one in mine]
        new, least, spots = mine[not held[1]], 0, held[0] or held[1]
        if all(held) or not marked:
            return []
    elif new.kind in ("name", "quote") or words("insists").search(plain):
        return []
    else:
        spots = [one for one in there if one.akin(new) and _clause(one, there, text)
                 and (marked or (one.kind == "amount") == (new.kind == "amount"))]  # fmt: skip
        spots, least = (spots if len({one.said for one in spots}) == 1 else [], 0) if every else (spots, least)
    own = [word for word in wording.words_of(plain) if len(word) >= _STEM]
    for one in (*_MARKS, _NEUTRAL, _BY):
        plain = one.sub(" ", plain)
    rest = [word for word in wording.words_of(plain) if _tells(word)]
    shared = {one: sum(_among([word], wording.words_of(_clause(one, there, text) or _around(one, text)))
              for word in own) for one in spots if _among(rest, wording.words_of(_around(one, text)))}  # fmt: skip
    best = [one for one, count in shared.items() if every or count == max(shared.values()) >= least]
    said = [_NUMBER.sub(new.said, one.said, count=1) if new.kind == "number" else new.said for one in best]
    return [(*one[:2], new) for one, new in zip(best, said, strict=True)] if len(best) == 1 or every else []


def _holding(value: _Value, there: Sequence[_Value], line: str, text: str) -> list[_Value]:
    """Where a text has a value; a name with what follows of it, unless a line spells it out."""
    if value.kind not in ("name", "quote"):
        return [one for one in there if one.akin(value) and _CORE.findall(one.said) == _CORE.findall(value.said)]
    parts = [re.escape(one) for one in value.said.split()]
    said, more = r"\s+".join(parts), ""
    if value.kind == "name" and not _SWAPS.search(line):
        said, more = f"{parts[0]}(?:{said.removeprefix(parts[0])})?", r"(?:\s[A-ZÀ-Þ][\w'’-]+)*"
    found = re.finditer(rf"(?<!\w){said}{more}(?!\w)", text, re.IGNORECASE if value.kind == "quote" else re.NOFLAG)
    return [_Value(*one.span(), value.kind, one[0]) for one in found]


def _clause(value: _Value, there: Sequence[_Value], text: str) -> str:
    """The clause around a value; empty where it has another one of its kind."""
    start = max((one.end() for one in _CLAUSE_ENDS.finditer(text, 0, value.start)), default=0)
    ends = min((one.start() for one in _CLAUSE_ENDS.finditer(text, value.end)), default=len(text))
    return text[start:ends] if sum(start <= one.start < ends and one.akin(value) for one in there) == 1 else ""


def _around(value: _Value, text: str) -> str:
    return next((one[0] for one in _SENTENCE.finditer(text) if one.start() <= value.start < one.end()), "")


def _removed(line: str, text: str) -> list[tuple[int, int, str]]:
    """Where a text holds what a line takes out of it: a quotation, or the one sentence about something."""
    verb, quotes = words("remove").search(line), quoted(line)
    if verb and len(quotes) == 1:
        there = [one.span() for one in wording.whole(quotes[0]).finditer(text)]
        rest = words("remove").sub(" ", line.replace(quotes[0], " "))
        return [(*one, "") for one in there if len(there) == 1 and not any(map(_tells, wording.words_of(rest)))]
    if not verb or quotes or line[: verb.start()].strip(" -•*"):
        return []
    what, _, why = line[verb.end() :].partition(", ")
    what = what if why and not (wording.instructs(why) or _NUMBER.search(why)) else line[verb.end() :]
    said = [word for word in wording.words_of(_A_LINE.sub(" ", what)) if word not in FUNCTIONS]
    spoken = [one for one in _SENTENCE.finditer(text) if said and _among(said, wording.words_of(one[0]))]
    whole = len(spoken) == 1 and (_A_LINE.search(line) or _among(filter(_tells, wording.words_of(spoken[0][0])), said))
    return [(*spoken[0].span(), "")] if whole else []


def _among(some: Iterable[str], others: Sequence[str]) -> bool:
    """Whether each word is among the others, but for its ending."""
    return all(any(_alike(one, two) for two in others) for one in some)


def _alike(one: str, two: str) -> bool:
    shorter, longer = sorted((len(one), len(two)))
    size = max(min(shorter, _STEM), shorter - 2)
    return one == two or (one.isalpha() and one[:size] == two[:size] and longer - shorter < size - 1)


def _tells(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTIONS and not (_SMALL.fullmatch(word) or _SWAPS.fullmatch(word))
