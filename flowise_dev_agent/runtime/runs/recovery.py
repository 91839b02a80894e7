"""Finding runs whose worker is gone, and giving them to another one."""

import asyncio
import logging
import time
from typing import Final

from procrastinate.exceptions import ConnectorException

from flowise_dev_agent.contracts.problem import Failure
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import Runs
from flowise_dev_agent.persistence.runs import Lost
from flowise_dev_agent.runtime.runs.executor import failure
from flowise_dev_agent.runtime.runs.timings import Timings

logger = logging.getLogger(__name__)

_QUARANTINED: Final = Failure(
    code="session_quarantined",
    detail="The worker was lost twice at the same step of this session, so the session was set aside.",
    hint="Check the memory and the log of the workers. Retry the session when the cause is gone.",
)


class Recovery:
    """A loop in every worker, of which one at a time does the work.

    A run that was lost `attempts` times, or twice at the same checkpoint, takes its workers down with it, so it fails
    its session instead.
    """

    def __init__(self, runs: Runs, timings: Timings, *, attempts: int) -> None:
        self._runs = runs
        self._timings = timings
        self._attempts = attempts

    async def run(self) -> None:
        """Look for lost runs until cancelled."""
        quiet_until = 0.0
        while True:
            await asyncio.sleep(self._timings.recovery)
            if time.monotonic() < quiet_until:
                continue
            try:
                await self.pass_once()
            except (DatabaseUnavailableError, ConnectorException):
                # After an outage every heartbeat is old. Give the living the time to say so.
                quiet_until = time.monotonic() + self._timings.stalled

    async def pass_once(self) -> int:
        """Take back what is lost now; returns how many runs that were."""
        taken = 0
        async with self._runs.recovery_turn() as ours:
            if not ours:
                return 0
            for lost in await self._runs.lost(self._timings.stalled):
                taken += await self._recover(lost)
        return taken

    async def _recover(self, lost: Lost) -> bool:
        if lost.stuck:
            return await self._runs.give_up(lost, failure(_QUARANTINED))
        if lost.attempt + 1 < self._attempts:
            taken = await self._runs.take_back(lost)
            if taken:
                logger.warning("Run %s lost its worker; it is queued again.", lost.id)
            return taken
        problem = Failure(
            code="worker_lost",
            detail=f"The worker was lost {self._attempts} times while it ran this session.",
            hint="Check the memory and the log of the workers, then retry the session.",
        )
        return await self._runs.give_up(lost, failure(problem))
