"""Answers of a flow before and after a change, compared."""

import json
from collections.abc import Sequence
from typing import Final, Literal

from flowise_dev_agent.schemas.verdict import NOT_THE_FLOW, Regression, Trial
from flowise_dev_agent.texts import in_brief, text

#: Characters of foreign words in the status of a test.
_ERROR_CHARS: Final = 200


def regressions(before: Sequence[Trial], after: Sequence[Trial]) -> list[Regression]:
    """Compare answers before and after the change, per question executed both times; the first bad trial after the
    change counts.
    """
    found: list[Regression] = []
    for was in before:
        trials = [trial for trial in after if trial.question == was.question and _is_held(trial)]
        if trials and _is_held(was):
            found += _differences(was, next((trial for trial in trials if not trial.passed), trials[0]))
    return found


def failed_alike(before: Sequence[Trial], after: Sequence[Trial]) -> bool:
    """True if every failing trial also failed before the change for the same cause.

    False when nothing fails, or when there is nothing to compare with.
    """
    failed = [trial for trial in after if trial.category]
    return bool(failed) and all(any(_is_alike(was, now) for was in before) for now in failed)


def _is_alike(was: Trial, now: Trial) -> bool:
    """True for two failures of one cause; only a judge sees that of an answer, which is the same on both sides."""
    if was.question != now.question:
        return False
    same_answer = now.category in NOT_THE_FLOW and bool(now.answer) and was.answer == now.answer
    return same_answer or (was.category is not None and _status(was) == _status(now))


def _differences(was: Trial, now: Trial) -> list[Regression]:
    def found(kind: Literal["status", "error", "shape", "tools"], before: str, after: str) -> list[Regression]:
        worse = was.passed and not now.passed and now.category not in NOT_THE_FLOW
        made = Regression(question=was.question, kind=kind, worse=worse, before=before, after=after)
        return [made] if before != after else []

    if _is_alike(was, now):
        return []
    if was.passed != now.passed:
        return found("status", _status(was), _status(now))
    if not now.passed:
        return found("error", _status(was), _status(now))
    return found("shape", _shape(was.answer), _shape(now.answer)) + found("tools", _tools(was), _tools(now))


def _is_held(trial: Trial) -> bool:
    return trial.passed or trial.category is not None


def _status(trial: Trial) -> str:
    """Status of a trial: works, or its error, which names the cause."""
    return text("regression.works") if trial.passed else in_brief(trial.worded("error"), _ERROR_CHARS)


def _shape(answer: str) -> str:
    try:
        return "JSON" if isinstance(json.loads(answer), dict | list) else text("regression.text")
    except ValueError:
        return text("regression.text")


def _tools(trial: Trial) -> str:
    return ", ".join(sorted(set(trial.used_tools)))
