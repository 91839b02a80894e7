"""Versions of the flows that sessions wrote: list, compare, roll back."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final
from uuid import UUID

from flowise_dev_agent.errors import (
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
from flowise_dev_agent.patch import GraphIR, payload_sha256
from flowise_dev_agent.persistence import FlowVersion, Sessions, Versions, WriteIntents
from flowise_dev_agent.persistence.flow_versions import WATCHED, KeptVersion, NumberedRow
from flowise_dev_agent.publish import Base, Publisher, changes
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

#: Reasons of versions that a session or the watch saw and did not write.
_SEEN: Final = ("before_", "after_", WATCHED)
_TITLE_CHARS: Final = 120


class FlowVersions:
    """The versions of all sessions. Raises SessionNotFoundError and VersionNotFoundError."""

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
        if session.status in {"queued", "running"}:
            raise SessionConflictError(
                text("error.nothing_rolled_back"),
                hint=text("error.wait_for_question"),
                details={"status": "in_progress", "interrupt_id": None},
            )
        rows = await self._versions.of_session(session_id)
        version = _labelled(rows, label) if label else _any(rows)[0]
        publisher = Publisher(
            session_id=session_id,
            instance_id=version.instance_id,
            client=self._instances.client_at(version.instance_id, session.endpoint),
            intents=self._intents,
            lease=None,
            versions=self._versions,
        )
        if created or (label is None and await self._is_as_made(publisher, rows)):
            return await self._take_back(session_id, publisher, rows, created)
        found = await publisher.read(version.chatflow_id)
        now = settings_of(found)
        written = await publisher.restore(
            chatflow_id=version.chatflow_id,
            flow_data=await self._versions.text(version),
            sha256=version.sha256,
            iteration=version.iteration,
            # If the names of versions differ, the name is part of the version.
            name=version.name if await self._versions.was_renamed(version.chatflow_id) else None,
            columns=columns_for(found, version.flow_settings or recorded_before(now, version.settings)),
            base=Base(payload_sha256(found.flow_data), found.updated_date),
        )
        # The first version with this content shows its origin: found on the server, or written by the session.
        same = (version.sha256, version.name, version.settings, version.beside)
        first = next(row for row in rows if (row.sha256, row.name, row.settings, row.beside) == same)
        outcome = "rolled_back" if first.reason.startswith("before_") else "accepted"
        # A flow that is so already may be the work of a call that was lost before it could tell.
        if not written.unchanged or (session.status == "completed" and session.outcome != outcome):
            await self._sessions.record_rollback(
                session_id,
                outcome=outcome,
                event=new_event(
                    WriteData(chatflow_id=written.chatflow_id, flow=written.sha256, version=version.label),
                    phase="apply",
                    summary=text("event.version_put_back", flow=written.name, version=version.label),
                ),
            )
        return RolledBack(
            label=version.label,
            chatflow_id=written.chatflow_id,
            sha256=written.sha256,
            updated_date=written.updated_date,
            already_there=written.unchanged,
            left_out=[] if version.flow_settings else beside_uploads(now),
        )

    async def _is_as_made(self, publisher: Publisher, rows: Sequence[FlowVersion]) -> bool:
        """True if the session made the flow, which has been what it is ever since: there is nothing to write back."""
        if not rows or rows[0].reason != "create":
            return False
        return payload_sha256((await publisher.read(rows[0].chatflow_id)).flow_data) == rows[0].sha256

    async def _take_back(
        self, session_id: UUID, publisher: Publisher, rows: Sequence[FlowVersion], created: TakenBack | None
    ) -> RolledBack:
        first, last = _any(rows)[0], rows[-1]
        if created is None or first.reason != "create":
            raise InvalidInputError(
                text("error.made_by_session" if created is None else "error.not_made_by_session", name=last.name),
                hint="Send `created` with `delete` or `undeploy`, or the label of a version."
                if created is None
                else "Roll back to one of its versions.",
            )
        await publisher.take_back(
            chatflow_id=first.chatflow_id, sha256=last.sha256, delete=created == "delete", iteration=last.iteration
        )
        code = "event.flow_removed" if created == "delete" else "event.flow_undeployed"
        data = WriteData(chatflow_id=first.chatflow_id, deployed=False)
        event = new_event(data, phase="apply", summary=text(code, flow=last.name))
        await self._sessions.record_rollback(session_id, outcome="rolled_back", event=event)
        return RolledBack(
            label=last.label,
            chatflow_id=first.chatflow_id,
            sha256=last.sha256,
            updated_date=last.updated_date,
            already_there=False,
            created=created,
        )


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
