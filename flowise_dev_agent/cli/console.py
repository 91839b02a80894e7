"""Output of commands: results to stdout, warnings and errors to stderr; plain lines when there is no terminal."""

import json
import sys
from typing import Any

import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console

from flowise_dev_agent.errors import NeedsPersonError

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str, style: str | None = None) -> None:
    """A line on stdout; `text` is never read as markup."""
    out.print(text, style=style, markup=False)


def warn(text: str) -> None:
    """A warning on stderr."""
    err.print(text, style="yellow", markup=False)


def fail(text: str, hint: str | None = None) -> None:
    """An error on stderr, with what to do about it."""
    err.print(f"Error: {text}", style="bold red", markup=False)
    if hint:
        err.print(f"  {hint}", markup=False)


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
    """What went wrong and what to do about it, of an error that nobody expected."""
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
