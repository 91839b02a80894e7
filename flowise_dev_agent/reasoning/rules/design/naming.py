"""Names of flows and titles of nodes: what a wish calls them."""

import re
from collections.abc import Mapping

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.rules.design.prompt import begins_wish
from flowise_dev_agent.reasoning.rules.language import grammar
from flowise_dev_agent.reasoning.rules.language.text import squeeze

_FLOW = grammar.pattern("naming", "flow")
_QUOTES = "\"“”„«»' "
_LONGEST_NAME = 120
_RENAMES = grammar.patterns("naming", "renames")
#: What people call the one node of a category.
_KINDS = {
    "Chat Models": re.compile(r"^(?:chat )?(?:model[ol]?|modell|modèle|llm)$", re.IGNORECASE),
    "Memory": re.compile(r"^(?:memory|speicher|gedächtnis|mémoire|memoria|memória)$", re.IGNORECASE),
    "Agents": re.compile(r"^(?:agente?n?)$", re.IGNORECASE),
    "Chains": re.compile(r"^(?:chain|kette|chaîne|cadena|cadeia)$", re.IGNORECASE),
}


def take_flow_name(text: str) -> tuple[str, str]:
    """(the name that a wish gives the flow, the text without what said so); an empty name where it gives none."""
    match = _FLOW.search(text)
    if match is None:
        return "", text
    name, rest = _cut(match.group("name"))
    behind = text[match.end() :].lstrip(" .,;:")
    return squeeze(name.strip(_QUOTES))[:_LONGEST_NAME], squeeze(f"{text[: match.start()]} {rest} {behind}")


def take_names(text: str, existing: Mapping[str, NodeSchema]) -> tuple[dict[str, str], str]:
    """(node id -> its new title, the text without what said so). A part that is not clear stays in the text."""
    names: dict[str, str] = {}
    for pattern in _RENAMES:
        for match in pattern.finditer(text):
            node_id = _meant(match.group("part").strip(), existing)
            if node_id:
                name, rest = _cut(match.group("name"))
                names[node_id] = squeeze(name.strip(_QUOTES))
                text = text.replace(match.group(0), f" {rest} ")
    return names, squeeze(text) if names else text


def _cut(name: str) -> tuple[str, str]:
    """(the name, what is wished for behind it): "Front desk and answer briefly" is a name and another wish."""
    for match in re.finditer(r"\s(?:and|und|y|et|e)\s", name):
        behind = name[match.end() :]
        if name[:1] not in "\"“„«'" and begins_wish(behind):
            return name[: match.start()], behind
    return name, ""


def _meant(part: str, existing: Mapping[str, NodeSchema]) -> str | None:
    """The one node that is meant: by its id, its type's title or name, or as the only one of its kind."""
    if part in existing:
        return part
    said = part.casefold().replace(" ", "")
    found = [
        node_id
        for node_id, schema in existing.items()
        if said in (schema.label.casefold().replace(" ", ""), schema.name.casefold())
        or ((kind := _KINDS.get(schema.category)) and kind.match(part))
    ]
    return found[0] if len(found) == 1 else None
