"""What a wish for a change says to the model, and how it gets into the prompts of the flow."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, groupby, pairwise, product
from typing import Literal, NamedTuple

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.reasoning.added_text import parted, with_added_text
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS, behaves, is_empty
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.values import without_braces
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import (
    FUNCTION_WORDS,
    FUNCTIONS,
    NUMBER,
    pattern,
    patterns,
    words,
    wordset,
)
from flowise_dev_agent.reasoning.rules.language.senses import senses
from flowise_dev_agent.reasoning.rules.language.text import DONE, Span, capital, detect_language, quoted, quoted_spans

_OBLIGED, _REFERS, _REMARK = (pattern("about", name) for name in ("obliged", "refers", "remark"))
_ADDRESS, _IF = pattern("prompt", "address"), pattern("prompt", "if")
_CAN_IT, _FROM_NOW, _STEP = (pattern("change", name) for name in ("can_it", "from_now_on", "step"))
_ALTERS, _IT, _WANTS = (pattern("change", name) for name in ("alters", "it", "wants"))
_TIME, _SENTENCE = pattern("values", "time"), pattern("values", "sentence")
#: How a wish says that something is to be in the prompt: "add that ...", "put in: ...".
_PUT = re.compile(rf"(?i)(?:{words('add').pattern})[^:.;\n]{{0,20}}?(?:[:：]|,?\s(?:that|que|che|że))\s*(?=\S)")
_AND, _THAT = (f"(?:{'|'.join(wordset(one))})" for one in ("ands", "thats"))
_JOINT = re.compile(rf"[,;]\s(?:{_AND}\s)?|\s{_AND}\s(?!sorte)|\x00+\s(?:{_THAT}\s)?|\s[–—]\s|[!?]+\s|、")
_COUNTED, _ANDS, _ENDS = map(re.compile, (r"(?<!\S)(\d{1,2})[.)]\s+", rf"^{_AND}\s", rf"[,;]?\s{_AND}$"))
_TAG, _VALUE = re.compile(r"<[^<>]{1,300}>"), re.compile(r"\d|[\"“„«「]")
_QUOTE = r"(?<!\w)[\"“”„«「'‘’]\s*([^\"“”„«»「」\n]{1,400}?)\s*[\"“”»」'’](?!\w)"
_FIRST_QUOTE, _LAST_QUOTE, _ANY_QUOTE = (re.compile(one) for one in (rf"\W*{_QUOTE}", rf"{_QUOTE}\W*$", _QUOTE))
_ROW_BEGINS, _ROW_ENDS = re.compile(r"(?:(?<![^\n])(?:[-•*]\s*)?|<p>)$"), re.compile(r"^\s*?(?:\n|</p>|$)|^ +")
_HARD, _BARE = re.compile(r"\d|@|://"), re.compile(r"\d{1,3}")
_FEW_WORDS, _MOST_WORDS, _LONGEST_READ = 3, 8, 1_000
#: How probable it has to be that a clause asks for a part of the flow, or that something stays.
_CERTAIN, _LIKELY, _ASIDE = 0.85, 0.6, 0.8
_COMPLAINS, _DESCRIBES = patterns("about", "complains"), pattern("about", "describes")
_MOST = re.compile(rf"(?i)^(?:{pattern('text', 'at_most').pattern})\s{NUMBER}")
_SWAPS, _BY, _FROM, _SMALL, _A_LINE = (pattern("exchange", n) for n in ("swaps", "by", "from", "small", "a_line"))
_NOW = pattern("exchange", "now")
_IN_PROMPT, _NUMBER_ALONE = pattern("exchange", "in_prompt"), re.compile(r"\W*\d[\d.,:]*(?:\s\w+)?\W*")
#: A script that puts no space between words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_AMOUNT = re.compile(r"(?<![\w.,:])(?P<number>[€$£]?\d+(?:[.,]\d+)?)(?P<unit>\s?(?:[€$£%]|[^\W\d]+))?(?![\d:])")
_CONTACT, _HEDGED, _NEUTRAL = (pattern("exchange", name) for name in ("contact", "hedged", "neutral"))


class Exchange(NamedTuple):
    """A stretch of a text, what it becomes ('': it goes), the text after that, and whether the line says no more."""

    old: str
    new: str
    after: str
    whole: bool = True


class Piece(NamedTuple):
    """A sentence of a wish; of one that asks for a part of the flow a part of the sentence. `kind`: it asks for a
    part, it is for the model, it asks for nothing, or for what is not understood; `item`: of which item it is."""

    start: int
    end: int
    kind: Literal["part", "wish", "remark", "undone"]
    item: int


def pieces(
    text: str, done: Sequence[Span], lost: Sequence[Span], kept: Sequence[Span] = (), *,
    groups: Sequence[str] = ("parts", "own"), copied: bool = False,
) -> list[Piece]:  # fmt: skip
    """What a wish says: of each sentence or item that asks for a part of the flow only clauses of their own are for the
    model, any other is for it whole. Beside a part it has to tell something; in a copy all does. What was read
    already is a NUL. `lost` asks for a part and is not done, `kept` names what is there; `groups` are the concepts that
    name a part."""
    hidden = [Span(*one.span(), frozenset({one[0]})) for one in re.finditer(r"\x00+", text)]
    asked = [one for one in done if (one.names or one.params) and not one.keep] + hidden
    parts, found = [one for one in asked if not one.denied], list[Piece]()
    # Neither ends nor begins anew, whatever is in it.
    closed = [*quoted_spans(text), *(one.span() for one in BRACKETS.finditer(text))]
    concepts = texts.concepts(text, *groups)
    known = "|".join(re.escape(text[one.start : one.end]) for one in [*done, *hidden])

    def fails(start: int, end: int, *, told: bool = True) -> bool:
        """Whether a stretch asks for a part or a value, and nothing comes of it; where it is `told` also one that says
        nothing else."""
        said = _STEP.sub("", text[start:end].strip(" ,;:–—\n"))
        named, quiet = [one for one in lost if one.meets(start, end)], not _instructs(said)
        here = [one for one in concepts if one.meets(start, end)]
        # What is there may be used, and may go.
        asked_for = [one for one in here if not any(span.meets(one.start, one.end) for span in kept)]
        certain = any("://" not in text[one.start : one.end] and "source" not in one.names for one in asked_for)
        mentions = named or here or any(one.meets(start, end) for one in kept)
        firm = (mentions and alters(unquoted(said))) or any(quiet or "signal" in one.names for one in named)
        wants = (_OBLIGED.search(said) or _WANTS.search(said)) and any("parts" in one.params for one in asked_for)
        firm = firm or (wants and not (behaves(_ADDRESS.sub("", said)) or _IF.match(said)))
        return not _PUT.match(said) and bool(firm or (told and certain and quiet and not _VALUE.search(said)))

    def wishes(start: int, end: int) -> list[int]:
        """Where clauses of a sentence begin that ask for something of their own."""
        return [at for at in borders(text, start, end, closed) if asks(text[at:end].strip()) and _says(text[start:at])]

    read = [(*one, any(fails(*two) for two in pairwise([one[0], *wishes(*one[:2]), one[1]])))
            for one in sentences(text, closed)]  # fmt: skip
    beside = bool(parts) or any(failing for *_, failing in read)
    for start, end, item, failing in read:
        here = [one for one in parts if one.meets(start, end)]
        meets = bool(here) or failing
        wished, sentence = any(asks(text[a:b].strip()) for a, b, *_ in read if a >= end), text[start:end].strip(" -•*")
        grumbles = complains(sentence) or bool(wished and _DESCRIBES.match(sentence))
        opinion = _REMARK.search(text, start, end)
        # "My boss says it should ...": who wants it is one thing, what is another.
        framed = [opinion.end()] if opinion and asks(text[opinion.end() : end].strip()) else []
        joints = sorted({*borders(text, start, end, closed), *framed}) if opinion or here or grumbles else []
        # "Add our price list, it is a PDF" is one wish.
        joints = [at for at in joints if not (opinion and opinion.start() < at < opinion.end()) and not (
                  _REFERS.match(text[at:end]) and any(one.meets(at, end) for one in parts))]  # fmt: skip
        if grumbles and not here:
            joints = [at for at in joints if _instructs(text[at:end].strip()) or _VALUE.search(text[at:end])]
        joints = wishes(start, end) if failing and not (opinion or here or grumbles) else joints
        for begin, finish in pairwise([start, *joints, end]):
            said = text[begin:finish].strip(" ,;:–—\n")
            says = _says(re.sub(known or r"\Z\A", " ", said))
            own = [one for one in parts if one.meets(begin, finish)]
            # "Add a calculator and always calculate with VAT": asked for once.
            again = all(any(one.names & other.names - {DONE} for other in parts if other not in own) for one in own)
            part = (own and not (again and says and _instructs(said) and not alters(said))) or (asked and not says)
            because = meets and (words("because").match(said) or (_REFERS.match(said) and not _OBLIGED.search(said)))
            clause = _instructs(said) or {*text[:begin].split()[-1:]} & wordset("thats")
            other = _NOW.search(said) or words("instead_of").search(said)
            plain = _VALUE.search(said) or other or (copied and texts.concepts(said, *groups))
            fact = plain if copied or not meets else quoted(said)
            instructs = (item and not meets) or clause or fact
            last = next((one.kind for one in reversed(found) if one.kind != "remark"), "")
            told = (copied and not meets) or not beside or ((instructs or last == "wish") and not because)
            # "It" is what is not done, and what follows in its sentence says more of it, unless it tells something.
            more = begin > start and not (behaves(said) or _IF.match(said) or _VALUE.search(said))
            goes_on = last == "undone" and (more or _REFERS.match(said) or (alters(said) and refers(said)))
            undone = not own and (goes_on or fails(begin, finish, told=bool(told)))
            kind = "undone" if undone else "remark" if not told or (opinion and _opines(said)) else "wish"
            sense = senses(said, change=True)
            # How it is now is no rule.
            grumbled = not asks(said) and ((grumbles and begin == start) or complains(said))
            # Who has to do something in a flow of steps is perhaps one of them.
            aside = sense.aside > _ASIDE and not ("steps" in groups and _OBLIGED.search(said))
            kind = "remark" if grumbled or (aside and kind == "wish") else kind
            # A heading asks for what follows, a quotation is a text; in a step a wish says what the step does.
            doubted = kind == "wish" and not (text[begin:finish].rstrip().endswith(":") or quoted(said))
            named = texts.concepts(said, *groups) or not tells(said)
            doubts = doubted and named and not own and sense.part > _CERTAIN and "steps" not in groups
            kind = "undone" if doubts else kind
            # "Last 20 messages, not 10": what was there is no rule.
            former = words("instead_of").match(said)
            part = part or (former and here and _NUMBER_ALONE.fullmatch(said[former.end() :]))
            if part or (doubted and sense.keep > _LIKELY):
                kind = "part"
            elif found and found[-1].kind == kind and said and begin > start and not grumbles:
                begin = found.pop().start
            found += [Piece(begin, finish, kind, item)] if said or kind == "part" else []
    return found


def clauses(text: str) -> Iterator[tuple[int, int]]:
    """Sentences, and clauses of them that ask for something of their own."""
    closed = quoted_spans(text)
    for start, end, _ in sentences(text, closed):
        joints = (at for at in borders(text, start, end, closed) if asks(text[at:end].strip()))
        yield from pairwise([start, *joints, end])


def unasked(text: str) -> str:
    """A wish with NULs for what asks for no part, whatever it names: which of two has precedence in the answers, what
    holds in one case, and what is to be left alone."""
    for start, end in clauses(text):
        said = text[start:end].strip(" -•*")
        sense, named = senses(said, change=True), texts.concepts(said, "parts", "sources")
        rule = named and sense.told > (sense.part if _IF.match(said) else _CERTAIN) and not alters(said)
        text = texts.masked(text, start, end) if rule or sense.keep > _LIKELY else text
    return text


def borders(text: str, start: int, end: int, closed: Sequence[tuple[int, int]]) -> list[int]:
    """Where a clause may begin behind another one."""
    return [one.end() for one in _JOINT.finditer(text, start, end) if not any(a < one.start() < b for a, b in closed)]


def unquoted(said: str) -> str:
    return _ANY_QUOTE.sub(" ", said)


def tells(said: str) -> bool:
    """Whether a clause says how to behave."""
    return behaves(said.strip()) or _ADDRESS.match(said.strip()) is not None


def refers(said: str) -> bool:
    """Whether a clause asks for no more than that "it" comes."""
    return _IT.search(said) is not None


def sentences(text: str, closed: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Sentences, and which item of a list each is (0: none) that is counted, within a line, too."""
    found = [*_COUNTED.finditer(text)]
    found = [one for n, one in enumerate(found, int(found[0][1]) if found else 0) if int(one[1]) == n]
    counted = {one.start(): one.end() for one in found if len(found) > 1}
    ends = ({one.end() for one in _SENTENCE.finditer(text)} | {*counted}) - {0, len(text)}
    inside = [end for end in sorted(ends) if not any(a < end < b for a, b in [*closed, *counted.items()])]
    return ((counted.get(start, start), end, counted.get(start, 0)) for start, end in pairwise([0, *inside, len(text)]))


def lines(text: str, said: Sequence[Piece], values: Set[str]) -> list[str]:
    """What is for the model, each stretch whole; what only quotes one of the `values` is for a field."""
    runs = ([*run] for (kind, _), run in groupby(said, key=lambda one: (one.kind, one.item)) if kind == "wish")
    found = (text[run[0].start : run[-1].end] for run in runs)
    return [_line(one) for one in found if not ((own := quoted(one)) and values >= {*own})]


def worded(
    request: PlanRequest, wishes: Sequence[str], change: Reading, places: Mapping[str, str], chosen: Sequence[str],
    swaps: Mapping[str, str], world: World,
) -> tuple[list[PlannedValue], list[str], list[str], list[str]]:  # fmt: skip
    """(values, steps that tell of stretches that change, what is written, what is so already) of what the model is told
    in one of `places`, the prompts (`node.field`) with what they hold while they are empty; `chosen` are those that the
    wish names, `swaps` what is another address in all of them. Raises DeclinedError."""
    given = change.system_text or change.prompt_text
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
    wishes = [capital(_STEP.sub("", line)) for line in wishes] if chosen else wishes
    said = [sentence for line in wishes for sentence in _SENTENCE.findall(line)]
    spelled = [place for place, text in texts.items() if any(_change(one, text)[1] for one in said)]
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
            stretch, found = _change(sentence, text)
            while found and found.old != found.new:
                key = "step_reword" if found.new else "step_cut"
                steps.append(world.say(key, where=place, old=found.old, new=found.new))
                text, anew = found.after, True
                line = line.replace(stretch, "", 1) if found.whole else line
                stretch, found = ("", None) if found.whole else _change(sentence, text)
            if found:
                already.append(f"«{stretch.strip()}»")
                line = line.replace(stretch, "", 1)
        line = _as_fact(line, text) or line if _edits(line) else line
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
    if not text.lstrip().startswith("<p"):
        return "\n".join(rows)
    return "".join(f"<p>{html.escape(row, quote=False)}</p>" for one in rows for row in one.split("\n"))


def _change(sentence: str, text: str) -> tuple[str, Exchange | None]:
    """(the stretch of a sentence, what it exchanges in a text): the whole, or what it says before it says more."""
    halves = [one for one in _JOINT.finditer(sentence) if _instructs(sentence[one.end() :])]
    ends = [(len(sentence), len(sentence)), *((one.start(), one.end()) for one in halves)]
    return next(((sentence[:end], one) for stop, end in ends if (one := exchange(sentence[:stop], text))), ("", None))


def alters(said: str) -> bool:
    """Whether a stretch asks for something to come, go or be another one, and not how to behave."""
    tells = behaves(said) or _ADDRESS.match(said) or any(map(_IF.match, re.split(r"[,;.:]\s", said)))
    return _ALTERS.search(said) is not None and not tells


def complains(said: str) -> bool:
    """Whether a stretch says how it is now, and nothing of how it should be."""
    now = any(one.search(said) for one in _COMPLAINS) or senses(said, change=True).aside > _ASIDE
    return now and not (asks(said) or _IF.match(said))


def settled(said: Sequence[Piece], text: str, held: Sequence[str]) -> list[Piece]:
    """With commands to edit a text as not done where none of the texts holds what they speak of."""
    found, closed = list[Piece](), quoted_spans(text)
    for one in said:
        command = one.kind == "wish" and _edits(_line(text[one.start : one.end]))
        joints = [
            at for at in borders(text, one.start, one.end, closed) if command and asks(text[at : one.end].strip())
        ]
        for start, end in pairwise([one.start, *joints, one.end]):
            line = _line(text[start:end])
            edited = _SENTENCE.findall(line) if one.kind == "wish" and _edits(line) else []
            stays = any(_change(part, there)[1] or _as_fact(line, there) for there in held for part in edited)
            found.append(one._replace(start=start, end=end, kind="undone" if edited and not stays else one.kind))
    return found


def _edits(line: str) -> bool:
    """Whether a line only makes sense to who edits a text."""
    value = re.search(r"\d", line) is not None and not _ANY_QUOTE.search(line)
    commands = (_SWAPS.match(line) or words("remove").match(line)) and (value or _A_LINE.search(line))
    return bool(commands or words("rename").match(line) or (value and _IN_PROMPT.search(line)))


def _as_fact(line: str, text: str) -> str:
    """What a command makes another one, as it is to be: of "change the hours to 9 to 5" "The hours: 9 to 5". Empty
    unless the text speaks of it once."""
    verb, by = _SWAPS.match(line), _BY.search(line)
    what = line[verb.end() : by.start()].strip() if verb and by else ""
    nouns = [word for word in _words(what) if word not in FUNCTIONS]
    there = [one for one in _SENTENCE.findall(text) if nouns and _among(nouns, _words(one))]
    return capital(f"{what}: {line[by.end() :].strip()}") if by and len(there) == 1 else ""


def says_nothing(text: str) -> bool:
    """Whether a wish does not say at all what is to be different: "make it better", "they complained"."""
    said = re.findall(r"[^\W\d_]+", text.casefold())
    vague = bool(said) and {*said} <= FUNCTIONS | wordset("says_nothing") and not _VALUE.search(text)
    return vague or all(_opines(one) for one in re.split(r"[.!?,;]+(?:\s|$)", text) if one.strip())


def asks(line: str) -> bool:
    """Whether a line says what is to be done, or how to behave."""
    wishes = (_ADDRESS, words("change"), words("add"), words("remove"), _CAN_IT)
    return behaves(line) or any(one.match(line) for one in wishes) or _OBLIGED.search(line) is not None


def _opines(text: str) -> bool:
    """Whether a stretch only says how something is taken, or who wants it."""
    said = _REMARK.sub("", text).strip()
    return said != text.strip() and not (asks(said) or _IF.match(text) or _VALUE.search(BRACKETS.sub("", text)))


def _instructs(line: str) -> bool:
    # A script without spaces is not read word by word.
    line = _ANDS.sub("", line.lstrip("-•* "))
    unread = (" " not in line and _UNSPACED.search(line) is not None) or _MOST.match(line) is not None
    case = _IF.match(f"{line[:1].lower()}{line[1:]}")
    return unread or asks(line) or bool(case or words("insists").search(line))


def held(request: PlanRequest, place: str) -> str:
    """What a prompt holds, or will hold by a plan that is not written yet."""
    node_id, _, param = place.partition(".")
    stored = request.stored(node_id, param) if request.base else request.texts.get(place)
    text = stored if isinstance(stored, str) else ""
    for value in request.previous.values if request.previous else ():
        if (value.node_id, value.param) == (node_id, param) and str(value.value) not in text:
            text = f"{text}\n{value.value}".lstrip() if value.mode == "append" else str(value.value)
    return text


def _line(said: str) -> str:
    """A stretch as the model is told it: without what only frames it ("please add that", "it should")."""
    said = "\n".join(filter(None, (" ".join(re.sub(r"\s{2,}(?=[.!?])", "", row).split()) for row in said.split("\n"))))
    plain = said = _FROM_NOW.sub("", _ANDS.sub("", _ENDS.sub("", said.strip(" ,;:–—\n").lstrip(" .!?")))).strip(" ,")
    while (first := plain.partition(" "))[0].strip(",").casefold() in wordset("also") and first[2]:
        plain = first[2]
    if frame := _PUT.match(plain) or _CAN_IT.match(plain):
        return capital(re.sub(r"\?+(?=\s|$)", ".", plain[frame.end() :].strip(), count=1))
    frame = _ADDRESS.match(plain)
    plain = plain[frame.end() :] if frame else plain
    return capital(plain if behaves(plain) else said)


def _says(text: str) -> bool:
    """Whether a text says more than which node is meant."""
    said = {word for word in _words(text) if not is_empty(word)} - FUNCTIONS
    return any(not any(words(name).fullmatch(word) for name in ("first", "second", "third")) for word in said)


# --- What a wish exchanges in a prompt: a stretch that it spells out, or the one value that it gives anew ----------


def exchange(line: str, text: str) -> Exchange | None:
    """What a line exchanges in a text, or takes out; None unless that is there once, and the line says nothing else."""
    read = chain(_pairs(line), _removals(line, text), _contacts(line, text), _facts(line, text))
    found = read if len(line) < _LONGEST_READ else ()
    for old, new, rest in found:
        numbers = [one.span() for one in _CONTACT.finditer(text)] if _BARE.fullmatch(old) else []
        there = [one for one in whole(old).finditer(text) if not any(a <= one.start() < b for a, b in numbers)]
        several = len(there) > 1 and not (new and _CONTACT.fullmatch(old))
        if not (old and there) or several or words("languages").search(old):
            continue
        start, end = there[0].span()
        around = next((one for one in _SENTENCE.finditer(text) if one.start() <= start < one.end()), there[0])
        plain = not _BARE.fullmatch(old) and all(not _tells(word) or word in _words(around[0]) for word in _words(rest))
        if plain or (new and len(there) == 1 and len(old) > 1 and _near(old, new, line, around[0])):
            if not new and end < around.end() and not re.search(r"\w", text[end : around.end()]):
                end = around.end()
            before, behind = text[:start], text[end:]
            if not new and _ROW_BEGINS.search(before):
                # Of a row that goes its mark and its end go, too.
                before, behind = _ROW_BEGINS.sub("", before), _ROW_ENDS.sub("", behind, count=1)
            after = f"{before}{new}{behind}" if len(there) == 1 else whole(old).sub(new.replace("\\", r"\\"), text)
            return Exchange(text[start:end], new, after if new or behind else before.rstrip(), plain)
    return None


def whole(name: str) -> re.Pattern[str]:
    """Whole words in a text, in upper or lower case, with any space between them."""
    said = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!\w)(?<!\d[.,]){said}(?!\w)(?![.,]\d)", re.IGNORECASE)


def _pairs(line: str) -> Iterator[tuple[str, str, str]]:
    """(old, new, the rest of the line) for each way to read what is exchanged."""
    for match in words("instead_of").finditer(line):
        before, behind = line[: match.start()], line[match.end() :]
        quotes = _ANY_QUOTE.findall(behind)
        if not before.strip() and len(quotes) == 2:
            yield quotes[0], quotes[1], _ANY_QUOTE.sub(" ", behind)
        yield from ((old, new, f"{left} {right}") for new, old, left, right in _alike(before, behind))
        # "32 Euro statt 28": the unit belongs to both.
        new, old = list(_AMOUNT.finditer(before)), _AMOUNT.match(behind.lstrip())
        if old and new and new[-1].end() >= len(before.rstrip(" ,")):
            unit, rest = new[-1]["unit"] or "", f"{before[: new[-1].start()]} {behind.lstrip()[old.end() :]}"
            yield f"{old['number']}{unit}", new[-1][0], rest
    for match in _BY.finditer(line) if _SWAPS.search(line) else ():
        for old, new, left, right in _alike(line[: match.start()], line[match.end() :]):
            # "Change the hours to 9 am to 5 pm" names no old ones, and "from 9 am to 5 pm" are perhaps the new ones.
            begins, quoted = _FROM.search(left), _LAST_QUOTE.search(line[: match.start()])
            if not quoted and (_TIME.fullmatch(old) or not _HARD.search(old) if begins else _BY.search(f"{left} ")):
                continue
            # "From 28 to 32 Euro": the unit belongs to both.
            unit, _, behind = right.strip().partition(" ") if _BARE.fullmatch(old) else ("", "", right)
            yield f"{old} {unit}".strip(), f"{new} {unit}".strip(), f"{left} {behind}"


def _alike(left: str, right: str) -> Iterator[tuple[str, str, str, str]]:
    """(the last words of one text, as many first ones of another, what is left of both): quotations, or words of which
    the same ones hold numbers or addresses, or are names."""
    # In German any noun looks like a name.
    names = detect_language(f"{left} {right}") != "de"
    one, two = _LAST_QUOTE.search(left), _FIRST_QUOTE.match(right)
    if one and two:
        yield one[1], two[1], left[: one.start()], right[two.end() :]
    first, second = left.strip(" ,").split(), right.rstrip(" .!?").split()
    for size in range(min(_MOST_WORDS, len(first), len(second)), 0, -1):
        mine, theirs = first[-size:], [word.strip(".,;!?") for word in second[:size]]
        pairs = [*zip(mine, theirs, strict=True)]
        hard = {one for one in pairs if all(map(_HARD.search, one)) or (names and all(w[:1].isupper() for w in one))}
        if hard and all(pair in hard or pair[0].casefold() == pair[1].casefold() for pair in pairs):
            yield " ".join(mine), " ".join(theirs), " ".join(first[:-size]), " ".join(second[size:])
            return


def _contacts(line: str, text: str) -> Iterator[tuple[str, str, str]]:
    """The number to call or the address that a line gives, for the only one of a text."""
    given = [*_CONTACT.finditer(line)]
    if words("insists").search(line) or _HEDGED.search(line) or len(given) != 1:
        return
    there = {one[0] for one in _CONTACT.finditer(text) if ("@" in one[0]) == ("@" in given[0][0])}
    said = _words(_NEUTRAL.sub(" ", f"{line[: given[0].start()]} {line[given[0].end() :]}"))
    if len(there) == 1 and all(map(_SMALL.fullmatch, said)):
        yield there.pop(), given[0][0], ""


def _facts(line: str, text: str) -> Iterator[tuple[str, str, str]]:
    """The one amount that a line says is another one now, for the only one that the text says of the same."""
    given = [*_AMOUNT.finditer(line)]
    if len(given) != 1 or not _NOW.search(line) or _HEDGED.search(line) or _CONTACT.search(line):
        return
    rest = _NEUTRAL.sub(" ", f"{line[: given[0].start()].removesuffix('ext. ')} {line[given[0].end() :]}")
    nouns, found = {word for word in _words(rest) if _tells(word)}, list[str]()
    for clause in re.split(r"[,;:]\s|[.!?]\s|\n", text):
        amounts, same = [*_AMOUNT.finditer(clause)], nouns & {*_words(clause)}
        if len(amounts) == 1 and same and (amounts[0]["unit"] or "").strip() == (given[0]["unit"] or "").strip():
            found.append(amounts[0][0])
    if len(found) == 1:
        yield found[0], given[0][0], rest


def _among(some: Iterable[str], others: Sequence[str]) -> bool:
    """Whether each word is among the others, but for the ending of a plural."""
    return all(any(one == two or (one.isalpha() and one in (two[:-1], f"{two}s")) for two in others) for one in some)


def _removals(line: str, text: str) -> Iterator[tuple[str, str, str]]:
    verb = words("remove").search(line)
    quotes = _ANY_QUOTE.findall(line) if verb else []
    if len(quotes) == 1:
        yield quotes[0], "", words("remove").sub(" ", _ANY_QUOTE.sub(" ", line))
    elif verb and not quotes and not line[: verb.start()].strip(" -•*"):
        what, _, why = line[verb.end() :].partition(", ")
        what = what if why and not (_instructs(why) or _VALUE.search(why)) else line[verb.end() :]
        said = [word for word in _words(_A_LINE.sub(" ", what)) if word not in FUNCTIONS]
        spoken = [one for one in _SENTENCE.findall(text) if said and _among(said, _words(one))]
        if len(spoken) == 1 and (_A_LINE.search(line) or _among(filter(_tells, _words(spoken[0])), said)):
            yield spoken[0], "", ""


def _near(old: str, new: str, line: str, around: str) -> bool:
    """Whether a line and a sentence say of the same what a number is: they share a word."""
    own = {word[:5] for word in _words(line) if len(word) > _FEW_WORDS and _tells(word)} - {*_words(f"{old} {new}")}
    shared = own & {word[:5] for word in _words(around)}
    return bool(shared and _HARD.search(old)) and not (_HEDGED.search(line) or _CONTACT.search(around))


def _tells(word: str) -> bool:
    return word not in FUNCTIONS and not (_SMALL.fullmatch(word) or _SWAPS.fullmatch(word))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())
