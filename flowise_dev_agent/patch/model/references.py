"""References between nodes in input texts:

``{{chatOpenAI_0.data.instance}}``, in agentflows ``{{ llmAgentflow_0 }}``.
"""

import re
from collections.abc import Callable
from typing import Any

#: Characters that survive the editor's split of handles at '-' and the server's split of references at '.'.
NODE_ID = re.compile(r"[A-Za-z0-9_]+")

#: Variable with the text of the files that people upload with a message.
FILES = "file_attachment"

_REFERENCE = re.compile(r"\{\{\s*([^{}.\s]+)\.data\.instance[^{}]*\}\}")
_VARIABLE = re.compile(r"\{\{([^{}]*)\}\}")
_HEAD = re.compile(r"[^.\[\s]+")


def reference(node_id: str) -> str:
    """The text of an anchor that is connected to this node."""
    return f"{{{{{node_id}.data.instance}}}}"


def referenced(value: Any) -> list[str]:
    """Ids of the nodes that an input's value refers to, in order of occurrence. The value is a text, list or object."""
    if isinstance(value, str):
        return _REFERENCE.findall(value) if "{{" in value else []
    if isinstance(value, dict):
        return [node_id for item in value.values() for node_id in referenced(item)]
    if isinstance(value, list):
        return [node_id for item in value for node_id in referenced(item)]
    return []


def sole_reference(value: Any) -> str | None:
    """The node id if the value is exactly one reference, as an anchor must hold it; else None."""
    if not isinstance(value, str) or "{{" not in value:
        return None
    match = _REFERENCE.fullmatch(value.strip())
    return match.group(1) if match else None


def has_variable(value: Any) -> bool:
    """True for text with variables: Flowise fills it in at run time, so its final value is unknown here."""
    return isinstance(value, str) and "{{" in value and "}}" in value


def variables(value: Any) -> list[str]:
    """Texts between double braces anywhere in a value, in order: ``question``, ``llmAgentflow_0.output.x``."""
    if isinstance(value, str):
        return [name.strip() for name in _VARIABLE.findall(value)] if "{{" in value else []
    if isinstance(value, dict):
        return [name for item in value.values() for name in variables(item)]
    if isinstance(value, list):
        return [name for item in value for name in variables(item)]
    return []


def reads_files(value: Any) -> bool:
    """True if a text anywhere in a value reads the files that people upload with a message."""
    return FILES in variables(value)


def variable_head(variable: str) -> str:
    """The part before the first dot or bracket: ``llmAgentflow_0`` of ``llmAgentflow_0.output.subject``."""
    match = _HEAD.match(variable)
    return match.group() if match else ""


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed; the same object if nothing changed."""
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
    """The value with every mention of a node in double braces renamed; longer ids stay."""
    mention = re.compile(rf"(\{{\{{\s*){re.escape(old)}(?=[\s.}}\[])")
    # The editor also keeps the id of a variable in the attributes of its markup.
    attribute = re.compile(rf"(data-(?:id|label)=\\?\"){re.escape(old)}(?=[\".\[\\])")
    return map_texts(
        value,
        lambda text: attribute.sub(rf"\g<1>{new}", mention.sub(rf"\g<1>{new}", text)) if old in text else text,
    )


def without_reference(value: Any, node_id: str) -> Any:
    """The value without its references to a node; longer ids stay."""
    mention = re.compile(rf"\{{\{{\s*{re.escape(node_id)}\.data\.instance[^{{}}]*\}}\}}")
    return map_texts(value, lambda text: mention.sub("", text) if node_id in text else text)
