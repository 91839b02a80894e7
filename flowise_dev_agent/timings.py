"""The time intervals of the runtime; tests shorten them."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Timings:
    """Seconds. A worker that is silent for `stalled` has lost its runs; `heartbeat` must fit into it several times."""

    heartbeat: float = 2.0
    stalled: float = 8.0
    #: How often each worker looks for runs without a worker.
    recovery: float = 1.5
    #: Grace for the running step at shutdown; the run is then handed back from its last checkpoint.
    drain: float = 8.0
    #: Backup for lost notices: job queue, event feed, waiting requests.
    poll: float = 30.0
    #: First pause before a run is tried again; it doubles up to `backoff_max`.
    backoff: float = 1.0
    backoff_max: float = 60.0


async def end_tasks(tasks: Iterable[asyncio.Task[Any]], *, patience: float = 1.0) -> None:
    """Cancel `tasks` and wait for them; one that still runs after `patience` seconds is cancelled again.

    Once is not enough: psycopg waits by `asyncio.wait_for`, which in Python 3.11 drops a cancellation that arrives
    together with the result.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=patience)
