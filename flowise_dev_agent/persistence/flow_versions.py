"""Versions of chatflows: name and text of a flow before and after each write of a session, and what the watch saw
between them. The texts are blobs, or those of the watch."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from psycopg.errors import UniqueViolation

from flowise_dev_agent.persistence.blobs import Blobs, encoded
from flowise_dev_agent.persistence.database import Database, jsonb
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.flow_writes import FlowSettings

#: The reason of a version that the watch saw.
WATCHED: Final[LiteralString] = "flowise"
_COLUMNS: Final[LiteralString] = (
    "session_id, instance_id, chatflow_id, number, name, reason, iteration, sha256, updated_date, created_at, version,"
    " settings, beside"
)
#: The versions of sessions that the caller sees, and what the watch saw.
EVERY_VERSION: Final[LiteralString] = f"""
    (SELECT id, {_COLUMNS}, NULL::boolean AS first, false AS moved FROM flow_versions
    UNION ALL
    SELECT id, NULL, instance_id, chatflow_id, NULL, name, '{WATCHED}', 0, sha256, updated_date, created_at, version,
        settings, beside, first, moved FROM watched_versions)
"""
# The text and its version. Of two concurrent inserts with the same number one fails and retries.
_RECORD: Final = f"""
    WITH text AS (
        INSERT INTO blobs (session_id, sha256, content)
        SELECT id, %(sha)s, %(content)s FROM sessions WHERE id = %(session)s
        ON CONFLICT DO NOTHING
    )
    INSERT INTO flow_versions
        (session_id, instance_id, chatflow_id, number, name, reason, iteration, sha256, updated_date, settings, beside,
         version)
    SELECT id, %(instance)s, %(chatflow)s,
           COALESCE((SELECT max(number) FROM flow_versions WHERE session_id = %(session)s), 0) + 1,
           %(name)s, %(reason)s, %(iteration)s, %(sha)s, %(updated)s, %(settings)s, %(beside)s,
           COALESCE((
               SELECT version + (
                   sha256 <> %(sha)s OR name <> %(name)s
                   OR COALESCE(beside <> %(beside)s, settings <> %(settings)s, false)
               )::int FROM {EVERY_VERSION} AS every
               WHERE instance_id = %(instance)s AND chatflow_id = %(chatflow)s ORDER BY id DESC LIMIT 1
           ), 1)
    FROM sessions
    WHERE id = %(session)s AND NOT EXISTS (
        SELECT 1 FROM (
            SELECT sha256, name, beside FROM flow_versions
            WHERE session_id = %(session)s AND chatflow_id = %(chatflow)s
            ORDER BY number DESC LIMIT 1
        ) AS newest WHERE newest.sha256 = %(sha)s AND newest.name = %(name)s
        AND newest.beside = %(beside)s)
"""
_TRIES: Final = 5
_AUTHOR: Final = """
    (SELECT actor FROM audit_log WHERE session_id = kept.session_id AND action LIKE 'write.%%'
     AND after_sha256 = kept.sha256 ORDER BY abs(EXTRACT(epoch FROM ts - kept.created_at)) LIMIT 1) AS by
"""
_NUMBERED: Final = f"""
    WITH every AS NOT MATERIALIZED (SELECT * FROM {EVERY_VERSION} AS kept WHERE chatflow_id = %(chatflow)s)
    SELECT {", ".join(f"kept.{name}" for name in _COLUMNS.split(", "))}, kept.first, kept.moved,
           COALESCE(session.name, left(session.requirement, 200), '') AS requirement, mark.note AS bookmark,
           (SELECT max(version) FROM every) = kept.version AS current,
           (SELECT min(version) FROM every AS earlier
            WHERE earlier.instance_id = kept.instance_id AND earlier.sha256 = kept.sha256 AND earlier.name = kept.name
            AND COALESCE(earlier.beside = kept.beside, earlier.settings IS NOT DISTINCT FROM kept.settings)
            AND earlier.version < kept.version) AS same_as,
           NULLIF(before.name, kept.name) AS renamed_from, before.sha256 = kept.sha256 AS same_text,
           {_AUTHOR}
    FROM every AS kept LEFT JOIN sessions AS session ON session.id = kept.session_id
    LEFT JOIN version_bookmarks AS mark ON mark.chatflow_id = kept.chatflow_id AND mark.version = kept.version
    LEFT JOIN LATERAL (
        SELECT name, sha256 FROM every AS earlier
        WHERE earlier.instance_id = kept.instance_id
        AND earlier.version < kept.version ORDER BY earlier.version DESC, earlier.id DESC LIMIT 1
    ) AS before ON true
    WHERE kept.version IN (
        SELECT DISTINCT version FROM every WHERE (%(before)s::int IS NULL OR version < %(before)s)
        ORDER BY version DESC LIMIT %(limit)s)
    ORDER BY kept.version DESC, kept.id
"""
_OF_CHATFLOW: Final = f"""
    SELECT {_COLUMNS}, {_AUTHOR} FROM {EVERY_VERSION} AS kept WHERE chatflow_id = %(chatflow)s
    AND (%(version)s::int IS NULL OR version = %(version)s)
"""


@dataclass(frozen=True)
class KeptVersion:
    """One state of a chatflow. `reason` says when it was recorded: `before_<write>`, `<write>`, or WATCHED.

    Session and number are None for a state that the watch saw.
    """

    session_id: UUID | None
    instance_id: str
    chatflow_id: str
    number: int | None
    name: str
    reason: str
    iteration: int
    sha256: str
    updated_date: str
    created_at: datetime
    #: Number over all sessions, shown to people.
    version: int
    #: Of the settings `fullFileUpload` alone, which is all that earlier releases record; None: not even that.
    settings: JsonObject | None
    #: Settings of the flow by column; None: not recorded.
    beside: JsonObject | None

    @property
    def label(self) -> str:
        """`v1.0`, `v2.0`, ... counted within the session; '' without one."""
        return f"v{self.number}.0" if self.number else ""

    @property
    def flow_settings(self) -> FlowSettings | None:
        """Settings of the flow; None: not recorded."""
        return None if self.beside is None else FlowSettings.model_validate(self.beside)


@dataclass(frozen=True)
class FlowVersion(KeptVersion):
    """A state that a session found or wrote."""

    session_id: UUID
    number: int


@dataclass(frozen=True)
class AuthoredVersion(KeptVersion):
    """A version with the actor of its write; None for what nobody of this service wrote."""

    by: str | None


@dataclass(frozen=True)
class NumberedRow(AuthoredVersion):
    """A version for the list of a flow's versions.

    It has its session's title, its bookmark, its author, the first earlier number with the same text and name, and the
    previous version's name if that differs. `first`: the watch found the flow so, which is nobody's edit; `moved`: only
    nodes were moved; None until that is known.
    """

    first: bool | None
    moved: bool | None
    requirement: str
    bookmark: str | None
    current: bool
    same_as: int | None
    renamed_from: str | None
    #: True if the text equals the previous version's; None for the first.
    same_text: bool | None


# From the session that wrote last: its end changes the flow after the last version, but not its text.
_LAST_WRITES: Final = """
    SELECT flow.id AS chatflow_id, written.updated_date, actor.actor
    FROM unnest(%(chatflows)s::text[]) AS flow (id)
    CROSS JOIN LATERAL (
        SELECT session_id FROM flow_versions WHERE instance_id = %(instance)s AND chatflow_id = flow.id
        ORDER BY id DESC LIMIT 1
    ) AS last
    CROSS JOIN LATERAL (
        SELECT result ->> 'updated_date' AS updated_date, updated_at FROM write_intents
        WHERE session_id = last.session_id AND status = 'done' AND result ->> 'chatflow_id' = flow.id
        ORDER BY updated_at DESC LIMIT 1
    ) AS written
    LEFT JOIN LATERAL (
        SELECT actor FROM audit_log
        WHERE session_id = last.session_id AND chatflow_id = flow.id AND action LIKE 'write.%%'
        ORDER BY id DESC LIMIT 1
    ) AS actor ON true
"""


@dataclass(frozen=True)
class LastWrite:
    """The newest write of a session to a flow: the date that the server reported, and the actor."""

    chatflow_id: str
    updated_date: str | None
    actor: str | None


class Versions:
    """Repository of versions. Labels count within a session."""

    def __init__(self, database: Database, blobs: Blobs) -> None:
        self._database = database
        self._blobs = blobs

    async def record(
        self,
        session_id: UUID,
        *,
        instance_id: str,
        chatflow_id: str,
        name: str,
        flow_data: str,
        settings: FlowSettings,
        uploads: JsonObject,
        updated_date: str,
        reason: str,
        iteration: int,
    ) -> None:
        """Store this state unless it equals the session's last version of this chatflow. Idempotent.

        `uploads` is what the release before records of the settings.
        """
        content, sha256 = encoded(flow_data)
        params = {
            "session": session_id,
            "instance": instance_id,
            "chatflow": chatflow_id,
            "name": name,
            "reason": reason,
            "iteration": iteration,
            "sha": sha256,
            "content": content,
            "settings": jsonb(uploads),
            "beside": jsonb(settings.columns),
            "updated": updated_date,
        }
        for left in reversed(range(_TRIES)):
            try:
                async with self._database.connection() as connection:
                    await connection.execute(_RECORD, params)
            except UniqueViolation:
                if not left:
                    raise
            else:
                return

    async def of_session(self, session_id: UUID) -> list[FlowVersion]:
        """The session's versions, oldest first."""
        return await self._database.rows(
            FlowVersion, f"SELECT {_COLUMNS} FROM flow_versions WHERE session_id = %s ORDER BY number", (session_id,)
        )

    async def of_chatflow(self, chatflow_id: str, *, limit: int = 100) -> list[AuthoredVersion]:
        """Versions of a chatflow across sessions and instances, newest first."""
        params = {"chatflow": chatflow_id, "version": None, "limit": limit}
        return await self._database.rows(AuthoredVersion, f"{_OF_CHATFLOW} ORDER BY id DESC LIMIT %(limit)s", params)

    async def numbered(self, chatflow_id: str, *, limit: int, before: int | None = None) -> list[NumberedRow]:
        """The rows of the newest `limit` numbers below `before`, newest number first and in each the oldest row."""
        return await self._database.rows(
            NumberedRow, _NUMBERED, {"chatflow": chatflow_id, "before": before, "limit": limit}
        )

    async def last_writes(self, instance_id: str, chatflow_ids: Sequence[str]) -> dict[str, LastWrite]:
        """The newest write by chatflow; flows that no session has written are left out."""
        params = {"instance": instance_id, "chatflows": list(chatflow_ids)}
        rows = await self._database.rows(LastWrite, _LAST_WRITES, params)
        return {row.chatflow_id: row for row in rows}

    async def was_renamed(self, chatflow_id: str) -> bool:
        """True if the chatflow's versions have several names."""
        row = await self._database.fetch_one(
            f"SELECT count(DISTINCT name) > 1 AS renamed FROM {EVERY_VERSION} AS every WHERE chatflow_id = %s",
            (chatflow_id,),
        )
        return row is not None and bool(row["renamed"])

    async def with_number(self, chatflow_id: str, version: int) -> AuthoredVersion | None:
        """A version by its number over all sessions, with its settings if a later look has found them."""
        params = {"chatflow": chatflow_id, "version": version}
        return await self._database.row(AuthoredVersion, f"{_OF_CHATFLOW} ORDER BY beside IS NULL, id LIMIT 1", params)

    async def bookmark(self, chatflow_id: str, version: int, note: str | None) -> None:
        """Bookmark a version, or remove the bookmark (None)."""
        async with self._database.connection() as connection:
            if note is None:
                await connection.execute(
                    "DELETE FROM version_bookmarks WHERE chatflow_id = %s AND version = %s", (chatflow_id, version)
                )
            else:
                await connection.execute(
                    "INSERT INTO version_bookmarks (chatflow_id, version, note) VALUES (%s, %s, %s)"
                    " ON CONFLICT (owner, chatflow_id, version) DO UPDATE SET note = EXCLUDED.note",
                    (chatflow_id, version, note),
                )

    async def text(self, version: KeptVersion) -> str:
        """The flowData of a version, byte for byte."""
        return await self._blobs.get(version.sha256)
