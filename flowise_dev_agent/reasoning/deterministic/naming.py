"""Titles of nodes: which node a wish gives which name."""

import re
from collections.abc import Mapping

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.deterministic.text import squeeze

_NAME = r"(?P<name>\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|„[^“”\n]{1,80}[“”]|«[^»\n]{1,80}»|[^\"“”„«».;,\n]{1,80})"
_PART = r"(?:(?:the|den|die|das|le|la|el|los|o|a)\s+|l['’])?(?P<part>[\w '’_-]{2,40}?)"
_RENAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:rename|relabel|retitle)\s+{_PART}\s+(?:to|as|into)\s+{_NAME}",
        rf"\bbenenne\s+{_PART}\s+(?:in|als)\s+{_NAME}\s+um\b",
        rf"\bbenenne\s+{_PART}\s+um\s+(?:in|zu)\s+{_NAME}",
        rf"\brenomme[rz]?\s+{_PART}\s+en\s+{_NAME}",
        rf"\brenombra(?:r)?\s+{_PART}\s+(?:a|como|en)\s+{_NAME}",
        rf"\brenome(?:ie|ia|ar)\s+{_PART}\s+(?:para|como)\s+{_NAME}",
    )
)
#: What people call the one node of a category.
_KINDS = {
    "Chat Models": re.compile(r"^(?:chat )?(?:model[ol]?|modell|modèle|llm)$", re.IGNORECASE),
    "Memory": re.compile(r"^(?:memory|speicher|gedächtnis|mémoire|memoria|memória)$", re.IGNORECASE),
    "Agents": re.compile(r"^(?:agente?n?)$", re.IGNORECASE),
    "Chains": re.compile(r"^(?:chain|kette|chaîne|cadena|cadeia)$", re.IGNORECASE),
}


def take_names(text: str, existing: Mapping[str, NodeSchema]) -> tuple[dict[str, str], str]:
    """(node id -> its new title, the text without what said so). A part that is not clear stays in the text."""
    names: dict[str, str] = {}
    for pattern in _RENAMES:
        for match in pattern.finditer(text):
            node_id = _meant(match.group("part").strip(), existing)
            if node_id:
                names[node_id] = squeeze(match.group("name").strip("\"“”„«»' "))
                text = text.replace(match.group(0), " ")
    return names, squeeze(text) if names else text


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
