"""Output of commands: results to stdout, warnings and errors to stderr; plain lines when there is no terminal."""

from rich.console import Console

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
