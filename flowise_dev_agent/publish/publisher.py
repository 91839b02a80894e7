"""Writes that happen exactly once, whatever is killed, restarted or lost on the way.

Each write is announced by an intent row (committed, fenced by the lease) before the call. A worker that finds an open
intent does not know whether the call went through, so it looks first: a create is found by its tag in `category`, an
update by comparing hashes. What it finds is adopted. A create made in such a recovery lists once more and removes the
younger twin, since the call of the lost worker may have landed in between.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID, uuid5

from flowise_dev_agent.errors import FlowiseError, FlowiseNotFoundError, WriteFailedError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.patch.model.hashing import payload_sha256
from flowise_dev_agent.persistence.intents import WriteIntent, WriteIntents
from flowise_dev_agent.persistence.lease import Lease
from flowise_dev_agent.publish.guard import authorize
from flowise_dev_agent.publish.tags import draft_tag, flow_tag, without_tag

Role = Literal["flow", "draft"]
_T = TypeVar("_T")
_KEYS = UUID("6f1c2a52-8f0b-5d3e-9a37-0d6a4c1f2b90")


@dataclass(frozen=True)
class Base:
    """What a flow was when it was last read: the hash of its `flowData` and Flowise's `updatedDate`."""

    sha256: str
    updated_date: str


@dataclass(frozen=True)
class Written:
    """A write as read back from the server. `adopted`: found there after a lost answer, not sent again."""

    chatflow_id: str
    name: str
    sha256: str
    updated_date: str
    adopted: bool = False

    @property
    def base(self) -> Base:
        return Base(sha256=self.sha256, updated_date=self.updated_date)


@dataclass(frozen=True)
class Stale:
    """The flow on the server is no longer the base that the change was made for; nothing was written."""

    chatflow_id: str
    found: Base
    flow_data: str = field(repr=False)


class VersionLog(Protocol):
    """Where the states of a flow before and after a write are kept."""

    async def record(self, flow: Chatflow, *, reason: str, iteration: int) -> None:
        """Keep this state; safe to repeat."""
        ...


class Publisher:
    """Writes of one session to one Flowise server, under the lease of the running run.

    Without a lease (`None`: a rollback asked for over HTTP) intents need an idle session instead.
    """

    def __init__(
        self,
        *,
        session_id: UUID,
        client: FlowiseClient,
        intents: WriteIntents,
        lease: Lease | None,
        versions: VersionLog,
    ) -> None:
        self._session_id = session_id
        self._client = client
        self._intents = intents
        self._lease = lease
        self._versions = versions
        self._tag = flow_tag(str(session_id))
        self._tags: Mapping[Role, str] = {"flow": self._tag, "draft": draft_tag(str(session_id))}

    async def create(
        self,
        *,
        name: str,
        flow_data: str,
        kind: str,
        validated_sha256: str | None,
        iteration: int,
        role: Role = "flow",
        columns: Mapping[str, Any] | None = None,
    ) -> Written:
        """Create the session's chatflow or draft, undeployed, private and tagged, or adopt what an earlier try made.

        `columns` are further ones of `ChatflowCreate`.

        Raises:
            ValidationRequiredError, HashMismatchError: see `guard.authorize`.
            FlowiseError: the server refused, or the outcome is unknown (transient: the next try will look first).
            WriteFailedError: the server holds something else than it was sent.
        """
        sha256 = authorize(flow_data, validated_sha256)
        tag = self._tags[role]
        intents = await self._intents.list_for(self._session_id)
        earlier = [item for item in intents if item.op == "create" and item.tag == tag]
        intent = await self._open("create", iteration=iteration, sha256=sha256, tag=tag)
        if intent.status == "done" and intent.result:
            return Written(**intent.result)
        flow = await self._oldest_tagged(tag) if earlier else None
        adopted = flow is not None
        if flow is None:
            row = ChatflowCreate(name=name, flow_data=flow_data, type=kind, category=tag, **(columns or {}))
            flow, adopted = await self._post(intent, row, tag)
            if earlier:
                flow = await self._remove_younger_twins(flow, tag)
        if adopted and flow.flow_data != flow_data:
            # The same create was made for another payload (an earlier plan): bring it to this one, it is ours.
            flow = await self._client.update_chatflow(flow.id, flow_data=flow_data)
        return await self._confirmed(intent, flow, adopted=adopted, keep=role == "flow" and "create")

    async def update(
        self,
        *,
        chatflow_id: str,
        flow_data: str,
        validated_sha256: str | None,
        base: Base,
        iteration: int,
        role: Role = "flow",
        reason: str = "update",
    ) -> Written | Stale:
        """Replace `flowData` if the server still holds `base`; else `Stale`, and nothing is written.

        What the flow held before and holds after is kept as versions; not so for a draft.
        """
        sha256 = authorize(flow_data, validated_sha256)
        intent = await self._open("update", iteration=iteration, sha256=sha256, target_id=chatflow_id, base=base)
        if intent.status == "done" and intent.result:
            return Written(**intent.result)
        current = await self._client.get_chatflow(chatflow_id)
        found = Base(payload_sha256(current.flow_data), current.updated_date)
        keep = role == "flow" and reason
        if found.sha256 == sha256:
            return await self._confirmed(intent, current, adopted=True, keep=keep)
        if found != base:
            await self._intents.finish(self._lease, intent.key, status="failed", result={"stale": asdict(found)})
            return Stale(chatflow_id, found, current.flow_data)
        if keep:
            await self._versions.record(current, reason=f"before_{reason}", iteration=iteration)
        response = await self._guarded_call(
            intent, lambda: self._client.update_chatflow(chatflow_id, flow_data=flow_data)
        )
        return await self._confirmed(intent, response, adopted=False, keep=keep)

    async def restore(self, *, chatflow_id: str, flow_data: str, sha256: str, iteration: int) -> Written:
        """Write a kept version back, whatever the flow holds now (that is kept as a version of its own).

        Raises:
            HashMismatchError: `flow_data` is not the text that was kept under `sha256`.
            WriteFailedError: the flow changed at this very moment, or the read-back differs.
        """
        current = await self._client.get_chatflow(chatflow_id)
        result = await self.update(
            chatflow_id=chatflow_id,
            flow_data=flow_data,
            validated_sha256=sha256,
            base=Base(payload_sha256(current.flow_data), current.updated_date),
            iteration=iteration,
            reason="rollback",
        )
        if isinstance(result, Stale):
            raise WriteFailedError(
                f"Chatflow '{current.name}' was changed at this very moment; nothing was rolled back.",
                hint="Look at it in Flowise and roll back again.",
                details={"chatflow_id": chatflow_id},
            )
        return result

    async def check(self, chatflow_id: str, base: Base) -> Stale | None:
        """`Stale` when the server no longer holds `base`."""
        current = await self._client.get_chatflow(chatflow_id)
        found = Base(payload_sha256(current.flow_data), current.updated_date)
        return None if found == base else Stale(chatflow_id, found, current.flow_data)

    async def accept(self, *, chatflow_id: str, deploy: bool, iteration: int) -> Written:
        """End the trial: take the session's tag off and deploy as the person said. Safe to repeat."""
        intent = await self._open("deploy", iteration=iteration, target_id=chatflow_id)
        if intent.status == "done" and intent.result:
            return Written(**intent.result)
        current = await self._client.get_chatflow(chatflow_id)
        category = without_tag(current.category, self._tag)
        if self._tag in current.tags or bool(current.deployed) != deploy:
            current = await self._guarded_call(
                intent, lambda: self._client.update_chatflow(chatflow_id, category=category, deployed=deploy)
            )
        for twin in await self._client.find_chatflow_by_category_tag(self._tag):
            # The tag is off ours, so what still carries it came from a call whose worker was lost.
            await self._client.delete_chatflow(twin.id)
        return await self._confirmed(intent, current, adopted=False)

    async def delete_created(self, *, chatflow_id: str, iteration: int, role: Role = "flow") -> None:
        """Delete the chatflow or draft that this session made. One that lost its tag is not ours and stays.

        Raises:
            WriteFailedError: the flow no longer carries the tag.
        """
        intent = await self._open("delete", iteration=iteration, target_id=chatflow_id)
        if intent.status == "done":
            return
        try:
            current = await self._client.get_chatflow(chatflow_id)
        except FlowiseNotFoundError:
            await self._intents.finish(self._lease, intent.key, status="done", result={"deleted": chatflow_id})
            return
        if self._tags[role] not in current.tags:
            raise WriteFailedError(
                f"Chatflow '{current.name}' was not deleted: it no longer carries this session's tag in its category, "
                "so it may be in use.",
                hint="Delete it in Flowise if it is not needed.",
                details={"chatflow_id": chatflow_id},
            )
        await self._guarded_call(intent, lambda: self._client.delete_chatflow(chatflow_id))
        await self._intents.finish(self._lease, intent.key, status="done", result={"deleted": chatflow_id})

    # --- steps ---------------------------------------------------------------------------------------------------

    async def _open(
        self,
        op: str,
        *,
        iteration: int,
        sha256: str | None = None,
        target_id: str | None = None,
        base: Base | None = None,
        tag: str | None = None,
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
        )

    async def _post(self, intent: WriteIntent, row: ChatflowCreate, tag: str) -> tuple[Chatflow, bool]:
        """POST; after any error look for the row, since an error does not prove that nothing was written."""
        try:
            created = await self._client.create_chatflow(row)
        except FlowiseError as error:
            found = await self._oldest_tagged(tag)
            if found is not None:
                return found, True
            if not error.transient:
                await self._intents.finish(self._lease, intent.key, status="failed", result=error.as_problem())
            raise
        return created, False

    async def _guarded_call(self, intent: WriteIntent, call: Callable[[], Awaitable[_T]]) -> _T:
        """A write to a known id: a refusal closes the intent, an unknown outcome leaves it open for the next try."""
        try:
            return await call()
        except FlowiseError as error:
            if not error.transient:
                await self._intents.finish(self._lease, intent.key, status="failed", result=error.as_problem())
            raise

    async def _oldest_tagged(self, tag: str) -> Chatflow | None:
        found = await self._client.find_chatflow_by_category_tag(tag)
        return min(found, key=lambda flow: (flow.created_date, flow.id)) if found else None

    async def _remove_younger_twins(self, ours: Chatflow, tag: str) -> Chatflow:
        found = await self._client.find_chatflow_by_category_tag(tag)
        oldest, *younger = sorted(found or [ours], key=lambda flow: (flow.created_date, flow.id))
        for twin in younger:
            await self._client.delete_chatflow(twin.id)
        return oldest

    async def _confirmed(
        self, intent: WriteIntent, response: Chatflow, *, adopted: bool, keep: str | Literal[False] = False
    ) -> Written:
        """Read back, compare with what the server said it stored, and record the outcome.

        `keep` is the reason under which what was read back becomes a version.
        """
        stored = await self._client.get_chatflow(response.id)
        if stored.flow_data != response.flow_data:
            result: dict[str, Any] = {"chatflow_id": stored.id, "expected": payload_sha256(response.flow_data)}
            await self._intents.finish(self._lease, intent.key, status="failed", result=result)
            raise WriteFailedError(
                f"Chatflow '{stored.name}' on Flowise differs from what was just written; someone may be editing it.",
                hint="Open it in Flowise and compare, then iterate or roll back.",
                details=result,
            )
        if keep:
            await self._versions.record(stored, reason=keep, iteration=intent.iteration)
        written = Written(
            chatflow_id=stored.id,
            name=stored.name,
            sha256=payload_sha256(stored.flow_data),
            updated_date=stored.updated_date,
            adopted=adopted,
        )
        await self._intents.finish(self._lease, intent.key, status="done", result=asdict(written))
        return written
