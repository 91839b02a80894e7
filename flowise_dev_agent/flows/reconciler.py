"""Removal of leftovers of sessions in Flowise: drafts, document stores, tools, flows of deleted sessions, duplicates.

Each is checked repeatedly for a day, since Flowise may finish a call long after its connection broke.
"""

import asyncio
import logging
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from flowise_dev_agent.errors import ConnectionUnreadableError, FlowiseError, InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.flow_tags import is_store, is_tool
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.persistence import Leftover, Leftovers
from flowise_dev_agent.publish import find_tagged, remove_unclaimed, remove_unclaimed_stores, remove_unclaimed_tools

logger = logging.getLogger(__name__)

_BATCH: Final = 100
_INSTANCE_SECS: Final = 60.0
#: A cancelled run has certainly ended by then.
_GRACE_SECS: Final = 600.0


class Reconciler:
    """Periodic removal of leftovers. Those of failed sessions stay for `failed_days`, so that a retry can use them."""

    def __init__(self, leftovers: Leftovers, instances: Instances, *, failed_days: float) -> None:
        self._leftovers = leftovers
        self._instances = instances
        self._failed_days = failed_days

    async def pass_once(self) -> int:
        """Remove what can be removed now; returns the number. An instance that does not answer waits for the next pass.

        Raises DatabaseUnavailableError.
        """
        await self._leftovers.collect(grace_secs=_GRACE_SECS, failed_days=self._failed_days)
        found = sorted(await self._leftovers.take(_BATCH), key=attrgetter("instance_id"))
        removed = 0
        for instance_id, leftovers in groupby(found, key=attrgetter("instance_id")):
            removed += await self._reconcile(instance_id, list(leftovers))
        return removed

    async def _reconcile(self, instance_id: str, leftovers: Sequence[Leftover]) -> int:
        checked: list[str] = []
        count = 0
        try:
            client = self._instances.client(instance_id)
            # Leftovers on a server that is not connected now wait until it is.
            leftovers = [item for item in leftovers if self._instances.is_at(instance_id, item.endpoint)]
            async with asyncio.timeout(_INSTANCE_SECS):
                stores = [item for item in leftovers if is_store(item.tag)]
                tools = [item for item in leftovers if is_tool(item.tag)]
                flows = [item for item in leftovers if item not in stores and item not in tools]
                count += await self._remove_flows(client, flows)
                # A store or tool that a flow uses is kept, so flows are removed first.
                count += await self._remove_stores(client, stores)
                count += await self._remove_tools(client, tools)
                checked = [item.tag for item in leftovers]
        except (FlowiseError, InvalidInputError, ConnectionUnreadableError) as error:
            logger.warning("What sessions left on '%s' stays for now: %s", instance_id, error)
        except TimeoutError:
            logger.warning("What sessions left on '%s' stays for now: no time left.", instance_id)
        await self._leftovers.settle(checked)
        return count

    async def _remove_flows(self, client: FlowiseClient, leftovers: Sequence[Leftover]) -> int:
        count = 0
        on_server = await find_tagged(client, {item.tag for item in leftovers}) if leftovers else {}
        for item in leftovers:
            for chatflow_id in on_server.get(item.tag, ()):
                if chatflow_id not in item.keep and await remove_unclaimed(
                    client, chatflow_id, tag=item.tag, names=item.names, texts=item.texts
                ):
                    await self._leftovers.removed(item, "write.delete", chatflow_id=chatflow_id)
                    count += 1
        return count

    async def _remove_stores(self, client: FlowiseClient, leftovers: Sequence[Leftover]) -> int:
        count = 0
        if leftovers:
            done = await remove_unclaimed_stores(client, {item.tag: item.names for item in leftovers})
            for item in leftovers:
                for words in done[item.tag]:
                    await self._leftovers.removed(item, "write.store_delete", words=words)
                    count += 1
        return count

    async def _remove_tools(self, client: FlowiseClient, leftovers: Sequence[Leftover]) -> int:
        count = 0
        for item in leftovers:
            for name in await remove_unclaimed_tools(client, item.ids, item.texts):
                await self._leftovers.removed(item, "write.tool_delete", words=f"Deleted the custom tool '{name}'.")
                count += 1
        return count
