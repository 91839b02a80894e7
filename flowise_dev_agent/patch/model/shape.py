"""The first check: is the text a flow at all? All other code relies on it.

Flowise saves any JSON with two lists. The problems found here leave its editor blank or stop the server at the node.
Values that it reads as absent (missing keys, null) are accepted.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

from pydantic_core import from_json

from flowise_dev_agent.patch.model.findings import Finding, error
from flowise_dev_agent.patch.model.flow_data import FlowData, Values

_OUTPUTS = "outputAnchors"
_REPLACE = "Delete the node in Flowise's editor and add it again, or restore an earlier version of the flow."
_ENTRY_LISTS = ("inputAnchors", "inputParams", _OUTPUTS)


def parse_document(text: str) -> tuple[FlowData | None, list[Finding]]:
    """The document, or None and the reasons why Flowise could not save, show or run it."""
    try:
        document = _parsed(text)
    except (ValueError, RecursionError) as exc:
        return None, [error("SHAPE", f"flowData is not valid JSON ({exc}).")]
    if not isinstance(document, dict):
        return None, [error("SHAPE", "flowData must be a JSON object with `nodes` and `edges`.")]
    findings = [
        error("SHAPE", f"`{key}` must be an array.", field=key, hint="Flowise refuses to save such a flow.")
        for key in ("nodes", "edges")
        if not isinstance(document.get(key), list)
    ]
    if findings:
        return None, findings
    for index, node in enumerate(document["nodes"]):
        if not isinstance(node, dict) or not isinstance(node.get("id"), str) or not node["id"]:
            findings.append(error("SHAPE", f"Node {index} must be an object with a text `id`.", field="nodes"))
        else:
            findings.extend(
                error("SHAPE", f"{what}.", where=node["id"], field=field, hint=_REPLACE)
                for field, what in _node_problems(node)
            )
    findings.extend(
        error("SHAPE", f"Edge {index} must be an object.", field="edges")
        for index, edge in enumerate(document["edges"])
        if not isinstance(edge, dict)
    )
    return (None, findings) if findings else (cast("FlowData", document), [])


def _node_problems(node: Values) -> Iterator[tuple[str, str]]:
    """Pairs of field and problem of a node."""
    data = node.get("data")
    if not isinstance(data, dict):
        yield "data", "The node has no `data` object"
        return
    for key, value in (("type", node.get("type")), ("data.name", data.get("name"))):
        if not isinstance(value, str | None):
            yield key, f"`{key}` must be a text"
    position = node.get("position")
    if not isinstance(position, dict | None):
        yield "position", "`position` must be an object"
    for frame, names in ((position or {}, ("x", "y")), (node, ("width", "height"))):
        for name in names:
            if isinstance(frame, dict) and not _is_number(frame.get(name)):
                yield name, f"`{name}` must be a number"
    for key in _ENTRY_LISTS:
        yield from _entry_problems(key, data.get(key))


def _entry_problems(path: str, entries: Any) -> Iterator[tuple[str, str]]:
    """Problems of a list of declared inputs or outputs."""
    if entries is None:
        return
    if not isinstance(entries, list):
        yield path, f"`{path}` must be a list"
        return
    # Branches of an agentflow node are numbered, not named.
    named = (str, int) if path == _OUTPUTS else str
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), named):
            yield path, f"`{path}[{index}]` must be an object with a `name`"
            continue
        if (kind := entry.get("type")) is not None and not isinstance(kind, str):
            yield path, f"`{path}[{index}].type` must be a text"
        for key in ("show", "hide"):
            if (conditions := entry.get(key)) is not None and not isinstance(conditions, dict):
                yield path, f"`{path}[{index}].{key}` must be an object"
        if "array" in entry:
            yield from _entry_problems(f"{path}[{index}].array", entry["array"])
        names = entry.get("credentialNames")
        if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            yield path, f"`{path}[{index}].credentialNames` must be a list of texts"


def _is_number(value: Any) -> bool:
    """True if absent, a number, or a text that JavaScript takes for one."""
    if value is None or isinstance(value, (int, float)):
        return True
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return not value
        return True
    return False


def _parsed(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):  # TypeError: a text with half a surrogate pair
        # Slower, but with better messages, and reads half surrogate pairs and deep nesting.
        return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
