"""`FLOWISE_NODE_REFERENCE.md`: the catalogue of `schemas/` as a page for people, without loss.

What the page's plain form cannot express (odd labels, rare keys, nested definitions) is JSON after "more" or
"Also". In a code span a backtick of JSON is written as its escape, so that a span always ends at the next backtick.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from flowise_dev_agent.knowledge.snapshot import SnapshotMeta, slim
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES

REFERENCE_FILE: Final = "FLOWISE_NODE_REFERENCE.md"
TITLE: Final = "# Flowise node reference"

#: Defaults of a credential definition beside its names.
CREDENTIAL: Final[Mapping[str, Any]] = {"label": "Connect Credential", "name": "credential", "type": "credential"}
#: Flags of an input: the word in the page, the key, and the value that the word means.
FLAGS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("optional", "optional", True),
    ("several", "list", True),
    ("takes variables", "acceptVariable", True),
    ("additional", "additionalParams", True),
)
#: Keys of an input that are followed by their value as JSON.
VALUES: Final[tuple[tuple[str, str], ...]] = (("default", "default"), ("shown for", "show"), ("hidden for", "hide"))
DEPRECATED: Final = "DEPRECATING"

_PLAIN = re.compile(r'[^"`\n\r]*')
_NAME = re.compile(r"[^`\n\r]+")
_HEADING = re.compile(r"[^\s`(][^\n\r`(]*[^\s`(]")

_NOTES = {
    "memoryVectorStore": "Needs a document loader at `document` in the same flow: its vectors live only as long as one "
    "question, so without documents every retrieval is empty and nothing says so.",
    "customTool": "Needs `selectedTool`, the id of a tool that exists on the server.",
    "stickyNote": "A note for people; takes no part in the flow.",
}


def render_reference(schemas: Iterable[NodeSchema], meta: SnapshotMeta) -> str:
    """Render Markdown by category and name. Depends only on the schemas and their origin."""
    by_category: dict[str, list[dict[str, Any]]] = {}
    for schema in sorted(schemas, key=lambda schema: (schema.category, schema.name)):
        heading = schema.category if _HEADING.fullmatch(schema.category) else "Other"
        by_category.setdefault(heading, []).append(slim(schema.raw))
    lines = [
        TITLE,
        "",
        f"{meta.node_count} node types of Flowise {meta.flowise_version}, SHA-256 `{meta.sha256}`, from "
        f"`{meta.source}` at {meta.generated_at.isoformat()}.",
        "",
        "Generated from `schemas/` by `python -m flowise_dev_agent.knowledge.refresh --nodes`. Do not edit.",
        "",
        "*Takes* are connections from nodes of the named types, *Field* is a value; either must be there unless it is "
        "optional (or not shown for the values of the other fields). *additional* fields are behind a button in the "
        "editor. *Gives* are outputs with their types; a node without any gives its classes.",
    ]
    for heading, members in by_category.items():
        lines += ["", f"## {heading} ({len(members)})"]
        for raw in members:
            lines += ["", *_node(raw, heading)]
    return "\n".join(lines) + "\n"


def _node(raw: dict[str, Any], heading: str) -> list[str]:
    name = str(raw.pop("name"))
    if raw.get("category") == heading:
        del raw["category"]
    lines = [f"### {name}", ""]
    title = [
        _take_label(raw),
        f"version `{span(raw.pop('version'))}`" if "version" in raw else "",
        f"type `{raw.pop('type')}`" if _is_name(raw.get("type")) else "",
        "deprecated" if raw.get("badge") == DEPRECATED and raw.pop("badge") else "",
    ]
    lines.append(", ".join(part for part in title if part))
    if note := _NOTES.get(name):
        lines += ["", f"> {note}"]
    lines.append("")
    if _is_names(raw.get("baseClasses")):
        lines.append(f"- Classes {_names(raw.pop('baseClasses'))}")
    credential = raw.get("credential")
    if isinstance(credential, dict) and _is_names(credential.get("credentialNames")):
        lines.append(_credential(raw.pop("credential")))
    for key, line in (("inputs", _input), ("outputs", _output)):
        entries = raw.get(key)
        if entries and all(_is_name(entry.get("name")) for entry in entries):
            lines += [line(dict(entry)) for entry in raw.pop(key)]
    if raw:
        lines.append(f"- Also `{span(raw)}`")
    return lines


def _credential(credential: dict[str, Any]) -> str:
    names = _names(credential.pop("credentialNames"))
    optional = ", optional" if credential.get("optional") is True and credential.pop("optional") else ""
    rest = {key: value for key, value in credential.items() if CREDENTIAL.get(key) != value}
    missing = [key for key in CREDENTIAL if key not in credential]
    more = {**rest, **dict.fromkeys(missing)}
    return f"- Credential {names}{optional}{_more(more)}"


def _input(entry: dict[str, Any]) -> str:
    kind = "Field" if entry.get("type") in PARAM_TYPES else "Takes"
    parts = [f"- {kind} `{entry.pop('name')}` {_take_label(entry)}".rstrip()]
    if _is_name(entry.get("type")):
        parts[0] += f" `{entry.pop('type')}`"
    parts += [word for word, key, value in FLAGS if entry.get(key) is value and entry.pop(key)]
    parts += [f"{word} `{span(entry.pop(key))}`" for word, key in VALUES if key in entry]
    if _is_options(entry.get("options")):
        parts.append("options " + " ".join(_option(option) for option in entry.pop("options")))
    return ", ".join(parts) + _more(entry)


def _output(entry: dict[str, Any]) -> str:
    parts = [f"- Gives `{entry.pop('name')}` {_take_label(entry)}".rstrip()]
    if _is_names(entry.get("baseClasses")):
        parts.append(_names(entry.pop("baseClasses")))
    return ", ".join(parts) + _more(entry)


def _option(option: Mapping[str, str]) -> str:
    label = "" if option["label"] == option["name"] else f' "{option["label"]}"'
    return f"`{option['name']}`{label}"


def _take_label(entry: dict[str, Any]) -> str:
    """The label in quotes, removed from the entry; '' if it cannot be quoted."""
    label = entry.get("label")
    if isinstance(label, str) and _PLAIN.fullmatch(label):
        return f'"{entry.pop("label")}"'
    return ""


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_name(item) for item in value)


def _is_options(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(option, dict)
            and set(option) == {"label", "name"}
            and _is_name(option["name"])
            and isinstance(option["label"], str)
            and _PLAIN.fullmatch(option["label"])
            for option in value
        )
    )


def _names(values: Iterable[str]) -> str:
    return " ".join(f"`{value}`" for value in values)


def _more(rest: Mapping[str, Any]) -> str:
    return f", more `{span(rest)}`" if rest else ""


def span(value: Any) -> str:
    """JSON text for a code span."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.replace("`", "\\u0060")
