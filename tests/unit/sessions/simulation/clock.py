"""Time and processes of a simulation: nothing waits, nothing is random but the seed.

The event loop jumps to the next timer as soon as nothing else is left to do. Everything outside of a process (tables,
queue, Flowise, models) is reached through `Outside`: before and after each call the process may be killed or frozen.
"""

import asyncio
import inspect
import selectors
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

_T = TypeVar("_T")


class _Jump(selectors.SelectSelector):
    """A selector that does not wait: the clock goes on by what it was told to wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("Everything waits for something that never comes.")
        self.now += max(timeout, 0.0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """At once: the end of a thread would be a matter of real time."""
        del executor
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the caller's
            done.set_exception(error)
        return done


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """As `asyncio.run`, in simulated time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


@dataclass
class Faults:
    """What may happen to a process at a call, by chance; `left` is how often in all."""

    random: Random
    kill: float = 0.006
    freeze: float = 0.004
    outage: float = 0.002
    left: int = 8
    #: The trial has ended: a call of a dead process does not wait any more.
    over: bool = False

    def happens(self, chance: float) -> bool:
        if self.left <= 0 or self.random.random() >= chance:
            return False
        self.left -= 1
        return True

    @property
    def on(self) -> bool:
        return self.left > 0


@dataclass
class Process:
    """One worker process."""

    number: int
    faults: Faults
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    frozen_until: float = 0.0
    silent_since: float = 0.0
    #: The epoch of its latest claim.
    epoch: int = 0

    def start(self, main: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        context = copy_context()
        context.run(CURRENT.set, self)
        return asyncio.create_task(main, context=context)

    async def point(self) -> None:
        """A moment at which the process may stop for ever, or for long enough to lose its runs."""
        loop, faults = asyncio.get_running_loop(), self.faults
        if not self.killed.is_set():
            await asyncio.sleep(faults.random.expovariate(50))
        if faults.happens(faults.kill):
            self.killed.set()
            self.silent_since = loop.time()
        elif faults.happens(faults.freeze):
            self.frozen_until = loop.time() + faults.random.uniform(1, 30)
            self.silent_since = loop.time()
        while not faults.over:
            if self.killed.is_set():
                await loop.create_future()
            if loop.time() >= self.frozen_until:
                return
            await asyncio.sleep(self.frozen_until - loop.time())
        raise asyncio.CancelledError

    def silent_for(self) -> float:
        now = asyncio.get_running_loop().time()
        return now - self.silent_since if self.killed.is_set() or now < self.frozen_until else 0.0


CURRENT: ContextVar[Process | None] = ContextVar("CURRENT", default=None)


async def point() -> None:
    """A point of the process that runs; nothing for a person."""
    process = CURRENT.get()
    if process is not None:
        await process.point()


class Outside:
    """`inner` as a process reaches it: each coroutine function between two points."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **named: Any) -> Any:
            await point()
            result = await found(*args, **named)
            await point()
            return result

        return call
