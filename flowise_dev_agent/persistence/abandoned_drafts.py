"""Drafts left on Flowise by ended sessions: which ones exist, and which were removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from psycopg.rows import class_row

from flowise_dev_agent.persistence.database import Connection, Database

#: A call that was running when the session ended may still create the draft.
_LATE_SECS: Final = 3_600
#: Older ones are left to people: their instance is no longer in the settings, or refuses.
_GIVE_UP_DAYS: Final = 30

# A draft that was announced and not removed. `publish/tags.py` makes the tags; a parameter instead of the
# literal would keep the query from the index.
_LEFT_BEHIND: Final = """
    FROM write_intents AS made JOIN sessions ON sessions.id = made.session_id
    WHERE made.op = 'create' AND made.tag LIKE 'fda:%%:draft'
    AND (made.status <> 'failed' OR made.result ? 'chatflow_id')
    AND NOT EXISTS (
        SELECT 1 FROM write_intents AS gone WHERE gone.session_id = made.session_id AND gone.op = 'delete'
        AND gone.status = 'done' AND gone.target_id = made.result ->> 'chatflow_id')
"""
_ABANDON: Final = f"""
    INSERT INTO abandoned_drafts (session_id, instance_id, tag)
    SELECT DISTINCT sessions.id, sessions.instance_id, made.tag {_LEFT_BEHIND} AND sessions.id = %(session)s
    ON CONFLICT DO NOTHING
"""
# The intents are closed with it: should the session be retried, it makes a new draft.
_COLLECT: Final = f"""
    WITH closed AS (
        UPDATE write_intents SET status = 'failed', result = '{{"abandoned": true}}', updated_at = now()
        WHERE key IN (
            SELECT made.key {_LEFT_BEHIND} AND (
                sessions.status IN ('completed', 'cancelled')
                AND sessions.updated_at < now() - make_interval(secs => %(grace)s)
                OR sessions.status = 'failed' AND %(failed_days)s::float8 > 0
                AND sessions.updated_at < now() - make_interval(secs => %(failed_days)s::float8 * 86400))
            LIMIT 500)
        RETURNING session_id, tag
    )
    INSERT INTO abandoned_drafts (session_id, instance_id, tag)
    SELECT DISTINCT sessions.id, sessions.instance_id, closed.tag
    FROM closed JOIN sessions ON sessions.id = closed.session_id
    ON CONFLICT (session_id) DO UPDATE SET abandoned_at = now()
"""
#: Least recently checked first, without those of sessions that were retried in the meantime.
_TAKE: Final = """
    UPDATE abandoned_drafts SET tried_at = now() WHERE session_id IN (
        SELECT draft.session_id FROM abandoned_drafts AS draft LEFT JOIN sessions ON sessions.id = draft.session_id
        WHERE sessions.id IS NULL OR sessions.status IN ('completed', 'cancelled', 'failed')
        ORDER BY tried_at NULLS FIRST LIMIT %(limit)s)
    RETURNING session_id, instance_id, tag, abandoned_at
"""


@dataclass(frozen=True)
class AbandonedDraft:
    """A draft that may be on the instance, found there by `tag`."""

    session_id: UUID
    instance_id: str
    tag: str
    abandoned_at: datetime


class AbandonedDrafts:
    """Repository of abandoned drafts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def collect(self, *, grace_secs: float, failed_days: float) -> None:
        """Note the drafts of sessions that ended `grace_secs` ago; of failed ones after `failed_days`, 0: never."""
        async with self._database.transaction() as connection:
            await connection.execute(_COLLECT, {"grace": grace_secs, "failed_days": failed_days})
            await connection.execute(
                "DELETE FROM abandoned_drafts WHERE abandoned_at < now() - make_interval(days => %s)", (_GIVE_UP_DAYS,)
            )

    async def take(self, limit: int) -> list[AbandonedDraft]:
        """Drafts to look for now."""
        async with (
            self._database.connection() as connection,
            connection.cursor(row_factory=class_row(AbandonedDraft)) as cursor,
        ):
            await cursor.execute(_TAKE, {"limit": limit})
            return await cursor.fetchall()

    async def record_removal(self, *, removed: Sequence[UUID], missing: Sequence[UUID]) -> None:
        """Delete the rows of removed drafts at once, by session; of missing ones when no late call can create them."""
        async with self._database.connection() as connection:
            await connection.execute(
                "DELETE FROM abandoned_drafts WHERE session_id = ANY(%(removed)s) OR session_id = ANY(%(missing)s)"
                " AND abandoned_at < now() - make_interval(secs => %(late)s)",
                {"removed": list(removed), "missing": list(missing), "late": _LATE_SECS},
            )


async def abandon(connection: Connection, session_id: UUID) -> None:
    """Note the draft of a session that is about to be deleted, inside the caller's transaction."""
    await connection.execute(_ABANDON, {"session": session_id})
