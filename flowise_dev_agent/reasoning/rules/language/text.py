"""Reading a text: clauses, negation, numbers, quotes, the language, and which of its stretches were recognised."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from flowise_dev_agent.reasoning.rules.language import lexicon
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS, MARKS, NUMBER_WORDS, pattern, table

#: What turns a mention into its opposite, in front of it or right behind it.
_NOT_BEFORE, _NOT_BEHIND, _CLAUSE = (pattern("text", name) for name in ("not_before", "not_behind", "clause"))
#: What makes a clause a fact about people, a thing to say, or forbidden; hours, and what a flow does at a time.
_OURS, _TELLS, _NEVER = (pattern("facts", name) for name in ("ours", "tells", "never"))
_OPENED, _ACTS, _THEIRS, _FOR = (pattern("facts", name) for name in ("opened", "acts", "theirs", "for_that"))
NUL = "\x00"
#: An address of the web; one with a path is a page, and no server.
URL, PAGE_URL = re.compile(r"https?://[^\s\"'<>)\]]+(?<![.,;])"), re.compile(r"https?://[^/\s:]+/\w")
#: As a name of a stretch: what it asks for is done.
DONE = "@done"
_SHORT = 5
_SAID, _SAYS = pattern("about", "saying"), [pattern("about", name) for name in ("says", "greeting", "closing")]
_SENTENCE = re.compile(r"[.!?。！？](?=\s|$)|[;\n]|(?<=[。！？])")
#: "Send a GET to https://..." is a request.
_REQUEST = re.compile(r"\b(?:GET|POST|PUT|DELETE|PATCH)\b[^\n]*?://")
#: Kinds that are read wherever they are.
_ANYWHERE = frozenset({"setting", "output", "form", "team", "sequence"})
_LONGEST_SENTENCE = 600
#: Longer than any negation with its two words; a whole text in front of each mention would be quadratic.
_LOOK_BACK = 80
_QUOTED = re.compile(
    r"\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|„([^“”\n]{1,400})[“”]|«\s*([^»\n]{1,400}?)\s*»|(?<!\w)'([^'\n]{1,80})'(?!\w)|「([^」\n]{1,400})」"
)


@dataclass(frozen=True)
class Span:
    """A recognised stretch. `names` are node types and `params` fields that it asks for; `keep` is said of what
    stays, `task` belongs to the words that the model gets, too, and `aside` asks for nothing."""

    start: int
    end: int
    names: frozenset[str] = frozenset()
    params: frozenset[str] = frozenset()
    denied: bool = False
    task: bool = False
    keep: bool = False
    aside: bool = False

    def meets(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end


class Scan:
    """Looks for patterns in a text and notes what it finds."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans: list[Span] = []

    def find(
        self, looked_for: re.Pattern[str], names: Iterator[str] | tuple[str, ...] | list[str] = (), params: str = "",
        *, task: bool = False, keep: bool = False,
    ) -> list[re.Match[str]]:  # fmt: skip
        """The matches that are not negated. Negated ones are noted as such."""
        found: list[re.Match[str]] = []
        kinds = frozenset(names)
        for match in looked_for.finditer(self.text):
            denied = is_negated(self.text, *match.span())
            self.spans.append(Span(*match.span(), kinds, frozenset(params.split()), denied, task, keep))
            if not denied:
                found.append(match)
        return found


def normalised(text: str) -> str:
    """Single spaces and single line breaks, so that no pattern meets a long run of them."""
    return "\n".join(filter(None, map(squeeze, text.replace("\u2028", "\n").splitlines())))


def mentions(text: str, looked_for: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The matches that are not negated in their clause ("no memory", "ohne Rechner")."""
    return (match for match in looked_for.finditer(text) if not is_negated(text, *match.span()))


def is_negated(text: str, start: int, end: int) -> bool:
    """Whether what is there is said not to be wanted."""
    before = _NOT_BEFORE.search(_CLAUSE.split(text[max(0, start - _LOOK_BACK) : start])[-1])
    # "No Slack" is "in Slack" in Portuguese.
    says_no = before and not (before[0][:3].casefold() == "no " and detect_language(text) == "pt")
    return bool(says_no or _NOT_BEHIND.match(text[end : end + 60]))


def mentioned(text: str, looked_for: re.Pattern[str]) -> bool:
    return next(mentions(text, looked_for), None) is not None


def signals(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """(words, kind) of what says that the flow itself is to do something: what a person says of themselves ("we open
    every day"), forbids, quotes or has the flow say is none of that."""
    quotes, borders = quoted_spans(text), [0, *(match.end() for match in _SENTENCE.finditer(text)), len(text) + 1]
    for looked_for, (kind, *_) in table("signals"):
        for match in looked_for.finditer(text):
            place = match.start()
            if any(start < place < end for start, end in quotes) or is_negated(text, *match.span()):
                continue
            number = bisect_right(borders, place)
            sentence = text[max(borders[number - 1], place - _LONGEST_SENTENCE) : borders[number]][:_LONGEST_SENTENCE]
            if kind in _ANYWHERE or not _is_fact(sentence, text[borders[number - 1] : place], kind):
                yield match, kind


def _is_fact(sentence: str, before: str, kind: str) -> bool:
    if kind == "schedule" and (_OPENED.search(sentence) or not _ACTS.search(sentence)):
        return True
    if kind in ("send", "call") and _REQUEST.search(sentence):
        # What is done behind the request is another thing.
        return kind == "send" and not re.search(r"://\S+\s.*\S", before)
    theirs = kind == "send" and any(one.search(before) for one in (_THEIRS, _FOR))
    return theirs or any(one.search(before[-_LOOK_BACK:]) for one in (_OURS, _TELLS, _NEVER))


def to_number(text: str) -> float:
    """The value of what `NUMBER` matches."""
    word = text.lower()
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    thousands = re.fullmatch(r"\d{1,3}([.,]\d{3})+", word)
    return float(re.sub(r"[.,]", "", word) if thousands else word.replace(",", "."))


def first_group(match: re.Match[str], skipped: int = 0) -> str:
    return next(group for group in match.groups()[skipped:] if group)


def quoted(text: str) -> list[str]:
    """What is in quotation marks of any kind."""
    return [first_group(match) for match in _QUOTED.finditer(text)]


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Where a text quotes, or says behind a colon what is to be said word for word ("end with: Questions? Call 5")."""
    said = [(match.start("said"), match.start("said") + len(_spoken(match["said"])))
            for match in _SAID.finditer(text) if any(one.search(match["lead"]) for one in _SAYS)]  # fmt: skip
    return said + [match.span() for match in _QUOTED.finditer(text) if not any(a <= match.start() < b for a, b in said)]


def _spoken(text: str) -> str:
    """What is said: a sentence, with short ones behind it ("Any questions? Call 5"); a longer one is a wish again."""
    first, *more = re.split(r"(?<=[.!?])(?=\s)", text)
    return first + "".join(takewhile(lambda one: len(one.split()) <= _SHORT, more))


@lru_cache(maxsize=64)
def detect_language(text: str) -> str:
    """ISO 639-1 code by script or by function words; "en" when nothing speaks for another."""
    if code := next((code for code, letters in lexicon.constants("scripts").items() if re.search(letters, text)), None):
        return code
    said = re.findall(r"(?<![\w-])[^\W\d_]+(?![\w-])", text.lower())
    # At least two such letters, and one for each twelve words: a name from there is not enough.
    if code := next((code for code, own in lexicon.constants("unread").items()
                     if len(re.findall(own, text.lower())) > 1 + len(said) // 12), None):  # fmt: skip
        return code
    scores = {code: sum(word in stop for word in said) for code, stop in FUNCTION_WORDS.items()}
    for char, code in MARKS.items():
        scores[code] += text.lower().count(char)
    return max(scores, key=lambda code: scores[code])


def concepts(text: str, *groups: str) -> list[Span]:
    """What names a part or a setting of a flow, each stretch with its concept and group, outside of quotations.
    `groups`: "parts" whatever the text is about; in a flow that is there also its "own", its "sources", its "steps"."""
    found, quotes = ((group, lexicon.concept(group)) for group in groups or ("parts",)), quoted_spans(text)
    spans = (Span(*one.span(), frozenset({one.lastgroup or ""}), frozenset({group}))
             for group, words in found for one in words.finditer(text))  # fmt: skip
    return [span for span in spans if not any(span.meets(*quote) for quote in quotes)]


def squeeze(text: str) -> str:
    """One line, single spaces."""
    return " ".join(text.split())


def masked(text: str, start: int, end: int) -> str:
    """The text with NULs for a stretch, so that all else stays where it is."""
    return f"{text[:start]}{NUL * (end - start)}{text[end:]}"


def capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
