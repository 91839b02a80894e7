"""What a wish calls a flow or a copy."""

import re
from difflib import get_close_matches

from flowise_dev_agent.reasoning.rules.design.prompt import begins_wish
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import quoted, squeeze

_FLOW, _CALLED = pattern("naming", "flow"), pattern("copying", "called")
#: "Copy the flow ... as Y": "as" alone says nothing.
_COPIED_AS = re.compile(
    rf"(?:{words('copy').pattern})[^.;:\n]{{0,90}}?\s{pattern('copying', 'as').pattern}", re.IGNORECASE
)
#: How Flowise names a flow; its digits are no value.
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_QUOTES = "\"“”„«»「」' "
_LONGEST_NAME = 100
#: How alike a misspelt word is, and how many characters away its number.
_ALIKE, _NEAR = 0.85, 25


def take_flow_name(text: str) -> tuple[str, str]:
    """(the name that a wish gives the flow, the text without what said so); an empty name where it gives none."""
    match = _FLOW.search(text)
    if match is None:
        return "", text
    name, rest = _cut(match.group("name"))
    behind = text[match.end() :].lstrip(" .,;:")
    return squeeze(name.strip(_QUOTES))[:_LONGEST_NAME], squeeze(f"{text[: match.start()]} {rest} {behind}")


def _cut(name: str) -> tuple[str, str]:
    """(the name, what is wished for behind it): "Front desk and answer briefly" is a name and another wish."""
    ends = re.finditer(r"\s(?:and|und|y|et|e)\s", name) if name[:1] not in "\"“„«'" else ()
    cut = next((match for match in ends if begins_wish(name[match.end() :])), None)
    return (name[: cut.start()], name[cut.end() :]) if cut else (name, "")


def naming(name: str) -> re.Pattern[str]:
    """The whole name in a text."""
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)


def respelled(text: str) -> str:
    """The text with the words of settings spelled right where a number is near: "temprature 0.2"."""

    def right(match: re.Match[str]) -> str:
        word = match.group().casefold()
        near = re.search(r"\d", text[max(0, match.start() - _NEAR) : match.end() + _NEAR])
        alike = get_close_matches(word, wordset("settings"), 1, _ALIKE) if near else []
        return alike[0] if alike and not (word.startswith(alike[0]) or alike[0].startswith(word)) else match.group()

    return re.sub(r"[^\W\d_]{5,}", right, text)


def copy_name(text: str) -> str | None:
    """What the copy is to be called, None when the text does not say."""
    match = _CALLED.search(text) or _COPIED_AS.search(text)
    said = match.group("name") if match else ""
    return squeeze(next(iter(quoted(said)), said))[:_LONGEST_NAME] or None


def wish_for_copy(text: str, original: str | None) -> str:
    """What `text` wants to be different in the copy, '' for nothing. `original` is the name of the flow to copy, which
    says nothing about the copy: a copy of the "Sales bot" is not told to be a sales bot."""
    rest = squeeze(_ID.sub(" ", _COPIED_AS.sub(" ", _CALLED.sub(" ", text))))
    rest = re.sub(re.escape(original), " ", rest, flags=re.IGNORECASE) if original else rest
    copied = words("copy").search(rest)
    if copied is None:
        return squeeze(rest).strip(" ,;:.")
    before, behind = rest[: copied.start()], rest[copied.end() :]
    begins = pattern("copying", "wish").search(behind)
    # A value is a wish, whatever stands in front of it; "the flow, copied" puts the wish in front.
    said = behind[begins.start() :] if begins else behind if re.search(r"\d|@|://", behind) else ""
    asks = begins or (not said and any(words(name).search(before) for name in ("change", "add_to")))
    return squeeze(f"{before if asks else ''} {said}").strip(" ,;:.")
