"""What a wish for a change says to the model, and how it gets into the prompts of the flow."""

import html
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.prompt import behaves, is_empty
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.rewording import applied, exchange
from flowise_dev_agent.reasoning.rules.design.values import without_braces
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS, FUNCTIONS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import (
    Span,
    capital,
    detect_language,
    quoted,
    quoted_spans,
    squeeze,
)

_OBLIGED, _REFERS, _ADDRESS = pattern("about", "obliged"), pattern("about", "refers"), pattern("prompt", "address")
_CAN_IT, _SENTENCE, _IF = pattern("change", "can_it"), pattern("values", "sentence"), pattern("prompt", "if")
#: How a wish says that something is to be in the prompt: "add that ...", "put in: ...".
_PUT = re.compile(rf"(?i)(?:{words('add').pattern})[^:.;\n]{{0,20}}?(?:[:：]|,?\s(?:that|que|che|że))\s*(?=\S)")
_AND = f"(?:{'|'.join(wordset('ands'))})"
_JOINT = re.compile(rf"[,;]\s(?:{_AND}\s)?|\s{_AND}\s|\s[–—]\s|[!?]+\s|、")
_FEW_WORDS, _FROM_NOW = 3, pattern("change", "from_now_on")
_CLAUSE, _ENDS = re.compile(r"[,;.!?]"), re.compile(rf"[,;]?\s{_AND}$")
_MARKER = re.compile(r"^\s*(?:\d{1,2}[.)]\s+)")
_TAG, _VALUE = re.compile(r"<[^<>]{1,60}>"), re.compile(r"\d|[\"“„«「]")


@dataclass(frozen=True)
class Piece:
    """A sentence of a wish; of one that asks for a part of the flow a part of the sentence. `kind`: it asks for a
    part, it is for the model, or it asks for nothing."""

    start: int
    end: int
    kind: Literal["part", "wish", "remark"]


def pieces(text: str, spans: Sequence[Span], *, beside: bool = False, copied: bool = False) -> list[Piece]:
    """What a wish says. A wish for no part of the flow is for the model as it is, unless it is `beside` others; in a
    copy all is that is no part."""
    asked = [one for one in spans if (one.names or one.params) and not (one.task or one.keep)]
    parts, quotes, found = [one for one in asked if not one.denied], quoted_spans(text), list[Piece]()
    known = "|".join(re.escape(text[one.start : one.end]) for one in spans if not one.task)
    ends = [match.end() for match in _SENTENCE.finditer(text)][:-1]
    for start, end in pairwise([0, *(one for one in ends if not _inside(quotes, one)), len(text)]):
        meets = any(one.meets(start, end) for one in parts)
        joints = [one for one in _JOINT.finditer(text, start, end) if meets and not _inside(quotes, one.start())]
        # "Add our price list, it is a PDF" is one wish.
        ahead = [(one.end(), one.end() + len(_CLAUSE.split(text[one.end() : end])[0])) for one in joints]
        hang = [at for at, stop in ahead if _REFERS.match(text[at:end]) and any(one.meets(at, stop) for one in parts)]
        for begin, finish in pairwise([start, *(at for at, _ in ahead if at not in hang), end]):
            said = text[begin:finish].strip(" ,;:–—\n")
            says = _says(re.sub(known or r"\Z\A", " ", said))
            own = [one for one in parts if one.meets(begin, finish)]
            # "Add a calculator and always calculate with VAT": asked for once.
            again = all(any(one.names & other.names for other in parts if other not in own) for one in own)
            part = (own and not (again and says and _instructs(said))) or (asked and not says)
            because = words("because").match(said) or (_REFERS.match(said) and not _OBLIGED.search(said))
            tells = _instructs(said) or (words("structure").match(said) if meets else _VALUE.search(said))
            last = found[-1].kind if begin > start and found else ""
            told = copied or not (parts or beside) or ((tells or last == "wish") and not (meets and because))
            if part or (meets and words("keep").search(said)):
                begin += len(text[begin:finish]) - len(_MARKER.sub("", text[begin:finish]))
                found.append(Piece(begin, finish, "part"))
            elif said:
                kind = "wish" if told else "remark"
                begin = found.pop().start if last == kind else begin
                found.append(Piece(begin, finish, kind))
    return found


def lines(text: str, said: Sequence[Piece], values: Set[str]) -> list[str]:
    """What is for the model, each stretch whole; what only quotes one of the `values` is for a field."""
    runs = ([*run] for kind, run in groupby(said, key=lambda one: one.kind) if kind == "wish")
    found = (text[run[0].start : run[-1].end] for run in runs)
    return [_line(one) for one in found if not ((own := quoted(one)) and values >= {*own})]


def worded(
    request: PlanRequest, wishes: Sequence[str], change: Reading, places: Mapping[str, str], chosen: Sequence[str],
    world: World,
) -> tuple[list[PlannedValue], list[str], list[str]]:  # fmt: skip
    """(values, steps that tell of stretches that change, what is written) of what the model is told in `places`, the
    prompts (`node.field`) with what they hold while they are empty; `chosen` are those that the wish names. Raises
    DeclinedError."""
    given = change.system_text or change.prompt_text
    if not (wishes or given):
        return [], [], []
    texts = {place: held(request, place) or default for place, default in places.items()}
    spelled = [place for place, text in texts.items() if any(_exchanges(line, text) for line in wishes)]
    if not spelled and (built := next(filter(_builds, wishes), None)):
        raise world.decline("declined_wish", parts=f"«{built}»")
    # The one that is named, else the only one, else the only one in which a wish exchanges something.
    open_ = [place for place in chosen or list(texts) if place in spelled] or chosen or list(texts)
    if len(open_) != 1:
        names = ", ".join(request.labels.get(id_) or id_ for id_ in (place.partition(".")[0] for place in open_))
        raise world.decline("declined_which", nodes=names) if names else world.decline("declined_no_prompt")
    place = open_[0]
    (node_id, _, param), text, steps = place.partition("."), texts[place], list[str]()
    whole, written, added = not held(request, place) and bool(text), list[str](), list[str]()
    if given and not change.adds:
        # Of a template the braces are its variables.
        text, whole = given if param == "template" else without_braces(given), True
        text += f"\n\n{places[place]}" if "{context}" in places[place] and "{context}" not in text else ""
        written.append(text)
    for line in map(without_braces, [*wishes, *([given] if given and change.adds else [])]):
        written.append(line)
        for sentence in _SENTENCE.findall(line):
            if found := exchange(sentence, text):
                steps.append(world.say("step_reword", where=place, old=found.old, new=found.new or "–"))
                text, whole, line = applied(text, found), True, line.replace(sentence, "", 1)
        added += [rest] if (rest := "\n".join(row for row in line.split("\n") if re.search(r"\w", row)).strip()) else []
    more = _added(added, text, world)
    value = "\n".join([text.rstrip(), more]).strip("\n") if whole else more
    return [PlannedValue(node_id=node_id, param=param, value=value, mode="set" if whole else "append")], steps, written


def _added(said: Sequence[str], text: str, world: World) -> str:
    """The lines as they come behind a text: in an empty one as they are, else under the heading by which they hold."""
    if not text.strip() or not said:
        return "\n".join(said)
    plain = _TAG.sub("", text)
    language = detect_language(plain if len(plain.split()) > _FEW_WORDS else f"{plain} {said[0]}")
    headings = {say("prompt_from_now_on", code) for code in (*FUNCTION_WORDS, world.language)}
    # What stands below an empty line is no item of the list.
    there = any(one in plain and "\n\n" not in plain[plain.rindex(one) :].strip() for one in headings)
    rows = [*([] if there else [say("prompt_from_now_on", language)]), *(f"- {one.removeprefix('- ')}" for one in said)]
    if not text.lstrip().startswith("<p"):
        return "\n".join(rows)
    return "".join(f"<p>{html.escape(row, quote=False)}</p>" for one in rows for row in one.split("\n"))


def _exchanges(line: str, text: str) -> bool:
    return any(exchange(sentence, text) for sentence in _SENTENCE.findall(line))


def _builds(line: str) -> bool:
    """Whether a line asks for a part of the flow that is not understood, and says nothing to the model."""
    clauses, verbs = re.split(r"[,;]\s", line), [words(name) for name in ("add", "remove", "create", "change")]
    makes = any(verb.match(one) for one in clauses for verb in verbs)
    structure = words("structure").search(line) and not quoted_spans(line)
    return bool(structure) and (makes or not (_instructs(line) or _VALUE.search(line)))


def says_nothing(text: str) -> bool:
    """Whether a wish does not say at all what is to be different: "make it better"."""
    said = re.findall(r"[^\W\d_]+", text.casefold())
    return bool(said) and {*said} <= FUNCTIONS | wordset("says_nothing") and not _VALUE.search(text)


def asks(line: str) -> bool:
    """Whether a line says what is to be done, or how to behave."""
    wish = any(one.match(line) for one in (_ADDRESS, words("change"), words("add"), words("remove"), _CAN_IT))
    return wish or behaves(line) or _OBLIGED.search(line) is not None


def _instructs(line: str) -> bool:
    # A script without spaces is not read word by word.
    unread = " " not in line and not line.isascii()
    return unread or asks(line) or bool(_IF.match(line) or words("insists").search(line))


def held(request: PlanRequest, place: str) -> str:
    """What a prompt holds, or will hold by a plan that is not written yet."""
    node_id, _, param = place.partition(".")
    node, steps = request.base.node(node_id) if request.base else None, parse_path(param)
    held = value_at(node.inputs, steps) if node and steps else request.texts.get(place)
    text = held if isinstance(held, str) else ""
    for value in request.previous.values if request.previous else ():
        if (value.node_id, value.param) == (node_id, param) and str(value.value) not in text:
            text = f"{text}\n{value.value}".lstrip() if value.mode == "append" else str(value.value)
    return text


def _line(said: str) -> str:
    """A stretch as the model is told it: without what only frames it ("please add that", "it should")."""
    said = "\n".join(filter(None, (squeeze(re.sub(r"\s{2,}(?=[.!?])", "", row)) for row in said.split("\n"))))
    plain = said = _FROM_NOW.sub("", _ENDS.sub("", said.strip(" ,;:–—\n"))).strip(" ,")
    while (first := plain.partition(" "))[0].strip(",").casefold() in wordset("also") and first[2]:
        plain = first[2]
    if frame := _PUT.match(plain) or _CAN_IT.match(plain):
        return capital(re.sub(r"\?+(?=\s|$)", ".", plain[frame.end() :].strip(), count=1))
    frame = _ADDRESS.match(plain)
    plain = plain[frame.end() :] if frame else plain
    return capital(plain if behaves(plain) else said)


def _says(text: str) -> bool:
    """Whether a text says more than which node is meant."""
    said = {word for word in re.findall(r"[^\W_]+", text.casefold()) if not is_empty(word)} - FUNCTIONS
    return any(not any(words(name).fullmatch(word) for name in ("first", "second", "third")) for word in said)


def _inside(quotes: Sequence[tuple[int, int]], place: int) -> bool:
    return any(start < place < end for start, end in quotes)
