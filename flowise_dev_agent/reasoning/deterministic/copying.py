"""Copies of flows: what the copy is called, and what is to be different in it."""

import re

from flowise_dev_agent.reasoning.contracts import PlanContract, PlanRequest
from flowise_dev_agent.reasoning.deterministic import describing
from flowise_dev_agent.reasoning.deterministic import vocabulary as words
from flowise_dev_agent.reasoning.deterministic.text import quoted, squeeze
from flowise_dev_agent.reasoning.phrases import say

_CALLED = re.compile(
    r"\b(?:and\s+)?(?:called|named|(?:with|under) the name|call it|name it|namens|genannt|(?:mit|unter) dem namen|"
    r"nenne sie|llamad[oa]|(?:con el|bajo el) nombre(?: de)?|(?:re)?nommée?|appelée?|(?:avec|sous) le nom(?: de)?|"
    r"chamad[oa]|(?:com|sob) o nome(?: de)?)\s*:?\s+"
    # In quotation marks, or up to where a wish begins.
    r"(?P<name>\"[^\"\n]+\"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|'[^'\n]+'|"
    r"(?:(?!\s(?:and|but|with|that|und|aber|mit|y|pero|con|et|mais|avec|e|mas|com)\s)[^.;,:\n])+)",
    re.IGNORECASE,
)
#: What a wish about the copy begins with.
_WISH = re.compile(
    r"[,;:]|\.\s|\b(?:that|which|with|without|but|and|having|using|where|der|die|das|mit|ohne|und|aber|que|con|sin|pero|"
    r"y|qui|avec|sans|mais|et|com|sem|mas|e)\b",
    re.IGNORECASE,
)
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
    return contract.model_copy(update={"flow_name": name, "goal": describing.short(requirement)})


def plain_copy(request: PlanRequest, language: str) -> PlanContract:
    """The plan of a copy without any change."""
    return PlanContract(
        goal=describing.short(request.requirement),
        operation="copy",
        flow_name=request.intent.title,
        steps=[say("step_copy", language)],
    )
