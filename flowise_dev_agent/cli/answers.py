"""Answers to a session's questions: from the person at the terminal, or the defaults of `--yes`."""

from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.cli.console import out, say
from flowise_dev_agent.errors import NeedsPersonError
from flowise_dev_agent.runtime.sessions.views import InterruptView

Answer = dict[str, Any]


def default_answer(interrupt: InterruptView) -> Answer:
    """The answer of `--yes`: approve plans and accept results whose tests pass, choose the first of several.

    Raises NeedsPersonError for everything else.
    """
    offered = [str(option["value"]) for option in interrupt.options]
    match interrupt.type:
        case "clarification":
            return {"action": "go_on"}
        case "plan_approval" if "approve" in offered:
            return {"action": "approve"}
        case "credential_check" if "choose" in offered:
            several = (item for item in interrupt.data["credentials"] if item["candidates"])
            return {"action": "choose", "choose": {item["type"]: item["candidates"][0]["id"] for item in several}}
        case "patch_review" if "continue" in offered:
            return {"action": "continue"}
        case "result_review" if interrupt.data["verdict"].get("done"):
            return {"action": "accept"}
        case _:
            raise NeedsPersonError(interrupt.message, hint="A person must answer this; the session waits.")


def ask_person(interrupt: InterruptView) -> Answer:
    """Ask the person at the terminal: pick an action, then what it needs."""
    options = interrupt.options
    for number, option in enumerate(options, start=1):
        say(f"  {number}  {option['label']}: {option['description']}")
    while True:
        given = out.input(f"Your choice [1-{len(options)}, 1]: ").strip() or "1"
        if given.isdecimal() and 1 <= int(given) <= len(options):
            break
        # A text instead of a number is feedback, where an action takes it.
        takes_text = next((one for one in options if one["value"] in {"request_changes", "iterate", "replan"}), None)
        if takes_text and len(given) > 2:
            return {"action": takes_text["value"], "feedback": given}
    return _completed(str(options[int(given) - 1]["value"]), interrupt.data)


def _completed(action: str, data: Mapping[str, Any]) -> Answer:
    match action:
        case "answer":
            return {"action": action, "answers": [_line(question) for question in data["questions"]]}
        case "select":
            return {"action": action, "chatflow_id": _pick("Chatflow", data["candidates"])}
        case "request_changes" | "iterate":
            return {"action": action, "feedback": _line("What should change?", required=True)}
        case "approve" if data.get("approaches"):
            approaches = [{"id": one["label"], "name": one["label"]} for one in data["approaches"]]
            return {"action": action, "approach": _pick("Approach", approaches)}
        case "choose":
            several = [item for item in data["credentials"] if item["candidates"]]
            return {"action": action, "choose": {one["type"]: _pick(one["type"], one["candidates"]) for one in several}}
        case "raise_budget":
            return {"action": action, "budget": {"tokens": float(_line("New token limit", required=True))}}
        case _:
            return {"action": action}


def _line(question: str, *, required: bool = False) -> str:
    while True:
        text = out.input(f"{question} ", markup=False).strip()
        if text or not required:
            return text


def _pick(what: str, candidates: list[dict[str, str]]) -> str:
    for number, candidate in enumerate(candidates, start=1):
        say(f"  {number}  {candidate['name']}")
    while True:
        given = out.input(f"{what} [1-{len(candidates)}, 1]: ", markup=False).strip() or "1"
        if given.isdecimal() and 1 <= int(given) <= len(candidates):
            return candidates[int(given) - 1]["id"]
