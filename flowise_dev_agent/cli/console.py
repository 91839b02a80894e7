"""Output of commands: results to stdout, warnings and errors to stderr; plain lines when there is no terminal."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console

from flowise_dev_agent.errors import AgentError, NeedsPersonError
from flowise_dev_agent.sanitize import visible

_ROUTE: Final = re.compile(r"`?((?:GET|POST|PUT|PATCH|DELETE) /[\w/{}-]*)`?")
#: What routes that the service speaks of are at the terminal; the others are on the page.
_COMMANDS: Final[Mapping[str, str]] = {
    "GET /sessions": "`flowise-dev-agent sessions list`",
    "GET /sessions/{id}/stream": "`flowise-dev-agent sessions watch`",
    "POST /sessions": "`flowise-dev-agent build`",
    "GET /flows": "`flowise-dev-agent flows list`",
    "GET /flows/{id}/versions": "`flowise-dev-agent flows history`",
    "GET /flows/{id}/history": "`flowise-dev-agent flows history`",
    "POST /flows/validate": "`flowise-dev-agent flows check`",
    "GET /memories": "`flowise-dev-agent notes list`",
    "GET /keys": "`flowise-dev-agent keys list`",
    "GET /owners": "`flowise-dev-agent keys list`",
    "POST /attachments": "`--attach`",
    "POST /credentials": "on the page",
}
#: What to do about errors whose own hint is for programs, by their code.
_HINTS: Final[Mapping[str, str]] = {
    "unauthorized": "Set AGENT_API_KEY to a key of the service, in the environment or in the file .env.",
    "invalid_request": "See --help for what the command takes.",
    "not_found": "Check the address of the service: --url.",
    "precondition_failed": "Look at it again, and repeat the command if it is still what you want.",
    "rate_limited": "Wait a minute and try again.",
}

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str, style: str | None = None) -> None:
    """A line on stdout; `text` is never read as markup."""
    out.print(visible(text), style=style, markup=False)


def warn(text: str) -> None:
    """A warning on stderr."""
    err.print(visible(text), style="yellow", markup=False)


def fail(text: str, hint: str | None = None) -> None:
    """An error on stderr, with what to do about it."""
    err.print(f"Error: {visible(in_terminal_words(text))}", style="bold red", markup=False)
    if hint:
        err.print(f"  {visible(in_terminal_words(hint))}", markup=False)


def fail_with(error: AgentError) -> None:
    """An error that was raised here or that the service answered with, on stderr."""
    # A ServiceError has the code that the service answered with.
    code = getattr(error, "problem_code", error.code)
    fail(error.message, _HINTS.get(code, error.hint))


def in_terminal_words(text: str) -> str:
    """A sentence of the service with commands in the place of its routes."""

    def command(found: re.Match[str]) -> str:
        words = _COMMANDS.get(found[1], "the page")
        return words if found.start() else words[0].upper() + words[1:]

    return _ROUTE.sub(command, text)


def print_json(what: BaseModel | dict[str, Any], *, indent: int | None = None) -> None:
    """JSON on stdout, a line of it without `indent`; not through the console, which wraps and colours."""
    model = what if isinstance(what, BaseModel) else None
    text = model.model_dump_json(indent=indent) if model else json.dumps(what, ensure_ascii=False, indent=indent)
    sys.stdout.write(text + "\n")


def confirm(question: str, assume_yes: bool) -> None:
    """Go on when the person says yes. Raises typer.Abort on a no, NeedsPersonError where nobody can be asked."""
    if assume_yes:
        return
    if not sys.stdin.isatty():
        raise NeedsPersonError(f"{question} Nobody is at a terminal to answer.", hint="Use --yes.")
    typer.confirm(question, abort=True)


def in_words(error: Exception) -> tuple[str, str | None]:
    """Describe an unexpected error: the problem and a remedy."""
    match error:
        case ValidationError():
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            text = str(first["msg"]).removeprefix("Value error, ")
            return (f"{where}: {text}." if where else f"{text}."), "See --help for what the command takes."
        case OSError():
            return f"{error.filename or 'A file'}: {error.strerror or type(error).__name__}.", None
        case _:
            return (
                f"Something unexpected went wrong ({type(error).__name__}).",
                "Try again. If it stays so, report it with the command that you used.",
            )
