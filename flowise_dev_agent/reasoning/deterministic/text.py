"""Small tools for reading requirements: folding, clauses, negation, numbers, quotes, the language."""

import re
from collections.abc import Iterator

from flowise_dev_agent.reasoning.deterministic.vocabulary import FUNCTION_WORDS

#: What turns a mention into its opposite, in front of it or right behind it.
_NOT_BEFORE = re.compile(
    r"(?<!\w)(?:no|not|don['’]?t|doesn['’]?t|without|instead of|rather than|kein(?:e[mnrs]?)?|ohne|nicht|statt|"
    r"sin|en lugar de|sans|pas(?: de| d['’])?|aucune?|au lieu de|sem|nenhuma?|em vez de|não)"
    # At most two words between, none of which begins a new thought.
    r"(?:[\s'’-]+(?!(?:using|with|and|und|mit|con|y|avec|et|com|e)\b)[\w'’]+){0,2}[\s'’-]*$",
    re.IGNORECASE,
)
_NOT_BEHIND = re.compile(
    r"^[\w\s]{0,12}?(?:is|are|ist|sind|es|est|é)?\s*"
    r"(?:not|n['’]t|nicht|no|pas|não)\s+(?:be\s+)?"
    r"(?:needed|required|necessary|wanted|nötig|notwendig|necesari[oa]|nécessaire|necessári[oa])",
    re.IGNORECASE,
)
#: Longer than any negation with its two words; a whole text in front of each mention would be quadratic.
_LOOK_BACK = 80
_CLAUSE = re.compile(r"[.;:!?\n(]|,(?! ?\d)|\bbut\b|\baber\b|\bpero\b|\bmais\b|\bmas\b", re.IGNORECASE)
_NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100,
    "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "zwölf": 12,
    "zwanzig": 20, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9,
    "diez": 10, "doce": 12, "veinte": 20, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "sept": 7, "huit": 8,
    "neuf": 9, "dix": 10, "douze": 12, "vingt": 20, "dois": 2, "duas": 2, "três": 3, "quatro": 4, "sete": 7, "oito": 8,
    "nove": 9, "dez": 10, "doze": 12, "vinte": 20,
}  # fmt: skip
#: A number as people write it: 500, 1,000, 0.2, 0,2, ten.
NUMBER = r"(\d{1,3}(?:[.,]\d{3})+(?!\d)|\d+(?:[.,]\d+)?|" + "|".join(_NUMBER_WORDS) + r")"
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
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if re.fullmatch(r"\d{1,3}([.,]\d{3})+", word):
        return float(re.sub(r"[.,]", "", word))
    return float(word.replace(",", "."))


def last_number(text: str, *patterns: re.Pattern[str]) -> float | None:
    """The number that one of the patterns finds; of several the last, since later words correct earlier ones."""
    found = [match for pattern in patterns for match in mentions(text, pattern)]
    if not found:
        return None
    match = max(found, key=lambda item: item.start())
    number = to_number(next(group for group in match.groups() if group))
    return int(number) if number == int(number) else number


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
