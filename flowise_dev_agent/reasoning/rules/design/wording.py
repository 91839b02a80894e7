"""What a wish for a change says to the model."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS, behaves, is_empty
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, pattern, patterns, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import sense
from flowise_dev_agent.reasoning.rules.language.text import DONE, Span, capital, quoted, quoted_spans

_OBLIGED, _REFERS, _REMARK = (pattern("about", name) for name in ("obliged", "refers", "remark"))
_ADDRESS, IF = pattern("prompt", "address"), pattern("prompt", "if")
_CAN_IT, _FROM_NOW, STEP = (pattern("change", name) for name in ("can_it", "from_now_on", "step"))
_ALTERS, _IT, _WANTS = (pattern("change", name) for name in ("alters", "it", "wants"))
_SENTENCE, _VALUE = pattern("values", "sentence"), re.compile(r"\d|[\"“„«「]")
#: How a wish says that something is to be in the prompt: "add that ...", "put in: ...".
_PUT = re.compile(rf"(?i)(?:{words('add').pattern})[^:.;\n]{{0,20}}?(?:[:：]|,?\s(?:that|que|che|że))\s*(?=\S)")
_AND, _THAT = (f"(?:{'|'.join(wordset(one))})" for one in ("ands", "thats"))
_JOINT = re.compile(rf"[,;]\s(?:{_AND}\s)?|\s{_AND}\s(?!sorte)|\x00+\s(?:{_THAT}\s)?|\s[–—]\s|[!?]+\s|、")
_COUNTED, _ANDS, _ENDS = map(re.compile, (r"(?<!\S)(\d{1,2})[.)]\s+", rf"(?i)^{_AND}\s", rf"[,;]?\s{_AND}$"))
_ANY_QUOTE = re.compile(r"(?<!\w)[\"“”„«「'‘’]\s*([^\"“”„«»「」\n]{1,400}?)\s*[\"“”»」'’](?!\w)")
#: How probable it has to be that a clause asks for a part of the flow, or that something stays.
_CERTAIN, _LIKELY, _ASIDE = 0.85, 0.6, 0.8
_COMPLAINS, _DESCRIBES = patterns("about", "complains"), pattern("about", "describes")
_MOST = re.compile(rf"(?i)^(?:{pattern('text', 'at_most').pattern})\s{NUMBER}")
_NOW, _NUMBER_ALONE = pattern("exchange", "now"), re.compile(r"\W*\d[\d.,:]*(?:\s\w+)?\W*")
#: A script that puts no space between words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Piece(NamedTuple):
    """A sentence of a wish; of one that asks for a part of the flow a part of the sentence. `kind`: it asks for a
    part, it is for the model, it asks for nothing, or for what is not understood; `item`: of which item it is."""

    start: int
    end: int
    kind: Literal["part", "wish", "remark", "undone"]
    item: int


def pieces(
    text: str, done: Sequence[Span], lost: Sequence[Span], kept: Iterable[Span] = (), *,
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
        said = STEP.sub("", text[start:end].strip(" ,;:–—\n"))
        named, quiet = [one for one in lost if one.meets(start, end)], not instructs(said)
        here = [one for one in concepts if one.meets(start, end)]
        # What is there may be used, and may go.
        asked_for = [one for one in here if not any(span.meets(one.start, one.end) for span in kept)]
        certain = any("://" not in text[one.start : one.end] and "source" not in one.names for one in asked_for)
        mentions = named or here or any(one.meets(start, end) for one in kept)
        firm = (mentions and alters(unquoted(said))) or any(quiet or "signal" in one.names for one in named)
        wants = (_OBLIGED.search(said) or _WANTS.search(said)) and any("parts" in one.params for one in asked_for)
        firm = firm or (wants and not (behaves(_ADDRESS.sub("", said)) or IF.match(said)))
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
            joints = [at for at in joints if instructs(text[at:end].strip()) or _VALUE.search(text[at:end])]
        joints = wishes(start, end) if failing and not (opinion or here or grumbles) else joints
        # A condition is nothing without what it is for.
        for begin, finish in pairwise([start, *joints[IF.match(sentence) is not None :], end]):
            said = text[begin:finish].strip(" ,;:–—\n")
            says = _says(re.sub(known or r"\Z\A", " ", said))
            own = [one for one in parts if one.meets(begin, finish)]
            # "Add a calculator and always calculate with VAT": asked for once.
            again = all(any(one.names & other.names - {DONE} for other in parts if other not in own) for one in own)
            # A case in which a part is used is told, too.
            again = again or (IF.match(said) and not (_ALTERS.search(said) or any(DONE in one.names for one in own)))
            part = (own and not (again and says and instructs(said) and not alters(said))) or (asked and not says)
            because = meets and (words("because").match(said) or (_REFERS.match(said) and not _OBLIGED.search(said)))
            clause = instructs(said) or {*text[:begin].split()[-1:]} & wordset("thats")
            other = _NOW.search(said) or words("instead_of").search(said)
            plain = _VALUE.search(said) or other or (copied and texts.concepts(said, *groups))
            fact = plain if copied or not meets else quoted(said)
            orders = clause or fact or (not meets and (item or sense(said, change=True).tells))
            last = next((one.kind for one in reversed(found) if one.kind != "remark"), "")
            told = (copied and not meets) or not beside or ((orders or last == "wish") and not because)
            # "It" is what is not done, and what follows in its sentence says more of it, unless it tells something.
            more = begin > start and not (behaves(said) or IF.match(said) or _VALUE.search(said))
            goes_on = last == "undone" and (more or _REFERS.match(said) or (alters(said) and refers(said)))
            # A number beside a part is no remark: "gpt-4o, and the price to 130".
            beside_it = begin > start and not (told or because) and _VALUE.search(said)
            undone = not own and (goes_on or beside_it or fails(begin, finish, told=bool(told)))
            kind = "undone" if undone else "remark" if not told or (opinion and _opines(said)) else "wish"
            about = sense(said, change=True)
            # How it is now is no rule.
            grumbled = not asks(said) and ((grumbles and begin == start) or complains(said))
            # Who has to do something in a flow of steps is perhaps one of them.
            aside = about.idle > _ASIDE and not ("steps" in groups and _OBLIGED.search(said))
            kind = "remark" if grumbled or (aside and kind == "wish") else kind
            # A heading asks for what follows, a quotation is a text; in a step a wish says what the step does.
            doubted = kind == "wish" and not (text[begin:finish].rstrip().endswith(":") or quoted(said))
            named = texts.concepts(said, *groups) or not tells(said)
            unsure = doubted and named and not own and "steps" not in groups
            kind = "undone" if unsure and about.part > _CERTAIN and "copy" not in about.concepts else kind
            # "Last 20 messages, not 10": what was there is no rule.
            former = words("instead_of").match(said)
            part = part or (former and here and _NUMBER_ALONE.fullmatch(said[former.end() :]))
            if part or (doubted and about.keep > _LIKELY):
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
        about, named = sense(said, change=True), texts.concepts(said, "parts", "sources")
        rule = named and about.told > (about.part if IF.match(said) else _CERTAIN) and not alters(said)
        text = texts.masked(text, start, end) if rule or about.keep > _LIKELY else text
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
    return [line_of(one) for one in found if not ((own := quoted(one)) and values >= {*own})]


def alters(said: str) -> bool:
    """Whether a stretch asks for something to come, go or be another one, and not how to behave."""
    tells = behaves(said) or _ADDRESS.match(said) or any(map(IF.match, re.split(r"[,;.:]\s", said)))
    return _ALTERS.search(said) is not None and not tells


def complains(said: str) -> bool:
    """Whether a stretch says how it is now, and nothing of how it should be."""
    now = any(one.search(said) for one in _COMPLAINS) or sense(said, change=True).idle > _ASIDE
    return now and not (asks(said) or IF.match(said))


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
    return said != text.strip() and not (asks(said) or IF.match(text) or _VALUE.search(BRACKETS.sub("", text)))


def instructs(line: str) -> bool:
    # A script without spaces is not read word by word.
    line = _ANDS.sub("", line.lstrip("-•* "))
    unread = (" " not in line and _UNSPACED.search(line) is not None) or _MOST.match(line) is not None
    case = IF.match(f"{line[:1].lower()}{line[1:]}")
    return unread or asks(line) or bool(case or words("insists").search(line))


def line_of(said: str) -> str:
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
    said = {word for word in words_of(text) if not is_empty(word)} - FUNCTIONS
    return any(not any(words(name).fullmatch(word) for name in ("first", "second", "third")) for word in said)


def whole(name: str) -> re.Pattern[str]:
    """Whole words in a text, in upper or lower case, with any space between them."""
    said = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!\w)(?<!\d[.,]){said}(?!\w)(?![.,]\d)", re.IGNORECASE)


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())
