"""Classifies a prediction before its content is read: failed or not, and why.

The texts are Flowise 3.1.4's own, measured: almost every mistake is HTTP 500 with the cause in the message, and a 200
may still be an error (a tool that failed, a guard that refused for want of credentials).
"""

import re
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
from flowise_dev_agent.reasoning import playbook
from flowise_dev_agent.reasoning.contracts import VerdictCategory

#: Texts by which Flowise reports an error inside a 200.
_ERROR_TEXT = re.compile(
    r"^\s*(error: |missing credentials|access to this host is denied|cannot read propert)", re.IGNORECASE
)
_BY_CLASS: Final[tuple[tuple[type[FlowiseError], VerdictCategory], ...]] = (
    (FlowiseTimeoutError, "TIMEOUT"),
    (FlowiseUnreachableError, "EXTERNAL"),
    (FlowiseConnectionLostError, "EXTERNAL"),
    (FlowiseRateLimitedError, "EXTERNAL"),
    (FlowiseAuthError, "CONFIG"),
)


def classify_failure(error: FlowiseError) -> VerdictCategory:
    """The category of a prediction without a 200. An unknown error counts as a bug of the flow."""
    for class_, category in _BY_CLASS:
        if isinstance(error, class_):
            return category
    return _by_text(error.message) or "STRUCTURE"


def classify_prediction(prediction: Prediction) -> tuple[VerdictCategory | None, str]:
    """(category, error) of a 200; (None, "") when nothing but its content is left to judge."""
    for tool in prediction.used_tools:
        if tool.get("error"):
            text = f"The tool '{tool.get('tool', '?')}' failed: {tool['error']}"
            return _by_text(text) or "LOGIC", text
    answer = prediction.answer.strip()
    if not answer:
        return "LOGIC", "The flow answered with neither text nor JSON."
    if _ERROR_TEXT.match(answer):
        return _by_text(answer) or "STRUCTURE", answer
    return None, ""


def _by_text(text: str) -> VerdictCategory | None:
    entry = playbook.known(text)
    return entry.category if entry else None
