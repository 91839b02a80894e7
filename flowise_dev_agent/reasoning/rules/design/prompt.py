"""The person's words as a prompt: a requirement without what was recognised as structure, nothing else changed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from flowise_dev_agent.reasoning.rules.language import grammar, words
from flowise_dev_agent.reasoning.rules.language.scan import Span
from flowise_dev_agent.reasoning.rules.language.text import squeeze

_TOKEN = re.compile(r"[^\W_](?:[\w'’+#%.-]*[^\W_])?|\S|\n")
_ALSO = frozenset({"and", "und", "also", "auch", "también", "aussi", "também", "please", "bitte", "y", "et", "e"})
_IF = re.compile(r"(?:if|when|whenever|wenn|falls|si|cuando|quand|se|quando)\b", re.IGNORECASE)
_ENDS = frozenset(".!?;\n")
_BREAKS = frozenset(",:()—–")
#: How a wish addresses the flow before it says how it should behave.
ADDRESS = grammar.pattern("prompt", "address")
#: What says how to behave begins with one of these.
BEHAVES = grammar.pattern("prompt", "behaves")


@dataclass(frozen=True)
class Unit:
    """A stretch between two boundaries. `structure`: everything in it was recognised or says how to build."""

    start: int
    end: int
    structure: bool
    opens: bool


def units(text: str, spans: Sequence[Span]) -> list[Unit]:
    """The whole text in stretches; `opens` marks the first one of a sentence."""
    marks = bytearray(len(text) + 1)
    inside = bytearray(len(text) + 1)
    for span in spans:
        length = span.end - span.start
        marks[span.start : span.end] = (b"\x02" if span.task else b"\x01") * length if length > 0 else b""
    for span in spans:
        if not span.task:
            marks[span.start : span.end] = b"\x01" * (span.end - span.start)
            inside[span.start + 1 : span.end] = b"\x01" * (span.end - span.start - 1)
    tokens = [(m.start(), m.end(), m.group()) for m in _TOKEN.finditer(text)]
    cuts = {0, len(text)}
    sentence_starts = {0}
    for (_, before_end, before), (start, end, token) in pairwise([(0, 0, "\n"), *tokens]):
        if inside[start]:
            continue
        if before in _ENDS and (before == "\n" or before_end < start):
            sentence_starts.add(start)
            cuts.add(start)
        elif token.casefold() in words.CONNECTORS or (token in _BREAKS and not text[end : end + 1].isdigit()):
            cuts.add(start)
    bounds = sorted(cuts)
    found: list[Unit] = []
    position = 0
    for start, end in pairwise(bounds):
        mine: list[tuple[int, int, str]] = []
        while position < len(tokens) and tokens[position][0] < end:
            mine.append(tokens[position])
            position += 1
        kinds = [_kind(token, marks) for token in mine]
        cut = _tail(mine, kinds)
        opens = start in sentence_starts
        if cut:
            found.append(Unit(start, mine[cut][0], False, opens))
            found.append(Unit(mine[cut][0], end, True, False))
        else:
            found.append(Unit(start, end, "s" in kinds and "c" not in kinds, opens))
    return found


def _kind(token: tuple[int, int, str], marks: bytearray) -> str:
    """s: recognised; t: recognised as part of a task, or a word for any bot; g: says how to build; c: content."""
    start, _, text = token
    if marks[start] == 1:
        return "s"
    folded = re.sub(r"^[ld]['’]|['’]s$", "", text.casefold())
    if folded in words.GLUE or folded in words.LEADS or folded in words.EMPTY_ROLE_WORDS:
        return "g"
    if not any(char.isalnum() for char in text):
        return "g"
    return "c"


def _tail(tokens: Sequence[tuple[int, int, str]], kinds: Sequence[str]) -> int:
    """Where what was recognised begins at the end of a stretch of content ("... on Claude"); 0 for nowhere."""
    last = max((index for index, kind in enumerate(kinds) if kind == "c"), default=-1)
    if last < 0 or "s" not in kinds[last + 1 :]:
        return 0
    first = kinds.index("s", last + 1)
    begins = [i for i in range(last + 1, first) if tokens[i][2].casefold() in words.PREPOSITIONS]
    return begins[0] if begins else 0


def prompt_of(text: str, spans: Sequence[Span], *, change: bool = False) -> str:
    """What the model is to be told: the text in its order without structure. Empty when nothing is left to tell."""
    sentences: list[list[Unit]] = []
    for unit in units(text, spans):
        if unit.opens or not sentences:
            sentences.append([])
        sentences[-1].append(unit)
    kept = [_sentence(text, sentence, first=index == 0 and not change) for index, sentence in enumerate(sentences)]
    lines = [line for line in kept if line]
    if not any(_says_something(line) for line in lines):
        return ""
    return " ".join(lines)


def _sentence(text: str, sentence: Sequence[Unit], *, first: bool) -> str:
    kept = [unit for unit in sentence if not unit.structure]
    said = " ".join(_continued(text, sentence)).replace("\x00", "").strip()
    end = text[sentence[-1].start : sentence[-1].end].rstrip()[-1:]
    if kept and kept != list(sentence):
        said = re.sub(r"^[\s,;:]*", "", said)
        if kept[0] is not sentence[0]:
            said = _without(said, words.CONNECTORS, front=True)
        said = _without(said, words.CONNECTORS | words.PREPOSITIONS, front=False)
        if end in ".!?" and said and said[-1] not in ".!?":
            said += end
    if first:
        said = re.sub(r"^(?:please )?set up ", "", said, flags=re.IGNORECASE)
        said = _without(said, words.LEADS, front=True)
    said = re.sub(r"\s([,.;:!?)](?!\w))|(?<=\() ", r"\1", squeeze(said))
    if "(" not in said:
        said = said.replace(")", "")
    return f"{said[:1].upper()}{said[1:]}" if re.search(r"\w", said) else ""


def _continued(text: str, sentence: Sequence[Unit]) -> list[str]:
    """What is kept of a sentence. "that remembers ... and answers ..." without its first half is "that answers ..."."""
    found: list[str] = []
    opened = ""
    for unit in sentence:
        said = text[unit.start : unit.end].strip()
        first, _, rest = said.partition(" ")
        if unit.structure:
            opened = first if first.casefold() in words.RELATIVES else opened
        else:
            found.append(f"{opened} {rest}" if opened and first.casefold() in words.ANDS else said)
            opened = ""
    return found


def _without(text: str, loose: frozenset[str], *, front: bool) -> str:
    """The text without the words of `loose` at one of its ends."""
    parts = text.split(" ")
    index = 0 if front else -1
    while parts and (parts[index].strip(" ,;:").casefold() in loose or not re.search(r"\w", parts[index])):
        parts.pop(index)
    return " ".join(parts).strip(" ,;:")


def _says_something(line: str) -> bool:
    return any(
        word not in words.GLUE and word not in words.LEADS and word not in words.EMPTY_ROLE_WORDS
        for word in re.findall(r"[^\W_][\w'’-]*", line.casefold())
    )


def behaviour_of(text: str, spans: Sequence[Span]) -> tuple[list[str], list[str]]:
    """(ways to behave, what is not understood) of a wish for a change, each in the person's words."""
    wanted: list[str] = []
    rest: list[str] = []
    said_of_flow = (words.CHANGE, words.ADD, words.REMOVE, words.THIS_FLOW)
    found = [match for pattern in said_of_flow for match in pattern.finditer(text)]
    spans = [*spans, *(Span(match.start(), match.end(), keep=True) for match in found)]
    pending: list[Unit] = []
    groups: list[list[Unit]] = []
    for unit in units(text, spans):
        stretch = text[unit.start : unit.end].strip(" ,;:")
        # "... and if you do not know, say so" is one wish.
        conditional = pending and _IF.match(
            _without(text[pending[-1].start : pending[-1].end].strip(" ,;:"), _ALSO, front=True)
        )
        starts = unit.opens or (begins_wish(stretch) and not conditional)
        if starts and pending:
            groups.append(pending)
            pending = []
        pending.append(unit)
    groups += [pending] if pending else []
    for group in groups:
        line = _sentence(text, group, first=False)
        plain = _without(line, words.CONNECTORS | _ALSO, front=True)
        address = ADDRESS.match(plain)
        said = plain[address.end() :] if address else plain
        said = _without(said, _ALSO, front=True)
        if not _says_something(said) and not (BEHAVES.match(said) and said.count(" ") > 1):
            continue
        condition, _, then = said.partition(", ")
        if address or BEHAVES.match(said) or (_IF.match(condition) and BEHAVES.match(then)):
            order = said if BEHAVES.match(said) else plain
            wanted.append(f"{order[:1].upper()}{order[1:]}")
        else:
            rest.append(line)
    return wanted, rest


def begins_wish(stretch: str) -> bool:
    """Whether a stretch says what is to be changed, or how to behave."""
    plain = _without(stretch, words.CONNECTORS, front=True)
    return bool(ADDRESS.match(plain) or BEHAVES.match(plain) or words.CHANGE.match(plain) or words.ADD.match(plain))
