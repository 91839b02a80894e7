"""Removes from Flowise the drafts of sessions that were cancelled, failed or deleted."""

import asyncio
import logging
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final
from uuid import UUID

from flowise_dev_agent.errors import FlowiseError, InvalidInputError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.persistence import AbandonedDraft, AbandonedDrafts
from flowise_dev_agent.publish import find_drafts, remove_draft

logger = logging.getLogger(__name__)

_BATCH: Final = 100
_INSTANCE_SECS: Final = 60.0
#: A cancelled run has certainly ended by then.
_GRACE_SECS: Final = 600.0


class DraftSweep:
    """The maintenance of drafts. Drafts of failed sessions stay `failed_days`, for a retry."""

    def __init__(self, drafts: AbandonedDrafts, instances: Instances, *, failed_days: float) -> None:
        self._drafts = drafts
        self._instances = instances
        self._failed_days = failed_days

    async def pass_once(self) -> int:
        """Remove what can be removed now; returns how many. An instance that does not answer waits for the next pass.

        Raises DatabaseUnavailableError.
        """
        await self._drafts.collect(grace_secs=_GRACE_SECS, failed_days=self._failed_days)
        found = sorted(await self._drafts.take(_BATCH), key=attrgetter("instance_id"))
        removed = 0
        for instance_id, drafts in groupby(found, key=attrgetter("instance_id")):
            removed += await self._sweep(instance_id, list(drafts))
        return removed

    async def _sweep(self, instance_id: str, drafts: Sequence[AbandonedDraft]) -> int:
        removed: list[UUID] = []
        missing: list[UUID] = []
        count = 0
        try:
            client = self._instances.client(instance_id)
            async with asyncio.timeout(_INSTANCE_SECS):
                on_server = await find_drafts(client, {draft.tag for draft in drafts})
                for draft in drafts:
                    for chatflow_id in on_server.get(draft.tag, ()):
                        count += await remove_draft(client, chatflow_id, draft.tag)
                    (removed if draft.tag in on_server else missing).append(draft.session_id)
        except (FlowiseError, InvalidInputError) as error:
            logger.warning("Abandoned drafts on '%s' stay for now: %s", instance_id, error)
        except TimeoutError:
            logger.warning("Abandoned drafts on '%s' stay for now: no time left.", instance_id)
        await self._drafts.record_removal(removed=removed, missing=missing)
        return count
