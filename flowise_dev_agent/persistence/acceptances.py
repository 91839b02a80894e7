"""Repository of acceptances: the version that a person accepted in a session, and the audit rows that say so."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from flowise_dev_agent.persistence.database import Database

#: The version is the last one that the session itself wrote. The server's version is the last one read before.
_ACCEPTED: Final = """
    SELECT session.id AS session_id, session.instance_id, session.endpoint, session.planned_with, session.result,
           kept.chatflow_id, kept.name, kept.version, kept.sha256, accepted.ts AS accepted_at,
           accepted.actor AS accepted_by, server.flowise_version,
           COALESCE((answered.answer ->> 'iteration')::int = session.iteration, true) AS is_newest,
           jsonb_build_array(accepted.link, written.link) AS links
    FROM sessions AS session
    JOIN LATERAL (
        SELECT ts, actor, jsonb_build_object('chain', chain, 'seq', seq, 'action', action, 'hash', hash) AS link
        FROM audit_log WHERE session_id = session.id AND action = 'result_review.accept' ORDER BY id DESC LIMIT 1
    ) AS accepted ON true
    JOIN LATERAL (
        SELECT chatflow_id, name, version, sha256 FROM flow_versions
        WHERE session_id = session.id AND chatflow_id = session.chatflow_id AND reason <> 'rollback'
        AND reason NOT LIKE 'before%%' AND reason NOT LIKE 'after%%' ORDER BY number DESC LIMIT 1
    ) AS kept ON true
    JOIN LATERAL (
        SELECT jsonb_build_object('chain', chain, 'seq', seq, 'action', action, 'hash', hash) AS link
        FROM audit_log WHERE session_id = session.id AND action LIKE 'write.%%' AND after_sha256 = kept.sha256
        ORDER BY id DESC LIMIT 1
    ) AS written ON true
    LEFT JOIN LATERAL (
        SELECT answer FROM runs WHERE session_id = session.id AND answer ->> 'action' = 'accept'
        ORDER BY created_at DESC LIMIT 1
    ) AS answered ON true
    LEFT JOIN LATERAL (
        SELECT flowise_version FROM node_catalogues WHERE instance_id = session.instance_id
        ORDER BY fetched_at <= accepted.ts DESC, fetched_at DESC LIMIT 1
    ) AS server ON true
    WHERE session.id = %s AND session.outcome = 'accepted'
"""


@dataclass(frozen=True)
class Acceptance:
    """An accepted version. `links` are the audit rows of the answer and of the write, by chain, seq, action and hash.

    `is_newest` is False if an earlier iteration was accepted than the one that `result` is about.
    """

    session_id: UUID
    instance_id: str
    endpoint: str | None
    planned_with: str | None
    result: dict[str, Any] | None
    chatflow_id: str
    name: str
    version: int
    sha256: str
    accepted_at: datetime
    accepted_by: str
    flowise_version: str | None
    is_newest: bool
    links: list[dict[str, Any]]


class Acceptances:
    """Repository of acceptances."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_session(self, session_id: UUID) -> Acceptance | None:
        """The accepted version of a session; None if it wrote and accepted none."""
        return await self._database.row(Acceptance, _ACCEPTED, (session_id,))
