"""Versions of the flows that sessions wrote: list, compare, roll back."""

import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Final, get_args
from uuid import UUID, uuid4

from flowise_dev_agent.caller import acting_for, answering, from_stored
from flowise_dev_agent.errors import (
    AgentError,
    DatabaseUnavailableError,
    FlowiseError,
    FlowiseNotFoundError,
    InvalidInputError,
    SecretInTextError,
    SessionConflictError,
    VersionNotFoundError,
)
from flowise_dev_agent.flowise.flow_settings import (
    beside_uploads,
    columns_for,
    recorded_before,
    settings_of,
    with_settings,
)
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.patch import GraphIR, payload_sha256
from flowise_dev_agent.persistence import FlowVersion, SessionRow, Sessions, Versions, WriteIntent, WriteIntents
from flowise_dev_agent.persistence.flow_versions import WATCHED, KeptVersion, NumberedRow
from flowise_dev_agent.publish import Base, Publisher, Stale, changes, stale_base
from flowise_dev_agent.redaction import holds_secret, masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import view_of
from flowise_dev_agent.schemas.etags import Expected, session_etag
from flowise_dev_agent.schemas.event_data import WriteData
from flowise_dev_agent.schemas.versions import (
    NumberedVersion,
    NumberedVersions,
    RolledBack,
    TakenBack,
    VersionDiff,
    VersionList,
    VersionView,
)
from flowise_dev_agent.sessions.emission import new_event
from flowise_dev_agent.texts import text

logger = logging.getLogger(__name__)

#: Reasons of versions that a session or the watch saw and did not write.
_SEEN: Final = ("before_", "after_", WATCHED)
_TITLE_CHARS: Final = 120
#: A call has certainly ended by then.
_GRACE_SECS: Final = 600.0
_BATCH: Final = 20


class FlowVersions:
    """The versions of all sessions. Raises SessionNotFoundError and VersionNotFoundError.

    A rollback is announced before it writes and ended when its session tells of it. One that stays open, since its
    process or an answer was lost, is finished by `pass_once`.
    """

    def __init__(
        self,
        *,
        sessions: Sessions,
        versions: Versions,
        intents: WriteIntents,
        instances: Instances,
    ) -> None:
        self._sessions = sessions
        self._versions = versions
        self._intents = intents
        self._instances = instances

    async def of_session(self, session_id: UUID) -> VersionList:
        """The session's versions, oldest first."""
        await self._sessions.get(session_id)
        rows = await self._versions.of_session(session_id)
        return VersionList(versions=[_view(row, current=row is rows[-1]) for row in rows])

    async def of_chatflow(self, chatflow_id: str, *, limit: int = 100) -> VersionList:
        """The versions of a chatflow across sessions, newest first."""
        rows = await self._versions.of_chatflow(chatflow_id, limit=limit)
        return VersionList(versions=[_view(row, current=index == 0, by=row.by) for index, row in enumerate(rows)])

    async def numbered(self, chatflow_id: str, *, limit: int, before: int | None = None) -> NumberedVersions:
        """Versions of a chatflow with their numbers, newest first."""
        rows = await self._versions.numbered(chatflow_id, limit=limit + 1, before=before)
        groups = [list(group) for _, group in groupby(rows, key=lambda row: row.version)]
        shown = groups[:limit]
        return NumberedVersions(
            versions=[_numbered(group) for group in shown],
            next_before=shown[-1][0].version if len(groups) > limit else None,
        )

    async def bookmark(self, chatflow_id: str, version: int, note: str | None) -> None:
        """Mark a version, or remove its mark. Raises SecretInTextError."""
        if note is not None and holds_secret(note):
            raise SecretInTextError(text("error.secret_in_note"), details={"field": "note"})
        if await self._versions.with_number(chatflow_id, version) is None:
            raise VersionNotFoundError(
                text("error.no_version", version=f"v{version}"),
                hint=text("error.versions_hint"),
            )
        await self._versions.bookmark(chatflow_id, version, note)

    async def diff(self, session_id: UUID, from_label: str | None, to_label: str | None) -> VersionDiff:
        """Difference between two versions of a session; by default between the first and the last one."""
        await self._sessions.get(session_id)
        rows = await self._versions.of_session(session_id)
        older = _labelled(rows, from_label) if from_label else _any(rows)[0]
        newer = _labelled(rows, to_label) if to_label else _any(rows)[-1]
        before, after = [GraphIR.from_flow_data(await self._versions.text(row)) for row in (older, newer)]
        change = with_settings(changes(before, after), older.flow_settings, newer.flow_settings)
        return VersionDiff(
            from_label=older.label,
            to_label=newer.label,
            text=change.text,
            change=change.model_dump(mode="json"),
        )

    async def rollback(
        self,
        session_id: UUID,
        label: str | None,
        *,
        created: TakenBack | None = None,
        expected: Expected | None = None,
    ) -> RolledBack:
        """Write a version back through the guarded write path, with read-back; by default the first one.

        `created` takes back the flow that the session made, unless it was changed since.

        Raises:
            InvalidInputError: the session made the flow, and the call does not say what to do with it.
            PreconditionFailedError: the session is not in an expected state.
            SessionConflictError: the session is at work.
            ServerChangedError: it was on another server.
            FlowiseError, WriteFailedError: as for any write.
        """
        if created and label:
            raise InvalidInputError(text("error.version_or_created"))
        session = await self._sessions.get(session_id)
        if expected is not None:
            expected.check(session_etag(session_id, session.version))
        return await self._roll_back(session, label, created)

    async def pass_once(self) -> int:
        """Finish the rollbacks whose process or answer was lost, for whoever asked; returns the number of finished
        ones. Where somebody has changed the flow since, nothing is rolled back.
        """
        finished = 0
        for left in await self._intents.take_left(grace_secs=_GRACE_SECS, limit=_BATCH):
            caller, request = from_stored(left.caller)
            with acting_for(caller), answering(request):
                finished += await self._finish(left)
        return finished

    async def _finish(self, left: WriteIntent) -> bool:
        created = next((one for one in get_args(TakenBack) if one == left.name), None)
        try:
            session = await self._sessions.get(left.session_id)
            await self._roll_back(session, None if created else left.name, created, left)
        except AgentError as error:
            logger.warning("The rollback that session %s left is not finished: %s", left.session_id, error)
            if _is_over(error):
                await self._intents.end(left, "failed")
            return False
        return True

    async def _roll_back(
        self, session: SessionRow, label: str | None, created: TakenBack | None, left: WriteIntent | None = None
    ) -> RolledBack:
        """Roll back; `left` by a lost process."""
        if session.status in {"queued", "running"}:
            raise SessionConflictError(
                text("error.nothing_rolled_back"),
                hint=text("error.wait_for_question"),
                details={"status": "in_progress", "interrupt_id": None},
            )
        rows = await self._versions.of_session(session.id)
        version = _labelled(rows, label) if label else _any(rows)[0]
        publisher = Publisher(
            session_id=session.id,
            instance_id=version.instance_id,
            client=self._instances.client_at(version.instance_id, session.endpoint),
            intents=self._intents,
            lease=None,
            versions=self._versions,
        )
        try:
            current = await publisher.read(version.chatflow_id)
        except FlowiseNotFoundError:
            if not created:
                raise
            current = None
        found = current and Base(payload_sha256(current.flow_data), current.updated_date)
        made = rows[0].reason == "create"
        if created and not made:
            raise InvalidInputError(
                text("error.not_made_by_session", name=rows[-1].name), hint="Roll back to one of its versions."
            )
        if found and made and not (created or label) and found.sha256 == rows[0].sha256:
            # It has been what it is ever since: there is nothing to write back.
            raise InvalidInputError(
                text("error.made_by_session", name=rows[-1].name),
                hint="Send `created` with `delete` or `undeploy`, or the label of a version.",
            )
        if left and current and found and not created:
            is_back = found.sha256 == version.sha256 and not _beside(version, current)
            if not is_back and found.updated_date != left.base_date:
                raise stale_base(version.name, Stale(version.chatflow_id, found, ""), undone="rolled back")
        # Asked for again, one that was left goes on.
        intents = await self._intents.list_for(session.id)
        what = ("rollback", "open", created or version.label)
        key = next((one.key for one in intents if (one.op, one.status, one.name) == what), None)
        intent = await self._intents.open(
            None,
            key=key or uuid4(),
            session_id=session.id,
            op="rollback",
            iteration=version.iteration,
            target_id=version.chatflow_id,
            payload_sha256=version.sha256,
            base_sha256=found and found.sha256,
            base_date=found and found.updated_date,
            tag=None,
            name=created or version.label,
        )
        try:
            if created:
                return await self._take_back(publisher, intent, version.chatflow_id, rows[-1], created)
            assert current is not None  # noqa: S101 - it was found, or there is no rollback
            return await self._put_back(session, publisher, intent, current, rows, version)
        except AgentError as error:
            if _is_over(error):
                await self._intents.end(intent, "failed")
            raise

    async def _put_back(
        self,
        session: SessionRow,
        publisher: Publisher,
        intent: WriteIntent,
        found: Chatflow,
        rows: Sequence[FlowVersion],
        version: FlowVersion,
    ) -> RolledBack:
        written = await publisher.restore(
            chatflow_id=version.chatflow_id,
            flow_data=await self._versions.text(version),
            sha256=version.sha256,
            iteration=version.iteration,
            # If the names of versions differ, the name is part of the version.
            name=version.name if await self._versions.was_renamed(version.chatflow_id) else None,
            columns=_beside(version, found),
            base=Base(payload_sha256(found.flow_data), found.updated_date),
        )
        # The first version with this content shows its origin: found on the server, or written by the session.
        same = (version.sha256, version.name, version.settings, version.beside)
        first = next(row for row in rows if (row.sha256, row.name, row.settings, row.beside) == same)
        outcome = "rolled_back" if first.reason.startswith("before_") else "accepted"
        # A flow that is so already may be the work of a call that was lost before it could tell.
        if intent.unsure or not written.unchanged or (session.status == "completed" and session.outcome != outcome):
            await self._sessions.record_rollback(
                intent,
                outcome=outcome,
                event=new_event(
                    WriteData(chatflow_id=written.chatflow_id, flow=written.sha256, version=version.label),
                    phase="apply",
                    summary=text("event.version_put_back", flow=written.name, version=version.label),
                ),
            )
        else:
            await self._intents.end(intent, "done")
        return RolledBack(
            label=version.label,
            chatflow_id=written.chatflow_id,
            sha256=written.sha256,
            updated_date=written.updated_date,
            already_there=written.unchanged,
            left_out=[] if version.flow_settings else beside_uploads(settings_of(found)),
        )

    async def _take_back(
        self, publisher: Publisher, intent: WriteIntent, chatflow_id: str, last: FlowVersion, created: TakenBack
    ) -> RolledBack:
        await publisher.take_back(
            chatflow_id=chatflow_id, sha256=last.sha256, delete=created == "delete", iteration=last.iteration
        )
        code = "event.flow_removed" if created == "delete" else "event.flow_undeployed"
        data = WriteData(chatflow_id=chatflow_id, deployed=False)
        event = new_event(data, phase="apply", summary=text(code, flow=last.name))
        await self._sessions.record_rollback(intent, outcome="rolled_back", event=event)
        return RolledBack(
            label=last.label,
            chatflow_id=chatflow_id,
            sha256=last.sha256,
            updated_date=last.updated_date,
            already_there=False,
            created=created,
        )


def _beside(version: FlowVersion, found: Chatflow) -> dict[str, str | bool]:
    """Columns that bring a flow to the settings of a version."""
    return columns_for(found, version.flow_settings or recorded_before(settings_of(found), version.settings))


def _is_over(error: AgentError) -> bool:
    """True if an error leaves nothing of a rollback that could still be finished."""
    away = isinstance(error, FlowiseError | DatabaseUnavailableError) and not isinstance(error, FlowiseNotFoundError)
    return not away or error.details.get("written") == "no"


def _view(row: KeptVersion, *, current: bool, by: str | None = None) -> VersionView:
    source = "flowise" if row.reason.startswith(_SEEN) else "session"
    given = {"instance": row.instance_id, "name": masked(row.name), "source": source, "by": by, "current": current}
    return view_of(VersionView, row, **given)


def _numbered(rows: Sequence[NumberedRow]) -> NumberedVersion:
    """Merge all rows with the same state into one version; `rows` are oldest first."""
    made = next((row for row in rows if not row.reason.startswith(_SEEN)), None)
    row, first = made or rows[0], rows[0]
    restored = made is not None and made.reason == "rollback" and first.same_as is not None
    if restored:
        title, origin = text("version.back", number=first.same_as or 0), "restored"
    elif made is None:
        title, origin = _found(rows), "elsewhere"
    else:
        title, origin = shortened(" ".join(row.requirement.split()), _TITLE_CHARS), "session"
    return view_of(
        NumberedVersion,
        row,
        name=f"v{row.version}",
        title=title,
        origin=origin,
        flow_name=masked(row.name),
        renamed_from=None if first.renamed_from is None else masked(first.renamed_from),
        by=None if made is None else made.by,
        restores=None if first.same_as is None else f"v{first.same_as}",
        instance=row.instance_id,
        moved=made is None and any(one.moved for one in rows),
    )


def _found(rows: Sequence[NumberedRow]) -> str:
    first = rows[0]
    if first.version == 1 or any(one.first for one in rows):
        return text("version.found")
    if any(one.moved for one in rows):
        return text("version.moved")
    if first.same_text:
        return text("version.renamed" if first.renamed_from else "version.settings")
    return text("version.changed")


def _any(rows: Sequence[FlowVersion]) -> Sequence[FlowVersion]:
    if not rows:
        raise VersionNotFoundError(text("error.no_versions_yet"), hint=text("error.versions_come_with_writes"))
    return rows


def _labelled(rows: Sequence[FlowVersion], label: str) -> FlowVersion:
    found = next((row for row in _any(rows) if row.label == label or row.label == f"{label}.0"), None)
    if found is None:
        raise VersionNotFoundError(
            text("error.no_version", version=label[:40]),
            hint=text("error.session_has_versions", versions=[row.label for row in rows]),
        )
    return found
