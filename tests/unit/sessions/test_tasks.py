"""Background tasks end even when one of their cancellations is lost."""

import asyncio

from flowise_dev_agent.timings import end_tasks


async def test_a_task_that_swallows_its_first_cancellation_is_ended_all_the_same() -> None:
    swallowed: list[str] = []
    started = asyncio.Event()

    async def loop() -> None:
        while True:
            try:
                started.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append("once")

    task = asyncio.create_task(loop())
    await started.wait()
    async with asyncio.timeout(5):
        await end_tasks([task], patience=0.01)
    assert task.cancelled()
    assert swallowed == ["once"]


async def test_a_task_that_has_failed_and_no_task_at_all_are_fine() -> None:
    async def fail() -> None:
        raise RuntimeError("seen by whoever asks for its result")

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    await end_tasks([task])
    await end_tasks([])
    assert isinstance(task.exception(), RuntimeError)
