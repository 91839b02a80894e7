"""What a wish for a change says to the model, and what becomes of the prompts of the flow."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design.prompt import (
    Clause,
    Unit,
    begins_wish,
    behaves,
    clauses_of,
    is_empty,
    says_enough,
    speaks_of_no_part,
    units,
)
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.rewording import Amendment, amendment, relates
from flowise_dev_agent.reasoning.rules.design.values import without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import words, wordset
from flowise_dev_agent.reasoning.rules.language.text import Span, quoted, squeeze

#: A number, an address, or a name within a sentence. German writes every noun like a name.
_FACT, _NAME = re.compile(r"\d|@|://"), re.compile(r"(?<=[\w,] )[A-ZÀ-Ý][a-zà-ÿ]")
_FEWEST_WORDS, _LONGEST_FACT = 3, 15
_WISHES = ("change", "add", "remove", "copy")
_HANGING = wordset("relatives") | wordset("prepositions")


@dataclass(frozen=True)
class Words:
    """What a wish does to prompts: values, steps that tell of sentences that change, and clauses that no prompt holds
    because they are not understood."""

    values: tuple[PlannedValue, ...] = ()
    steps: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def without_remarks(text: str, spans: Sequence[Span]) -> tuple[str, list[str]]:
    """(the text without the stretches that ask for nothing and tell the model nothing, those)."""
    all_, remarks, wished = units(text, spans), list[Unit](), False
    for unit, before in zip(all_, [None, *all_], strict=False):
        quote = text[unit.start : unit.end]
        # "Could you add that ...?" is a wish.
        wished = begins_wish(quote.strip()) or (wished and not unit.opens)
        # "... with him" goes with what it hangs on, "and" with what is behind it.
        hangs = before in remarks and not unit.opens and quote.split(" ", 1)[0].casefold() in _HANGING
        if hangs or _is_remark(quote, "" if wished else text[unit.start :], opens=unit.opens):
            remarks += [before] if before and text[before.start : before.end].strip(" ,") in wordset("ands") else []
            remarks.append(unit)
    rest = text
    for unit in remarks:
        rest = f"{rest[: unit.start]}{' ' * (unit.end - unit.start)}{rest[unit.end :]}"
    return rest, [squeeze(text[unit.start : unit.end]).strip(" ,;:") for unit in remarks]


def _is_remark(stretch: str, behind: str, *, opens: bool) -> bool:
    asks, said = re.match(r"[^.!?\n]*[?？]", behind), stretch.strip(" ,;:.!")
    greets = bool(said) and all(word in wordset("greetings") for word in re.findall(r"\w+", said.casefold()))
    reason = not opens and words("because").match(said) and not re.search(r"\d", said)
    wishes = begins_wish(said) or any(words(name).search(said) for name in _WISHES)
    return greets or (bool(words("remark").search(said) or asks or reason) and not wishes)


def worded(
    request: PlanRequest, change: Reading, spans: Sequence[Span], places: Mapping[str, str], chosen: Sequence[str],
    world: World, *, understood: bool,
) -> Words:  # fmt: skip
    """What the words of a wish mean for `places`, the prompts (`node.field`) with what they hold while they are empty;
    `chosen` are those that the wish names. `understood`: something else of it is done. Raises DeclinedError."""
    texts = {place: held(request, place) or default for place, default in places.items()}
    lines, left = _heard(request, change, spans, texts, world, understood=understood, named=bool(chosen))
    given = change.system_text or change.prompt_text
    if not lines and not given:
        return Words(left=tuple(left))
    place = _one_prompt(request, list(chosen) or list(places), lines, texts, world)
    node_id, _, param = place.partition(".")
    text = texts[place]
    if given and not change.adds:
        made = given if param == "template" else without_braces(given)
        made += f"\n\n{places[place]}" if "{context}" in places[place] and "{context}" not in made else ""
        made = "\n".join([made, *lines])
        return Words((PlannedValue(node_id=node_id, param=param, value=made),), left=tuple(left))
    html, steps, added = text.lstrip().startswith("<p"), list[str](), list[str]()
    for line in [*lines, *([given] if given else [])]:
        found = _settled(request, without_braces(line), text, world)
        said = found if isinstance(found, str) else without_braces(line) if found.adds else ""
        added += [f"<p>{said}</p>" if html else said] if said else []
        if isinstance(found, Amendment):
            steps.append(world.say("step_reword", where=place, old=found.old, new=found.new or "–"))
            text = _with(text, found)
    if steps or (places[place] and not held(request, place)):
        made = "\n".join([text, *added])
        return Words((PlannedValue(node_id=node_id, param=param, value=made),), tuple(steps), tuple(left))
    more = [PlannedValue(node_id=node_id, param=param, value=line, mode="append") for line in added]
    return Words(tuple(more), left=tuple(left))


def _heard(
    request: PlanRequest, change: Reading, spans: Sequence[Span], texts: Mapping[str, str], world: World, *,
    understood: bool, named: bool,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """(lines for a prompt; what is not understood beside other things). Raises DeclinedError."""
    trusting = request.intent.operation == "update"
    clauses = [clause for clause in clauses_of(change.text, spans) if not _is_rest(clause)]
    certain = {
        clause for clause in clauses
        if not clause.taken and not _names_structure(clause)
        and (clause.instruction or (trusting and _holds_fact(clause, change.language))
             or any(relates(clause.bare, text) for text in texts.values()))
    }  # fmt: skip
    lines, left = list[str](), list[str]()
    for clause in clauses:
        # A wish that names the node whose prompt it is for may well say "agent".
        free = speaks_of_no_part(clause.bare) or (named and not _names_structure(clause))
        own = trusting and free and not understood and not clause.taken and says_enough(clause.line)
        if clause in certain or own:
            # What speaks of no part of the flow can only be for the model.
            lines.append(clause.instruction or clause.line)
        elif free and (understood or certain):
            left.append(clause.line)
        else:
            raise world.decline("declined_wish", parts=f"«{clause.line}»")
    return lines, left


def _names_structure(clause: Clause) -> bool:
    """Whether a clause that is put as no instruction asks for a part of the flow ("add a third branch")."""
    asks = any(words(name).search(clause.line) for name in ("add", "remove", "create"))
    return not clause.instruction and asks and words("structure").search(clause.line) is not None


def _holds_fact(clause: Clause, language: str) -> bool:
    named = language != "de" and _NAME.search(clause.bare)
    says = len(clause.line.split()) >= _FEWEST_WORDS or not clause.line.isascii()
    return says and bool(_FACT.search(clause.bare) or quoted(clause.bare) or named)


def _is_rest(clause: Clause) -> bool:
    """Whether a clause is one or two words around what was recognised: in a language without words here a verb."""
    said = [word for word in re.findall(r"[^\W\d_]{3,}", clause.bare) if not is_empty(word)]
    around = "\x00" in clause.bare and not clause.instruction
    return clause.taken and len(said) < (_FEWEST_WORDS if around else 1)


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


def _settled(request: PlanRequest, line: str, text: str, world: World) -> Amendment | str:
    """What becomes of a sentence of the prompt, or the line that is added. Raises DeclinedError, a question."""
    answers = dict(request.clarifications)
    found = amendment(line, text, settled=request.intent.operation == "copy")
    if found is None:
        return line
    clean = found.new is not None and (found.swapped or behaves(line) or len(line.split()) <= _LONGEST_FACT)
    if found.certain and clean:
        return found
    key = "question_replace" if clean else "question_reword"
    question = world.say(key, old=found.old, line=line, new=found.new or "–")
    if question not in answers:
        raise DeclinedError(question)
    answer = answers[question].strip(" .!\"'«»“”„")
    if words("to_keep_both").fullmatch(answer):
        return line
    if clean and words("to_replace").fullmatch(answer):
        return found
    # "65 euros" says what changes in the sentence.
    value = amendment(without_braces(answer), found.old, settled=True)
    return replace(found, new=value.new if value and value.swapped else without_braces(answers[question]), adds=False)


def _with(text: str, change: Amendment) -> str:
    """The text with a sentence changed; one that goes leaves no gap."""
    before, behind = text[: change.start], text[change.end :]
    behind = behind if change.new or before.strip(" ")[-1:] not in ("", "\n") else behind.lstrip()
    return f"{before}{change.new}{behind}".rstrip()
