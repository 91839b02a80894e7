"""What a plan of the rules does about each part of what the person said, told by words alone."""

import re
from dataclasses import replace
from functools import cache

from flowise_dev_agent.contracts.plan import Part, PlanContract
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.deterministic.reading import Reading, read
from flowise_dev_agent.reasoning.deterministic.vocabulary import FUNCTION_WORDS

_WORDS = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NOT_READ = "The rules found nothing in it that they know how to build."


def with_parts(plan: PlanContract, request: PlanRequest) -> PlanContract:
    """The plan with every part of the request: covered where the rules read something in it or the plan has its words,
    else not understood."""
    if plan.declined or plan.answer is not None or request.intent.operation == "copy":
        state, reason = ("not_possible", plan.declined) if plan.declined else ("covered", "")
        parts = [part.model_copy(update={"state": state, "reason": reason}) for part in request.parts]
        return plan.model_copy(update={"parts": parts})
    by_node = {node.node_id: _words(f"{_CAMEL.sub(' ', node.node_name)} {node.purpose}") for node in plan.nodes}
    said = _words(" ".join([*plan.steps, *plan.removals, *plan.placeholders]))
    return plan.model_copy(update={"parts": [_accounted(part, by_node, said) for part in request.parts]})


def _accounted(part: Part, by_node: dict[str, set[str]], said: set[str]) -> Part:
    words = _words(part.quote)
    nodes = [id_ for id_, known in by_node.items() if words & known]
    if nodes or words & said or _says_something(part.quote):
        return part.model_copy(update={"state": "covered", "nodes": nodes})
    return part.model_copy(update={"state": "not_understood", "reason": _NOT_READ})


def _says_something(quote: str) -> bool:
    return _content(read(quote)) != _nothing()


@cache
def _nothing() -> Reading:
    return _content(read(""))


def _content(reading: Reading) -> Reading:
    return replace(reading, text="", language="")


def _words(text: str) -> set[str]:
    common = {word for words in FUNCTION_WORDS.values() for word in words}
    return {word for word in _WORDS.findall(text.casefold()) if len(word) > 3 and word not in common}
