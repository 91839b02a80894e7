"""Small tools for reading requirements: folding, clauses, negation, numbers, quotes, the language."""

import re
from collections.abc import Iterator

from flowise_dev_agent.reasoning.rules.language import grammar
from flowise_dev_agent.reasoning.rules.language.grammar import NUMBER_WORDS
from flowise_dev_agent.reasoning.rules.language.words import FUNCTION_WORDS

#: What turns a mention into its opposite, in front of it or right behind it.
_NOT_BEFORE = grammar.pattern("text", "not_before")
_NOT_BEHIND = grammar.pattern("text", "not_behind")
#: Longer than any negation with its two words; a whole text in front of each mention would be quadratic.
_LOOK_BACK = 80
_CLAUSE = grammar.pattern("text", "clause")
_QUOTED = re.compile(
    r"\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|„([^“”\n]{1,400})[“”]|«\s*([^»\n]{1,400}?)\s*»|'([^'\n]{1,80})'(?!\w)"
)
_SCRIPTS = (
    (re.compile(r"[\u3040-\u30ff]"), "ja"),
    (re.compile(r"[\uac00-\ud7af]"), "ko"),
    (re.compile(r"[\u4e00-\u9fff]"), "zh"),
    (re.compile(r"[\u0400-\u04ff]"), "ru"),
    (re.compile(r"[\u0600-\u06ff]"), "ar"),
    (re.compile(r"[\u0900-\u097f]"), "hi"),
)
# Two letters are evidence too, where the word exists in one of the languages only.
_MARKS = {"ß": "de", "ñ": "es", "¿": "es", "ã": "pt", "õ": "pt", "œ": "fr", "ê": "fr", "ä": "de", "ö": "de", "ü": "de"}


def normalised(text: str) -> str:
    """Single spaces and single line breaks, so that no pattern meets a long run of them."""
    lines = (" ".join(line.split()) for line in text.replace("\u2028", "\n").splitlines())
    return "\n".join(line for line in lines if line)


def mentions(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The matches of `pattern` that are not negated in their clause ("no memory", "ohne Rechner")."""
    for match in pattern.finditer(text):
        if not is_negated(text, match.start(), match.end()):
            yield match


def is_negated(text: str, start: int, end: int) -> bool:
    """Whether what stands there is said not to be wanted."""
    before = _CLAUSE.split(text[max(0, start - _LOOK_BACK) : start])[-1]
    return bool(_NOT_BEFORE.search(before) or _NOT_BEHIND.match(text[end : end + 60]))


def mentioned(text: str, pattern: re.Pattern[str]) -> bool:
    return next(mentions(text, pattern), None) is not None


def denied(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether `pattern` occurs, and only negated."""
    return pattern.search(text) is not None and not mentioned(text, pattern)


def to_number(text: str) -> float:
    """The value of what `NUMBER` matches."""
    word = text.lower()
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    if re.fullmatch(r"\d{1,3}([.,]\d{3})+", word):
        return float(re.sub(r"[.,]", "", word))
    return float(word.replace(",", "."))


def quoted(text: str) -> list[str]:
    """What stands in quotation marks of any kind."""
    return [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Where quotations begin and end."""
    return [match.span() for match in _QUOTED.finditer(text)]


def detect_language(text: str) -> str:
    """ISO 639-1 code by script or by function words; "en" when nothing speaks for another."""
    for pattern, code in _SCRIPTS:
        if pattern.search(text):
            return code
    words = re.findall(r"(?<![\w-])[^\W\d_]+(?![\w-])", text.lower())
    scores = {code: sum(word in stop for word in words) for code, stop in FUNCTION_WORDS.items()}
    for char, code in _MARKS.items():
        scores[code] += text.lower().count(char)
    return max(scores, key=lambda code: scores[code])


def sentences(text: str) -> list[str]:
    """Split at full stops, question and exclamation marks and line breaks; decimals and model names stay whole."""
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip()]


def squeeze(text: str) -> str:
    """One line, single spaces."""
    return " ".join(text.split())
