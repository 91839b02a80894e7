"""Add text at the end of a prompt, a reply or another text."""

from collections.abc import Sequence


def with_added_text(old: object, added: Sequence[str]) -> str:
    """Append texts, each on a line of its own at least; text that is already there is not repeated."""
    text = str(old or "")
    for one in added:
        if one.strip() not in text:
            joint = "\n" if text and not text.endswith("\n") and not one.startswith("\n") else ""
            text = f"{text}{joint}{one}"
    return text
