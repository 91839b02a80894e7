"""`build --guided`: a new flow part by part, asked for in the terminal."""

from typing import Any

import typer
from pydantic import ValidationError

from flowise_dev_agent.cli.console import fail, say
from flowise_dev_agent.contracts.designs import DesignForm

_KINDS = ("chat", "task", "steps")


def ask_form() -> DesignForm:
    """Ask for each part until the form is complete and valid."""
    while True:
        say("Leave a line empty to skip it.")
        try:
            return DesignForm.model_validate(_asked())
        except ValidationError as error:
            for problem in error.errors():
                fail(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}")


def _asked() -> dict[str, Any]:
    form: dict[str, Any] = {"name": _line("Name of the flow"), "kind": _kind()}
    if form["kind"] == "steps":
        say("Steps, one a line: a task, `sort the messages into billing and other`, `for billing: ...`, ")
        say("`ask a person to approve`, `call https://...`, `reply '...'`.")
        form["steps"] = _lines("Step")
    else:
        form["prompt"] = _line("What the model is told") or None
    form["model"] = _line("Model, for example Claude Sonnet or gpt-4o") or None
    if temperature := _line("Temperature, 0 to 2"):
        form["temperature"] = temperature
    if form["kind"] == "chat":
        memory = _line("Messages to remember: a number, all or none") or "all"
        form["memory"] = int(memory) if memory.isdigit() else memory
        form["tools"] = _lines("Tool, for example calculator")
        form["sources"] = [_source(text) for text in _lines("Source: an address, pdf, csv, docx, text, or store NAME")]
        form["refused_words"] = _lines("Word that is refused")
    if form["kind"] == "task":
        form["fields"] = [{"name": name} for name in _lines("Field of the answer")]
    return form


def _kind() -> str:
    while (kind := _line(f"Kind ({', '.join(_KINDS)})") or "chat") not in _KINDS:
        fail(f"Name one of {', '.join(_KINDS)}.")
    return kind


def _source(text: str) -> dict[str, Any]:
    if text.startswith("http"):
        return {"kind": "web", "url": text}
    kind, _, store = text.partition(" ")
    return {"kind": kind.casefold()} | ({"store": store.strip()} if store else {})


def _lines(what: str) -> list[str]:
    found: list[str] = []
    while line := _line(what):
        found.append(line)
    return found


def _line(what: str) -> str:
    answer: str = typer.prompt(what, default="", show_default=False)
    return answer.strip()
