"""What a wish for a change says to the model, and what becomes of the prompts of the flow."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import prompt, rewording
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.rewording import Amendment, amendment
from flowise_dev_agent.reasoning.rules.design.values import without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import Span, capital, quoted, squeeze

#: A number, an address, or a name within a sentence. German writes every noun like a name.
_FACT, _NAME = re.compile(r"\d|@|://"), re.compile(r"(?<=[\w,] )[A-ZÀ-Ý][a-zà-ÿ]")
_MOST_VALUES, _FEWEST_WORDS, _RELATIVE = 50, 3, re.compile(rf"(?i)^(?:{'|'.join(wordset('relatives'))})\s")
_WISHES = ("change", "add", "remove", "copy")
_REFERS, _SUBJECT, _OBLIGED, _SOME = (pattern("about", name) for name in ("refers", "subject", "obliged", "some"))


def without_remarks(text: str, spans: Sequence[Span]) -> tuple[str, list[str]]:
    """(the text without the stretches that ask for nothing and tell the model nothing, those)."""
    all_, remarks, wished, plain = prompt.units(text, spans), list[prompt.Unit](), False, rewording.verbatim(text)
    parts = [span for span in spans if not (span.task or span.keep or span.denied)]
    #: A wish before that needs no more words: one for a part of the flow, and one for a way to behave.
    built = told = False
    for unit, before in zip(all_, [None, *all_], strict=False):
        quote = text[unit.start : unit.end]
        part = any(one.start < unit.end and unit.start < one.end for one in parts)
        begins = prompt.begins_wish(quote.strip()) or _OBLIGED.search(quote) is not None
        # "Could you add that ...?" is a wish.
        wished = begins or (wished and not unit.opens)
        # "... with him" goes with what it hangs on, "and" with what is behind it.
        about, ruled = _REFERS.match(quote), rewording.classes_of(quote)
        bare = not (_FACT.search(quote) or quoted(quote))
        hangs = before in remarks and bare and not (unit.opens or begins or part or ruled)
        apart = unit.opens or quote.lstrip()[:1] in ",;:–—" or text[: unit.start].rstrip()[-1:] in ",;:–—"
        vague = not (ruled or unit.opens or words("structure").search(quote))
        free = (built and (about or vague or _SUBJECT.match(quote))) or (told and about and bare)
        # "Half of our members ..." is why, before or behind what is wished for.
        follows = not (part or begins) and ((free and apart) or (unit.opens and bare and _SOME.match(quote)))
        spoken = plain[unit.start : unit.end], "" if wished else plain[unit.start :]
        if hangs or follows or _is_remark(*spoken, opens=unit.opens):
            remarks += [before] if before and text[before.start : before.end].strip(" ,") in wordset("ands") else []
            remarks.append(unit)
        says = rewording.TELLS.search(quote) and not (words("forbids").search(quote) or rewording.IF.match(quote))
        built, told = built or part, (told or begins) and not says
    rest = text
    for unit in remarks:
        rest = f"{rest[: unit.start]}{' ' * (unit.end - unit.start)}{rest[unit.end :]}"
    return rest, [squeeze(text[unit.start : unit.end]).strip(" ,;:") for unit in remarks]


def _is_remark(stretch: str, behind: str, *, opens: bool) -> bool:
    asks, said = re.match(r"[^.!?\n]*[?？]", behind), stretch.strip(" ,;:.!")
    greets = re.search(r"\w", said) and {*re.findall(r"\w+", said.casefold())} <= wordset("greetings")
    reason = asks or (not opens and words("because").match(said) and not _FACT.search(said))
    wishes = prompt.begins_wish(said) or any(words(name).search(said) for name in _WISHES)
    return bool(greets or ((reason or words("remark").search(said)) and not wishes))


def worded(
    request: PlanRequest, change: Reading, spans: Sequence[Span], places: Mapping[str, str], chosen: Sequence[str],
    world: World, *, understood: bool, gone: Sequence[NodeSchema] = (),
) -> tuple[list[PlannedValue], list[str], list[str]]:  # fmt: skip
    """(values, steps that tell of sentences that change, clauses not understood): what the words of a wish mean for
    `places`, the prompts (`node.field`) with what they hold while they are empty; `chosen` are those that the wish
    names. `understood`: something else of it is done; `gone`: types of nodes that go. Raises DeclinedError."""
    texts = {place: held(request, place) or default for place, default in places.items()}
    lines, left = _heard(request, change, spans, texts, world, understood=understood, named=bool(chosen))
    given, steps, added, near = change.system_text or change.prompt_text, list[str](), list[str](), None
    speak = [place for place in texts if rewording.speaking(texts[place], gone)]
    if not (lines or given or speak):
        return [], [], left
    place = _one_prompt(request, list(chosen) or speak or list(places), lines, texts, world)
    (node_id, _, param), text = place.partition("."), texts[place]
    html, whole = text.lstrip().startswith("<p"), not held(request, place) and bool(places[place])
    if given and not change.adds:
        text, whole = given if param == "template" else without_braces(given), True
        text += f"\n\n{places[place]}" if "{context}" in places[place] and "{context}" not in text else ""
        text, lines = "\n".join([text, *lines]), []
    for line in [*reversed(rewording.speaking(text, gone)), *lines, *([given] if given and change.adds else [])]:
        found = _settled(request, line, text, near, world)
        if isinstance(found, Amendment):
            steps.append(world.say("step_reword", where=place, old=found.old, new=found.new or "–"))
            text, near = _with(text, found), (found.start, found.start + len(found.new or ""))
        elif found:
            added.append(f"<p>{found}</p>" if html else found)
    added = added if len(added) <= _MOST_VALUES else ["\n".join(added)]
    if steps or whole:
        return [PlannedValue(node_id=node_id, param=param, value="\n".join([text, *added]))], steps, left
    return [PlannedValue(node_id=node_id, param=param, value=one, mode="append") for one in added], steps, left


def _heard(
    request: PlanRequest, change: Reading, spans: Sequence[Span], texts: Mapping[str, str], world: World, *,
    understood: bool, named: bool,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """(lines for a prompt; what is not understood beside other things). Raises DeclinedError."""
    trusting = request.intent.operation == "update"
    lines, left = list[str](), list[str]()
    for clause in (one for one in prompt.clauses_of(change.text, spans) if not _is_rest(one)):
        asks = not clause.instruction and any(words(name).search(clause.line) for name in ("add", "remove", "create"))
        structure = asks and words("structure").search(clause.line)
        # A wish that names the node whose prompt it is for may well say "agent".
        free = prompt.speaks_of_no_part(clause.bare) or (named and not structure)
        # What speaks of no part of the flow can only be for the model.
        bare = clause.bare
        fact = _FACT.search(bare) or quoted(bare) or (change.language != "de" and _NAME.search(bare))
        own = prompt.says_enough(clause.line) and (fact or (trusting and free and not understood))
        own = own or clause.instruction or rewording.classes_of(clause.bare)
        told = own or any(rewording.relates(clause.bare, text) for text in texts.values())
        if told and not clause.taken and not structure:
            lines.append(clause.instruction or (clause.line if trusting else capital(_RELATIVE.sub("", clause.line))))
        elif free:
            left.append(clause.line)
        else:
            raise world.decline("declined_wish", parts=f"«{clause.line}»")
    if left and not (lines or understood):
        raise world.decline("declined_wish", parts=f"«{left[0]}»")
    return lines, left


def _is_rest(clause: prompt.Clause) -> bool:
    """Whether a clause is one or two words around what was recognised: in a language without words here a verb."""
    around = "\x00" in clause.bare and not clause.instruction
    return clause.taken and len(rewording.own_words(clause.bare)) < (_FEWEST_WORDS if around else 1)


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
    ids = [place.partition(".")[0] for place in places]
    if len(places) > 1:
        raise world.decline("declined_which", nodes=", ".join(request.labels.get(id_) or id_ for id_ in ids))
    return places[0]


def _settled(
    request: PlanRequest, line: str | Amendment, text: str, near: tuple[int, int] | None, world: World
) -> Amendment | str:
    """What becomes of a sentence of the prompt, one that speaks of what goes or that a line is about; else the line,
    which is added. Raises DeclinedError, a question."""
    gone, said = (line, "") if isinstance(line, Amendment) else (None, without_braces(line))
    found = gone or amendment(said, text, near, new=request.intent.operation == "copy")
    if found is None or found.certain:
        return found or said
    several = [found, *found.others]
    key = "question_gone" if gone else "question_several" if found.others else "question_replace"
    old = " ".join(f"{n}. «{one.old}»" for n, one in enumerate(several, 1)) if found.others else found.old
    question = world.say(key, old=old, line=said, new=found.new or "–")
    answer = without_braces(dict(request.clarifications).get(question, "").strip(" .!\"'«»“”„"))
    if not answer:
        raise DeclinedError(question)
    if (settled := _chosen(answer, said, several)) is None:
        # Nobody is asked the same again.
        raise world.decline("declined_wish", parts=f"«{answer}»")
    return settled


def _chosen(answer: str, line: str, several: Sequence[Amendment]) -> Amendment | str | None:
    """What an answer to the question about these sentences says; None where it leaves it open."""
    if words("to_keep_both").fullmatch(answer):
        return line
    if words("to_replace").fullmatch(answer):
        return several[0] if len(several) == 1 else None
    number = re.fullmatch(r"\D{0,12}(\d)\W*", answer) if several[1:] else None
    meant = [one for n, one in enumerate(several, 1) if (number and int(number[1]) == n) or answer in one.old]
    if len(meant) == 1:
        return replace(meant[0], others=())
    # Another sentence is one about the same thing, but for what goes: an answer to something else gets into no prompt.
    said = "" if several[1:] else line
    about = [one for one in several if not line or rewording.relates(answer, f"{one.old}\n{said}")]
    if len(about) != 1 or any(words(name).match(answer) for name in ("to_replace", "to_keep_both")):
        return None
    # "65 euros" says what changes in the sentence.
    value = amendment(answer, about[0].old)
    whole = rewording.ended(answer, about[0].old) if prompt.says_enough(answer) else None
    new = value.new if value and value.certain else whole
    return replace(about[0], new=new, others=()) if new else None


def _with(text: str, change: Amendment) -> str:
    """The text with a sentence changed; one that goes leaves no gap."""
    before, behind = text[: change.start], text[change.end :]
    behind = behind if change.new or before.strip(" ")[-1:] not in ("", "\n") else behind.lstrip()
    return f"{before}{change.new}{behind}".rstrip()
