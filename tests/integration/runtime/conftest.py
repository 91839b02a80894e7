"""An engine on a fresh database, and worker processes that may be killed."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from flowise_dev_agent.runtime import Runtime
from tests.runtime_world import World, running_engine

StartWorker = Callable[..., Awaitable[Process]]


@pytest.fixture
async def engine(database_dsn: str) -> AsyncIterator[Runtime]:
    """Service and worker in this process."""
    async with running_engine(database_dsn) as engine:
        yield engine


@pytest.fixture
async def api(database_dsn: str) -> AsyncIterator[Runtime]:
    """The service without a worker."""
    async with running_engine(database_dsn, worker=False) as engine:
        yield engine


@pytest.fixture
def world(database_dsn: str) -> World:
    return World(database_dsn)


@pytest.fixture
async def start_worker(database_dsn: str) -> AsyncIterator[StartWorker]:
    """Start worker processes; what is left of them is killed at the end."""
    processes: list[Process] = []

    async def start(dsn: str = database_dsn, **timings: float) -> Process:
        options = [f"{name}={value}" for name, value in timings.items()]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.runtime_world", dsn, *options, stdout=PIPE
        )
        processes.append(process)
        assert process.stdout is not None
        async with asyncio.timeout(30):
            assert await process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.kill()
        await process.wait()
