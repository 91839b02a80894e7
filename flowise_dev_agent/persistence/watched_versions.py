"""Versions that nobody of this service wrote: what the watch saw on the Flowise servers.

They are counted with those of sessions, see `flow_versions`. Rows belong to an instance, so all methods act across
owners.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.persistence.database import Connection, Database, across_owners, jsonb
from flowise_dev_agent.persistence.flow_versions import EVERY_VERSION
from flowise_dev_agent.schemas.base import JsonObject

_LOCK_KEY: Final = 4_021_884_197_301_556_238
#: A state is recorded unless it is what the flow was known to hold, is older than that, or is a write of a session.
#: A write is announced before it is sent, and done once its version is stored: so it is an open write or the newest
#: version. Of files in a flow Flowise stores something else than it was sent. An open write explains its text for a
#: day.
_RECORD: Final = f"""
    WITH seen AS (
        SELECT * FROM jsonb_to_recordset(%(seen)s) AS one (
            id text, name text, type text, sha256 text, updated_date text, settings jsonb, beside jsonb,
            tags text[], files boolean)
    ), compared AS (
        SELECT seen.*, last.version, last.updated_date AS last_date, top.version AS top,
            last.sha256 = seen.sha256 AND last.name = seen.name
            AND COALESCE(
                last.beside = seen.beside,
                last.settings = seen.settings
                AND (last.session_id IS NOT NULL OR last.updated_date = seen.updated_date),
                true) AS same
        FROM seen
        LEFT JOIN LATERAL (
            SELECT * FROM {EVERY_VERSION} AS every
            WHERE instance_id = %(instance)s AND chatflow_id = seen.id ORDER BY id DESC LIMIT 1
        ) AS last ON true
        LEFT JOIN LATERAL (
            SELECT max(version) AS version FROM {EVERY_VERSION} AS every WHERE chatflow_id = seen.id
        ) AS top ON true
    )
    INSERT INTO watched_versions
        (instance_id, chatflow_id, version, name, type, sha256, updated_date, settings, beside, first, moved)
    SELECT %(instance)s, id, CASE WHEN same AND version = top THEN top ELSE COALESCE(top, 0) + 1 END,
        name, type, sha256, updated_date, settings, beside, top IS NULL, CASE WHEN top IS NULL OR same THEN false END
    FROM compared
    WHERE (last_date IS NULL OR updated_date >= last_date)
    AND NOT (COALESCE(same, false) AND EXISTS (
        SELECT 1 FROM {EVERY_VERSION} AS known
        WHERE known.instance_id = %(instance)s AND known.chatflow_id = compared.id
        AND known.version = compared.version AND known.sha256 = compared.sha256 AND known.name = compared.name
        AND known.beside IS NOT NULL
        AND (known.session_id IS NULL OR known.reason !~ '^(before|after)_')))
    AND NOT EXISTS (
        SELECT 1 FROM write_intents AS intent JOIN sessions ON sessions.id = intent.session_id
        WHERE sessions.instance_id = %(instance)s AND intent.op IN ('create', 'update')
        AND COALESCE(intent.target_id, compared.id) = compared.id
        AND intent.status = 'open' AND intent.updated_at > now() - interval '24 hours'
        AND (intent.payload_sha256 = compared.sha256
             OR files AND (intent.target_id = compared.id OR intent.tag = ANY(compared.tags))))
    RETURNING sha256
"""
_CLAIM: Final = """
    INSERT INTO flow_watches AS watch (instance_id, endpoint, due_at)
    VALUES (%(instance)s, %(endpoint)s, now() + make_interval(secs => %(every)s))
    ON CONFLICT (instance_id, endpoint) DO UPDATE SET due_at = excluded.due_at WHERE watch.due_at <= now()
"""
_DELETED: Final = """
    INSERT INTO deleted_flows (instance_id, endpoint, id, name, type)
    SELECT instance_id, endpoint, id, name, type FROM instance_flows AS flow
    WHERE instance_id = %(instance)s AND endpoint = %(endpoint)s AND id = ANY(%(ids)s) AND NOT draft
    AND NOT EXISTS (SELECT 1 FROM write_intents WHERE op = 'delete' AND target_id = flow.id AND status <> 'failed')
    ON CONFLICT (instance_id, endpoint, id) DO UPDATE SET noticed_at = now()
"""


@dataclass(frozen=True)
class SeenFlow:
    """A flow as a server lists it. `files`: it names uploaded files."""

    id: str
    name: str
    type: str
    flow_data: str
    sha256: str
    updated_date: str
    #: Of the settings what earlier releases record, and all of them.
    settings: JsonObject
    beside: dict[str, str]
    tags: Sequence[str]
    files: bool


@dataclass(frozen=True)
class Edit:
    """An edit that nobody has looked at yet, with the hash of the text before it."""

    id: int
    chatflow_id: str
    version: int
    sha256: str
    before_sha256: str | None


class WatchedVersions:
    """Repository of what the watch sees."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, instance_id: str, flows: Sequence[SeenFlow]) -> None:
        """Store each state that is not known yet and that no session wrote. Safe to repeat."""
        seen = [{name: value for name, value in vars(flow).items() if name != "flow_data"} for flow in flows]
        texts = {flow.sha256: flow.flow_data for flow in flows}
        with across_owners():
            async with self._database.transaction() as connection:
                await _one_at_a_time(connection, instance_id)
                params = {"instance": instance_id, "seen": jsonb(seen)}
                stored = await (await connection.execute(_RECORD, params)).fetchall()
                # One by one: of a page all texts together may be large.
                for sha256 in {str(row["sha256"]) for row in stored}:
                    await connection.execute(
                        "INSERT INTO watched_texts (sha256, content) VALUES (%s, %s)"
                        " ON CONFLICT (sha256) DO UPDATE SET seen_at = now()",
                        (sha256, zlib.compress(texts[sha256].encode())),
                    )

    async def edits(self, instance_id: str, limit: int) -> list[Edit]:
        """The oldest edits that have not been compared."""
        query = f"""
            SELECT id, chatflow_id, version, sha256, (
                SELECT sha256 FROM {EVERY_VERSION} AS every WHERE every.instance_id = fresh.instance_id
                AND every.chatflow_id = fresh.chatflow_id AND every.id < fresh.id ORDER BY every.id DESC LIMIT 1
            ) AS before_sha256
            FROM watched_versions AS fresh WHERE instance_id = %s AND moved IS NULL ORDER BY id LIMIT %s
        """
        with across_owners():
            return await self._database.rows(Edit, query, (instance_id, limit))

    async def compared(self, edit: Edit, *, moved: bool) -> None:
        """Note whether an edit only moved nodes."""
        with across_owners():
            async with self._database.connection() as connection:
                await connection.execute("UPDATE watched_versions SET moved = %s WHERE id = %s", (moved, edit.id))

    async def deleted(self, instance_id: str, endpoint: str, ids: Sequence[str]) -> None:
        """Note that known flows are gone; drafts and flows that a session deleted are left out."""
        with across_owners():
            async with self._database.connection() as connection:
                await connection.execute(_DELETED, {"instance": instance_id, "endpoint": endpoint, "ids": list(ids)})

    async def untold(self, instance_id: str, endpoint: str, limit: int) -> list[tuple[str, str]]:
        """Ids and names of deleted flows that have not been told, the oldest first."""
        rows = await self._database.fetch_all(
            "SELECT id, name FROM deleted_flows WHERE instance_id = %s AND endpoint = %s AND NOT told"
            " ORDER BY noticed_at LIMIT %s",
            (instance_id, endpoint, limit),
        )
        return [(str(row["id"]), str(row["name"])) for row in rows]

    async def told(self, instance_id: str, endpoint: str, chatflow_id: str) -> None:
        """Note that a deletion has been told."""
        with across_owners():
            async with self._database.connection() as connection:
                await connection.execute(
                    "UPDATE deleted_flows SET told = true WHERE instance_id = %s AND endpoint = %s AND id = %s",
                    (instance_id, endpoint, chatflow_id),
                )

    async def claim(self, instance_id: str, endpoint: str, every_secs: float) -> bool:
        """Take the next look at a server; False if a process, this one or another, has taken it."""
        params = {"instance": instance_id, "endpoint": endpoint, "every": every_secs}
        async with self._database.connection() as connection:
            return (await connection.execute(_CLAIM, params)).rowcount > 0

    async def postpone(self, instance_id: str, endpoint: str, seconds: float) -> None:
        """Look at a server no earlier than in `seconds`."""
        async with self._database.connection() as connection:
            await connection.execute(
                "UPDATE flow_watches SET due_at = now() + make_interval(secs => %s)"
                " WHERE instance_id = %s AND endpoint = %s",
                (seconds, instance_id, endpoint),
            )


async def _one_at_a_time(connection: Connection, instance_id: str) -> None:
    await connection.execute("SELECT pg_advisory_xact_lock(%s # hashtext(%s))", (_LOCK_KEY, instance_id))
