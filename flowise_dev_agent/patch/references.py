"""The texts by which one node's inputs name another node: ``{{chatOpenAI_0.data.instance}}``."""

import re
from typing import Any

#: What the editor's handle splitting ('-') and the server's reference splitting ('.') leave usable.
NODE_ID = re.compile(r"[A-Za-z0-9_]+")

_REFERENCE = re.compile(r"\{\{\s*([^{}.\s]+)\.data\.instance[^{}]*\}\}")


def reference(node_id: str) -> str:
    """The text that an anchor holds when it is connected to this node."""
    return f"{{{{{node_id}.data.instance}}}}"


def referenced(value: Any) -> list[str]:
    """Ids of the nodes that an input's value refers to, in order of occurrence: text, list, or JSON of both."""
    if isinstance(value, str):
        return _REFERENCE.findall(value) if "{{" in value else []
    if isinstance(value, dict):
        return [node_id for item in value.values() for node_id in referenced(item)]
    if isinstance(value, list):
        return [node_id for item in value for node_id in referenced(item)]
    return []


def sole_reference(value: Any) -> str | None:
    """The id when the value is one reference and nothing else, as an anchor must hold it."""
    if not isinstance(value, str):
        return None
    match = _REFERENCE.fullmatch(value.strip())
    return match.group(1) if match else None


def has_variable(value: Any) -> bool:
    """True for text that Flowise fills in at run time, so that its final value is not known here."""
    return isinstance(value, str) and "{{" in value and "}}" in value
