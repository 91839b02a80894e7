"""Processes of the tests' own, without the seconds that importing the product takes.

One process of a test run imports it, once, and forks for each of them (`multiprocessing`'s fork server).
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_fork_server = multiprocessing.get_context("forkserver")
_fork_server.set_forkserver_preload(
    ["flowise_dev_agent.cli.serve", "flowise_dev_agent.cli.work", "tests.e2e.service", "tests.runtime_world"]
)


class Forked:
    """A process that runs `function(*arguments)`, which must be picklable. Not bound to an event loop."""

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self._process = _fork_server.Process(target=function, args=arguments)

    async def start(self) -> None:
        # The first one waits for the imports.
        await asyncio.to_thread(self._process.start)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal and go on; a process that has ended is left alone."""
        if self.running:
            with suppress(ProcessLookupError):  # it ends at this moment
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, also when it is frozen, and return when it is gone."""
        self.send_signal(signal.SIGKILL)
        self._process.join()

    async def wait(self) -> int:
        """Wait until it ends by itself or by a signal; its exit code, or the signal's number below zero."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode
