"""Recovery of runs whose worker was lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from procrastinate.exceptions import ConnectorException

from flowise_dev_agent.caller import serving
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import Runs
from flowise_dev_agent.persistence.runs import Lost
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.sessions.executor import failure
from flowise_dev_agent.texts import text
from flowise_dev_agent.timings import Timings

logger = logging.getLogger(__name__)

_QUARANTINED: Final = Failure(
    code="session_quarantined",
    detail=text("error.set_aside"),
    hint=text("error.check_workers"),
)

_IDLE_TIMES: Final = 3


class LostWork:
    """Loop of each worker that runs `passes` to find the lost work of other workers.

    While `busy` says that nothing runs anywhere it looks three times less often. That is soon enough, since a worker
    counts as lost only after `stalled`.
    """

    def __init__(
        self, busy: Callable[[], Awaitable[bool]], passes: Sequence[Callable[[], Awaitable[object]]], timings: Timings
    ) -> None:
        self._busy = busy
        self._passes = passes
        self._timings = timings

    async def run(self) -> None:
        """Look until cancelled."""
        pause = self._timings.recovery
        while True:
            await asyncio.sleep(pause)
            pause = self._timings.recovery
            try:
                if await self._busy():
                    for pass_once in self._passes:
                        await pass_once()
                else:
                    pause *= _IDLE_TIMES
            except (DatabaseUnavailableError, ConnectorException):
                # After an outage every heartbeat is old. Give live workers time to send one.
                pause = self._timings.stalled


class Recovery:
    """Requeues lost runs; one worker at a time does this.

    A run that was lost `attempts` times, or twice at the same checkpoint, fails its session, since it probably crashes
    its workers. If several runs of the lost worker are suspects, each is tried once more, separately: the harmless ones
    finish and the crashing one is identified.
    """

    def __init__(self, runs: Runs, timings: Timings, *, attempts: int) -> None:
        self._runs = runs
        self._timings = timings
        self._attempts = attempts

    async def pass_once(self) -> int:
        """Requeue the runs that are lost now; returns their number."""
        taken = 0
        async with self._runs.recovery_turn() as ours:
            if not ours:
                return 0
            for lost in await self._runs.lost(self._timings.stalled):
                with serving(lost.owner):
                    taken += await self._recover(lost)
        return taken

    async def _recover(self, lost: Lost) -> bool:
        is_last = lost.attempt + 1 >= self._attempts
        if (is_last or lost.stuck) and not lost.excused:
            return await self._runs.give_up(lost, failure(_QUARANTINED if lost.stuck else self._worker_lost(lost)))
        # The next attempt decides.
        isolated = lost.excused and (lost.stuck or lost.isolated or lost.attempt + 2 >= self._attempts)
        taken = await self._runs.take_back(lost, isolated=isolated)
        if taken:
            logger.warning("Run %s lost its worker; it is queued again%s.", lost.id, ", alone" if isolated else "")
        return taken

    def _worker_lost(self, lost: Lost) -> Failure:
        return Failure(
            code="worker_lost",
            detail=text("error.worker_lost", count=lost.attempt + 1),
            hint="Check the memory and the log of the workers, then retry the session.",
        )
