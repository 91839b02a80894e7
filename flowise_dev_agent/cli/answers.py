"""Answers to a session's questions: from the person at the terminal, or the defaults of `--yes`."""

from collections.abc import Sequence

from flowise_dev_agent.cli.console import out, say
from flowise_dev_agent.cli.guided import ask_form
from flowise_dev_agent.errors import NeedsPersonError
from flowise_dev_agent.schemas.answers import Action
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.interrupts import (
    ClarificationInterrupt,
    CredentialCheckInterrupt,
    Interrupt,
    MissingCredential,
    PatchReviewInterrupt,
    PlanApprovalInterrupt,
    ResultReviewInterrupt,
    SelectTargetInterrupt,
)


def default_answer(interrupt: Interrupt) -> JsonObject:
    """The answer of `--yes`: approve plans and accept results whose tests pass, choose the first of several.

    Raises NeedsPersonError for everything else.
    """
    offered = [option.value for option in interrupt.options]
    match interrupt:
        case ClarificationInterrupt():
            return {"action": "go_on"}
        case PlanApprovalInterrupt() if "approve" in offered:
            return {"action": "approve"}
        case CredentialCheckInterrupt() if "choose" in offered:
            return {"action": "choose", "choose": {item.type: item.candidates[0].id for item in _several(interrupt)}}
        case PatchReviewInterrupt() if "continue" in offered:
            return {"action": "continue"}
        case ResultReviewInterrupt(data=data, reason="tests_passed") if data.verdict and data.verdict.done:
            return {"action": "accept"}
        case _:
            raise NeedsPersonError(interrupt.message, hint="A person must answer this; the session waits.")


def ask_person(interrupt: Interrupt) -> JsonObject:
    """Ask the person at the terminal: pick an action, then what it needs."""
    options = interrupt.options
    for number, option in enumerate(options, start=1):
        say(f"  {number}  {option.label}: {option.description}")
    while True:
        given = out().input(f"Your choice [1-{len(options)}, 1]: ").strip() or "1"
        if given.isdecimal() and 1 <= int(given) <= len(options):
            break
        # A text instead of a number is feedback, where an action takes it.
        takes_text = next((one for one in options if one.value in {"request_changes", "iterate", "replan"}), None)
        if takes_text and len(given) > 2:
            return {"action": takes_text.value, "feedback": given}
    action = options[int(given) - 1].value
    return {"action": action, **_fields(action, interrupt)}


def _fields(action: Action, interrupt: Interrupt) -> JsonObject:
    match interrupt:
        case ClarificationInterrupt(data=data) if action == "answer":
            return {"answers": [_line(question) for question in data.questions]}
        case SelectTargetInterrupt(data=data) if action == "select":
            return {"chatflow_id": _pick("Chatflow", [(flow.id, flow.name) for flow in data.candidates])}
        case PlanApprovalInterrupt(data=data) if action == "approve" and data.approaches:
            return {"approach": _pick("Approach", [(one.label, one.label) for one in data.approaches])}
        case CredentialCheckInterrupt() if action == "choose":
            return {"choose": {item.type: _pick(item.type, _named(item)) for item in _several(interrupt)}}
        case PlanApprovalInterrupt(reason="starter", data=data) if action == "request_changes":
            return {"design": ask_form(data.form).model_dump(mode="json", exclude_defaults=True)}
        case _ if action in {"request_changes", "iterate"}:
            return {"feedback": _line("What should change?", required=True)}
        case _ if action == "raise_budget":
            return {"budget": {"tokens": float(_line("New token limit", required=True))}}
        case _:
            return {}


def _several(interrupt: CredentialCheckInterrupt) -> list[MissingCredential]:
    """The types with a choice."""
    return [item for item in interrupt.data.credentials if item.candidates]


def _named(item: MissingCredential) -> list[tuple[str, str]]:
    return [(candidate.id, candidate.name) for candidate in item.candidates]


def _line(question: str, *, required: bool = False) -> str:
    while True:
        text = out().input(f"{question} ", markup=False).strip()
        if text or not required:
            return text


def _pick(what: str, candidates: Sequence[tuple[str, str]]) -> str:
    """The id of one of the (id, name) pairs."""
    for number, (_, name) in enumerate(candidates, start=1):
        say(f"  {number}  {name}")
    while True:
        given = out().input(f"{what} [1-{len(candidates)}, 1]: ", markup=False).strip() or "1"
        if given.isdecimal() and 1 <= int(given) <= len(candidates):
            return candidates[int(given) - 1][0]
