"""The watch: notices what people change in Flowise itself, and keeps each state as a version."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from flowise_dev_agent.errors import (
    ConnectionUnreadableError,
    DatabaseUnavailableError,
    FlowiseAuthError,
    FlowiseError,
    InvalidInputError,
    PatchError,
)
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.flow_check import known_ends
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.patch import Finding, GraphIR, Schemas, diff, validate_flow
from flowise_dev_agent.persistence import Blobs, Database
from flowise_dev_agent.persistence.database import across_owners
from flowise_dev_agent.persistence.fleet import Fleet
from flowise_dev_agent.persistence.watched_versions import Edit, WatchedVersions
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.base import JsonMapping

logger = logging.getLogger(__name__)

#: Edits compared in one turn; the others wait for the next one.
_BATCH: Final = 50
#: Flows checked in one turn; each takes some hundredths of a second.
_CHECKS: Final = 20
#: Seconds until a server whose key may not list flows is asked again.
_REFUSED_SECS: Final = 900.0
#: A process looks this often, as part of the interval, for a server whose turn it is.
_LOOKS: Final = 0.2


#: Sends an event, by its type, a key and its data; False if it was not taken.
Tell = Callable[[str, str, JsonMapping], Awaitable[bool]]


async def _tell_nobody(event: str, key: str, data: JsonMapping, /) -> bool:
    del event, key, data
    return True


class Watch:
    """Looks at each instance every `every_secs` seconds; of several processes one at a time takes the turn.

    A turn is one request for the newest flow; if something has changed, pages of the flows that did, and two requests
    for the node types and credentials that changed flows are checked with.
    """

    def __init__(
        self,
        database: Database,
        *,
        index: FlowIndex,
        blobs: Blobs,
        instances: Instances,
        schemas: Callable[[str], Awaitable[Schemas]],
        every_secs: float,
        tell: Tell | None = None,
    ) -> None:
        """`tell` sends events; what it does not get rid of is told at the next turn."""
        self._tell = tell or _tell_nobody
        self._database = database
        self._index = index
        self._watched = WatchedVersions(database)
        self._schemas = schemas
        self._blobs = blobs
        self._instances = instances
        self._every_secs = every_secs
        self._failing: set[str] = set()

    async def run(self) -> None:
        """Take turns until cancelled."""
        while True:
            for instance_id in self._instances.ids:
                try:
                    if await self._watched.claim(instance_id, self._endpoint(instance_id), self._every_secs):
                        await self.look(instance_id)
                except DatabaseUnavailableError:
                    logger.warning("The database does not answer; the watch of '%s' continues later.", instance_id)
                except Exception:
                    logger.exception("The watch of '%s' failed; it continues at its next turn.", instance_id)
            await asyncio.sleep(self._every_secs * _LOOKS * random.uniform(0.8, 1.2))  # noqa: S311 - only spreads looks

    async def look(self, instance_id: str) -> None:
        """Take one turn. A server that does not answer is looked at again at the next one."""
        try:
            client = self._instances.client(instance_id)
            await self._index.current(instance_id, client)
            await self._tell_edits(instance_id)
            await self._tell_deletions(instance_id, client.endpoint)
            await self._check(instance_id, client)
        except FlowiseAuthError:
            await self._watched.postpone(instance_id, self._endpoint(instance_id), _REFUSED_SECS)
            self._warn(instance_id, "its key may not list flows")
        except (FlowiseError, InvalidInputError, ConnectionUnreadableError) as error:
            self._warn(instance_id, error.message)
        else:
            self._failing.discard(instance_id)

    async def _tell_edits(self, instance_id: str) -> None:
        for edit in await self._watched.edits(instance_id, _BATCH):
            moved = await self._only_moved(edit)
            data = {"chatflow_id": edit.chatflow_id, "version": f"v{edit.version}", "moved": moved}
            if not await self._tell("flow.changed", str(edit.id), {"instance": instance_id, **data}):
                return
            await self._watched.compared(edit, moved=moved)

    async def _tell_deletions(self, instance_id: str, endpoint: str) -> None:
        for chatflow_id, name in await self._watched.untold(instance_id, endpoint, _BATCH):
            data = {"instance": instance_id, "chatflow_id": chatflow_id, "name": masked(name)}
            if not await self._tell("flow.deleted", f"{endpoint} {chatflow_id}", data):
                return
            await self._watched.told(instance_id, endpoint, chatflow_id)

    async def _check(self, instance_id: str, client: FlowiseClient) -> None:
        """Check some flows that changed, and some whose check is a day old."""
        fleet = Fleet(self._database, instance_id, client.endpoint)
        found = await fleet.unchecked(_CHECKS)
        if not found:
            return
        schemas, credentials = await self._schemas(instance_id), None
        with suppress(FlowiseAuthError):  # a key that may not list them
            credentials = {one.id: one.credential_name for one in await client.list_credentials()}
        for flow in found:
            try:
                with across_owners():
                    flow_data = await self._blobs.get(flow.sha256)
            except InvalidInputError:
                continue  # replaced meanwhile
            findings = await asyncio.to_thread(_findings, flow_data, flow.type, schemas, credentials)
            errors = {finding.key: finding.code for finding in findings if finding.severity == "error"}
            # Of a flow that is checked for the first time nobody knows what an edit brought.
            new = {errors[key] for key in errors.keys() - set(flow.errors or ())}
            if new and flow.checked_sha256 not in (None, flow.sha256):
                data: JsonMapping = {
                    "instance": instance_id,
                    "chatflow_id": flow.id,
                    "name": flow.name,
                    "codes": [*sorted(new)],
                }
                if not await self._tell("flow.broken", f"{flow.id} {flow.sha256}", data):
                    continue
            await fleet.checked(flow, sorted({finding.code for finding in findings}), sorted(errors))

    def _endpoint(self, instance_id: str) -> str:
        return self._instances.endpoint(instance_id)

    def _warn(self, instance_id: str, why: str) -> None:
        """Log once until it works again."""
        if instance_id not in self._failing:
            logger.warning("'%s' is not watched now: %s", instance_id, why)
        self._failing.add(instance_id)

    async def _only_moved(self, edit: Edit) -> bool:
        if edit.before_sha256 in (None, edit.sha256):
            return False  # of a renamed flow the texts are the same
        try:
            with across_owners():
                before, after = [await self._blobs.get(sha256) for sha256 in (edit.before_sha256, edit.sha256)]
            return await asyncio.to_thread(_differs_by_places, before, after)
        except (InvalidInputError, PatchError):
            return False  # gone with its session, or not a flow


def _findings(flow_data: str, kind: str, schemas: Schemas, credentials: Mapping[str, str] | None) -> list[Finding]:
    return validate_flow(
        flow_data, kind=kind, schemas=schemas, credentials=credentials, model_ends=known_ends(flow_data, schemas)
    )


def _differs_by_places(before: str, after: str) -> bool:
    found = diff(GraphIR.from_flow_data(before), GraphIR.from_flow_data(after))
    others = (found.added, found.removed, found.changed, found.connected, found.disconnected)
    return bool(found.moved) and not any(others)
