"""The person's words as a prompt: a requirement without what was recognised as structure, nothing else changed."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, constants, pattern, wordset
from flowise_dev_agent.reasoning.rules.language.senses import RATHER, sense
from flowise_dev_agent.reasoning.rules.language.text import Span, capital, is_negated, quoted_spans, squeeze

_TOKEN = re.compile(rf"{pattern('text', 'abbreviated').pattern}|" r"[^\W_]+(?:(?:['’+#%.-]|_)+[^\W_]+)*|\S|\n")
_ENDS, _FULL_WIDTH, _BREAKS = frozenset(".!?;\n"), frozenset("。！？"), frozenset(",:—–、，")
#: What belongs together whatever is in it: brackets, of any kind.
BRACKETS = re.compile(r"\([^()\n]{0,300}\)|\[[^\[\]\n]{0,300}\]|（[^（）\n]{0,300}）")
#: What a wish that says how to behave begins with.
_BEHAVES = pattern("prompt", "behaves")
#: What asks for a bot: "and would like", "build me". How what follows is called where nobody asks for it.
_FRAME, _WISH, _COURTESY = pattern("prompt", "frame"), pattern("prompt", "wish"), pattern("change", "courtesy")
_ASKED, _CASES = pattern("prompt", "asked"), [(re.compile(row["said"]), row["becomes"]) for row in constants("cases")]
_OTHERS, _LIMITS = pattern("prompt", "others"), pattern("prompt", "limits")
#: A stretch between commas that is no clause of its own ("which can calculate").
_ITEM = re.compile(
    rf"[,、，]\s?(?!\s)(?:(?!(?:{'|'.join(FUNCTIONS)})(?!\w))|.*\d).*[,、，]$", re.IGNORECASE | re.DOTALL
)
#: What goes on with what is in front of it.
_GOES_ON = "|".join(wordset("ands") | wordset("prepositions"))
_HANGS = re.compile(rf"(?i)[\s,;:]*(?:[(\[（]|(?:{_GOES_ON})\s|{pattern('prompt', 'what').pattern})")


@dataclass(frozen=True)
class Unit:
    """A stretch between two boundaries. `structure`: everything in it was recognised or says how to build; `opens`:
    the first one of its sentence."""

    start: int
    end: int
    structure: bool
    opens: bool


def units(text: str, spans: Sequence[Span]) -> list[Unit]:
    """The whole text in stretches."""
    marks, inside = bytearray(len(text) + 1), bytearray(len(text) + 1)
    for start, end in ((span.start, span.end) for span in spans if span.end > span.start and not span.task):
        marks[start:end] = bytes([1]) * (end - start)
        inside[start + 1 : end] = bytes([1]) * (end - start - 1)
    tokens = [(*match.span(), match.group()) for match in _TOKEN.finditer(text)]
    cuts, opening = {0, len(text)}, {0}
    for start, end in [*(match.span() for match in BRACKETS.finditer(text)), *quoted_spans(text)]:
        inside[start + 1 : end] = bytes([1]) * (end - start - 1)
        cuts |= {start, end} if text[start] in "([（" and not inside[start] else set()
    for (_, before_end, before), (start, end, token) in pairwise([(0, 0, "\n"), *tokens]):
        if inside[start]:
            continue
        if before in _FULL_WIDTH or (before in _ENDS and (before == "\n" or before_end < start)):
            opening.add(start)
            cuts.add(start)
        elif (token.casefold() in wordset("connectors") and before not in _BREAKS) or (
            token in _BREAKS and not text[end : end + 1].isdigit()
        ):
            cuts.add(start)
    found: list[Unit] = []
    for start, end in pairwise(sorted(cuts)):
        mine = tokens[bisect_left(tokens, (start, 0, "")) : bisect_left(tokens, (end, 0, ""))]
        read, told = any(marks[at] for at, _, _ in mine), (word for at, _, word in mine if not marks[at])
        # "It must only use the PDF" is a rule, too.
        limits = _LIMITS.search(text, start, end) and not re.search(r"\d", text[start:end])
        structure = read and not limits and all(is_empty(re.sub(r"^[ld]['’]|['’]s$", "", word)) for word in told)
        found.append(Unit(start, end, structure, start in opening))
    return found


def is_empty(word: str) -> bool:
    """Whether a word says how to build, or nothing at all about the role."""
    known = any(word.casefold() in wordset(name) for name in ("glue", "leads", "empty_role_words"))
    return known or not any(char.isalnum() for char in word)


def prompt_of(text: str, spans: Sequence[Span]) -> str:
    """What the model is to be told: the text in its order without structure, a greeting and the words that ask for a
    flow ("build me"). Empty when nothing is left to tell."""
    sentences: list[list[Unit]] = []
    for unit in units(text, spans):
        if unit.opens or not sentences:
            sentences.append([])
        sentences[-1].append(unit)
    lines, lead = list[str](), True
    for sentence in sentences:
        line = _sentence(text, sentence)
        if lead and line:
            role, end = as_role(line), line[-1] if line[-1] in ";:" else ""
            line, lead = role or (_ASKED.sub("", line) if lines else without_opening(line)), not role
            line += end if line and line[-1] != end else ""
        if line:
            end = "\n" if text[sentence[-1].start : sentence[-1].end].endswith("\n") else " "
            # Only what begins anew is written large: a name in a list stays as it is.
            anew = not lines or line[:1] != text[sentence[0].start :].lstrip(" \t,;:")[:1]
            lines.append((capital(line) if anew else line) + end)
    return "".join(lines).rstrip() if any(map(_says_something, lines)) else ""


def _sentence(text: str, sentence: Sequence[Unit]) -> str:
    """A sentence without the structure at its ends; nothing is cut out of it. Empty for one of structure alone."""
    whole, kept = _tidy(text[sentence[0].start : sentence[-1].end]), [*sentence]
    told = [n for n, unit in enumerate(kept, 1) if not unit.structure and any(
        not (is_empty(word) or word in FUNCTIONS) for word in _words(text[unit.start : unit.end]))]  # fmt: skip
    last = max(told, default=0)
    # Small words in front of the structure at the end belong to what they follow: "no jargon of ours, no memory".
    kept = kept[: next((n for n, unit in enumerate(kept) if n >= last and unit.structure), None)]
    # An item of a list goes out of its middle, too: "short, temperature 0.2, polite".
    kept = [unit for unit, behind in zip(kept, [*kept[1:], None], strict=False)
            if not (unit.structure and behind and _ITEM.match(text[unit.start : behind.start + 1])
                    and not _HANGS.match(text, behind.start))]  # fmt: skip
    # "With a calculator and a smile" hangs together.
    while len(kept) > 1 and kept[0].structure and not _HANGS.match(text, kept[1].start):
        kept.pop(0)
    said = re.sub(r"^[\s,;:]*", "", _tidy("".join(text[unit.start : unit.end] for unit in kept)))
    said = said if kept[:1] == [*sentence[:1]] else without(said, wordset("connectors"))
    if kept[-1:] != [*sentence[-1:]]:
        said = without(said, wordset("connectors") | wordset("prepositions"), front=False)
        said += whole[-1:] if whole[-1:] in ".!?" and said and said.rstrip('"”»“')[-1:] not in ".!?" else ""
    # A ban is never empty: "No small talk."
    banned = not any(unit.structure for unit in sentence) and is_negated(said, *[said.rfind(" ") + 1] * 2)
    return said if (banned or _says_something(said) or _LIMITS.search(said)) and _COURTESY.sub("", said) else ""


def _words(said: str) -> list[str]:
    return re.findall(r"[^\W_][\w'’-]*", said.casefold())


def _tidy(said: str) -> str:
    said = re.sub(r"\s([,.;:!?)])(?![\w)])|(?<=\() ", r"\1", squeeze(said.replace("\x00", "")))
    return said if re.search(r"\w", said) else ""


def role_of(line: str) -> tuple[str, str] | None:
    """What a sentence that wishes for a bot wishes for, as a noun in its own case, and what is said in front of that;
    None for another sentence."""
    found, about = _FRAME.search(line) or _WISH.search(line), sense(line, change=False)
    if not found or (found.re is _WISH and (about.tells or about.part < RATHER)):
        return None
    role = line[found.end() :]
    for said, becomes in _CASES:
        role = said.sub(becomes, role)
    before = ungreeted(line[: found.start()])
    return (f"{role[:-1]}." if role.endswith("?") else role), before if _says_something(before) else ""


def as_role(line: str) -> str:
    """A sentence that wishes for a bot without the words of wishing: "A bot for ... We are a clinic."; else empty."""
    role, before = role_of(line) or ("", "")
    if before and before.split()[0].casefold() in wordset("prepositions"):
        return f"{before} {role}"
    if not (role and before):
        return capital(role)
    ends = "" if role[-1] in ".!" else "."
    return f"{capital(before)}. {capital(role)}" if role[-1] == ":" else f"{capital(role)}{ends} {capital(before)}."


def without_opening(text: str) -> str:
    """A sentence without a greeting and without what asks for a flow; empty for a mere greeting."""
    said = ungreeted(_ASKED.sub("", text))
    return said if _OTHERS.match(said) else without(said, wordset("leads"))


def without(text: str, loose: frozenset[str], *, front: bool = True) -> str:
    """The text without the words of `loose` at one of its ends."""
    parts = text.split(" ")
    index, gone, marks = 0 if front else -1, "", " ,;:!." if front else " ,;:"
    while parts and (parts[index].strip(marks).casefold() in loose or not re.search(r"[\w€$£¥%]", parts[index])):
        gone = parts.pop(index)
    if front and gone.casefold() in wordset("speakers"):
        parts.insert(0, gone)
    return " ".join(parts).strip(" ,;:")


def ungreeted(text: str) -> str:
    """The text without a greeting: "Hi there, I ..."; what only begins with such a word is none: "All prices ..."."""
    rest = without(text, wordset("greetings"))
    ends = text[: text.rfind(rest)].rstrip()[-1:] in {*",.!:;–-"}
    goes_on = rest.partition(" ")[0].casefold() in wordset("speakers") | wordset("leads")
    return rest if ends or goes_on or not rest else text.strip(" ,;:")


def _says_something(line: str) -> bool:
    return any(not is_empty(word) for word in _words(line))


def behaves(stretch: str) -> bool:
    """Whether a stretch says what a model is to do."""
    return bool(_BEHAVES.match(stretch))
