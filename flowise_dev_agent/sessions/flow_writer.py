"""Writes that need no plan: imports, applied changes, promotions.

Each is a session of its own. The request is checked at once; what passes is stored with the session, and a worker
writes it under a lease. So it survives the end of any process, is done exactly once, and has versions like any other
write.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from uuid import UUID, uuid4

from langgraph.runtime import RunControl

from flowise_dev_agent.errors import (
    InvalidInputError,
    PatchError,
    StaleBaseError,
    VersionNotFoundError,
    WriteFailedError,
)
from flowise_dev_agent.flowise.flow_settings import settings_of, with_settings
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.uploads import as_kept
from flowise_dev_agent.flows.proposals import Proposal, Proposals
from flowise_dev_agent.flows.views import difference
from flowise_dev_agent.patch import Finding, GraphIR, errors, payload_sha256
from flowise_dev_agent.persistence import Blobs, Claim, SessionRow, Sessions, Versions, WriteIntents
from flowise_dev_agent.persistence.read_model import public_status
from flowise_dev_agent.persistence.runs import RunResult
from flowise_dev_agent.persistence.sessions import NewSession
from flowise_dev_agent.publish import Base, Publisher, Stale, Written, stale_base
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.schemas.base import view_of
from flowise_dev_agent.schemas.change import Conflict, Difference
from flowise_dev_agent.schemas.etags import Expected
from flowise_dev_agent.schemas.event_data import DoneData, WriteData
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.schemas.flow_writes import (
    ApplyToFlow,
    BaseFlow,
    FlowSettings,
    FlowWrite,
    FlowWriteResult,
    ImportFlow,
    PromoteFlow,
    RestoreVersion,
    WriteStatus,
)
from flowise_dev_agent.sessions.approvals import ApprovalRules
from flowise_dev_agent.sessions.emission import Emit, new_event
from flowise_dev_agent.sessions.service import check_key, key_reused
from flowise_dev_agent.texts import text

_OPERATIONS: Final = frozenset({"import", "apply", "promote", "restore"})
#: Status of a session's row -> status of the write.
_STATUS: Final[Mapping[str, WriteStatus]] = {
    "queued": "in_progress",
    "running": "in_progress",
    "completed": "completed",
    "cancelled": "cancelled",
}
_PHASE: Final = "apply"
_SHOWN: Final = 5
_MOST_WARNINGS: Final = 50


def is_flow_write(request: Mapping[str, Any]) -> bool:
    """True if a session with this request is a write without a plan."""
    return request.get("operation") in _OPERATIONS


class FlowWriter:
    """Accepts writes for clients, and executes them for the worker.

    Each write method raises what `Proposals` raises; InvalidInputError for a flow that the server could not run
    (nothing is written then); ApprovalNeededError if a rule requires a second person; SessionConflictError if the
    idempotency key was used for another request.
    """

    def __init__(
        self,
        *,
        proposals: Proposals,
        sessions: Sessions,
        blobs: Blobs,
        intents: WriteIntents,
        versions: Versions,
        instances: Instances,
        approvals: ApprovalRules,
    ) -> None:
        self._proposals = proposals
        self._sessions = sessions
        self._blobs = blobs
        self._intents = intents
        self._versions = versions
        self._instances = instances
        self._approvals = approvals

    async def import_flow(
        self, body: ImportFlow, *, instance: str | None = None, idempotency_key: str | None = None
    ) -> FlowWriteResult:
        """Write a new, undeployed flow."""
        return await self._take(
            body, ("import", instance), lambda: self._proposals.import_flow(body, instance), idempotency_key
        )

    async def apply(
        self,
        chatflow_id: str,
        body: ApplyToFlow,
        *,
        instance: str | None = None,
        idempotency_key: str | None = None,
        expected: Expected | None = None,
    ) -> FlowWriteResult:
        """Change a flow, or replace it."""
        what = ("apply", instance, chatflow_id)
        return await self._take(
            body, what, lambda: self._proposals.apply(chatflow_id, body, instance, expected), idempotency_key
        )

    async def promote(
        self,
        chatflow_id: str,
        body: PromoteFlow,
        *,
        idempotency_key: str | None = None,
        expected: Expected | None = None,
    ) -> FlowWriteResult:
        """Copy a flow to another instance, or over a flow there."""
        what = ("promote", chatflow_id)
        return await self._take(
            body, what, lambda: self._proposals.promote(chatflow_id, body, expected), idempotency_key
        )

    async def restore(
        self,
        chatflow_id: str,
        version: int,
        body: RestoreVersion,
        *,
        idempotency_key: str | None = None,
        expected: Expected | None = None,
    ) -> FlowWriteResult:
        """Write a version back as it was, with whatever is wrong with it; a flow that is gone becomes a new one.

        Raises VersionNotFoundError.
        """

        async def propose() -> Proposal:
            kept = await self._versions.with_number(chatflow_id, version)
            if kept is None:
                raise VersionNotFoundError(
                    text("error.no_version", version=f"v{version}"), hint=text("error.versions_hint")
                )
            return await self._proposals.restore(kept, await self._versions.text(kept), expected)

        return await self._take(body, ("restore", chatflow_id, str(version)), propose, idempotency_key)

    async def result(self, session_id: UUID) -> FlowWriteResult:
        """Result of a session's write, or its state while it is in progress.

        Raises StaleBaseError or WriteFailedError when it failed. `details` hold the session, the code of the cause and,
        in `written`, the known facts about the flow on the server (see `publish.publisher`).
        """
        return _result(await self._sessions.get(session_id))

    async def _take(
        self,
        body: ImportFlow | ApplyToFlow | PromoteFlow | RestoreVersion,
        what: tuple[str | None, ...],
        propose: Callable[[], Awaitable[Proposal]],
        key: str | None,
    ) -> FlowWriteResult:
        check_key(key)
        fingerprint = hashlib.sha256(f"{what}{body.model_dump_json(exclude_unset=True)}".encode()).hexdigest()
        if key and (earlier := await self._sessions.by_idempotency_key(key)):
            return await self._repeated(earlier, fingerprint)
        proposal = await propose()
        findings = await self._proposals.check(proposal)
        problems = errors(findings)
        title = masked(clean_text(proposal.title))
        if body.dry_run:
            write = _write(proposal, findings)
            shown = await asyncio.to_thread(_difference, proposal)
            # An import writes only the caller's content; a flow on the server may hold content of others.
            flow_data = proposal.flow_data if proposal.operation != "apply" else None
            return _shown(write, proposal.instance_id, "checked").model_copy(
                update={
                    "valid": proposal.operation == "restore" or not problems,
                    "findings": findings,
                    "difference": shown,
                    "flow_data": flow_data,
                }
            )
        # A version was there before: to restore it must not depend on today's rules.
        if problems and proposal.operation != "restore":
            raise InvalidInputError(
                text("error.flow_not_written", problems="; ".join(finding.text for finding in problems[:_SHOWN])),
                hint=text("error.flow_not_written_hint"),
                details={"findings": [finding.model_dump(mode="json") for finding in problems]},
            )
        self._approvals.check_direct(proposal.base.id if proposal.base else None, proposal.name)
        proposal = await self._proposals.with_made(proposal)
        write = _write(proposal, findings)
        row = await self._sessions.start(
            NewSession(
                id=uuid4(),
                name=title[:120],
                requirement=title,
                request=write.model_dump(mode="json"),
                instance_id=proposal.instance_id,
                endpoint=self._instances.endpoint(proposal.instance_id),
                idempotency_key=key,
                fingerprint=fingerprint,
                operation_mode=write.operation,
                texts=(proposal.flow_data,),
                action=write.operation,
            )
        )
        if row is None:
            # A concurrent request with the same idempotency key was stored first.
            row = await self._sessions.by_idempotency_key(key or "")
            if row is None:
                raise key_reused()
            return await self._repeated(row, fingerprint)
        return _result(row)

    async def _repeated(self, row: SessionRow, fingerprint: str) -> FlowWriteResult:
        """Answer a repeated request with the stored result; a failed write is retried."""
        if row.fingerprint != fingerprint:
            raise key_reused()
        if await self._sessions.retry(row.id):
            row = await self._sessions.get(row.id)
        return _result(row)

    # --- the worker's part -------------------------------------------------------------------------------------------

    def execution(self, claim: Claim, emit: Emit) -> "FlowWriteExecution":
        """Prepare one attempt at the write of a session."""
        session = claim.session
        client = self._instances.client_at(session.instance_id, session.endpoint)
        publisher = Publisher(
            session_id=session.id,
            instance_id=session.instance_id,
            client=client,
            intents=self._intents,
            lease=claim.lease,
            versions=self._versions,
        )
        return FlowWriteExecution(FlowWrite.model_validate(session.request), publisher, self._blobs, emit)


class FlowWriteExecution:
    """Makes the write that the session's request describes, unless an earlier attempt has made it."""

    last_node: str | None = None

    def __init__(self, write: FlowWrite, publisher: Publisher, blobs: Blobs, emit: Emit) -> None:
        self._write = write
        self._publisher = publisher
        self._blobs = blobs
        self._emit = emit
        self._chatflow_id = write.base.chatflow_id if write.base else None
        self._conflicts: list[Conflict] = []

    async def drive(self, control: RunControl) -> RunResult:
        """Make the write, see `Execution.drive`. Raises what `Publisher` raises, and StaleBaseError."""
        del control  # one step, which the drain waits for
        write = self._write
        flow_data = await self._blobs.get(write.sha256)
        written = await (self._update(write.base, flow_data) if write.base else self._create(flow_data))
        verb = "Unchanged" if written.unchanged else "Changed" if write.base else "Created"
        data = WriteData(chatflow_id=written.chatflow_id, flow=written.sha256, source=write.source)
        self._emit(NodeEvent(None, _PHASE, f"{verb}: '{written.name}'", data))
        done = DoneData(outcome="accepted", chatflow_id=written.chatflow_id)
        change = {
            "before": write.sha256 if written.unchanged else write.base.sha256 if write.base else None,
            "after": write.sha256,
            "ops": [op.model_dump(mode="json") for op in write.ops or []],
        }
        return RunResult(
            status="completed",
            event=new_event(done, status=public_status("completed"), summary="Ended: accepted"),
            columns={**await self.columns(), "outcome": "accepted", "change": change},
        )

    async def columns(self) -> Mapping[str, Any]:
        """Columns of the session's row that are known at any point of the write."""
        conflicts = [conflict.model_dump(mode="json") for conflict in self._conflicts]
        return {"phase": _PHASE, "chatflow_id": self._chatflow_id, "conflicts": conflicts or None}

    async def _create(self, flow_data: str) -> Written:
        write = self._write
        made = await self._publisher.create(
            name=write.name,
            flow_data=flow_data,
            kind=write.type,
            validated_sha256=write.sha256,
            iteration=0,
            columns=write.settings.columns,
        )
        self._chatflow_id = made.chatflow_id
        return await self._publisher.accept(chatflow_id=made.chatflow_id, deploy=False, iteration=0)

    async def _update(self, base: BaseFlow, flow_data: str) -> Written:
        if self._write.operation == "restore":
            return await self._publisher.restore(
                chatflow_id=base.chatflow_id,
                flow_data=flow_data,
                sha256=self._write.sha256,
                iteration=0,
                name=self._write.name,
                settings=None if self._write.kept is None else as_kept(self._write.kept),
                columns=self._write.columns,
                base=Base(base.sha256, base.updated_date),
            )
        result = await self._publisher.update(
            chatflow_id=base.chatflow_id,
            flow_data=flow_data,
            validated_sha256=self._write.sha256,
            base=Base(base.sha256, base.updated_date),
            iteration=0,
            # In versions, "promote" means that a draft goes live.
            reason="promotion" if self._write.operation == "promote" else self._write.operation,
            columns=self._write.columns,
        )
        if isinstance(result, Stale):
            self._conflicts = [result.conflict] if result.conflict else []
            raise stale_base(self._write.name, result)
        return result


def _write(proposal: Proposal, findings: list[Finding]) -> FlowWrite:
    warnings = [finding for finding in findings if finding.severity == "warning"][:_MOST_WARNINGS]
    return view_of(FlowWrite, proposal, sha256=_sha256(proposal.flow_data), base=_base(proposal), findings=warnings)


def _base(proposal: Proposal) -> BaseFlow | None:
    row = proposal.base
    if row is None:
        return None
    return BaseFlow(chatflow_id=row.id, sha256=payload_sha256(row.flow_data), updated_date=row.updated_date)


def _sha256(flow_data: str) -> str:
    try:
        return payload_sha256(flow_data)
    except UnicodeEncodeError:
        raise InvalidInputError(text("error.lone_surrogates")) from None


def _difference(proposal: Proposal) -> Difference:
    base = proposal.base
    found = Difference(**vars(difference(_graph(base and base.flow_data), _graph(proposal.flow_data))))
    if base is None:
        return with_settings(found, FlowSettings(), proposal.settings)
    return with_settings(found, settings_of(base), settings_of(base.model_copy(update=proposal.columns)))


def _graph(flow_data: str | None) -> GraphIR:
    """Parse a flow; an empty graph if it cannot be parsed."""
    try:
        return GraphIR.from_flow_data(flow_data) if flow_data else GraphIR.empty()
    except PatchError:
        return GraphIR.empty()


def _shown(
    write: FlowWrite,
    instance_id: str,
    status: WriteStatus,
    *,
    session_id: UUID | None = None,
    chatflow_id: str | None = None,
) -> FlowWriteResult:
    return view_of(
        FlowWriteResult,
        write,
        status=status,
        session_id=session_id,
        instance=instance_id,
        chatflow_id=chatflow_id or (write.base.chatflow_id if write.base else None),
        created=write.base is None,
    )


def _result(row: SessionRow) -> FlowWriteResult:
    if row.status == "failed":
        raise _failure(row)
    write, status = FlowWrite.model_validate(row.request), _STATUS[row.status]
    return _shown(write, row.instance_id, status, session_id=row.id, chatflow_id=row.chatflow_id)


def _failure(row: SessionRow) -> WriteFailedError:
    problem: Mapping[str, Any] = row.error or {}
    cause = str(problem.get("code", WriteFailedError.code))
    details = {"written": "unknown", **(problem.get("details") or {}), "cause": cause, "session_id": str(row.id)}
    hint = f"Retry session {row.id}: it looks at Flowise first and writes nothing twice."
    kind = StaleBaseError if cause == StaleBaseError.code else WriteFailedError
    return kind(
        str(problem.get("detail", "The write failed.")),
        hint=problem.get("hint") if details["written"] == "no" else hint,
        details=details,
    )
