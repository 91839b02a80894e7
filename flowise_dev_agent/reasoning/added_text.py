"""Text that is added to a prompt, above what is filled in at its end."""

import re
from collections.abc import Sequence

_MARKUP = re.compile(r"<[^<>]{1,300}>")
#: A row that something is filled into, alone or behind what it is: `{context}`, `E-mail: {{ $form.mail }}`, `Answer:`.
_FILLED = re.compile(r"(?:[^\n{}:]{0,40}:)?\s*(?:\{+[^{}\n]{1,60}\}+\s*)*")


def parted(text: str) -> tuple[str, str]:
    """(a text, the rows at its end that something is filled into)."""
    rows, filled, end = re.split(r"(?<=\n)|(?<=</p>)", text), False, len(text)
    while rows and _FILLED.fullmatch(_MARKUP.sub("", rows[-1]).strip("\n \"'`-=#*")):
        filled, end = filled or "{" in rows[-1], end - len(rows.pop())
    return (text[:end].rstrip(), text[end:].lstrip("\n")) if filled and rows else (text.rstrip(), "")


def with_added_text(old: object, added: Sequence[str]) -> str:
    """A text with further ones on lines of their own; what it holds already is not repeated."""
    text, end = parted(str(old or ""))
    for one in added:
        if one.strip() not in text:
            text = f"{text}\n{one.strip()}" if text else one.strip()
    return f"{text}\n\n{end}" if end else text
