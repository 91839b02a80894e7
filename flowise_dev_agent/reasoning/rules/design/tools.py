"""Tools of the agents inside an agentflow: rows of a list that hold the name of a tool and its values."""

import re
from collections.abc import Sequence
from typing import Any

from flowise_dev_agent.reasoning.rules.design.details import named_components
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.selection import check_filled
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, table, words
from flowise_dev_agent.reasoning.rules.language.text import is_negated, mentioned, mentions

_SELECTED = "agentSelectedTool"


def tool_row(names: Sequence[str], reading: Reading, world: World) -> dict[str, Any]:
    """The row of the first of these tools whose credential is at hand, else of the first. Raises DeclinedError."""
    usable = [schema for name in names if (schema := world.store.get(name))] or [world.schema(names[0])]
    schema = next((schema for schema in usable if world.at_hand(schema)), usable[0])
    check_filled([schema], reading, world)
    config = parameters(schema, Said(reading), language=world.language)
    return {_SELECTED: schema.name, f"{_SELECTED}Config": config}


def only_removes(text: str) -> bool:
    """Whether a wish ends with what it takes out: nothing is said to be added or to take its place."""
    text, more = text.rstrip(" .!"), pattern("selection", "after_removed")
    return any(not more.search(text, match.end()) for match in mentions(text, words("remove")))


def unwanted(text: str, world: World) -> frozenset[str]:
    """Names of the node types that a wish takes back ("without the calculator", "replace SerpAPI by")."""
    ends = pattern("selection", "after_removed")
    going = [ends.split(text[match.end() : match.end() + 60])[0] for match in mentions(text, words("remove"))]

    def removed(looked_for: re.Pattern[str]) -> bool:
        return any(looked_for.search(stretch) for stretch in going)

    def out(looked_for: re.Pattern[str]) -> bool:
        said = any(is_negated(text, *match.span()) for match in looked_for.finditer(text))
        return removed(looked_for) or (said and not mentioned(text, looked_for))

    found = {name for looked_for, names in table("tools") if out(looked_for) for name in names}
    for name, category in (("memory", "Memory"), ("split", "Text Splitters")):
        if out(words(name)):
            found |= {schema.name for schema in world.store.schemas.values() if schema.category == category}
    # One that is named is wanted where only its kind is taken out ("replace the web search by Brave").
    for looked_for, names in table("tools"):
        if len(names) == 1 and mentioned(text, looked_for) and not removed(looked_for):
            found.difference_update(names)
    return frozenset(found | {item[0] for stretch in going for item in named_components(stretch, world.store)})
