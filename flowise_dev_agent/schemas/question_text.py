"""Interrupts and test results as text, for models and chats, which do not see the page."""

from collections.abc import Iterable, Iterator
from typing import Final

from flowise_dev_agent.sanitize import in_markdown, shortened, visible
from flowise_dev_agent.schemas.interrupts import (
    ClarificationInterrupt,
    CredentialCheckInterrupt,
    Interrupt,
    PatchReviewInterrupt,
    PlanApprovalInterrupt,
    ResultReviewInterrupt,
    SelectTargetInterrupt,
)
from flowise_dev_agent.schemas.verdict import Trial

_PLAN_CHARS: Final = 4_000
_LINE_CHARS: Final = 300
_MOST_LINES: Final = 30


def question_text(interrupt: Interrupt, *, plan_chars: int | None = _PLAN_CHARS) -> str:
    """Write an interrupt with all that is needed to answer it; `plan_chars` limits its plan (None: no limit)."""
    return "\n".join([visible(interrupt.message), *_about(interrupt, plan_chars)])


def _about(interrupt: Interrupt, plan_chars: int | None) -> Iterator[str]:
    match interrupt:
        case PlanApprovalInterrupt(data=data):
            yield visible(data.plan if plan_chars is None else shortened(data.plan, plan_chars))
        case ClarificationInterrupt(data=data):
            yield from (f"- {in_markdown(question)}" for question in data.questions)
        case SelectTargetInterrupt(data=data):
            yield from (
                f"- chatflow_id {in_markdown(flow.id)}: {in_markdown(flow.name)}"
                for flow in data.candidates[:_MOST_LINES]
            )
        case CredentialCheckInterrupt(data=data):
            for item in data.credentials[:_MOST_LINES]:
                named = ", ".join(f"{in_markdown(one.name)} ({one.id})" for one in item.candidates) or "none"
                yield f"- {item.type}: {named}"
        case PatchReviewInterrupt(data=data):
            for finding in data.findings[:_MOST_LINES]:
                yield f"- {in_markdown(finding.line)}"
        case ResultReviewInterrupt(data=data):
            yield from test_lines(data.tests)


def test_lines(tests: Iterable[Trial]) -> Iterator[str]:
    """Test results, one line each."""
    for test in list(tests)[:_MOST_LINES]:
        mark = "passed" if test.passed else "failed" if test.category else "not held"
        asked, said = (in_markdown(shortened(one, _LINE_CHARS)) for one in (test.question, test.answer or test.error))
        yield f"- {mark}: {asked} -> {said}"
