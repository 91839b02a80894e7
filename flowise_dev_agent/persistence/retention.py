"""Deletion of old data: whole sessions, and the threads, events and artifacts of ended sessions.

Open sessions lose nothing, however old they are. Every step is a separate transaction over a bounded number of
sessions, so a pass can be interrupted anywhere and the next one continues.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, LiteralString

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.postgres.base import PRUNE_DELETE_THREADS_SQL

from flowise_dev_agent.errors import SessionNotFoundError
from flowise_dev_agent.persistence.database import Connection, Database, across_owners, for_owner, translated_errors
from flowise_dev_agent.persistence.done_requests import KEPT
from flowise_dev_agent.persistence.sessions import Sessions
from flowise_dev_agent.settings import RetentionSettings

_BATCH: Final = 100
_MAX_BATCHES: Final = 50

_OLD: Final = "updated_at < now() - make_interval(secs => %(days)s::float8 * 86400)"
_OLD_SESSIONS: Final = f"SELECT id, owner FROM sessions WHERE status IN ('completed', 'failed', 'cancelled') AND {_OLD}"
#: Failed sessions are left out below: a retry needs all of their data.
_OVER: Final = f"SELECT id FROM sessions WHERE status IN ('completed', 'cancelled') AND {_OLD}"

_OLD_THREADS: Final = (
    f"{_OVER} AND EXISTS (SELECT 1 FROM checkpoints WHERE thread_id = sessions.id::text)"
    " LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED"
)
_OLD_EVENTS: Final = f"""
    DELETE FROM session_events WHERE session_id IN (
        {_OVER} AND EXISTS (SELECT 1 FROM session_events WHERE session_id = sessions.id) LIMIT %(batch)s)
"""
#: Texts found or left on the server by a write are needed to restore that chatflow.
_OLD_ARTIFACTS: Final = f"""
    DELETE FROM blobs WHERE (session_id, sha256) IN (
        SELECT session_id, sha256 FROM blobs WHERE session_id IN ({_OVER}) AND NOT EXISTS (
            SELECT 1 FROM write_intents AS intent WHERE intent.session_id = blobs.session_id
            AND intent.status = 'done' AND blobs.sha256 IN (intent.payload_sha256, intent.base_sha256))
        LIMIT %(batch)s)
"""
_UNUSED_FILES: Final = """
    DELETE FROM attachments WHERE id IN (
        SELECT id FROM attachments WHERE session_id IS NULL AND expires_at < now() LIMIT %(batch)s)
"""
#: The content of the files is in the flows made from them.
_OLD_FILES: Final = f"""
    DELETE FROM attachments WHERE id IN (
        SELECT id FROM attachments WHERE session_id IN ({_OVER}) LIMIT %(batch)s)
"""
_AGED_ARTIFACTS: Final = """
    DELETE FROM node_artifacts WHERE id IN (
        SELECT id FROM node_artifacts WHERE kind = ANY(%(kinds)s)
        AND created_at < now() - make_interval(secs => %(ttl)s) LIMIT %(batch)s)
"""
#: The oldest artifacts of each kind, session and node beyond the limit.
_SURPLUS_ARTIFACTS: Final = """
    DELETE FROM node_artifacts WHERE id IN (
        SELECT id FROM (
            SELECT id, row_number() OVER (PARTITION BY session_id, kind, node ORDER BY created_at DESC, id) AS number
            FROM node_artifacts WHERE kind = ANY(%(kinds)s)) AS numbered
        WHERE number > %(kept)s LIMIT %(batch)s)
"""
_OLD_REQUESTS: Final = f"""
    DELETE FROM done_requests WHERE (owner, key) IN (
        SELECT owner, key FROM done_requests WHERE created_at < now() - {KEPT} LIMIT %(batch)s)
"""
#: Of what the watch saw: all of 7 days, the last of each day for 90 days. The newest state of a flow stays while the
#: flow is there; what has a bookmark, and what a session found or wrote, always.
_OLD_WATCHED: Final = """
    DELETE FROM watched_versions WHERE id IN (
        SELECT id FROM (
            SELECT id, chatflow_id, version, sha256, created_at,
                row_number() OVER (PARTITION BY instance_id, chatflow_id ORDER BY id DESC) AS place,
                row_number() OVER (PARTITION BY instance_id, chatflow_id, date_trunc('day', created_at, 'UTC')
                    ORDER BY id DESC) AS of_day
            FROM watched_versions) AS kept
        WHERE created_at < now() - interval '7 days' AND (of_day > 1 OR created_at < now() - interval '90 days')
        AND (place > 1 OR EXISTS (
            SELECT 1 FROM deleted_flows AS gone
            WHERE gone.id = kept.chatflow_id AND gone.noticed_at < now() - interval '90 days'))
        AND NOT EXISTS (SELECT 1 FROM version_bookmarks AS mark
            WHERE mark.chatflow_id = kept.chatflow_id AND mark.version = kept.version)
        AND NOT EXISTS (SELECT 1 FROM flow_versions AS live
            WHERE live.chatflow_id = kept.chatflow_id AND live.sha256 = kept.sha256)
        LIMIT %(batch)s)
"""
#: The age is checked where the row is deleted, too: a text may have been seen again meanwhile.
_UNUSED_TEXTS: Final = """
    DELETE FROM watched_texts WHERE seen_at < now() - interval '1 hour' AND sha256 IN (
        SELECT sha256 FROM watched_texts AS one WHERE seen_at < now() - interval '1 hour'
        AND NOT EXISTS (SELECT 1 FROM watched_versions WHERE sha256 = one.sha256) LIMIT %(batch)s)
"""
_LONG_GONE: Final = """
    DELETE FROM deleted_flows WHERE id IN (
        SELECT id FROM deleted_flows AS gone WHERE noticed_at < now() - interval '90 days'
        AND NOT EXISTS (SELECT 1 FROM watched_versions WHERE chatflow_id = gone.id) LIMIT %(batch)s)
"""
_UNPRUNED: Final = """
    SELECT id FROM sessions WHERE status IN ('completed', 'failed', 'cancelled')
    AND (SELECT count(*) FROM checkpoints WHERE thread_id = sessions.id::text) > 1
    LIMIT 20 FOR NO KEY UPDATE SKIP LOCKED
"""
_ORPHANS: Final = """
    SELECT DISTINCT thread_id FROM checkpoints
    WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id::text = thread_id) LIMIT %(batch)s
"""


class Retention:
    """The periodic clean-up. Ages are days since a session's last change; 0 keeps data for ever."""

    def __init__(self, database: Database, sessions: Sessions, settings: RetentionSettings) -> None:
        self._database = database
        self._sessions = sessions
        self._settings = settings

    async def pass_once(self) -> dict[str, int]:
        """Remove old data; returns the number of removed rows by kind.

        The kinds are sessions, threads, events, stored texts (`artifacts`), artifacts of steps, attachments, responses
        to `requests`, what the watch saw with its texts (`watched`), and threads cut to their last checkpoint
        (`pruned`). Raises DatabaseUnavailableError; earlier removals stay done.
        """
        with across_owners():
            return await self._pass()

    async def _pass(self) -> dict[str, int]:
        ages = self._settings
        events, artifacts, files = ages.events_days, ages.artifacts_days, ages.attachments_days
        return {
            "sessions": await self._all(lambda: self._delete_sessions(ages.sessions_days), ages.sessions_days),
            "threads": await self._all(lambda: self._delete_threads(ages.threads_days), ages.threads_days)
            + await self._all(self._delete_orphans),
            "events": await self._all(lambda: self._execute(_OLD_EVENTS, events), events),
            "artifacts": await self._all(lambda: self._execute(_OLD_ARTIFACTS, artifacts), artifacts),
            "node_artifacts": await self._all(self._delete_aged) + await self._all(self._delete_surplus),
            "attachments": await self._all(lambda: self._execute(_UNUSED_FILES, 1))
            + await self._all(lambda: self._execute(_OLD_FILES, files), files),
            "requests": await self._all(lambda: self._execute(_OLD_REQUESTS, 1)),
            "watched": await self._all(lambda: self._execute(_OLD_WATCHED, 1))
            + await self._all(lambda: self._execute(_UNUSED_TEXTS, 1))
            + await self._all(lambda: self._execute(_LONG_GONE, 1)),
            "pruned": await self._all(self._prune),
        }

    async def _all(self, step: Callable[[], Awaitable[int]], days: float = 1) -> int:
        total = 0
        for _ in range(_MAX_BATCHES if days > 0 else 0):
            removed = await step()
            total += removed
            if removed == 0:
                break
        return total

    async def _execute(self, statement: LiteralString, days: float) -> int:
        async with self._database.connection() as connection:
            return (await connection.execute(statement, {"days": days, "batch": _BATCH})).rowcount

    async def _delete_aged(self) -> int:
        kinds = [kind for kind, mode in self._settings.modes.items() if mode in ("ttl", "ttl_max_count")]
        return await self._delete_artifacts(_AGED_ARTIFACTS, kinds)

    async def _delete_surplus(self) -> int:
        kinds = [kind for kind, mode in self._settings.modes.items() if mode in ("max_count", "ttl_max_count")]
        return await self._delete_artifacts(_SURPLUS_ARTIFACTS, kinds)

    async def _delete_artifacts(self, statement: LiteralString, kinds: list[str]) -> int:
        if not kinds:
            return 0
        params = {
            "kinds": kinds,
            "ttl": self._settings.ttl_seconds,
            "kept": self._settings.max_count,
            "batch": _BATCH,
        }
        async with self._database.connection() as connection:
            return (await connection.execute(statement, params)).rowcount

    async def _delete_sessions(self, days: float) -> int:
        rows = await self._database.fetch_all(
            f"{_OLD_SESSIONS} ORDER BY updated_at LIMIT %(batch)s", {"days": days, "batch": _BATCH}
        )
        for row in rows:
            try:
                with for_owner(row["owner"]):
                    await self._sessions.delete(row["id"], if_ended=True)
            except SessionNotFoundError:
                continue
        return len(rows)

    async def _delete_threads(self, days: float) -> int:
        # The locked rows cannot be retried during this, so no run writes to these threads.
        async with self._database.transaction() as connection:
            threads = [str(row["id"]) for row in await _rows(connection, _OLD_THREADS, days)]
            return await _delete_threads(connection, threads)

    async def _delete_orphans(self) -> int:
        """Delete threads without a session: a lost worker's last checkpoint may land after the deletion."""
        async with self._database.transaction() as connection:
            return await _delete_threads(connection, [row["thread_id"] for row in await _rows(connection, _ORPHANS)])

    async def _prune(self) -> int:
        """Prune threads of failed sessions, and of ended sessions whose run could not do it."""
        async with self._database.transaction() as connection:
            threads = [str(row["id"]) for row in await _rows(connection, _UNPRUNED)]
            if threads:
                with translated_errors():
                    await AsyncPostgresSaver(self._database.pool).aprune(threads)
        return len(threads)


async def _rows(connection: Connection, query: LiteralString, days: float = 0) -> list[dict[str, Any]]:
    return await (await connection.execute(query, {"days": days, "batch": _BATCH})).fetchall()


async def _delete_threads(connection: Connection, threads: list[str]) -> int:
    if threads:
        for statement in PRUNE_DELETE_THREADS_SQL:
            await connection.execute(statement, (threads,))
    return len(threads)
