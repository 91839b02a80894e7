"""Write intents: writes to Flowise, committed before the call."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from flowise_dev_agent.errors import LeaseLostError, SessionConflictError
from flowise_dev_agent.persistence.audit import stored_caller
from flowise_dev_agent.persistence.database import Connection, Database, Lease, across_owners, jsonb
from flowise_dev_agent.sanitize import clean_json
from flowise_dev_agent.texts import text

IntentStatus = Literal["open", "done", "failed"]
_COLUMNS: Final = (
    "key, session_id, status, op, iteration, target_id, payload_sha256, base_sha256, tag, name, result, created_at,"
    " unsure, base_date, caller"
)
# The statements read `owner`, so that nothing happens without the lease, if there is one.
_OWNER: Final = """
    owner AS MATERIALIZED (
        SELECT CASE WHEN %(run)s::uuid IS NOT NULL THEN assert_owner(%(run)s, %(epoch)s) END AS owned
    )
"""
_OPEN: Final = f"""
    WITH {_OWNER}, earlier AS (
        SELECT {_COLUMNS} FROM write_intents WHERE key = %(key)s
    ), announced AS (
        INSERT INTO write_intents
            (key, session_id, op, iteration, target_id, payload_sha256, base_sha256, tag, name, base_date, caller)
        SELECT %(key)s, %(session)s, %(op)s, %(iteration)s, %(target)s, %(payload)s, %(base)s, %(tag)s, %(name)s,
               %(base_date)s, %(caller)s
        FROM owner
        ON CONFLICT (key) DO UPDATE SET status = 'open', result = NULL, updated_at = now(), unsure = true,
            base_sha256 = EXCLUDED.base_sha256, base_date = EXCLUDED.base_date, caller = EXCLUDED.caller
            WHERE write_intents.status <> 'done'
        RETURNING {_COLUMNS}
    )
    SELECT intent.*,
           (SELECT jsonb_build_object('status', earlier.status, 'result', earlier.result) FROM earlier) AS earlier,
           ARRAY(SELECT jsonb_build_object('status', status, 'result', result, 'unsure', unsure) FROM write_intents
                 WHERE session_id = %(session)s AND op = 'create' AND tag = %(tag)s) AS creates
    FROM (SELECT * FROM announced UNION ALL SELECT * FROM earlier WHERE NOT EXISTS (SELECT 1 FROM announced)) AS intent
"""
_FINISH: Final = f"""
    WITH {_OWNER}, earlier AS (
        SELECT status FROM write_intents WHERE key = %(key)s
    ), settled AS (
        UPDATE write_intents SET status = %(status)s, result = %(result)s, updated_at = now() FROM owner
        WHERE key = %(key)s AND status <> 'done' OR %(status)s = 'done' AND status = 'open'
        AND (session_id, op, target_id, payload_sha256) = (
            SELECT session_id, op, target_id, payload_sha256 FROM write_intents WHERE key = %(key)s)
        RETURNING key, session_id, op, COALESCE(target_id, %(chatflow)s) AS chatflow_id, base_sha256,
            CASE WHEN op <> 'delete' THEN COALESCE(%(after)s, payload_sha256) END AS after
    )
    SELECT audit_add(%(caller)s, 'write.' || settled.op, settled.session_id, sessions.instance_id, settled.chatflow_id,
        'v' || (SELECT max(number) FROM flow_versions AS version WHERE version.session_id = settled.session_id
                AND version.chatflow_id = settled.chatflow_id AND version.sha256 = settled.after) || '.0',
        NULL, settled.base_sha256, settled.after)
    FROM settled JOIN earlier ON earlier.status <> %(status)s LEFT JOIN sessions ON sessions.id = settled.session_id
    WHERE settled.key = %(key)s AND %(written)s
"""
# Of several that one session left the newest counts.
_TAKE_LEFT: Final = f"""
    UPDATE write_intents SET updated_at = now() WHERE key IN (
        SELECT made.key FROM write_intents AS made JOIN sessions ON sessions.id = made.session_id
        WHERE made.op = 'rollback' AND made.status = 'open'
        AND made.updated_at < now() - make_interval(secs => %(grace)s)
        AND sessions.status NOT IN ('queued', 'running')
        AND NOT EXISTS (
            SELECT 1 FROM write_intents AS newer WHERE newer.session_id = made.session_id AND newer.op = 'rollback'
            AND newer.status = 'open' AND newer.created_at > made.created_at)
        ORDER BY made.updated_at LIMIT %(limit)s)
    RETURNING {_COLUMNS}
"""
_END_ROLLBACK: Final = """
    UPDATE write_intents SET status = CASE WHEN key = %(key)s THEN %(status)s ELSE 'failed' END,
        result = '{"settled": true}', updated_at = now()
    WHERE session_id = %(session)s AND status = 'open' AND (
        op = 'rollback' OR op IN ('update', 'delete', 'deploy') AND target_id = %(target)s)
"""


@dataclass(frozen=True, kw_only=True)
class Announced:
    """State of an announced write. `open`: its outcome is unknown."""

    status: IntentStatus
    result: dict[str, Any] | None
    #: Announced again after a call with an unknown outcome: both may have reached Flowise.
    unsure: bool = False

    @property
    def may_have_landed(self) -> bool:
        """True if the write may have reached Flowise: not if it failed before or at the call."""
        return self.status != "failed" or "chatflow_id" in (self.result or {})

    @property
    def was_repeated(self) -> bool:
        """True if an earlier call with an unknown result may also have reached Flowise."""
        return self.unsure or self.status == "open" or bool((self.result or {}).get("adopted"))


@dataclass(frozen=True, kw_only=True)
class WriteIntent(Announced):
    """One announced write. `is_new`: no earlier call for it can have had an effect."""

    key: UUID
    session_id: UUID
    op: str
    iteration: int
    target_id: str | None
    payload_sha256: str | None
    base_sha256: str | None
    tag: str | None
    name: str | None
    created_at: datetime
    #: Of a rollback: when the flow had been saved last, by Flowise's clock.
    base_date: str | None = None
    #: Who asked for it, see `caller.as_stored`; None for those of earlier versions.
    caller: dict[str, Any] | None = None
    is_new: bool = False
    #: At its announcement: the session's earlier creates under its tag.
    creates: Sequence[Announced] = ()


class WriteIntents:
    """Repository of write intents. A worker that lost its lease gets LeaseLostError and must not call Flowise.

    Outside of a run (lease None) the session must be idle: SessionConflictError while a run is queued or running.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(
        self,
        lease: Lease | None,
        *,
        key: UUID,
        session_id: UUID,
        op: str,
        iteration: int,
        target_id: str | None,
        payload_sha256: str | None,
        base_sha256: str | None,
        tag: str | None,
        name: str | None = None,
        base_date: str | None = None,
    ) -> WriteIntent:
        """Announce a write, or return the row of an earlier attempt with the same key.

        A finished one stays `done`; a failed one is open again.
        """
        params = {
            "run": lease and lease.run_id,
            "epoch": lease and lease.epoch,
            "key": key,
            "session": session_id,
            "op": op,
            "iteration": iteration,
            "target": target_id,
            "payload": payload_sha256,
            "base": base_sha256,
            "tag": tag,
            "name": name,
            "base_date": base_date,
            "caller": stored_caller(),
        }
        async with self._allowed(lease, session_id) as connection:
            row = await (await connection.execute(_OPEN, params)).fetchone()
        if row is None:
            raise LeaseLostError("The session was deleted meanwhile.")
        earlier, creates = row.pop("earlier"), [Announced(**one) for one in row.pop("creates")]
        intent = WriteIntent(**row, creates=creates)
        return replace(intent, is_new=earlier is None or not replace(intent, **earlier).may_have_landed)

    async def finish(
        self, lease: Lease | None, key: UUID, *, status: Literal["done", "failed"], result: dict[str, Any]
    ) -> None:
        """Record the result of a write; a finished one stays `done`.

        This also closes open writes of the same text to the same flow, since their result is known now.
        """
        kept = clean_json(result)
        params = {
            "run": lease and lease.run_id,
            "epoch": lease and lease.epoch,
            "status": status,
            "result": jsonb(result),
            "key": key,
            "caller": stored_caller(),
            # For the audit log. What was not sent, or sent and refused, is no write; what was read back otherwise is.
            "written": not kept.get("unchanged") and (status == "done" or "chatflow_id" in kept),
            "chatflow": kept.get("chatflow_id") or kept.get("conflict", {}).get("chatflow_id"),
            "after": kept.get("sha256"),
        }
        async with self._database.connection() as connection:
            await connection.execute(_FINISH, params)

    async def list_for(self, session_id: UUID) -> list[WriteIntent]:
        """The session's writes, oldest first."""
        return await self._database.rows(
            WriteIntent,
            f"SELECT {_COLUMNS} FROM write_intents WHERE session_id = %s ORDER BY created_at, key",
            (session_id,),
        )

    async def take_left(self, *, grace_secs: float, limit: int) -> list[WriteIntent]:
        """Rollbacks of idle sessions that nobody has ended for `grace_secs`; no other process gets them as long."""
        with across_owners():
            return await self._database.rows(WriteIntent, _TAKE_LEFT, {"grace": grace_secs, "limit": limit})

    async def end(self, rollback: WriteIntent, status: Literal["done", "failed"]) -> None:
        """End a rollback that has nothing to tell."""
        async with self._database.connection() as connection:
            await end_rollback(connection, rollback, status)

    @asynccontextmanager
    async def _allowed(self, lease: Lease | None, session_id: UUID) -> AsyncGenerator[Connection]:
        """A connection; outside of a run the session is locked and must be idle.

        With a lease the statement checks it.
        """
        if lease is not None:
            async with self._database.connection() as connection:
                yield connection
            return
        async with self._database.transaction() as connection:
            row = await (
                await connection.execute("SELECT status FROM sessions WHERE id = %s FOR NO KEY UPDATE", (session_id,))
            ).fetchone()
            if row and row["status"] in {"queued", "running"}:
                raise SessionConflictError(
                    text("error.session_at_work"),
                    hint=text("error.wait_for_question"),
                    details={"status": "in_progress", "interrupt_id": None},
                )
            yield connection


async def end_rollback(connection: Connection, rollback: WriteIntent, status: Literal["done", "failed"]) -> None:
    """End a rollback inside the caller's transaction, and what earlier ones of its idle session left open: nobody goes
    on with those.
    """
    params = {"key": rollback.key, "session": rollback.session_id, "target": rollback.target_id, "status": status}
    await connection.execute(_END_ROLLBACK, params)
