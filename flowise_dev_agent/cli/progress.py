"""A session's events as lines: a finished step each, and on a terminal a spinner for the one at work."""

from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from flowise_dev_agent.runtime.sessions.views import SessionEvent

_MARKS: Final = {
    "node_end": ("✓", "green"),
    "node_error": ("✗", "red"),
    "error": ("✗", "red"),
    "write": ("●", "cyan"),
    "test": ("●", "cyan"),
    "fallback": ("!", "yellow"),
    "retry": ("!", "yellow"),
    "drift": ("!", "yellow"),
}


class Progress:
    """Use it as a context manager and `show` it every event."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._status:
            self._status.stop()
            self._status = None

    def show(self, event: SessionEvent) -> None:
        """Print what is worth a line; move the spinner to the step that starts."""
        if event.type == "node_start" and self._status:
            self._status.update(Text(f"{event.phase or ''}: {event.node}"))
        if event.type not in _MARKS:
            return
        mark, style = _MARKS[event.type]
        line = Text.assemble("  ", (mark, style), " ", (f"{event.phase or '':<9}", "bold"), f"{event.node or '':<25}")
        if event.duration_ms is not None:
            line.append(f"{event.duration_ms / 1000:6.1f} s", "dim")
        if event.type != "node_end" and event.summary:
            line.append(f"  {event.summary}")
        self._console.print(line)
