"""What a wish calls a flow, a copy or a node, and what of it is to stay as it is."""

import re

from flowise_dev_agent.reasoning.rules.design.wording import asks
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import quoted_spans, squeeze

_FLOW, _CALLED = pattern("naming", "flow"), pattern("copying", "called")
#: "Copy the flow ... as Y": "as" alone says nothing.
_COPIED_AS = re.compile(rf"(?i)(?:{words('copy').pattern})[^.;:\n]{{0,90}}?\s{pattern('copying', 'as').pattern}")
_IN_COPY, _VALUE = pattern("copying", "in_copy"), re.compile(r"\d|@|://")
#: How Flowise names a flow; its digits are no value.
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_QUOTES = "\"“”„«»「」' "
_LONGEST_NAME = 100
_SCOPE, _COURTESY, _KEEPS = (pattern("change", name) for name in ("scope", "courtesy", "keeps"))
_PARTS = (words("memory"), pattern("change", "models"), pattern("change", "tools"))


def without_scope(text: str) -> str:
    """The text without what is to stay as it is ("leave the rest alone", "keep the memory"), and without thanks."""
    quotes, found = quoted_spans(text), [match for one in (_SCOPE, _COURTESY, _KEEPS) for match in one.finditer(text)]
    for start, end in [
        one.span() for one in found if one.re is not _KEEPS or any(part.search(one[0]) for part in _PARTS)
    ]:
        if not any(one < start < two for one, two in quotes):
            text = text[:start] + " " * (end - start) + text[end:]
    return text


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
    cut = next((match for match in ends if asks(wish := name[match.end() :]) or words("insists").match(wish)), None)
    return (name[: cut.start()], name[cut.end() :]) if cut else (name, "")


def copy_name(text: str) -> str | None:
    """What the copy is to be called, None when the text does not say."""
    match = _CALLED.search(text) or _COPIED_AS.search(text)
    return squeeze(match.group("name").strip(_QUOTES) if match else "")[:_LONGEST_NAME] or None


def wish_for_copy(text: str, original: str | None) -> str:
    """What `text` wants to be different in the copy, '' for nothing. `original` is the name of the flow to copy, which
    says nothing about the copy: a copy of the "Sales bot" is not told to be a sales bot."""
    called = _CALLED if _CALLED.search(text) else _COPIED_AS
    rest = without_scope(_IN_COPY.sub(" ", _ID.sub(" ", called.sub(" ", text))))
    rest = re.sub(re.escape(original), " ", rest, flags=re.IGNORECASE) if original else rest
    copied = words("copy").search(rest)
    before, behind = (rest[: copied.start()], rest[copied.end() :]) if copied else ("", rest)
    begins = pattern("copying", "wish").search(behind) if copied else None
    # A value is a wish, whatever stands in front of it; "the flow, copied" puts the wish in front.
    said = behind[begins.start() :] if begins else behind if not copied or _VALUE.search(behind) else ""
    before = before if (asks(before.strip()) and " " in before.strip()) or _VALUE.search(before) else ""
    said = squeeze(f"{before} {said}").strip(" ,;:.")
    first, _, rest = said.partition(" ")
    return rest if first.casefold() in wordset("thats") | wordset("ands") else said
