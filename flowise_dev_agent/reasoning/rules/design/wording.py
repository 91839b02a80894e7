"""What a wish for a change says to the model."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from flowise_dev_agent.reasoning.rules.design.prompt import BRACKETS, behaves, is_empty, ungreeted
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.senses import HALF, LIKELY, SURE, sense
from flowise_dev_agent.reasoning.rules.language.text import capital, detect_language, is_negated, quoted, quoted_spans

_OBLIGED, _REMARK = pattern("about", "obliged"), pattern("about", "remark")
_ADDRESS, IF = pattern("prompt", "address"), pattern("prompt", "if")
_CAN_IT, STEP = pattern("change", "can_it"), pattern("change", "step")
_SCOPE = pattern("change", "scope")
ALTERS, _IT = pattern("change", "alters"), pattern("change", "it")
_RESTORES = pattern("change", "restores")
_SENTENCE, _VALUE = pattern("values", "sentence"), re.compile(r"\d|[\"“„«「]")
#: How a wish says that something is to be in the prompt: "add that ...", "put in: ...".
PUT = re.compile(
    rf"(?i)(?:{words('add').pattern})[^:.;\n]{{0,20}}?(?:[:：]|,?\s(?:that|que|che|że)|(?=,?\sda(?:ss|t)\s)|,?\s(?=qu['’])|,\s?(?=dass\s))[\s,]*(?=\S)"
)
_ALSO = re.compile(rf"(?i)(?:{'|'.join(wordset('also'))}),?\s(?=\S)")
_AND, _THAT = (f"(?:{'|'.join(wordset(one))})" for one in ("ands", "thats"))
_JOINT = re.compile(rf"[,;]\s(?:{_AND}\s)?|\s{_AND}\s(?!sorte)|\x00+\s(?:{_THAT}\s)?|\s[–—-]\s|[!?]+\s|、")
_COUNTED, _ANDS = re.compile(r"(?<!\S)\(?(\d{1,2})[.)]\s+"), re.compile(rf"(?i)^{_AND}\s")
_ENDS = re.compile(rf"(?i)[,;]?\s{_AND}[.!]?$")
#: "A" and "B" are said together.
_LISTED = re.compile(rf"[\"”“»'’](?:,\s|\s){_AND}\s[\"“„«‘']")
_ANY_QUOTE = re.compile(r"(?<!\w)[\"“”„«「'‘’]\s*([^\"“”„«»「」\n]{1,400}?)\s*[\"“”»」'’](?!\w)")
_FEW_WORDS = 2
_SWAPS, _A_LINE, _IN_PROMPT = (pattern("exchange", name) for name in ("swaps", "a_line", "in_prompt"))
_BY, _DIGITS = pattern("exchange", "by"), re.compile(r"\d+")
_MOST = re.compile(rf"(?i)^(?:{pattern('text', 'at_most').pattern})\s{NUMBER}")
#: A script that puts no space between words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def clauses(text: str) -> Iterator[tuple[int, int]]:
    """Sentences, and clauses of them that ask for something of their own."""
    closed = quoted_spans(text)
    for start, end, _ in sentences(text, closed):
        joints = (at for at in borders(text, start, end, closed) if asks(text[at:end].strip()))
        yield from pairwise([start, *joints, end])


def borders(text: str, start: int, end: int, closed: Sequence[tuple[int, int]]) -> list[int]:
    """Where a clause may begin behind another one."""
    # A word that means "and" does so in its language alone.
    others = wordset("ands") - wordset("ands", detect_language(text))
    return [one.end() for one in _JOINT.finditer(text, start, end) if not (
            {*one[0].casefold().split()} & others or any(a < one.start() < b for a, b in closed)
            or _LISTED.match(text, one.start() - 1))]  # fmt: skip


def unquoted(said: str) -> str:
    return _ANY_QUOTE.sub(" ", said)


def adds(said: str) -> bool:
    """Whether a stretch says that something is to be added to the prompt."""
    return any(one.search(said) for one in (PUT, words("add"), _IN_PROMPT))


def refers(said: str) -> bool:
    """Whether a clause asks for no more than that "it" comes."""
    return _IT.search(said) is not None


def sentences(text: str, closed: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Sentences, and which item of a list each is (0: none) that is counted, within a line, too."""
    found = list[re.Match[str]]()
    for one in _COUNTED.finditer(text):
        # "No longer 22." counts nothing.
        found += [one] if not found or int(one[1]) == int(found[-1][1]) + 1 else []
    counted = {one.start(): one.end() for one in found if len(found) > 1}
    ends = ({one.end() for one in _SENTENCE.finditer(text)} | {*counted}) - {0, len(text)}
    inside = [end for end in sorted(ends) if not any(a < end < b for a, b in [*closed, *counted.items()])]
    return ((counted.get(start, start), end, counted.get(start, 0)) for start, end in pairwise([0, *inside, len(text)]))


def alters(said: str) -> bool:
    """Whether a stretch asks for something to come, go or be another one, and not how to behave."""
    tells = behaves(said) or _ADDRESS.match(said) or any(map(IF.match, re.split(r"[,;.:]\s", said)))
    return ALTERS.search(said) is not None and not tells


def restores(said: str) -> bool:
    """Whether a clause wants back what was there before, which is not known."""
    return _RESTORES.search(said) is not None and sense(said, change=True).told < HALF and not IF.match(said)


def complains(said: str) -> bool:
    """Whether a stretch says how it is now, and nothing of how it should be."""
    about = sense(said, change=True)
    return max(about.idle, about.complaint) > SURE and not (asks(said) or IF.match(said))


def is_off(text: str, start: int) -> bool:
    """Whether a clause of a text says for the second reader, too, that what is there is not wanted."""
    begin, end = next(place for place in clauses(f"{text} ") if place[0] <= start < place[1])
    cuts = [begin, *borders(text, begin, end, quoted_spans(text)), end]
    said = next(text[a:b] for a, b in pairwise(cuts) if a <= start < b)
    return any(sense(one.strip(), change=True).off > HALF for one in (said, text[begin:end]))


def takes_out(said: str) -> bool:
    """Whether a clause begins with an order to take something out of the flow or of a text."""
    order = next((one for one in words("remove").finditer(said) if not is_negated(said, *one.span())), None)
    return order is not None and len(said[: order.start()].split()) <= _FEW_WORDS and not IF.match(said)


def edits(line: str) -> bool:
    """Whether a line only makes sense to who edits a text."""
    value = re.search(NUMBER, line, re.IGNORECASE) is not None and not quoted(line)
    # "Change the price of a room to 40" says all that there is to say.
    to = any(_DIGITS.match(line[one.end() :].lstrip("£$€")) for one in _BY.finditer(line))
    whole = to and len(_DIGITS.findall(line)) == 1 and not adds(line)
    commands = (_SWAPS.match(line) or words("remove").match(line)) and not whole and (value or _A_LINE.search(line))
    return bool(commands or words("rename").match(line) or (value and _IN_PROMPT.search(line)))


def says_nothing(text: str) -> bool:
    """Whether a wish does not say at all what is to be different: "make it better", "they complained"."""
    said = re.findall(r"[^\W\d_]+", text.casefold())
    plain = bool(said) and {*said} <= FUNCTIONS | wordset("says_nothing")
    parts = [text[start:end].strip() for start, end, _ in sentences(text, quoted_spans(text))]
    read = [sense(one, change=True) for one in parts]
    # "Visitors say that it is not good enough" asks for nothing.
    wants = any(one.part > HALF or asks(part) for part, one in zip(parts, read, strict=True)
                if one.concepts.get("vague", 0) <= LIKELY and max(one.idle, one.complaint) <= HALF)  # fmt: skip
    if restores(text) and not _VALUE.search(text) and len(read) == 1:
        return True
    alone = all(opines(one) for one in re.split(r"[.!?,;:]+(?:\s|$)|\n", text) if one.strip())
    vague = plain or (not wants and any("vague" in one.concepts for one in read))
    return alone or (vague and not _VALUE.search(text))


def told_beside(text: str) -> str:
    """The sentences of such a wish that tell the bot something."""
    parts = (text[start:end].strip() for start, end, _ in sentences(text, quoted_spans(text)))
    read = ((part, sense(part, change=True)) for part in parts)
    return "\n".join(part for part, one in read if one.told > HALF and "vague" not in one.concepts)


def asks(line: str) -> bool:
    """Whether a line says what is to be done, or how to behave."""
    return commands(line) or _OBLIGED.search(line) is not None


def commands(line: str) -> bool:
    """Whether it begins with what is to be done."""
    wishes = (_ADDRESS, words("change"), words("add"), words("remove"), _CAN_IT)
    return behaves(line) or any(one.match(line) for one in wishes)


def opines(text: str) -> bool:
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
    said = _ENDS.sub("", said.strip(" ,;:–—•\n").lstrip(" .!?"))
    said = ungreeted(said.removeprefix("- ")) or said
    # "En" is no "and" in each language.
    joint = _ANDS.match(said) and said.partition(" ")[0].casefold() in wordset("ands", detect_language(said))
    said = (_ANDS.sub("", said) if joint else said).strip(" ,")
    # "Be brief, change nothing else"; not "if it burns, say that they run, and nothing else".
    # "Part numbers without change" is a rule.
    scopes = [] if IF.match(said) else [one for one in _SCOPE.finditer(said) if one.end() > len(said) - 2]
    ends = next(
        (one for one in scopes if not one[0][:1].isalpha() or said[: one.start()].rstrip()[-1:] in ",;.!?"), None
    )
    said = said[: ends.start()].rstrip(" ,;") + said[ends.end() :] if ends and ends.start() else said
    plain, framed = said, False
    while frame := _ALSO.match(plain) or PUT.match(plain) or _CAN_IT.match(plain):
        # "Add Teams phones: ..." says what it is about.
        if frame.re is PUT and says(words("add").sub(" ", frame[0])):
            break
        plain, framed = plain[frame.end() :].strip(), framed or frame.re is not _ALSO
    if framed:
        return capital(re.sub(r"\s?\?+(?=\s|$)", ".", plain, count=1))
    frame = _ADDRESS.match(plain)
    plain = plain[frame.end() :] if frame else plain
    return capital(plain if behaves(plain) else said)


def says(text: str) -> bool:
    """Whether a text says more than which node is meant."""
    said = {word for word in words_of(text) if not is_empty(word)} - FUNCTIONS
    return any(not any(words(name).fullmatch(word) for name in ("first", "second", "third")) for word in said)


def is_word(said: str) -> bool:
    """Whether it is a word alone, of a script that puts spaces between words."""
    return len({*words_of(said)} - wordset("ands")) < 2 and not _UNSPACED.search(said)


def whole(name: str) -> re.Pattern[str]:
    """Whole words in a text, in upper or lower case, with any space between them."""
    said = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!\w)(?<!\d[.,]){said}(?!\w)(?![.,]\d)", re.IGNORECASE)


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())
