"""Which inputs the editor shows: ``show`` and ``hide`` conditions over a node's current inputs."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_PATH_STEP = re.compile(r"[^.\[\]]+")


def js_truthy(value: Any) -> bool:
    """JavaScript's idea: empty lists and objects are true, '', 0, NaN, false, null are not."""
    if isinstance(value, (list, dict)):
        return True
    return bool(value) and value == value


def is_conditional(definition: Mapping[str, Any]) -> bool:
    """Whether it is shown depends on other inputs."""
    return "show" in definition or "hide" in definition


def is_visible(definition: Mapping[str, Any], inputs: Mapping[str, Any]) -> bool:
    """True when every ``show`` condition holds and no ``hide`` condition does."""
    if not is_conditional(definition):
        return True  # most inputs, and this runs for every input of every node
    show: Mapping[str, Any] = definition.get("show") or {}
    hide: Mapping[str, Any] = definition.get("hide") or {}
    return all(_matches(_look_up(inputs, path), wanted) for path, wanted in show.items()) and not any(
        _matches(_look_up(inputs, path), wanted) for path, wanted in hide.items()
    )


def condition_keys(definition: Mapping[str, Any]) -> set[str]:
    """The inputs that its conditions look at."""
    paths = [*(definition.get("show") or ()), *(definition.get("hide") or ())]
    return {key for path in paths for key in (path, *_PATH_STEP.findall(path)[:1])}


def refresh_visibility(data: Mapping[str, Any]) -> dict[str, Any]:
    """``inputAnchors`` and ``inputParams`` of a stored node with ``display`` recomputed from its present inputs."""
    refreshed: dict[str, Any] = {}
    for key in ("inputAnchors", "inputParams"):
        definitions: list[dict[str, Any]] = data.get(key) or []
        conditional = any(is_conditional(entry) for entry in definitions)
        inputs = with_defaults(definitions, data.get("inputs") or {}) if conditional else {}
        refreshed[key] = [_displayed(entry, is_visible(entry, inputs)) for entry in definitions]
    return refreshed


def _displayed(entry: dict[str, Any], visible: bool) -> dict[str, Any]:
    return entry if entry.get("display") is visible else {**entry, "display": visible}


def with_defaults(definitions: Iterable[Mapping[str, Any]], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that conditions are read against: a field that a stored node lacks counts as its default."""
    defaults = {entry["name"]: entry["default"] for entry in definitions if entry.get("default") is not None}
    return {**defaults, **inputs}


def _look_up(inputs: Mapping[str, Any], path: str) -> Any:
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
    """JavaScript's ===: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _found(pattern: str, value: Any) -> bool:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False
