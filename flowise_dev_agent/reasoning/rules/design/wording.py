"""What a wish for a change says to the model, and what becomes of the prompts of the flow."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import rewording
from flowise_dev_agent.reasoning.rules.design.prompt import behaves
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.rewording import Amendment, amendment
from flowise_dev_agent.reasoning.rules.design.values import without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import Span, capital, quoted, quoted_spans, squeeze

_FEWEST_WORDS, _FEWEST_SIGNS, _NEAR = 4, 8, 40
_OBLIGED, _REFERS, _ADDRESS = pattern("about", "obliged"), pattern("about", "refers"), pattern("prompt", "address")
_OLD_RULE, _CAN_IT, _SHORT = pattern("change", "old_rule"), pattern("change", "can_it"), pattern("text", "abbreviated")
#: How a wish says that something is to be in the prompt: "add that ...", "put in: ...".
_PUT = re.compile(rf"(?i)(?:{words('add').pattern})[^:.;\n]{{0,20}}?(?:[:：]|,?\s(?:that|que|che|że))\s*(?=\S)")
_LOWER = re.compile(r"(?<=\w\w\w)[.]\s(?=[a-zà-ÿ])|[!?]+\s(?=\w)|(?<=\d)\.\s(?=[a-zà-ÿ]{2})")
_JOINT = re.compile(rf"[,;]\s(?:(?:{'|'.join(wordset('ands'))})\s)?|\s(?:{'|'.join(wordset('ands'))})\s|\s[–—]\s")


@dataclass(frozen=True)
class Heard:
    """One thing that a wish says: a whole sentence, of one that asks for a part of the flow a part of the sentence.
    `part`: it asks for a part; `remark`: it asks for nothing; `loose`: it is beside a part and says neither."""

    start: int
    end: int
    line: str
    part: bool
    remark: bool
    loose: bool


def heard(text: str, spans: Sequence[Span]) -> Iterator[Heard]:
    """What a wish says."""
    parts = [one for one in spans if (one.names or one.params) and not (one.task or one.keep or one.denied)]
    quotes = quoted_spans(text)
    sentences = [span for match in rewording.sentences(text) for span in _typed(text, *match.span())]
    while sentences:
        start, end = sentences.pop(0)
        while sentences and any(one < end < two for one, two in quotes):
            # A sentence that quotes others is one.
            end = sentences.pop(0)[1]
        built = _meet(parts, start, end)
        cuts = [start]
        for joint in _JOINT.finditer(text, start, end) if built else ():
            # A wish of words alone, and a reason, go on behind a joint: "... and tell people about vouchers and dogs".
            said, behind = text[cuts[-1] : joint.start()].strip(" ,;"), text[joint.end() : end]
            why = words("because").match(said) or _REFERS.match(said)
            goes_on = (asks(said) or why) and not _meet(parts, cuts[-1], joint.start())
            apart = asks(behind) if why else _is_cut(text, start, joint.end(), end)
            # "Add our price list, it is a PDF" is one wish.
            hangs = _REFERS.match(behind) and _meet(parts, joint.end(), joint.end() + _NEAR)
            quoted_ = any(one < joint.start() < two for one, two in quotes)
            cuts += [] if quoted_ or hangs or (goes_on and not apart) else [joint.end()]
        # Only beside a part of the flow a sentence is read in pieces: "add a calculator and never mention prices".
        for begin, finish in pairwise([*cuts, end]):
            line, mine = _line(text[begin:finish]), _meet(parts, begin, finish)
            # "... without the calculator", "not the first" say no more.
            known = [re.escape(text[one.start : one.end]) for one in spans if begin <= one.start < finish
                     and (built or (one.denied and one.names))]  # fmt: skip
            says = rewording.own_words(re.sub("|".join(known), "", line)) and not (built and words("keep").search(line))
            mine = mine or (bool(known) and not says)
            if re.search(r"\w", line):
                loose = built and not mine and (not asks(line) or words("because").match(line) is not None)
                yield Heard(begin, finish, line, mine, _is_remark(line, beside=loose, part=mine), loose)


def _meet(spans: Sequence[Span], start: int, end: int) -> bool:
    return any(one.start < end and start < one.end for one in spans)


def _typed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The sentences of a stretch that was typed without capitals: "moves to Mondays. also the lift ..."."""
    short = {match.end() for match in _SHORT.finditer(text, start, end)}
    ends = [match.end() for match in _LOWER.finditer(text, start, end) if match.start() + 1 not in short]
    yield from pairwise([start, *ends, end])


def _is_cut(text: str, start: int, place: int, end: int) -> bool:
    behind = text[place:end].lstrip()
    why = words("because").match(behind) or _REFERS.match(behind) or words("remark").search(text, start, place)
    return bool(why) or asks(behind)


def _line(said: str) -> str:
    """A sentence as it is told to the model: without what only frames it ("please add that", "it should")."""
    said = squeeze(re.sub(r"\s{2,}(?=[.!?])", "", said)).strip(" ,;:–—")
    while (first := said.partition(" "))[0].strip(",").casefold() in wordset("ands") and first[2]:
        said = first[2]
    plain = said
    while (first := plain.partition(" "))[0].strip(",").casefold() in wordset("also") | wordset("ands") and first[2]:
        plain = first[2]
    for one in (said, plain):
        if frame := _PUT.match(one) or _CAN_IT.match(one):
            return capital(re.sub(r"\?+$", ".", one[frame.end() :]))
    frame = _ADDRESS.match(plain)
    plain = plain[frame.end() :] if frame else plain
    return capital(plain if behaves(plain) else said)


def _is_remark(line: str, *, beside: bool, part: bool) -> bool:
    """Whether a line asks for nothing and tells the model nothing. `beside`: a part of the same sentence is built."""
    says = quoted(line) or asks(line) or words("forbids").search(line)
    why = words("remark").search(line) or words("because").match(line) or _OLD_RULE.search(line)
    if beside:
        return bool(why or _REFERS.match(line))
    return bool(why) and not (asks(line) if part else says or rewording.facts(line))


def asks(line: str) -> bool:
    """Whether a line says what is to be done, or how to behave."""
    wish = any(one.match(line) for one in (_ADDRESS, words("change"), words("add"), words("remove"), _CAN_IT))
    return wish or behaves(line) or _OBLIGED.search(line) is not None


def worded(
    request: PlanRequest, said: Sequence[Heard], change: Reading, places: Mapping[str, str], chosen: Sequence[str],
    world: World, *, done: bool, gone: Sequence[NodeSchema] = (),
) -> tuple[list[PlannedValue], list[str], list[str], list[str]]:  # fmt: skip
    """(values, steps that tell of sentences that change, what is written, clauses not understood): what the words of a
    wish mean for `places`, the prompts (`node.field`) with what they hold while they are empty; `chosen` are those that
    the wish names. `done`: something else of it is; `gone`: types of nodes that go. Raises DeclinedError."""
    texts = {place: held(request, place) or default for place, default in places.items()}
    lines, left = _told(request, said, texts, world, done=done, named=bool(chosen))
    given, steps, added, near = change.system_text or change.prompt_text, list[str](), list[str](), (0, 0)
    speak = [place for place in texts if rewording.speaking(texts[place], gone)]
    if not (lines or given or speak):
        return [], [], [], left
    place = _one_prompt(request, list(chosen) or speak or list(places), lines, texts, world)
    (node_id, _, param), text = place.partition("."), texts[place]
    html, whole = text.lstrip().startswith("<p"), not held(request, place) and bool(places[place])
    if given and not change.adds:
        text, whole = given if param == "template" else without_braces(given), True
        text += f"\n\n{places[place]}" if "{context}" in places[place] and "{context}" not in text else ""
        text, lines = "\n".join([text, *lines]), []
    written = [text] if given and not change.adds else []
    lines = [piece for line in lines for piece in _apart(line, text)]
    for line in [*reversed(rewording.speaking(text, gone)), *lines, *([given] if given and change.adds else [])]:
        found = _settled(request, line, text, near, world)
        if isinstance(found, Amendment):
            steps.append(world.say("step_reword", where=place, old=found.old, new=found.new or "–"))
            written.append(f"{line if isinstance(line, str) else ''} {found.new}")
            text, near = _with(text, found), (found.start, found.start + len(found.new))
        elif found:
            added.append(f"<p>{found}</p>" if html else found)
    if steps or whole:
        values = [PlannedValue(node_id=node_id, param=param, value="\n".join([text, *added]))]
    else:
        values = [PlannedValue(node_id=node_id, param=param, value="\n".join(added), mode="append")] if added else []
    return values, steps, [*written, *added], left


def _told(
    request: PlanRequest, said: Sequence[Heard], texts: Mapping[str, str], world: World, *, done: bool, named: bool
) -> tuple[list[str], list[str]]:
    """(lines for a prompt; what is not understood beside other things). Raises DeclinedError."""
    lines, left = list[str](), list[str]()
    for one in (one for one in said if not (one.remark or one.part)):
        line, makes = one.line, any(words(name).match(one.line) for name in ("add", "remove", "create", "change"))
        structure = words("structure").search(line) and (makes or not (named or _is_told(line)))
        wanted = request.intent.operation == "update" and says_enough(line) and not done
        about = any(rewording.relates(line, text) for text in texts.values())
        if structure or (makes and not (_is_told(line) or wanted or about)):
            raise world.decline("declined_wish", parts=f"«{line}»")
        (lines if not one.loose and (_is_told(line) or wanted or about) else left).append(without_braces(line))
    if left and not (lines or done):
        raise world.decline("declined_wish", parts=f"«{left[0]}»")
    return lines, left


def _apart(line: str, text: str) -> list[str]:
    """The parts of a line that each give another value to what the prompt says, else the line as it is."""
    cuts = [0, *(joint.end() for joint in _JOINT.finditer(line)), len(line)]
    parts = [line[start:end].strip(" ,;") for start, end in pairwise(cuts)]
    apart = len(parts) > 1 and all(rewording.values_in(one) for one in parts)
    return parts if apart and all((found := amendment(one, text)) and found.certain for one in parts) else [line]


def _is_told(line: str) -> bool:
    """Whether a line is a rule or a fact for the model."""
    rule = behaves(line) or rewording.classes_of(line) or rewording.IF.match(line)
    return bool(rule or (says_enough(line) and (rewording.facts(line) or _OBLIGED.search(line))))


def says_enough(line: str) -> bool:
    """Whether a line can be a wish of its own, and not a remark ("hmm, not quite"). Some scripts have no spaces."""
    spaces = line.count(" ")
    return spaces >= _FEWEST_WORDS - 1 or (not spaces and not line.isascii() and len(line) >= _FEWEST_SIGNS)


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
    request: PlanRequest, places: Sequence[str], lines: Sequence[str], texts: Mapping[str, str], world: World
) -> str:
    """The only prompt, else the only one that holds what the lines speak about. Raises DeclinedError."""
    if not places:
        raise world.decline("declined_no_prompt")
    places = [place for place in places if any(amendment(line, texts[place]) for line in lines)] or places
    if len(places) > 1:
        ids = [place.partition(".")[0] for place in places]
        raise world.decline("declined_which", nodes=", ".join(request.labels.get(id_) or id_ for id_ in ids))
    return places[0]


def _settled(
    request: PlanRequest, line: str | Amendment, text: str, near: tuple[int, int], world: World
) -> Amendment | str:
    """What becomes of a sentence of the prompt, one that speaks of what goes or that a line is about; else the line,
    which is added. Raises DeclinedError, a question, which is asked once more where the answer leaves it open."""
    gone, said = (line, "") if isinstance(line, Amendment) else (None, line)
    found = gone or amendment(said, text, near, new=request.intent.operation == "copy")
    if found is None or found.certain:
        return found or said
    several, answers = [found, *found.others], dict(request.clarifications)
    key = "question_gone" if gone else "question_several" if found.others else "question_replace"
    old = " ".join(f"{n}. «{one.old}»" for n, one in enumerate(several, 1)) if found.others else found.old
    question, answer = world.say(key, old=old, line=said, new=found.new or "–"), ""
    for _ in range(2):
        answer = without_braces(answers.get(question, "").strip(" .!\"'«»“”„"))
        if not answer:
            raise DeclinedError(question)
        if (settled := _chosen(answer, said, several)) is not None:
            return settled
        question = world.say("question_again", answer=answer, question=question)
    raise world.decline("declined_wish", parts=f"«{answer}»")


def _chosen(answer: str, line: str, several: Sequence[Amendment]) -> Amendment | str | None:
    """What an answer to the question about these sentences says; None where it leaves it open."""
    named = (
        [one for one in several if rewording.speaks_of(answer, one.old)]
        if several[1:] and not says_enough(answer)
        else []
    )
    if len(named) == 1:
        return replace(named[0], others=())
    if words("to_keep_both").fullmatch(answer):
        return line
    if words("to_replace").fullmatch(answer):
        return several[0] if len(several) == 1 else None
    number = re.fullmatch(r"\D{0,12}(\d)\W*", answer) if several[1:] else None
    meant = [one for n, one in enumerate(several, 1) if (int(number[1]) == n if number else answer in one.old)]
    if len(meant) == 1:
        return replace(meant[0], others=())
    # Another sentence is one about the same thing, but for what goes: an answer to something else gets into no prompt.
    said = "" if several[1:] else line
    about = [one for one in several if not line or rewording.relates(answer, f"{one.old}\n{said}")]
    if len(about) != 1 or any(words(name).match(answer) for name in ("to_replace", "to_keep_both")):
        return None
    # "65 euros" says what changes in the sentence.
    value = amendment(answer, about[0].old)
    whole = rewording.ended(answer, about[0].old) if says_enough(answer) else None
    new = value.new if value and value.certain else whole
    return replace(about[0], new=new, others=()) if new else None


def _with(text: str, change: Amendment) -> str:
    """The text with a sentence changed; one that goes leaves no gap."""
    before, behind = text[: change.start], text[change.end :]
    behind = behind if change.new or before.strip(" ")[-1:] not in ("", "\n") else behind.lstrip()
    return f"{before}{change.new}{behind}".rstrip()
