"""Verdicts by code on the answers of a flow, before a model reads their content.

The texts are Flowise 3.1.4's own, measured: almost every mistake is HTTP 500 with the cause in the message, and a 200
may still be an error (a tool that failed, a guard that refused for want of credentials).
"""

import re
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.errors import (
    FlowiseAuthError,
    FlowiseConnectionLostError,
    FlowiseError,
    FlowiseRateLimitedError,
    FlowiseTimeoutError,
    FlowiseUnreachableError,
)
from flowise_dev_agent.flowise.models import Prediction
from flowise_dev_agent.schemas.verdict import FLOW_BUGS, NOT_THE_FLOW, PassK, Trial, Verdict, VerdictCategory
from flowise_dev_agent.testing import playbook
from flowise_dev_agent.texts import Text, in_brief, sentences, text

#: Characters of words that are not ours in the reason.
_FOREIGN_CHARS: Final = 240

#: Texts by which Flowise reports an error inside a 200.
_ERROR_TEXT = re.compile(
    r"^\s*(error: |missing credentials|access to this host is denied|cannot read propert)", re.IGNORECASE
)
#: Prefixes with which Flowise passes an error on.
_WHERE: Final = re.compile(r"^(?:Error: )?\w+Services?\.\w+ - ")
_BY_CLASS: Final[tuple[tuple[type[FlowiseError], VerdictCategory], ...]] = (
    (FlowiseTimeoutError, "TIMEOUT"),
    (FlowiseUnreachableError, "EXTERNAL"),
    (FlowiseConnectionLostError, "EXTERNAL"),
    (FlowiseRateLimitedError, "EXTERNAL"),
    (FlowiseAuthError, "CONFIG"),
)


def classify_failure(error: FlowiseError) -> VerdictCategory:
    """Category of a prediction that did not return 200. Unknown failures go to the person with the server's message."""
    for class_, category in _BY_CLASS:
        if isinstance(error, class_):
            return category
    return _by_text(failure_text(error)) or "UNKNOWN"


def failure_text(error: FlowiseError) -> str:
    """Flowise's message for a failed prediction, without address, call and status; the error's text if it sent none."""
    seconds = error.message.params.get("seconds") if isinstance(error.message, Text) else None
    if seconds and isinstance(error, FlowiseTimeoutError):
        return text("verdict.no_answer_in_time", seconds=seconds)
    said = (error.details or {}).get("flowise_message")
    return (_WHERE.sub("", said) if isinstance(said, str) else "") or sentences(error.message, error.hint or "")


def classify_prediction(prediction: Prediction, *, is_read: bool) -> tuple[VerdictCategory | None, str]:
    """Classify a 200 answer: (category, error), or (None, "") if only its content is left to judge. One that nobody
    reads, as of a flow that a schedule starts, may be empty.
    """
    for tool in prediction.used_tools:
        if tool.get("error"):
            failure = text("verdict.tool_failed", tool=str(tool.get("tool", "?")), error=str(tool["error"]))
            return _by_text(failure) or "LOGIC", failure
    answer = prediction.answer.strip()
    if not answer:
        return ("LOGIC", text("verdict.no_answer_form")) if is_read else (None, "")
    if _ERROR_TEXT.match(answer):
        return _by_text(answer) or "UNKNOWN", answer
    return None, ""


def with_pass_k(verdict: Verdict, results: Sequence[Trial]) -> Verdict:
    """Verdict with pass^k: a question passes if every trial of it passes."""
    failed = {results[number - 1].question for number in verdict.failed_trials}
    questions = {result.question for result in results}
    k = max((result.trial for result in results), default=1)
    return verdict.model_copy(update={"pass_k": PassK(k=k, questions=len(questions), passed=len(questions - failed))})


def failed_verdict(results: Sequence[Trial]) -> Verdict | None:
    """Verdict on the trials that failed, None without any: an unknown failure ranks before a bug of the flow, which
    ranks before what is outside of it.
    """
    failed = [result for result in results if result.category]
    if not failed:
        return None
    order = ("UNKNOWN", "STRUCTURE", "LOGIC", "INCOMPLETE", "CREDENTIAL", "CONFIG", "EXTERNAL", "TIMEOUT")
    worst = min(failed, key=lambda result: order.index(result.category or "UNKNOWN"))
    entry = playbook.known(worst.error)
    blocked = all(result.category in NOT_THE_FLOW for result in failed)
    outcome = "verdict.questions_not_tested" if blocked else "verdict.questions_failed"
    return Verdict(
        done=False,
        category=worst.category,
        reason=text(
            outcome, failed=len(failed), count=len(results), error=in_brief(worst.worded("error"), _FOREIGN_CHARS)
        ),
        fix=entry.advice if entry and entry.category == worst.category else playbook.FIXES[worst.category or "UNKNOWN"],
        failed_trials=[number for number, result in enumerate(results, start=1) if result.category],
    )


def beside_blocked(verdict: Verdict, blocked: Verdict) -> Verdict:
    """Verdict on the trials that were held, beside those that something outside the flow has ended (`blocked`).

    A bug that the held ones show comes first; else the cause that ended the others is what is left to say.
    """
    shown = [number for number in verdict.failed_trials if number not in blocked.failed_trials]
    if not verdict.done and verdict.category in FLOW_BUGS and (shown or not verdict.failed_trials):
        return verdict.model_copy(update={"failed_trials": sorted({*shown, *blocked.failed_trials})})
    return blocked.model_copy(update={"criteria": verdict.criteria, "notes": verdict.notes, "faults": verdict.faults})


def _by_text(text: str) -> VerdictCategory | None:
    entry = playbook.known(text)
    return entry.category if entry else None
