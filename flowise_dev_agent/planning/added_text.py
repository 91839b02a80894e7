"""Add text to a prompt, above the placeholder rows at its end."""

import re
from collections.abc import Sequence

_MARKUP = re.compile(r"<[^<>]{1,300}>")
#: A row that something is filled into, alone or behind what it is: `{context}`, `E-mail: {{ $form.mail }}`, `Answer:`.
_FILLED = re.compile(r"(?:[^\n{}:]{0,40}:)?\s*(?:\{+[^{}\n]{1,60}\}+\s*)*")


def parted(text: str) -> tuple[str, str]:
    """Split a text: (text, rows with placeholders at its end)."""
    rows, filled, end = re.split(r"(?<=\n)|(?<=</p>)", text), False, len(text)
    while rows and _FILLED.fullmatch(_MARKUP.sub("", rows[-1]).strip("\n \"'`-=#*")):
        filled, end = filled or "{" in rows[-1], end - len(rows.pop())
    return (text[:end].rstrip(), text[end:].lstrip("\n")) if filled and rows else (text.rstrip(), "")


def with_added_text(old: object, added: Sequence[str]) -> str:
    """Append texts on lines of their own; text that is already there is not repeated."""
    text, end = parted(str(old or ""))
    for one in added:
        if one.strip() not in text:
            text = f"{text}\n{one.strip()}" if text else one.strip()
    return f"{text}\n\n{end}" if end else text
