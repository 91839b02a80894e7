"""Counts the requests to Flowise of each run, through the clients that all runs of the process share."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from flowise_dev_agent.observability.metrics import FLOWISE_CALLS


@dataclass
class CallCount:
    """Requests sent and not yet stored."""

    made: int = 0


_of_run: ContextVar[CallCount | None] = ContextVar("flowise_calls", default=None)


@contextmanager
def counting(count: CallCount) -> Generator[None]:
    """Have `count` take the calls of the block and of the tasks that it starts."""
    token = _of_run.set(count)
    try:
        yield
    finally:
        _of_run.reset(token)


def count_call(route: str) -> None:
    """An `on_call` hook of Flowise clients. Of a session is only what its runs ask for, not health checks."""
    FLOWISE_CALLS.labels(route).inc()
    if (count := _of_run.get()) is not None:
        count.made += 1
