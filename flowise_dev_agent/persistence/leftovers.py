"""Leftovers of sessions on Flowise: drafts, document stores, tools, orphaned flows, and effects of late calls."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from flowise_dev_agent.caller import serving
from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Connection, Database, across_owners

#: Time within which a call with an unknown outcome may still take effect.
_LATE_HOURS: Final = 24
#: Older ones are left to people: their instance was removed from the settings, or rejects the request.
_GIVE_UP_DAYS: Final = 30

_MAY_HAVE_LANDED: Final = "(made.status <> 'failed' OR made.result ?| array['chatflow_id', 'store_id', 'tool_id'])"
# `flowise/flow_tags.py` makes the tags. Drafts, stores and tools go with their session, unless a person has taken them.
_GOES: Final = "(made.tag LIKE ANY (ARRAY['fda:%%:draft', 'fda:%%:test', 'fda:%%:store:%%', 'fda:%%:tool:%%']))"
_IS_MADE: Final = "op IN ('create', 'store_create', 'store_fill', 'tool_create')"
_ID: Final = (
    "COALESCE(made.result ->> 'chatflow_id', made.result ->> 'store_id', made.result ->> 'tool_id', made.target_id)"
)
# Names and texts that the session announced: anything else under the tag belongs to a person. Of tools, which have no
# tag, the ids that answered its calls.
_NOTE: Final = f"""
    INSERT INTO leftovers (owner, tag, session_id, instance_id, endpoint, names, texts, ids)
    SELECT sessions.owner, found.tag, sessions.id, sessions.instance_id, sessions.endpoint,
        (SELECT array_agg(DISTINCT COALESCE(intent.name, '')) FROM write_intents AS intent
         WHERE intent.session_id = sessions.id AND intent.{_IS_MADE} AND intent.tag = found.tag),
        (SELECT array_agg(DISTINCT intent.payload_sha256) FROM write_intents AS intent
         WHERE intent.session_id = sessions.id AND intent.payload_sha256 IS NOT NULL),
        (SELECT COALESCE(array_agg(intent.result ->> 'tool_id'), '{{}}') FROM write_intents AS intent
         WHERE intent.session_id = sessions.id AND intent.tag = found.tag
         AND intent.op = 'tool_create' AND intent.result ? 'tool_id' AND NOT intent.result ? 'adopted')
    FROM found JOIN sessions ON sessions.id = found.session_id
"""
_AGAIN: Final = """
    ON CONFLICT (tag) DO UPDATE SET noted_at = now(), names = excluded.names, texts = excluded.texts,
        ids = leftovers.ids || excluded.ids
"""
_ABANDON: Final = f"""
    WITH found AS (
        SELECT DISTINCT made.tag, made.session_id FROM write_intents AS made
        WHERE made.session_id = %(session)s AND made.{_IS_MADE} AND {_MAY_HAVE_LANDED}
        AND NOT EXISTS (
            SELECT 1 FROM write_intents AS taken WHERE taken.session_id = made.session_id AND taken.op = 'tool_take'
            AND taken.target_id = made.result ->> 'tool_id'))
    {_NOTE} {_AGAIN}
"""
# Drafts and stores of ended sessions, and flows unknown to their failed session. The intents are closed with it: a
# retried session makes new ones.
_COLLECT_ENDED: Final = f"""
    WITH found AS (
        UPDATE write_intents SET status = 'failed', result = '{{"abandoned": true}}', updated_at = now()
        WHERE key IN (
            SELECT made.key FROM write_intents AS made JOIN sessions ON sessions.id = made.session_id
            WHERE made.{_IS_MADE} AND {_MAY_HAVE_LANDED}
            AND ({_GOES} OR sessions.status = 'failed' AND made.status = 'open')
            AND NOT EXISTS (
                SELECT 1 FROM write_intents AS gone WHERE gone.session_id = made.session_id AND gone.status = 'done'
                AND gone.target_id = {_ID} AND NOT made.unsure AND (gone.op IN (
                        'delete', 'store_delete', 'store_take', 'tool_delete', 'tool_take')
                    OR gone.op = 'store_remove' AND gone.name = made.name))
            AND (sessions.status IN ('completed', 'cancelled')
                AND sessions.updated_at < now() - make_interval(secs => %(grace)s)
                OR sessions.status = 'failed' AND %(failed_days)s::float8 > 0
                AND sessions.updated_at < now() - make_interval(secs => %(failed_days)s::float8 * 86400))
            LIMIT 500)
        RETURNING tag, session_id)
    {_NOTE.replace("FROM found", "FROM (SELECT DISTINCT tag, session_id FROM found) AS found")}
    {_AGAIN}
"""
# Duplicate flows of sessions that made several calls to create their flow.
_COLLECT_TWINS: Final = f"""
    WITH found AS (
        SELECT DISTINCT made.tag, made.session_id
        FROM write_intents AS made JOIN sessions ON sessions.id = made.session_id
        WHERE made.op = 'create' AND NOT {_GOES}
        AND (made.unsure OR made.status = 'open' OR made.result ->> 'adopted' = 'true')
        AND made.updated_at > now() - make_interval(hours => %(late)s)
        AND sessions.status NOT IN ('queued', 'running')
        AND sessions.updated_at < now() - make_interval(secs => %(grace)s)
        LIMIT 500)
    {_NOTE} ON CONFLICT (tag) DO NOTHING
"""
# Least recently checked first. Active sessions are left alone, and the known flow of an existing session stays; its
# drafts go once it has ended.
_TAKE: Final = f"""
    UPDATE leftovers SET tried_at = now() WHERE tag IN (
        SELECT made.tag FROM leftovers AS made LEFT JOIN sessions ON sessions.id = made.session_id
        WHERE sessions.id IS NULL OR sessions.status IN ('completed', 'cancelled', 'failed')
        OR sessions.status = 'waiting' AND NOT {_GOES} AND EXISTS (
            SELECT 1 FROM write_intents AS known WHERE known.session_id = made.session_id AND known.op = 'create'
            AND known.tag = made.tag AND known.status = 'done')
        ORDER BY made.tried_at NULLS FIRST LIMIT %(limit)s)
    RETURNING tag, owner, session_id, instance_id, endpoint, names, texts, ids, COALESCE((
        SELECT array_agg(known.result ->> 'chatflow_id') FROM write_intents AS known
        WHERE known.session_id = leftovers.session_id AND known.op = 'create' AND known.tag = leftovers.tag
        AND known.status = 'done' AND NOT {_GOES.replace("made.", "leftovers.")}), '{{}}') AS keep
"""


@dataclass(frozen=True)
class Leftover:
    """Chatflows, document stores or custom tools to look for on Flowise.

    Chatflows have `tag`, one of `names` and one of `texts` (SHA-256), but none of `keep`; document stores have `tag`
    and one of `names`, and share ids of sources with other stores; custom tools have one of `ids` and of `texts`.
    `endpoint` is the server's address at that time, None if unknown.
    """

    tag: str
    owner: str
    session_id: UUID
    instance_id: str
    endpoint: str | None
    names: list[str]
    texts: list[str]
    ids: list[str]
    keep: list[str]


class Leftovers:
    """Repository of leftovers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def collect(self, *, grace_secs: float, failed_days: float) -> None:
        """Record leftovers of sessions at rest for `grace_secs`.

        They are drafts, and after `failed_days` (0: never) flows of failed sessions without a known id.
        """
        with across_owners():
            await self._collect(grace_secs, failed_days)

    async def _collect(self, grace_secs: float, failed_days: float) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(_COLLECT_ENDED, {"grace": grace_secs, "failed_days": failed_days})
            await connection.execute(_COLLECT_TWINS, {"grace": grace_secs, "late": _LATE_HOURS})
            await connection.execute(
                "DELETE FROM leftovers WHERE noted_at < now() - make_interval(days => %s)", (_GIVE_UP_DAYS,)
            )

    async def take(self, limit: int) -> list[Leftover]:
        """The leftovers to look for now."""
        with across_owners():
            return await self._take(limit)

    async def _take(self, limit: int) -> list[Leftover]:
        return await self._database.rows(Leftover, _TAKE, {"limit": limit})

    async def removed(
        self, item: Leftover, action: str, *, chatflow_id: str | None = None, words: str | None = None
    ) -> None:
        """Record in the audit log what was deleted: `write.delete` of a chatflow, `write.store_delete` of a part of a
        document store, `write.tool_delete` of a custom tool.
        """
        with serving(item.owner):
            async with self._database.transaction() as connection:
                fact = Fact(action, item.session_id, instance_id=item.instance_id, chatflow_id=chatflow_id, words=words)
                await record(connection, fact)

    async def settle(self, checked: Collection[str]) -> None:
        """Forget checked tags once no late call can create anything under them."""
        with across_owners():
            async with self._database.connection() as connection:
                await connection.execute(
                    "DELETE FROM leftovers WHERE tag = ANY(%s) AND noted_at < now() - make_interval(hours => %s)",
                    (list(checked), _LATE_HOURS),
                )


async def abandon(connection: Connection, session_id: UUID) -> None:
    """Record the leftovers of a session that is about to be deleted, inside the caller's transaction."""
    await connection.execute(_ABANDON, {"session": session_id})
