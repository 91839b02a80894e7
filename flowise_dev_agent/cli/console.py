"""Output of commands: results to stdout, warnings and errors to stderr; plain lines when there is no terminal."""

import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import typer

from flowise_dev_agent.errors import AgentError, NeedsPersonError
from flowise_dev_agent.sanitize import visible

# `--help` waits neither for Rich nor for Pydantic.
if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from rich.console import Console

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


@cache
def out(*, stderr: bool = False) -> "Console":
    """The terminal: stdout, or stderr."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def counted(code: str, number: int) -> str:
    """A number of things, by the code of their name: `1 flow`, `2 flows`."""
    from flowise_dev_agent import texts

    return texts.counted(code, number)


def say(text: str, style: str | None = None) -> None:
    """A line on stdout; `text` is never read as markup."""
    out().print(visible(text), style=style, markup=False)


def note(text: str, style: str | None = None) -> None:
    """A line on stderr, beside a result that other programs read."""
    out(stderr=True).print(visible(text), style=style, markup=False)


def warn(text: str) -> None:
    """A warning on stderr."""
    note(text, "yellow")


def fail(text: str, hint: str | None = None) -> None:
    """An error on stderr, with what to do about it."""
    note(f"Error: {in_terminal_words(text)}", "bold red")
    if hint:
        note(f"  {in_terminal_words(hint)}")


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


def print_json(what: "BaseModel | Mapping[str, Any]", *, indent: int | None = None) -> None:
    """JSON on stdout, a line of it without `indent`; not through the console, which wraps and colours."""
    if isinstance(what, Mapping):
        text = json.dumps(what, ensure_ascii=False, indent=indent)
    else:
        text = what.model_dump_json(indent=indent)
    sys.stdout.write(text + "\n")


def show(what: "BaseModel | Mapping[str, Any]", as_json: bool, *lines: str) -> None:
    """Print a result, as JSON or in these lines."""
    if as_json:
        print_json(what)
    else:
        for line in lines:
            say(line)


def show_table(
    what: "BaseModel | Mapping[str, Any]",
    as_json: bool,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *lines: str,
    whole: Collection[str] = (),
) -> None:
    """Print a result, as JSON or as a table with lines behind it.

    The columns in `whole` keep their width on a narrow terminal: people copy ids.
    """
    if as_json:
        print_json(what)
        return
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(*(Column(name, no_wrap=name in whole) for name in columns), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    if table.rows:
        out().print(table)
    for line in lines:
        say(line)


def confirm(question: str, assume_yes: bool) -> None:
    """Go on when the person says yes. Raises typer.Abort on a no, NeedsPersonError where nobody can be asked."""
    if assume_yes:
        return
    if not sys.stdin.isatty():
        raise NeedsPersonError(f"{question} Nobody is at a terminal to answer.", hint="Use --yes.")
    typer.confirm(question, abort=True)


def first_problem(error: "ValidationError") -> str:
    """The first thing that does not fit a model, with its place."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where + ': ' if where else ''}{str(first['msg']).removeprefix('Value error, ')}."


def in_words(error: Exception) -> tuple[str, str | None]:
    """Describe an unexpected error: the problem and a remedy."""
    from pydantic import ValidationError

    match error:
        case ValidationError():
            return first_problem(error), "See --help for what the command takes."
        case OSError():
            return f"{error.filename or 'A file'}: {error.strerror or type(error).__name__}.", None
        case _:
            return (
                f"Something unexpected went wrong ({type(error).__name__}).",
                "Try again. If it stays so, report it with the command that you used.",
            )
