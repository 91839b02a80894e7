"""An engine on a fresh database, and worker processes that may be killed."""

import asyncio
import multiprocessing
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from flowise_dev_agent.ops import Runtime
from tests.forked import Forked
from tests.runtime_world import FAST, running_engine, serve

StartWorker = Callable[..., Awaitable[Forked]]


@pytest.fixture
async def api(database_dsn: str) -> AsyncIterator[Runtime]:
    """The service without a worker."""
    async with running_engine(database_dsn, worker=False) as engine:
        yield engine


@pytest.fixture
async def start_worker(database_dsn: str) -> AsyncIterator[StartWorker]:
    """Start worker processes; what is left of them is killed at the end."""
    processes: list[Forked] = []

    async def start(dsn: str = database_dsn, **timings: float) -> Forked:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = Forked(serve, dsn, replace(FAST, **timings), dict(os.environ), sender)
        processes.append(process)
        await process.start()
        assert await asyncio.to_thread(receiver.poll, 30)
        return process

    yield start
    for process in processes:
        process.kill()
