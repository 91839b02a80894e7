"""The steps that writes consist of: announced by an intent, sent, looked for after a lost answer, read back, kept."""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal, TypeVar
from uuid import UUID, uuid5

from flowise_dev_agent.errors import (
    FlowiseAuthError,
    FlowiseConnectionLostError,
    FlowiseError,
    FlowiseNotFoundError,
    FlowiseRateLimitedError,
    FlowiseRejectedError,
    FlowiseTimeoutError,
    FlowiseUnreachableError,
    WriteFailedError,
)
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.flow_settings import settings_of
from flowise_dev_agent.flowise.flow_tags import copy_tag, draft_tag, flow_tag
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.flowise.uploads import kept_settings
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.persistence.database import Lease
from flowise_dev_agent.persistence.flow_versions import Versions
from flowise_dev_agent.persistence.intents import WriteIntent, WriteIntents
from flowise_dev_agent.publish.outcomes import Base, Stale, WriteAttempt, Written
from flowise_dev_agent.schemas.change import Conflict
from flowise_dev_agent.texts import text

Role = Literal["flow", "draft", "copy"]
_T = TypeVar("_T")

#: Errors that prove that nothing was written, and those after which it may still happen.
_REFUSED = (
    FlowiseUnreachableError,
    FlowiseAuthError,
    FlowiseNotFoundError,
    FlowiseRejectedError,
    FlowiseRateLimitedError,
)
_MAY_LAND_LATE = (FlowiseTimeoutError, FlowiseConnectionLostError)
#: How long what was read back is taken for what is there: no longer than a look and the question after it take.
_MOMENT_SECS = 0.5
_KEYS = UUID("6f1c2a52-8f0b-5d3e-9a37-0d6a4c1f2b90")


class WriteSteps:
    """Base of the writes of one session to one server."""

    def __init__(
        self,
        *,
        session_id: UUID,
        instance_id: str,
        client: FlowiseClient,
        intents: WriteIntents,
        lease: Lease | None,
        versions: Versions,
    ) -> None:
        self._session_id = session_id
        self._instance_id = instance_id
        self._client = client
        self._intents = intents
        self._lease = lease
        self._versions = versions
        self._seen: tuple[float, Chatflow] | None = None
        self._tag = flow_tag(str(session_id))
        id_ = str(session_id)
        self._tags: Mapping[Role, str] = {"flow": self._tag, "draft": draft_tag(id_), "copy": copy_tag(id_)}

    async def current(self, chatflow_id: str) -> Chatflow:
        """The flow as it is now, or as this run has read it a moment ago."""
        at, flow = self._seen or (float("-inf"), None)
        if flow is not None and flow.id == chatflow_id and time.monotonic() - at < _MOMENT_SECS:
            return flow
        return await self._client.get_chatflow(chatflow_id)

    async def _open(
        self,
        op: str,
        *,
        iteration: int,
        sha256: str | None = None,
        target_id: str | None = None,
        base: Base | None = None,
        tag: str | None = None,
        name: str | None = None,
    ) -> WriteIntent:
        # The base is part of the key: writing the same bytes over another base (after "overwrite") is another write.
        tag = tag or self._tag
        parts = (self._session_id, iteration, op, target_id, sha256, base and base.sha256, base and base.updated_date)
        parts = (*parts, tag) if tag != self._tag else parts
        return await self._intents.open(
            self._lease,
            key=uuid5(_KEYS, "|".join(str(part) for part in parts)),
            session_id=self._session_id,
            op=op,
            iteration=iteration,
            target_id=target_id,
            payload_sha256=sha256,
            base_sha256=base.sha256 if base else None,
            tag=tag,
            name=name,
        )

    async def _send(
        self,
        intent: WriteIntent,
        attempt: WriteAttempt,
        call: Callable[[], Awaitable[_T]],
        *,
        landed: Callable[[], Awaitable[_T | None]],
    ) -> tuple[_T, bool]:
        """Make the call; after an error that does not prove that nothing was written, look whether it has landed.

        Returns what the server has, and whether that was found by looking. A write that has surely not happened closes
        the intent; an unknown outcome leaves it open for the next try.
        """
        before, attempt.written = attempt.written, "unknown"
        try:
            return await call(), False
        except FlowiseError as error:
            if not isinstance(error, _REFUSED):
                try:
                    found = await landed()
                except FlowiseError:
                    raise error from None
                if found is not None:
                    return found, True
                if isinstance(error, _MAY_LAND_LATE):
                    raise
            attempt.written = before
            if before == "no":
                await self._intents.finish(self._lease, intent.key, status="failed", result=error.as_problem())
            raise

    async def _was_lost(self, chatflow_id: str, sha256: str, *, besides: WriteIntent | None = None) -> bool:
        """True if an earlier update of this flow to this text has an unknown outcome."""
        return any(
            item.status == "open"
            and (item.op, item.target_id, item.payload_sha256) == ("update", chatflow_id, sha256)
            and (besides is None or item.key != besides.key)
            for item in await self._intents.list_for(self._session_id)
        )

    async def _made_here(self, tag: str) -> list[Chatflow]:
        """Chatflows with the tag, a name and a text that this session announced to write. The tag alone proves nothing:
        people copy flows with their categories, and type what they like there."""
        tagged = await self._client.find_chatflow_by_category_tag(tag)
        if not tagged:
            return []
        intents = await self._intents.list_for(self._session_id)
        texts = {item.payload_sha256 for item in intents}
        names = {item.name for item in intents if item.op == "create" and item.tag == tag}
        if None in names:  # announced by an earlier version of the service
            names |= {flow.name for flow in tagged}
        return [flow for flow in tagged if flow.name in names and payload_sha256(flow.flow_data) in texts]

    async def _oldest_tagged(self, tag: str) -> Chatflow | None:
        return await self._oldest_of(await self._made_here(tag))

    async def _oldest_of(self, found: list[Chatflow]) -> Chatflow | None:
        """The oldest that nobody is about to delete: a frozen worker may still do so."""
        if not found:
            return None
        intents = await self._intents.list_for(self._session_id)
        doomed = {item.target_id for item in intents if item.op == "delete"}
        ours = [flow for flow in found if flow.id not in doomed]
        return min(ours, key=lambda flow: (flow.created_date, flow.id), default=None)

    async def _remove_younger_twins(self, ours: Chatflow, tag: str, iteration: int) -> Chatflow:
        found = await self._made_here(tag)
        if ours.id not in {flow.id for flow in found}:
            # The list is older than what was just made, or a person changed it.
            with suppress(FlowiseNotFoundError):
                latest = await self._client.get_chatflow(ours.id)
                if (latest.name, latest.category, latest.flow_data) == (ours.name, ours.category, ours.flow_data):
                    found.append(latest)
        oldest = await self._oldest_of(found) or ours
        for twin in found:
            if twin.id != oldest.id:
                await self._remove_twin(twin, iteration)
        return oldest

    async def _remove_twin(self, twin: Chatflow, iteration: int) -> None:
        # Announced under the lease: whoever owns the run next must not adopt what is deleted under its hands.
        intent = await self._open("delete", iteration=iteration, target_id=twin.id)
        with suppress(FlowiseNotFoundError):
            latest = await self._client.get_chatflow(twin.id)
            if latest == twin:
                await self._client.delete_chatflow(twin.id)
        await self._intents.finish(self._lease, intent.key, status="done", result={"deleted": twin.id})

    async def _read_back(
        self, intent: WriteIntent, response: Chatflow, *, adopted: bool, keep: str | Literal[False] = False
    ) -> Written:
        """Read back, compare with what the server said it stored, and record the outcome.

        `keep` is the reason under which what was read back becomes a version.
        """
        stored = await self._stored(response.id)
        if stored.flow_data != response.flow_data:
            await self._keep_both(intent, response, stored, keep)
            result: dict[str, Any] = {"chatflow_id": stored.id, "expected": payload_sha256(response.flow_data)}
            await self._intents.finish(self._lease, intent.key, status="failed", result=result)
            raise WriteFailedError(
                text("error.flow_differs", name=stored.name),
                hint=text("error.compare_then_iterate"),
                details=result,
            )
        return await self._done(intent, stored, adopted=adopted, keep=keep)

    async def _read_back_change(
        self,
        intent: WriteIntent,
        response: Chatflow,
        *,
        adopted: bool,
        unchanged: bool = False,
        keep: str | Literal[False],
        columns: Collection[str] | None = None,
    ) -> Written | Stale:
        """As `_read_back`, of a changed flow. One whose text or written `columns` someone else has saved meanwhile is
        theirs; that is no error.
        """
        stored = await self._stored(response.id)
        beside = all(getattr(stored, column) == getattr(response, column) for column in columns or ())
        if stored.flow_data == response.flow_data and beside:
            return await self._done(intent, stored, adopted=adopted, unchanged=unchanged, keep=keep)
        found = Base(payload_sha256(stored.flow_data), stored.updated_date)
        if unchanged:
            await self._intents.finish(self._lease, intent.key, status="failed", result={"stale": asdict(found)})
            return Stale(stored.id, found, stored.flow_data)
        await self._keep_both(intent, response, stored, keep)
        conflict = Conflict(chatflow_id=stored.id, ours=payload_sha256(response.flow_data), theirs=found.sha256)
        result = {"conflict": conflict.model_dump(mode="json")}
        await self._intents.finish(self._lease, intent.key, status="done", result=result)
        return Stale(stored.id, found, stored.flow_data, conflict)

    async def _stored(self, chatflow_id: str) -> Chatflow:
        return self._noted(await self._client.get_chatflow(chatflow_id))

    def _noted(self, flow: Chatflow) -> Chatflow:
        self._seen = time.monotonic(), flow
        return flow

    async def _outcome(self, result: Mapping[str, Any]) -> Written | Stale:
        """Read the recorded result of a change that an earlier attempt made."""
        if "conflict" not in result:
            return Written(**result)
        conflict = Conflict.model_validate(result["conflict"])
        current = await self._client.get_chatflow(conflict.chatflow_id)
        found = Base(payload_sha256(current.flow_data), current.updated_date)
        return Stale(current.id, found, current.flow_data, conflict)

    async def _keep_both(
        self, intent: WriteIntent, ours: Chatflow, theirs: Chatflow, reason: str | Literal[False]
    ) -> None:
        """Keep what was written and what someone else saved over it, so that a rollback takes either."""
        if reason:
            await self._keep(ours, reason=reason, iteration=intent.iteration)
            await self._keep(theirs, reason=f"after_{reason}", iteration=intent.iteration)

    async def _done(
        self,
        intent: WriteIntent,
        stored: Chatflow,
        *,
        adopted: bool,
        unchanged: bool = False,
        keep: str | Literal[False] = False,
    ) -> Written:
        if keep:
            await self._keep(stored, reason=keep, iteration=intent.iteration)
        written = Written(
            chatflow_id=stored.id,
            name=stored.name,
            sha256=payload_sha256(stored.flow_data),
            updated_date=stored.updated_date,
            adopted=adopted,
            unchanged=unchanged,
        )
        await self._intents.finish(self._lease, intent.key, status="done", result=asdict(written))
        return written

    async def _keep(self, flow: Chatflow, *, reason: str, iteration: int) -> None:
        """Keep what the flow holds as a version; safe to repeat."""
        await self._versions.record(
            self._session_id,
            instance_id=self._instance_id,
            chatflow_id=flow.id,
            name=flow.name,
            flow_data=flow.flow_data,
            settings=settings_of(flow),
            uploads=kept_settings(flow.chatbot_config),
            updated_date=flow.updated_date,
            reason=reason,
            iteration=iteration,
        )
