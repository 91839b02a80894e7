"""Writes that happen exactly once, whatever is killed, restarted or lost on the way.

Each write is announced by an intent row (committed, fenced by the lease) before the call. Whoever finds an open intent,
or gets an error that proves nothing, does not know whether the call went through, so it looks: a create is found by its
tag in `category` and its text, an update by comparing hashes. What it finds is adopted. A create made in such a
recovery lists once more and removes the younger twin, since the call of the lost worker may have landed in between.

An error that leaves this module says in `details["written"]` what is known of the write: `no`, `unknown`, or `yes` when
Flowise took it but it could not be read back, or was read back otherwise.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar
from uuid import UUID, uuid5

from flowise_dev_agent.contracts.change import Conflict
from flowise_dev_agent.errors import (
    AgentError,
    FlowiseAuthError,
    FlowiseConnectionLostError,
    FlowiseError,
    FlowiseNotFoundError,
    FlowiseRateLimitedError,
    FlowiseRejectedError,
    FlowiseTimeoutError,
    FlowiseUnreachableError,
    StaleBaseError,
    WriteFailedError,
)
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.persistence.flow_versions import Versions
from flowise_dev_agent.persistence.intents import WriteIntent, WriteIntents
from flowise_dev_agent.persistence.lease import Lease
from flowise_dev_agent.publish.guard import authorize
from flowise_dev_agent.publish.tags import draft_tag, flow_tag, without_tag

Role = Literal["flow", "draft"]
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
_KEYS = UUID("6f1c2a52-8f0b-5d3e-9a37-0d6a4c1f2b90")


@dataclass(frozen=True)
class Base:
    """What a flow was when it was last read: the hash of its `flowData` and Flowise's `updatedDate`."""

    sha256: str
    updated_date: str


@dataclass(frozen=True)
class Written:
    """A write as read back from the server.

    `adopted`: found there after a lost answer, not sent again. `unchanged`: the flow held it already, nothing was sent.
    """

    chatflow_id: str
    name: str
    sha256: str
    updated_date: str
    adopted: bool = False
    unchanged: bool = False

    @property
    def base(self) -> Base:
        return Base(sha256=self.sha256, updated_date=self.updated_date)


@dataclass(frozen=True)
class Stale:
    """The flow on the server is no longer the base that the change was made for.

    Nothing was written; or, with a `conflict`, it was, and someone else saved over it before it was read back.
    """

    chatflow_id: str
    found: Base
    flow_data: str = field(repr=False)
    conflict: Conflict | None = None


@dataclass
class _Attempt:
    """What is known of a write while it is made."""

    written: Literal["no", "unknown", "yes"]


class Publisher:
    """Writes of one session to one Flowise server, under the lease of the running run.

    Without a lease (`None`: a rollback asked for over HTTP) intents need an idle session instead.
    """

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
        intent = await self._open("create", iteration=iteration, sha256=sha256, tag=tag, name=name)
        if intent.status == "done" and intent.result:
            return Written(**intent.result)
        row = ChatflowCreate(name=name, flow_data=flow_data, type=kind, category=tag, **(columns or {}))
        with _stated(intent, lost=any(item.may_have_landed for item in earlier)) as attempt:
            flow = await self._oldest_tagged(tag) if earlier else None
            adopted = flow is not None
            if flow is None:
                flow, adopted = await self._send(
                    intent,
                    attempt,
                    lambda: self._client.create_chatflow(row),
                    landed=lambda: self._oldest_tagged(tag),
                )
                if earlier:
                    flow = await self._remove_younger_twins(flow, tag, iteration)
            if adopted and flow.flow_data != flow_data:
                # The same create was made for another payload (an earlier plan): bring it to this one, it is ours.
                attempt.written = "unknown"
                flow = await self._client.update_chatflow(flow.id, flow_data=flow_data)
            attempt.written = "yes"
            return await self._read_back(intent, flow, adopted=adopted, keep=role == "flow" and "create")

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

        `Stale` with a conflict when someone else saved over it at once. What the flow held before and holds after is
        kept as versions; for a draft only both texts of a conflict. Raises as `create` does.
        """
        sha256 = authorize(flow_data, validated_sha256)
        intent = await self._open("update", iteration=iteration, sha256=sha256, target_id=chatflow_id, base=base)
        if intent.status == "done" and intent.result:
            return await self._outcome(intent.result)
        keep = role == "flow" and reason
        with _stated(intent) as attempt:
            current = await self._client.get_chatflow(chatflow_id)
            found = Base(payload_sha256(current.flow_data), current.updated_date)
            if found.sha256 == sha256:
                lost = not intent.is_new or await self._was_lost(chatflow_id, sha256, besides=intent)
                return await self._read_back_change(intent, current, adopted=lost, unchanged=not lost, keep=keep)
            if found != base:
                await self._intents.finish(self._lease, intent.key, status="failed", result={"stale": asdict(found)})
                return Stale(chatflow_id, found, current.flow_data)
            if keep:
                await self._keep(current, reason=f"before_{reason}", iteration=iteration)
                # Flowise has no conditional write: the last look is as late as can be.
                current = await self._client.get_chatflow(chatflow_id)
                latest = Base(payload_sha256(current.flow_data), current.updated_date)
                if latest not in (found, Base(sha256, latest.updated_date)):
                    stale = {"stale": asdict(latest)}
                    await self._intents.finish(self._lease, intent.key, status="failed", result=stale)
                    return Stale(chatflow_id, latest, current.flow_data)

            async def landed() -> Chatflow | None:
                there = await self._client.get_chatflow(chatflow_id)
                return there if payload_sha256(there.flow_data) == sha256 else None

            response, adopted = await self._send(
                intent,
                attempt,
                lambda: self._client.update_chatflow(chatflow_id, flow_data=flow_data),
                landed=landed,
            )
            attempt.written = "yes"
            return await self._read_back_change(intent, response, adopted=adopted, keep=keep)

    async def restore(self, *, chatflow_id: str, flow_data: str, sha256: str, iteration: int) -> Written:
        """Write a kept version back, whatever the flow holds now (that is kept as a version of its own).

        Raises:
            HashMismatchError: `flow_data` is not the text that was kept under `sha256`.
            StaleBaseError: the flow changed at this very moment.
            FlowiseError, WriteFailedError: as for `create`.
        """
        current = await self._client.get_chatflow(chatflow_id)
        if payload_sha256(current.flow_data) == sha256 and not await self._was_lost(chatflow_id, sha256):
            await self._keep(current, reason="rollback", iteration=iteration)
            return Written(current.id, current.name, sha256, current.updated_date, unchanged=True)
        result = await self.update(
            chatflow_id=chatflow_id,
            flow_data=flow_data,
            validated_sha256=sha256,
            base=Base(payload_sha256(current.flow_data), current.updated_date),
            iteration=iteration,
            reason="rollback",
        )
        if isinstance(result, Stale):
            raise stale_base(current.name, result, undone="rolled back")
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

        def accepted(flow: Chatflow) -> bool:
            return self._tag not in flow.tags and bool(flow.deployed) == deploy

        async def landed() -> Chatflow | None:
            there = await self._client.get_chatflow(chatflow_id)
            return there if accepted(there) else None

        with _stated(intent) as attempt:
            current = await self._client.get_chatflow(chatflow_id)
            if not accepted(current):
                category = without_tag(current.category, self._tag)
                current, _ = await self._send(
                    intent,
                    attempt,
                    lambda: self._client.update_chatflow(chatflow_id, category=category, deployed=deploy),
                    landed=landed,
                )
            attempt.written = "yes"
            for twin in await self._made_here(self._tag):
                # The tag is off ours, so this one came from a call whose worker was lost.
                await self._remove_twin(twin, iteration)
            return await self._read_back(intent, current, adopted=False)

    async def delete_created(self, *, chatflow_id: str, iteration: int, role: Role = "flow") -> None:
        """Delete the chatflow or draft that this session made. One that lost its tag is not ours and stays.

        Raises:
            WriteFailedError: the flow no longer carries the tag.
        """
        intent = await self._open("delete", iteration=iteration, target_id=chatflow_id)
        if intent.status == "done":
            return

        async def landed() -> Literal[True] | None:
            try:
                await self._client.get_chatflow(chatflow_id)
            except FlowiseNotFoundError:
                return True
            return None

        async def delete() -> Literal[True]:
            await self._client.delete_chatflow(chatflow_id)
            return True

        with _stated(intent) as attempt:
            try:
                current = await self._client.get_chatflow(chatflow_id)
            except FlowiseNotFoundError:
                pass
            else:
                if self._tags[role] not in current.tags:
                    raise WriteFailedError(
                        f"Chatflow '{current.name}' was not deleted: it no longer carries this session's tag in its "
                        "category, so it may be in use.",
                        hint="Delete it in Flowise if it is not needed.",
                        details={"chatflow_id": chatflow_id},
                    )
                intents = await self._intents.list_for(self._session_id)
                if payload_sha256(current.flow_data) not in {item.payload_sha256 for item in intents}:
                    # A person changed it.
                    await self._keep(current, reason="before_delete", iteration=iteration)
                await self._send(intent, attempt, delete, landed=landed)
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
        attempt: _Attempt,
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
        """Whether an earlier update of this flow to this text has an unknown outcome."""
        return any(
            item.status == "open"
            and (item.op, item.target_id, item.payload_sha256) == ("update", chatflow_id, sha256)
            and (besides is None or item.key != besides.key)
            for item in await self._intents.list_for(self._session_id)
        )

    async def _made_here(self, tag: str) -> list[Chatflow]:
        """What carries the tag, a name and a text that this session announced to write. The tag alone proves nothing:
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
        stored = await self._client.get_chatflow(response.id)
        if stored.flow_data != response.flow_data:
            await self._keep_both(intent, response, stored, keep)
            result: dict[str, Any] = {"chatflow_id": stored.id, "expected": payload_sha256(response.flow_data)}
            await self._intents.finish(self._lease, intent.key, status="failed", result=result)
            raise WriteFailedError(
                f"Chatflow '{stored.name}' on Flowise differs from what was just written; someone may be editing it.",
                hint="Open it in Flowise and compare, then iterate or roll back.",
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
    ) -> Written | Stale:
        """As `_read_back`, of a changed flow. One that someone else has saved meanwhile is theirs; that is no error."""
        stored = await self._client.get_chatflow(response.id)
        if stored.flow_data == response.flow_data:
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

    async def _outcome(self, result: Mapping[str, Any]) -> Written | Stale:
        """How a change ended that an earlier attempt has made."""
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
            updated_date=flow.updated_date,
            reason=reason,
            iteration=iteration,
        )


def stale_base(name: str, stale: Stale, *, undone: str = "written") -> StaleBaseError:
    """The error for a change that nobody can be asked about."""
    details: dict[str, Any] = {"chatflow_id": stale.chatflow_id, "written": "no"}
    if stale.conflict is None:
        return StaleBaseError(
            f"'{name}' was changed on Flowise meanwhile; nothing was {undone}.",
            hint="Look at it in Flowise and ask again.",
            details=details,
        )
    return StaleBaseError(
        f"'{name}' was saved by someone else right after it was {undone}, and holds their text.",
        hint="Both texts are versions of this session: compare them and roll back to the right one.",
        details=details | {"written": "yes", "conflict": stale.conflict.model_dump(mode="json")},
    )


_STATEMENTS: Mapping[str, str] = {
    "no": "Nothing was changed on Flowise.",
    "unknown": "It is not known whether Flowise did it.",
    "yes": "Flowise did it, but it could not be read back.",
}


@contextmanager
def _stated(intent: WriteIntent, *, lost: bool = False) -> Generator[_Attempt]:
    """Around a write: an error that ends it says what is known of it. `lost`: an earlier try has an unknown outcome."""
    attempt = _Attempt("unknown" if lost or not intent.is_new else "no")
    try:
        yield attempt
    except AgentError as error:
        error.details["written"] = attempt.written
        if not isinstance(error, WriteFailedError):
            error.message = f"{error.message} {_STATEMENTS[attempt.written]}"
            if attempt.written != "no":
                error.hint = "Try again: Flowise is looked at first, and nothing is written twice."
        raise
