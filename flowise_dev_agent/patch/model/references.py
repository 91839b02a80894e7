"""The texts by which one node's inputs name another node: ``{{chatOpenAI_0.data.instance}}``, in agentflows
``{{ llmAgentflow_0 }}``."""

import re
from collections.abc import Callable
from typing import Any

#: What the editor's handle splitting ('-') and the server's reference splitting ('.') leave usable.
NODE_ID = re.compile(r"[A-Za-z0-9_]+")

_REFERENCE = re.compile(r"\{\{\s*([^{}.\s]+)\.data\.instance[^{}]*\}\}")
_VARIABLE = re.compile(r"\{\{([^{}]*)\}\}")
_HEAD = re.compile(r"[^.\[\s]+")


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
    if not isinstance(value, str) or "{{" not in value:
        return None
    match = _REFERENCE.fullmatch(value.strip())
    return match.group(1) if match else None


def has_variable(value: Any) -> bool:
    """True for text that Flowise fills in at run time, so that its final value is not known here."""
    return isinstance(value, str) and "{{" in value and "}}" in value


def variables(value: Any) -> list[str]:
    """The texts between double braces anywhere in a value, in order: ``question``, ``llmAgentflow_0.output.x``."""
    if isinstance(value, str):
        return [name.strip() for name in _VARIABLE.findall(value)] if "{{" in value else []
    if isinstance(value, dict):
        return [name for item in value.values() for name in variables(item)]
    if isinstance(value, list):
        return [name for item in value for name in variables(item)]
    return []


def variable_head(variable: str) -> str:
    """``llmAgentflow_0`` of ``llmAgentflow_0.output.subject``."""
    match = _HEAD.match(variable)
    return match.group() if match else ""


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed; the very same object where nothing was."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        mapped = {key: map_texts(item, change) for key, item in value.items()}
        return mapped if any(mapped[key] is not item for key, item in value.items()) else value
    if isinstance(value, list):
        items = [map_texts(item, change) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def with_new_id(value: Any, old: str, new: str) -> Any:
    """The value with every mention of a node in double braces under its new id; longer ids stay as they are."""
    mention = re.compile(rf"(\{{\{{\s*){re.escape(old)}(?=[\s.}}\[])")
    # The editor keeps the id of a variable beside its text, in the attributes of the markup.
    attribute = re.compile(rf"(data-(?:id|label)=\\?\"){re.escape(old)}(?=[\".\[\\])")
    return map_texts(
        value,
        lambda text: attribute.sub(rf"\g<1>{new}", mention.sub(rf"\g<1>{new}", text)) if old in text else text,
    )


def without_reference(value: Any, node_id: str) -> Any:
    """The value without its references to a node; longer ids stay as they are."""
    mention = re.compile(rf"\{{\{{\s*{re.escape(node_id)}\.data\.instance[^{{}}]*\}}\}}")
    return map_texts(value, lambda text: mention.sub("", text) if node_id in text else text)
