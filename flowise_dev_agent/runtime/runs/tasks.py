"""Ends background tasks reliably."""

import asyncio
from collections.abc import Iterable
from typing import Any


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
