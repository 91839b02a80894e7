"""What a wish calls a flow, a copy or a node."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.rules.design.prompt import begins_wish
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, patterns, words, wordset
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
#: What people call the one node of a category.
_KINDS = {"Chat Models": "a_model", "Memory": "a_memory", "Agents": "an_agent", "Chains": "a_chain"}


def take_flow_name(text: str) -> tuple[str, str]:
    """(the name that a wish gives the flow, the text without what said so); an empty name where it gives none."""
    match = _FLOW.search(text)
    if match is None:
        return "", text
    name, rest = _cut(match.group("name"))
    behind = text[match.end() :].lstrip(" .,;:")
    return squeeze(name.strip(_QUOTES))[:_LONGEST_NAME], squeeze(f"{text[: match.start()]} {rest} {behind}")


def take_names(text: str, existing: Mapping[str, NodeSchema], labels: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """(node id -> its new title, the text without what said so). A part that is not clear stays in the text."""
    names: dict[str, str] = {}
    for one in patterns("naming", "renames"):
        for match in one.finditer(text):
            node_id = _meant(match.group("part").strip(_QUOTES), existing, labels)
            if node_id and node_id not in names:
                name, rest = _cut(match.group("name"))
                names[node_id] = squeeze(name.strip(_QUOTES))
                text = text.replace(match.group(0), f" {rest} ")
    return names, squeeze(text) if names else text


def _cut(name: str) -> tuple[str, str]:
    """(the name, what is wished for behind it): "Front desk and answer briefly" is a name and another wish."""
    ends = re.finditer(r"\s(?:and|und|y|et|e)\s", name) if name[:1] not in "\"“„«'" else ()
    cut = next((match for match in ends if begins_wish(name[match.end() :])), None)
    return (name[: cut.start()], name[cut.end() :]) if cut else (name, "")


def _meant(part: str, existing: Mapping[str, NodeSchema], labels: Mapping[str, str]) -> str | None:
    """The one node that is meant: by its id or its title, its type's title or name, or as the only one of its kind."""
    if part in existing:
        return part
    said = part.casefold().replace(" ", "")
    titled = [id_ for id_ in existing if (label := labels.get(id_, "")) and naming(label).search(part)]
    found = titled or [
        node_id
        for node_id, schema in existing.items()
        if said in (schema.label.casefold().replace(" ", ""), schema.name.casefold())
        or ((kind := _KINDS.get(schema.category)) and words(kind).fullmatch(part))
    ]
    return found[0] if len(found) == 1 else None


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
