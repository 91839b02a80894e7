"""Split a person's text into parts: every sentence and list item is covered by a verbatim quote.

All functions take time linear in the length of the text.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

#: Parts of one text at most; a longer text has longer parts.
MAX_PARTS: Final = 30
#: A model shortens a long quote in the middle: "the first words … the last words".
_CUT: Final = (" … ", " ... ")
#: Signs that models write in place of others; each for exactly one.
_ALIKE: Final = str.maketrans("\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014", '\'\'"""""--')
_SENTENCE_END: Final = frozenset(".!?")
_WIDE_SENTENCE_END: Final = frozenset("。！？")
_BULLETS: Final = "-*•–·‣▪◦"
_WORD: Final = re.compile(r"[\w@]+")
#: Separators of two requirements in one sentence, in several languages; or a quotation to skip.
_QUOTED: Final = r"\"[^\"]{0,400}\"|“[^”]{0,400}”|„[^“”]{0,400}[“”]|«[^»]{0,400}»"
_JOINT_OR_QUOTED: Final = re.compile(
    _QUOTED + r"|(?P<joint>; |, (?:and|but|und|aber|et|mais|y|e|pero|ma|mas|en|maar|ve|ama|og|och|men|i|ale|и|а|но) )",
    re.IGNORECASE,
)
#: Fewer on one side are an enumeration.
_CLAUSE_WORDS: Final = 3
#: Most words of a heading, a greeting or a farewell; most characters of the number of a list item.
_FRAME_WORDS: Final = 4
_MARKER_CHARS: Final = 3
_ADDRESS: Final = re.compile(r"[\w@]://|[\w]@[\w]|www\.")
#: Words that negate a requirement or order several, in several languages.
_TELLING: Final = frozenset(
    word
    for line in (
        "no not never without none nothing neither nor except only don doesn cannot",
        "nicht kein keine keinen keiner keines keinem nie niemals ohne außer nur",
        "ne pas jamais sans sauf aucun aucune nunca sin ni excepto ningún ninguna solo",
        "non mai senza tranne não nem sem exceto apenas geen niet nooit zonder behalve не нет без никогда кроме",
        "first second third fourth fifth last erste ersten zweite zweiten dritte dritten letzte letzten",
        "premier première deuxième troisième dernier primero primera segundo segunda tercero tercera último última",
        "primo secondo terzo ultimo primeiro primeira terceiro terceira",
    )
    for word in line.split()
)


def one_line(text: str) -> str:
    """Text with single spaces, in which quotes are searched."""
    return " ".join(text.split())


def split(text: str) -> list[str]:
    """Sentences and list items of a text, verbatim in its `one_line`; beyond `MAX_PARTS` neighbours are joined."""
    line = one_line(text)
    spans = _spans(text)
    size = -(-len(spans) // MAX_PARTS) or 1
    groups = [spans[index : index + size] for index in range(0, len(spans), size)]
    return [line[group[0][0] : group[-1][1]] for group in groups]


def clauses(text: str) -> list[str]:
    """Split like `split`, and a sentence with two requirements into two parts: after a semicolon, or a comma and a word
    for "and" or "but" with at least three words on either side.

    >>> clauses("Usi Gemini invece di GPT, e dia del Lei.")
    ['Usi Gemini invece di GPT', 'dia del Lei.']
    """
    found = [clause for sentence in split(text) for clause in _clauses(sentence)]
    return found if len(found) <= MAX_PARTS else split(text)


def _clauses(sentence: str) -> Iterator[str]:
    start = 0
    for match in _JOINT_OR_QUOTED.finditer(sentence):
        if match.group("joint") is None:
            continue
        if _says(sentence, start, match.start()) and _says(sentence, match.end(), len(sentence)):
            yield sentence[start : match.start()]
            start = match.end()
    yield sentence[start:]


def _says(text: str, start: int, end: int) -> bool:
    return sum(1 for _ in islice(_WORD.finditer(text, start, end), _CLAUSE_WORDS)) == _CLAUSE_WORDS


def all_parts(text: str, quotes: Sequence[str]) -> list[str]:
    """Complete `quotes` to cover the text: parts in the order of the text. Without quotes these are its sentences.

    Greetings, headings and the numbers of a list are no parts of their own.
    """
    found, missing = complete(text, quotes or split(text))
    parts = complete(text, [*found, *missing])[0] if missing else found
    return parts if len(parts) <= MAX_PARTS else split(text)


def complete(text: str, quotes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Locate the quotes in the text: (quotes in the order of the text, uncovered parts).

    Quotes that are not in the text are dropped. Uncovered parts are sentences without a quote, and pieces outside the
    quotes with a number, an address, a quotation, a name, a negation or an ordinal.
    """
    line = one_line(text)
    plain = line.translate(_ALIKE)
    found: dict[tuple[int, int], str] = {}
    covered = bytearray(len(line))
    seen: set[str] = set()
    for quote in dict.fromkeys(quotes):
        for start, end in _places(plain, one_line(quote).translate(_ALIKE)):
            covered[start:end] = b"\1" * (end - start)
            if line[start:end] not in seen:
                seen.add(line[start:end])
                found[start, end] = line[start:end]
    missing = [line[start:end] for span in _spans(text) for start, end in _missing(line, span, covered)]
    return [found[place] for place in sorted(found)], missing


def _places(plain: str, quote: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of a quote; a shortened quote spans from its beginning to its end."""
    quote = quote.strip()
    if quote not in plain:
        # Written between quotation marks of the model's own.
        quote = quote.strip("\"'").strip()
    cut = next((sign for sign in _CUT if sign in quote), None)
    if cut:
        head, _, tail = quote.partition(cut)
        start = plain.find(head)
        end = plain.find(tail, start + len(head)) if start >= 0 else -1
        if end >= 0:
            yield start, end + len(tail)
        return
    start = plain.find(quote) if quote else -1
    while start >= 0:
        yield start, start + len(quote)
        start = plain.find(quote, start + len(quote))


def _spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence and list item in the text's `one_line`."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for row in text.splitlines():
        line = one_line(row)
        if not line:
            continue
        start = len(line) - len(line.lstrip(_BULLETS + " "))
        says, quotes = False, [match.span() for match in re.finditer(_QUOTED, line)]
        inside = {index for begin, end in quotes for index in range(begin + 1, end)}
        # A quotation is whole; with one a sentence may end.
        closing = {end - 1 for begin, end in quotes if end - begin > 2 and line[end - 2] in _SENTENCE_END}
        for index in range(start, len(line)):
            char, after = line[index], line[index + 1 : index + 3]
            says = says or char.isalnum()
            ends = (char in _WIDE_SENTENCE_END and index not in inside) or (
                ((char in _SENTENCE_END and index not in inside) or index in closing)
                and after[:1] == " "
                and not after[1:].islower()
            )
            if says and (ends or index == len(line) - 1):
                spans.append((offset + start, offset + index + 1))
                says = False
                start = index + (2 if after[:1] == " " else 1)
        offset += len(line) + 1
    return spans


def _missing(line: str, span: tuple[int, int], covered: bytearray) -> Iterator[tuple[int, int]]:
    start, end = span
    pieces = list(_uncovered(line, start, end, covered))
    if pieces == [span] or not any(covered[start:end]):
        if not _is_frame(line[start:end]):
            yield span
        return
    for piece in pieces:
        if _tells(line, piece, start):
            yield piece


def _is_frame(sentence: str) -> bool:
    """True for the number of a list item ("1.", "b)"), and for a few words that open or close a text ("Rules:",
    "Kind regards,") and neither negate nor count."""
    words = list(islice(_WORD.finditer(sentence), _FRAME_WORDS + 1))
    if len(words) == 1 and len(words[0].group()) <= _MARKER_CHARS:
        return not sentence[-1].isalnum()
    tells = any(one.group().lower() in _TELLING for one in words) or any(one.isnumeric() for one in sentence)
    return len(words) <= _FRAME_WORDS and sentence[-1] in ":,：，" and not tells and not _ADDRESS.search(sentence)


def _uncovered(line: str, start: int, end: int, covered: bytearray) -> Iterator[tuple[int, int]]:
    """Yield the spans outside the quotes, without surrounding blanks and punctuation."""
    position = start
    while position < end:
        if covered[position]:
            position += 1
            continue
        stop = covered.find(b"\1", position, end)
        stop = end if stop < 0 else stop
        first, last = position, stop
        while first < last and not line[first].isalnum() and line[first] not in "\"'“”„«»":
            first += 1
        while last > first and not line[last - 1].isalnum() and line[last - 1] not in "\"'“”„«»":
            last -= 1
        if last > first and any(one.isalnum() for one in line[first:last]):
            yield first, last
        position = stop


def _tells(line: str, piece: tuple[int, int], sentence: int) -> bool:
    """True if a piece contains something that must not be lost."""
    text = line[piece[0] : piece[1]]
    if any(one.isnumeric() or one in '"“”„«»' for one in text) or _ADDRESS.search(text):
        return True
    for match in _WORD.finditer(text):
        word = match.group()
        if word.lower() in _TELLING:
            return True
        # Scripts without capitals and without spaces between words: nothing can be told apart, all of it counts.
        if len(word) > 3 and not word.isascii() and word.lower() == word.upper():
            return True
        is_first = piece[0] + match.start() == sentence
        if (word[0].isupper() and not is_first and len(word) > 1) or any(one.isupper() for one in word[1:]):
            return True
    return False
