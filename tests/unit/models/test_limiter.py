"""How many model calls run at once: what the provider takes decides, and sessions take turns."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx2
import pytest

from flowise_dev_agent.caller import serving
from flowise_dev_agent.models.limiter import CallLimiter, calls_of


class Calls:
    """Calls that run until they are answered, oldest first."""

    def __init__(self, limiter: CallLimiter) -> None:
        self.limiter = limiter
        self.running: list[tuple[str, asyncio.Future[httpx2.Response]]] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, count: int, session: str = "") -> None:
        self.tasks += [asyncio.create_task(self._call(session)) for _ in range(count)]
        await self.settle()

    async def _call(self, session: str) -> None:
        with calls_of(session):
            async with self.limiter.turn():
                answer: asyncio.Future[httpx2.Response] = asyncio.get_running_loop().create_future()
                self.running.append((session, answer))
                await self.limiter.observe(await answer)

    async def answer(self, count: int, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        answered, self.running = self.running[:count], self.running[count:]
        for _, answer in answered:
            answer.set_result(httpx2.Response(status, headers=headers))
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


@asynccontextmanager
async def calling(ceiling: int = 1_000) -> AsyncGenerator[Calls]:
    calls = Calls(CallLimiter("test", ceiling))
    try:
        yield calls
    finally:
        for task in calls.tasks:
            task.cancel()
        await asyncio.gather(*calls.tasks, return_exceptions=True)


async def test_p92_the_limit_begins_at_64_and_doubles_in_each_round_up_to_the_ceiling() -> None:
    async with calling(ceiling=200) as calls:
        await calls.start(1_000)
        assert len(calls.running) == 64
        await calls.answer(64)
        assert len(calls.running) == calls.limiter.limit == 128
        await calls.answer(128)
        assert len(calls.running) == calls.limiter.limit == 200


async def test_a_ceiling_below_the_first_limit_holds() -> None:
    async with calling(ceiling=2) as calls:
        await calls.start(5)
        assert len(calls.running) == 2


async def test_a_limit_that_is_not_reached_does_not_grow() -> None:
    async with calling() as calls:
        await calls.start(10)
        await calls.answer(10)
        assert calls.limiter.limit == 64


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_p92_refusals_of_one_round_halve_the_limit_once(status: int) -> None:
    async with calling() as calls:
        await calls.start(200)
        await calls.answer(40, status)
        assert calls.limiter.limit == 32
        await calls.answer(24)
        assert len(calls.running) == 32


async def test_after_a_refusal_the_limit_grows_by_one_for_each_round() -> None:
    async with calling() as calls:
        await calls.start(500)
        await calls.answer(1, 429)
        await calls.answer(63)
        first = calls.limiter.limit
        for _ in range(4):
            before = calls.limiter.limit
            await calls.answer(len(calls.running))
            assert before <= calls.limiter.limit <= before + 1
        assert first < calls.limiter.limit < 64


async def test_p92_nothing_starts_before_the_time_that_a_refusal_names() -> None:
    async with calling() as calls:
        await calls.start(100)
        await calls.answer(1, 429, {"retry-after": "60"})
        await calls.answer(63)
        assert calls.running == []


async def test_calls_go_on_after_the_time_that_a_refusal_names() -> None:
    async with calling() as calls:
        await calls.start(100)
        await calls.answer(1, 429, {"retry-after": "0.1"})
        await calls.answer(63)
        async with asyncio.timeout(5):
            while not calls.running:  # noqa: ASYNC110 - the limiter's own timer starts it
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("left", "reset", "value"),
    [
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", "100ms"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", "0m0.1s"),
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset", "2999-01-01T00:00:00Z"),
    ],
)
async def test_nothing_starts_without_room(left: str, reset: str, value: str) -> None:
    async with calling() as calls:
        await calls.start(1)
        await calls.answer(1, headers={left: "0", reset: value})
        await calls.start(1)
        assert calls.running == []


async def test_what_is_left_lets_calls_go_on() -> None:
    async with calling() as calls:
        await calls.start(1)
        await calls.answer(1, headers={"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "1m"})
        await calls.start(1)
        assert len(calls.running) == 1


async def test_a_session_with_one_call_does_not_wait_for_all_calls_of_another() -> None:
    async with calling(ceiling=1) as calls:
        await calls.start(5, "greedy")
        await calls.start(1, "modest")
        order: list[str] = []
        while calls.running:
            order.append(calls.running[0][0])
            await calls.answer(1)
        assert order.index("modest") <= 2


async def test_a_cancelled_call_gives_its_turn_to_the_next() -> None:
    async with calling(ceiling=1) as calls:
        await calls.start(3)
        waiting, running = calls.tasks[1], calls.tasks[0]
        waiting.cancel()
        running.cancel()
        await calls.settle()
        assert [task.done() for task in calls.tasks] == [True, True, False]
        assert len(calls.running) == 2  # the cancelled one and the third


async def test_p92_an_owner_with_many_sessions_leaves_the_next_call_to_the_owner_with_few() -> None:
    async with calling(ceiling=4) as calls:
        with serving("many"):
            for number in range(50):
                await calls.start(1, f"many {number}")
        with serving("few"):
            await calls.start(2, "few")
        assert [session for session, _ in calls.running] == [f"many {number}" for number in range(4)]
        await calls.answer(2)
        assert [session for session, _ in calls.running[-2:]] == ["few", "few"]
