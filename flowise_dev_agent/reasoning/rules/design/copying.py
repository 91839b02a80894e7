"""Copies of flows: what the copy is called, and what is to be different in it."""

import re

from flowise_dev_agent.reasoning.contracts import PlanContract
from flowise_dev_agent.reasoning.rules.language import grammar, words
from flowise_dev_agent.reasoning.rules.language.text import quoted, squeeze
from flowise_dev_agent.reasoning.rules.render import telling

_CALLED = grammar.pattern("copying", "called")
#: What a wish about the copy begins with.
_WISH = grammar.pattern("copying", "wish")
_LONGEST_NAME = 100


def copy_name(text: str) -> str | None:
    """What the copy is to be called, None when the text does not say."""
    match = _CALLED.search(text)
    if match is None:
        return None
    said = match.group("name")
    return squeeze(next(iter(quoted(said)), said))[:_LONGEST_NAME] or None


def wish_for_copy(text: str, original: str | None) -> str:
    """What `text` wants to be different in the copy, '' for nothing. `original` is the name of the flow to copy, which
    says nothing about the copy: a copy of the "Sales bot" is not told to be a sales bot."""
    rest = _CALLED.sub(" ", text)
    if original:
        rest = re.sub(re.escape(original), " ", rest, flags=re.IGNORECASE)
    copied = words.COPY.search(rest)
    if copied is None:
        return squeeze(rest)
    before, behind = rest[: copied.start()], rest[copied.end() :]
    begins = _WISH.search(behind)
    if begins is None:
        # "the flow, copied" puts the wish in front, if there is one.
        return squeeze(before) if words.CHANGE.search(before) or words.ADD_TO.search(before) else ""
    return squeeze(f"{before} {behind[begins.start() :]}").strip(" ,;:.")


def as_copy(contract: PlanContract, requirement: str) -> PlanContract:
    """`contract`, which was made for the changes alone, as that of the copy."""
    if contract.declined:
        return contract
    name = copy_name(requirement) or contract.flow_name
    return contract.model_copy(update={"flow_name": name, "goal": telling.short(requirement)})
