"""Where commands write: results to stdout, everything about them to stderr. Plain lines when there is no terminal."""

from rich.console import Console

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str, style: str | None = None) -> None:
    """A line on stdout; `text` is never read as markup."""
    out.print(text, style=style, markup=False)


def warn(text: str) -> None:
    """A line on stderr that asks for attention."""
    err.print(text, style="yellow", markup=False)


def fail(text: str, hint: str | None = None) -> None:
    """An error on stderr, with what to do about it."""
    err.print(f"Error: {text}", style="bold red", markup=False)
    if hint:
        err.print(f"  {hint}", markup=False)
