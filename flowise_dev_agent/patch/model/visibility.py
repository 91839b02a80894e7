"""Visibility of inputs in the editor: ``show`` and ``hide`` conditions over a node's current inputs."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from flowise_dev_agent.patch.model.flow_data import Conditions, InputEntry, Inputs, NodeData, Values

_PATH_STEP = re.compile(r"[^.\[\]]+")
_WILDCARD = re.compile(r"(\.[*+])")


def js_truthy(value: Any) -> bool:
    """Truth as in JavaScript: empty lists and objects are true; '', 0, NaN, false and null are not."""
    if isinstance(value, (list, dict)):
        return True
    return bool(value) and value == value


def is_visible(entry: Conditions, inputs: Values) -> bool:
    """True if every ``show`` condition holds and no ``hide`` condition does."""
    show, hide = entry.get("show") or {}, entry.get("hide") or {}
    if not show and not hide:
        return True  # most entries have no conditions
    return all(_matches(_look_up(inputs, path), wanted) for path, wanted in show.items()) and not any(
        _matches(_look_up(inputs, path), wanted) for path, wanted in hide.items()
    )


def row_fields(entry: InputEntry, number: int, row: Values, inputs: Values) -> list[InputEntry]:
    """The visible fields of a row, the first of each name. Conditions refer to the row's number as ``$index``."""
    parts = entry.get("array") or ()
    defaults = {part["name"]: part.get("default") for part in parts if part.get("default") and not part.get("show")}
    read = {**inputs, entry["name"]: [{}] * number + [{**defaults, **row}]}
    found: dict[str, InputEntry] = {}
    for part in parts:
        numbered: Conditions = {
            "show": _numbered(part.get("show"), number),
            "hide": _numbered(part.get("hide"), number),
        }
        if is_visible(numbered, read):
            found.setdefault(str(part["name"]), part)
    return list(found.values())


def _numbered(conditions: Values | None, number: int) -> Values:
    return {path.replace("$index", str(number)): wanted for path, wanted in (conditions or {}).items()}


def refresh_visibility(data: NodeData) -> None:
    """Set ``display`` of a node's inputs by their current values. Both lists are replaced."""
    data["inputAnchors"] = _displayed(data.get("inputAnchors") or [], data.get("inputs") or {})
    data["inputParams"] = _displayed(data.get("inputParams") or [], data.get("inputs") or {})


def _displayed(entries: list[InputEntry], inputs: Values) -> list[InputEntry]:
    read = with_defaults(entries, inputs)
    displayed: list[InputEntry] = []
    for entry in entries:
        visible = is_visible(entry, read)
        displayed.append(entry if entry.get("display") is visible else {**entry, "display": visible})
    return displayed


def with_defaults(entries: Iterable[InputEntry], inputs: Values) -> Inputs:
    """The inputs against which conditions are evaluated: a field missing in a stored node counts as its default."""
    defaults = {entry["name"]: default for entry in entries if (default := entry.get("default")) is not None}
    return {**defaults, **inputs}


def _look_up(inputs: Values, path: str) -> Any:
    value: Any = inputs
    if path in inputs:
        value = inputs[path]
    else:
        for step in _PATH_STEP.findall(path):
            if isinstance(value, Mapping) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                return ""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _matches(actual: Any, wanted: Any) -> bool:
    candidates = actual if isinstance(actual, list) else [actual]
    if isinstance(wanted, list):
        return any(_same(one, other) for one in wanted for other in candidates)
    if isinstance(wanted, str):
        return any(_same(wanted, one) or _found(wanted, one) for one in candidates)
    return any(_same(wanted, one) for one in candidates)


def _same(one: Any, other: Any) -> bool:
    """Compare like JavaScript's ===: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _found(wanted: str, value: Any) -> bool:
    """True if a wanted text occurs in the value. Flowise reads it as a regular expression.

    Flows are untrusted, so only `.*` and `.+` keep their meaning, as in Flowise's own node types; the search takes
    linear time.
    """
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    first, *rest = _WILDCARD.split(wanted)
    end = text.find(first)
    if end < 0:
        return False
    end += len(first)
    for wildcard, part in zip(rest[::2], rest[1::2], strict=True):
        begin = text.find(part, end + (wildcard == ".+"))
        if begin < 0:
            return False
        end = begin + len(part)
    return True
