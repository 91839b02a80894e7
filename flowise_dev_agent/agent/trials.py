"""How the answers to the test questions before and after a change differ in kind, not in wording."""

import json
from collections.abc import Sequence
from typing import Literal

from flowise_dev_agent.agent.tools import shorten
from flowise_dev_agent.contracts.verdict import Regression, Trial


def regressions(before: Sequence[Trial], after: Sequence[Trial]) -> list[Regression]:
    """Of questions that were asked both times; of several trials after the change the first bad one counts."""
    found: list[Regression] = []
    for was in before:
        trials = [trial for trial in after if trial.question == was.question]
        if trials:
            found += _differences(was, next((trial for trial in trials if not trial.passed), trials[0]))
    return found


def failed_alike(before: Sequence[Trial], after: Sequence[Trial]) -> bool:
    """Whether every trial that fails now failed before the change too, and for the same cause: not the change's doing.

    False when nothing fails, or when there is nothing to compare with.
    """
    causes = {(trial.question, _status(trial)) for trial in before if not trial.passed}
    failed = [(trial.question, _status(trial)) for trial in after if not trial.passed]
    return bool(failed) and causes.issuperset(failed)


def _differences(was: Trial, now: Trial) -> list[Regression]:
    def found(kind: Literal["status", "error", "shape", "tools"], before: str, after: str) -> list[Regression]:
        worse = kind in {"status", "error"} and not now.passed
        made = Regression(question=was.question, kind=kind, worse=worse, before=before, after=after)
        return [made] if before != after else []

    if was.passed != now.passed:
        return found("status", _status(was), _status(now))
    if not now.passed:
        return found("error", _status(was), _status(now))
    return found("shape", _shape(was.answer), _shape(now.answer)) + found("tools", _tools(was), _tools(now))


def _status(trial: Trial) -> str:
    """Works, or why not: the beginning of the error, which names the cause. Models are quoted after it."""
    return "works" if trial.passed else f"{trial.category}: {shorten(trial.error, 200)}"


def _shape(answer: str) -> str:
    try:
        return "JSON" if isinstance(json.loads(answer), dict | list) else "text"
    except ValueError:
        return "text"


def _tools(trial: Trial) -> str:
    return ", ".join(sorted(set(trial.used_tools)))
