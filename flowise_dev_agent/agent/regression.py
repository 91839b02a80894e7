"""Answers before and after a change: what differs in kind, not in wording."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from flowise_dev_agent.agent.tools import shorten


def regressions(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`[{question, kind, worse, before, after}]` for trials as `TrialResult.as_json` gives them.

    `kind` is `status` (works or fails), `error` (fails otherwise than before), `shape` (text or JSON) or `tools`.
    Questions that were asked only once are left out; of several trials after the change the first bad one counts.
    """
    found: list[dict[str, Any]] = []
    for was in before:
        trials = [item for item in after if item["question"] == was["question"]]
        if not trials:
            continue
        now = next((item for item in trials if not item["passed"]), trials[0])
        for kind, old, new in _differences(was, now):
            worse = kind in {"status", "error"} and not now["passed"]
            found.append({"question": was["question"], "kind": kind, "worse": worse, "before": old, "after": new})
    return found


def failed_alike(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every trial that fails now failed before the change too, and for the same cause: not the change's doing.

    False when nothing fails, or when there is nothing to compare with.
    """
    causes = {(item["question"], _status(item)) for item in before if not item["passed"]}
    failed = [(item["question"], _status(item)) for item in after if not item["passed"]]
    return bool(failed) and causes.issuperset(failed)


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    if was["passed"] != now["passed"]:
        return [("status", _status(was), _status(now))]
    if not now["passed"]:
        return [("error", _status(was), _status(now))] if _status(was) != _status(now) else []
    pairs = [("shape", _shape(was["answer"]), _shape(now["answer"]))]
    pairs.append(("tools", ", ".join(sorted(set(was["used_tools"]))), ", ".join(sorted(set(now["used_tools"])))))
    return [(kind, old, new) for kind, old, new in pairs if old != new]


def _status(trial: Mapping[str, Any]) -> str:
    """Works, or why not: the beginning of the error, where the cause stands. Behind it models are quoted."""
    return "works" if trial["passed"] else f"{trial['category']}: {shorten(trial['error'], 200)}"


def _shape(answer: str) -> str:
    try:
        return "JSON" if isinstance(json.loads(answer), dict | list) else "text"
    except ValueError:
        return "text"
