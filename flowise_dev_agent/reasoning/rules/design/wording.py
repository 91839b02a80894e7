"""What a wish for a change says to the model, and how it gets into the prompts of the flow."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile
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
from flowise_dev_agent.reasoning.rules.language.text import Span, capital, detect_language, quoted_spans, squeeze

_OBLIGED, _REFERS, _ADDRESS = pattern("about", "obliged"), pattern("about", "refers"), pattern("prompt", "address")
_CAN_IT, _SENTENCE, _IF = pattern("change", "can_it"), pattern("values", "sentence"), pattern("prompt", "if")
#: How a wish says that something is to be in the prompt: "add that ...", "put in: ...".
_PUT = re.compile(rf"(?i)(?:{words('add').pattern})[^:.;\n]{{0,20}}?(?:[:：]|,?\s(?:that|que|che|że))\s*(?=\S)")
_JOINT = re.compile(rf"[,;]\s(?:(?:{'|'.join(wordset('ands'))})\s)?|\s(?:{'|'.join(wordset('ands'))})\s|\s[–—]\s")
_TAG, _VALUE = re.compile(r"<[^<>]{1,60}>"), re.compile(r"\d|[\"“„«「]")

#: "Add our price list, it is a PDF" is one wish.
_NEAR = 40
Kind = Literal["part", "wish", "remark", "left"]


@dataclass(frozen=True)
class Piece:
    """A sentence of a wish; of one that asks for a part of the flow a part of the sentence. `kind`: it asks for a
    part, it is for the model, it asks for nothing, or nobody knows what it asks for."""

    start: int
    end: int
    kind: Kind


def pieces(text: str, spans: Sequence[Span], *, beside: bool = False) -> list[Piece]:
    """What a wish says. A wish for no part of the flow is for the model as it is, unless it is `beside` others."""
    asked = [one for one in spans if (one.names or one.params) and not (one.task or one.keep)]
    parts = [one for one in asked if not one.denied]
    quotes, found = quoted_spans(text), list[Piece]()
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    ends = [one for one in ends[:-1] if not any(start < one < end for start, end in quotes)]
    for start, end in pairwise([0, *ends, len(text)]):
        meets = _meet(parts, start, end)
        cuts = [one.end() for one in _JOINT.finditer(text, start, end) if meets and not _meet_at(quotes, one.start())]
        cuts = [one for one in cuts if not (_REFERS.match(text[one:end]) and _meet(parts, one, one + _NEAR))]
        for begin, finish in pairwise([start, *cuts, end]):
            said = text[begin:finish].strip(" ,;:–—\n")
            rest = re.sub("|".join(re.escape(text[one.start : one.end]) for one in asked) or r"\Z\A", " ", said)
            if _meet(parts, begin, finish) or (asked and not _says(rest)) or (meets and words("keep").search(said)):
                kind: Kind = "part"
            elif not (parts or beside):
                kind = "wish"
            elif not meets:
                kind = "wish" if asks(said) or words("forbids").search(said) or _VALUE.search(said) else "remark"
            elif words("because").match(said) or (_REFERS.match(said) and not _OBLIGED.search(said)):
                kind = "remark"
            elif asks(said) or words("structure").match(said) or (begin > start and found[-1].kind == "wish"):
                kind = "wish"
            else:
                kind = "left" if _VALUE.search(said) or said.split()[0].casefold() in wordset("articles") else "remark"
            if begin > start and found[-1:] and found[-1].kind == kind != "part":
                begin = found.pop().start
            found += [Piece(begin, finish, kind)] if said else []
    return found


def lines(text: str, said: Sequence[Piece], world: World) -> list[str]:
    """What is for the model, each stretch whole. Raises DeclinedError for one that changes the flow itself."""
    found: list[str] = []
    for kind, run in groupby(said, key=lambda one: one.kind):
        stretch = [*run]
        if kind != "wish":
            continue
        line = _line(text[stretch[0].start : stretch[-1].end])
        clauses = re.split(r"[,;]\s", line)
        builds = any(words(name).match(one) for one in clauses for name in ("add", "remove", "create", "change"))
        told = behaves(line) or _IF.match(line) or _OBLIGED.search(line) or _VALUE.search(line)
        if words("structure").search(line) and not quoted_spans(line) and (builds or not told):
            raise world.decline("declined_wish", parts=f"«{line}»")
        found.append(line)
    return found


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
    place = _one_prompt(request, chosen or list(places), wishes, texts, world)
    (node_id, _, param), text, steps = place.partition("."), texts[place], list[str]()
    whole, written, added = not held(request, place) and bool(text), list[str](), list[str]()
    if given and not change.adds:
        # Of a template the braces are its variables.
        text, whole = given if param == "template" else without_braces(given), True
        text += f"\n\n{places[place]}" if "{context}" in places[place] and "{context}" not in text else ""
        written.append(text)
    for line in map(without_braces, [*wishes, *([given] if given and change.adds else [])]):
        if found := exchange(line, text):
            steps.append(world.say("step_reword", where=place, old=found.old, new=found.new or "–"))
            text, whole = applied(text, found), True
        else:
            added.append(line)
        written.append(line)
    more = _added(added, text, world)
    value = "\n".join([text.rstrip(), more]).strip("\n") if whole else more
    return [PlannedValue(node_id=node_id, param=param, value=value, mode="set" if whole else "append")], steps, written


def _added(said: Sequence[str], text: str, world: World) -> str:
    """The lines as they come behind a text: in an empty one as they are, else under the heading by which they hold."""
    if not text.strip() or not said:
        return "\n".join(said)
    plain = _TAG.sub("", text)
    language = detect_language(plain)
    headings = {say("prompt_from_now_on", code) for code in (*FUNCTION_WORDS, world.language)}
    # What stands below an empty line is no item of the list.
    there = any(one in plain and "\n\n" not in plain[plain.rindex(one) :].strip() for one in headings)
    rows = [*([] if there else [say("prompt_from_now_on", language)]), *(f"- {one.removeprefix('- ')}" for one in said)]
    if not text.lstrip().startswith("<p"):
        return "\n".join(rows)
    return "".join(f"<p>{html.escape(row, quote=False)}</p>" for one in rows for row in one.split("\n"))


def says_nothing(text: str) -> bool:
    """Whether a wish does not say at all what is to be different: "make it better"."""
    said = re.findall(r"[^\W\d_]+", text.casefold())
    return (
        bool(said)
        and not _VALUE.search(text)
        and all(word in FUNCTIONS or word in wordset("says_nothing") for word in said)
    )


def asks(line: str) -> bool:
    """Whether a line says what is to be done, or how to behave."""
    wish = any(one.match(line) for one in (_ADDRESS, words("change"), words("add"), words("remove"), _CAN_IT))
    return wish or behaves(line) or _OBLIGED.search(line) is not None


def akin(one: str, other: str) -> bool:
    """Whether two words are forms of one, by how they begin.

    >>> akin("drafter", "drafts"), akin("station", "stay")
    (True, False)
    """
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or (common >= min(len(one), len(other), 5) and common >= 0.57 * max(len(one), len(other)))


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


def _one_prompt(
    request: PlanRequest, places: Sequence[str], wishes: Sequence[str], texts: Mapping[str, str], world: World
) -> str:
    """The only prompt, else the only one in which a wish exchanges something. Raises DeclinedError."""
    if not places:
        raise world.decline("declined_no_prompt")
    places = [place for place in places if any(exchange(line, texts[place]) for line in wishes)] or places
    if len(places) > 1:
        ids = [place.partition(".")[0] for place in places]
        raise world.decline("declined_which", nodes=", ".join(request.labels.get(id_) or id_ for id_ in ids))
    return places[0]


def _line(said: str) -> str:
    """A stretch as the model is told it: without what only frames it ("please add that", "it should")."""
    said = "\n".join(filter(None, (squeeze(re.sub(r"\s{2,}(?=[.!?])", "", row)) for row in said.split("\n"))))
    said = said.strip(" ,;:–—\n")
    while (first := said.partition(" "))[0].casefold() in wordset("ands") and first[2]:
        said = first[2]
    plain = said
    while (first := plain.partition(" "))[0].strip(",").casefold() in wordset("also") and first[2]:
        plain = first[2]
    if frame := _PUT.match(plain) or _CAN_IT.match(plain):
        return capital(re.sub(r"\?+(?=\s|$)", ".", plain[frame.end() :].strip(), count=1))
    frame = _ADDRESS.match(plain)
    plain = plain[frame.end() :] if frame else plain
    return capital(plain if behaves(plain) else said)


def _says(text: str) -> bool:
    return any(not (is_empty(word) or word in FUNCTIONS) for word in re.findall(r"[^\W_]+", text.casefold()))


def _meet(spans: Sequence[Span], start: int, end: int) -> bool:
    return any(one.start < end and start < one.end for one in spans)


def _meet_at(quotes: Sequence[tuple[int, int]], place: int) -> bool:
    return any(start < place < end for start, end in quotes)
