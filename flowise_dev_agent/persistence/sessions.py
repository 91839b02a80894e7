"""Changes of sessions by clients: start, answer, cancel, retry, delete. `read_model.py` reads them.

Each change is one transaction together with the run and the job that follow from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, LiteralString
from uuid import UUID, uuid4

from langgraph.checkpoint.postgres.base import PRUNE_DELETE_THREADS_SQL
from psycopg.errors import UniqueViolation

from flowise_dev_agent.errors import IdempotencyKeyReusedError, SessionConflictError
from flowise_dev_agent.persistence.attachments import bind_attachments
from flowise_dev_agent.persistence.audit import Fact, record, spoken, stored_caller
from flowise_dev_agent.persistence.blobs import encoded
from flowise_dev_agent.persistence.database import Connection, Database, OnRest, jsonb
from flowise_dev_agent.persistence.events import NewEvent, insert, transaction_with_notice
from flowise_dev_agent.persistence.intents import WriteIntent, end_rollback
from flowise_dev_agent.persistence.leftovers import abandon
from flowise_dev_agent.persistence.queue import ADD_JOB, Queue
from flowise_dev_agent.persistence.read_model import SESSION_COLUMNS, SessionReads, SessionRow, not_found
from flowise_dev_agent.persistence.runs import CLAIM_COLUMNS, RUN_COLUMNS, claim_of
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.schemas.attachments import MAX_SESSION_BYTES
from flowise_dev_agent.schemas.etags import changed_meanwhile, session_etag
from flowise_dev_agent.schemas.interrupts import Approval
from flowise_dev_agent.texts import text

#: Both texts of each successful write, unless the session removed its chatflow again.
_KEEP_FLOWS: Final = """
    INSERT INTO kept_flows (session_id, chatflow_id, sha256, instance_id, content, written_at)
    SELECT DISTINCT ON (1, 2, 3) intent.session_id, COALESCE(intent.target_id, intent.result ->> 'chatflow_id'),
           blobs.sha256, sessions.instance_id, blobs.content, intent.updated_at
    FROM write_intents AS intent
    JOIN sessions ON sessions.id = intent.session_id
    JOIN blobs ON blobs.session_id = intent.session_id AND blobs.sha256 IN (intent.payload_sha256, intent.base_sha256)
    WHERE intent.session_id = %(session)s AND intent.status = 'done' AND intent.op IN ('create', 'update')
    AND COALESCE(intent.target_id, intent.result ->> 'chatflow_id') IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM write_intents AS gone
        WHERE gone.session_id = intent.session_id AND gone.status = 'done' AND gone.op = 'delete'
        AND gone.target_id = COALESCE(intent.target_id, intent.result ->> 'chatflow_id'))
    ORDER BY 1, 2, 3, intent.updated_at DESC
"""
# A run and its job for the session in `claimed`, with the question and answer in `given`. The run is claimed if its job
# is given to a worker. Returns what `claim_of` takes.
_ADD_RUN: Final = f"""
    {ADD_JOB}, run AS (
        INSERT INTO runs
            (id, session_id, kind, job_id, interrupt_id, answer, idempotency_key, fingerprint, caller, after_seq,
             status, epoch)
        SELECT %(run)s, claimed.id, %(kind)s, job.id, given.interrupt_id, given.answer, %(key)s, %(fingerprint)s,
               %(caller)s, claimed.event_seq, CASE WHEN job.worker_id IS NULL THEN 'queued' ELSE 'running' END,
               CASE WHEN job.worker_id IS NULL THEN 0 ELSE 1 END
        FROM claimed, job, given RETURNING {RUN_COLUMNS}
    ), noted AS MATERIALIZED (
        SELECT audit_add(%(caller)s, %(action)s, id, instance_id, chatflow_id, NULL, %(words)s, NULL, NULL) FROM claimed
    )
    SELECT claimed.*, {CLAIM_COLUMNS} FROM claimed, run, noted
"""
_START: Final = f"""
    WITH claimed AS (
        INSERT INTO sessions
            (id, name, requirement, request, instance_id, endpoint, idempotency_key, fingerprint, operation_mode,
             planned_with)
        VALUES (%(id)s, %(name)s, %(requirement)s, %(request)s, %(instance)s, %(endpoint)s, %(key_of_session)s,
                %(fingerprint_of_session)s, %(mode)s, %(planned_with)s)
        ON CONFLICT DO NOTHING RETURNING {SESSION_COLUMNS}
    ), endpoint AS (
        INSERT INTO webhook_endpoints (session_id, url, secret)
        SELECT claimed.id, %(url)s, %(secret)s FROM claimed WHERE %(url)s::text IS NOT NULL
    ), texts AS (
        INSERT INTO blobs (session_id, sha256, content)
        SELECT claimed.id, text.sha256, text.content
        FROM claimed, unnest(%(hashes)s::text[], %(contents)s::bytea[]) AS text (sha256, content)
        ON CONFLICT DO NOTHING
    ), given AS (SELECT NULL::text AS interrupt_id, NULL::jsonb AS answer), {_ADD_RUN}
"""
_AS_READ: Final = "xmin::text = COALESCE(%(version)s, xmin::text)"
_RESUME: Final = f"""
    WITH claimed AS (
        UPDATE sessions SET status = 'queued', interrupt = NULL, interrupt_id = NULL,
            plan = COALESCE(%(plan)s, plan), updated_at = now()
        WHERE id = %(session)s AND status = 'waiting' AND interrupt_id = %(interrupt)s AND {_AS_READ}
        RETURNING {SESSION_COLUMNS}
    ), given AS (SELECT %(interrupt)s::text AS interrupt_id, %(answer)s::jsonb AS answer), {_ADD_RUN}
"""
_RETRY: Final = f"""
    WITH claimed AS (
        UPDATE sessions SET status = 'queued', error = NULL, updated_at = now()
        WHERE id = %(session)s AND status = 'failed' AND {_AS_READ}
        RETURNING {SESSION_COLUMNS}
    ), given AS (
        SELECT last.interrupt_id, last.answer FROM (SELECT) AS one
        LEFT JOIN LATERAL (
            SELECT interrupt_id, answer FROM runs WHERE session_id = %(session)s ORDER BY created_at DESC LIMIT 1
        ) AS last ON true
    ), {_ADD_RUN}
"""


@dataclass(frozen=True)
class NewSession:
    """Data of a start.

    `fingerprint` identifies the request's content beside its idempotency key. `texts` become blobs of the session,
    `attachments` its files.
    """

    id: UUID
    name: str | None
    requirement: str
    request: Mapping[str, Any]
    instance_id: str
    #: Address of the instance.
    endpoint: str | None = None
    idempotency_key: str | None = None
    fingerprint: str | None = None
    webhook: "NewWebhook | None" = None
    operation_mode: str | None = None
    #: Engine and model.
    planned_with: str | None = None
    texts: Sequence[str] = ()
    attachments: Sequence[UUID] = ()
    #: Name of this start in the audit log.
    action: str = "start"


@dataclass(frozen=True)
class Answer:
    """An answer to an open interrupt.

    `action` and `words` are for the audit log. `plan` is the approved plan, None keeps the earlier one. `attachments`
    become the session's files.
    """

    interrupt_id: str
    value: Mapping[str, Any]
    action: str
    words: str | None = None
    plan: Mapping[str, Any] | None = None
    attachments: Sequence[UUID] = ()


@dataclass(frozen=True)
class NewWebhook:
    """Target of the session's webhooks; `secret` is its own, None means the service's."""

    url: str
    secret: str | None = None

    def __repr__(self) -> str:
        return "NewWebhook(...)"


class Sessions(SessionReads):
    """Repository of sessions. Unknown ids raise SessionNotFoundError, an absent server DatabaseUnavailableError.

    A change with a `version` applies only to that version of the row: for another one it raises
    PreconditionFailedError, or returns None where documented.
    """

    def __init__(self, database: Database, queue: Queue, on_rest: OnRest | None = None) -> None:
        super().__init__(database)
        self._queue = queue
        self._on_rest = on_rest

    async def start(self, session: NewSession) -> SessionRow | None:
        """Insert the session with its first run and job; None if the id or the idempotency key exists."""
        texts = [encoded(text) for text in session.texts]
        params = {
            "kind": "start",
            "action": session.action,
            "words": session.requirement,
            "id": session.id,
            "name": session.name,
            "requirement": session.requirement,
            "request": jsonb(session.request),
            "instance": session.instance_id,
            "endpoint": session.endpoint,
            "key_of_session": session.idempotency_key,
            "fingerprint_of_session": session.fingerprint,
            "mode": session.operation_mode,
            "planned_with": session.planned_with,
            "url": session.webhook and session.webhook.url,
            "secret": session.webhook and session.webhook.secret,
            "contents": [content for content, _ in texts],
            "hashes": [sha256 for _, sha256 in texts],
        }
        return await self._queued(_START, session.id, params, attachments=session.attachments)

    async def approve(self, session_id: UUID, answer: Answer, approval: Approval) -> SessionRow | None:
        """Record an approval that also needs another person's; None if another person has answered the same.

        A person's new answer replaces their earlier one. Raises SessionConflictError.
        """
        async with transaction_with_notice(self._database, session_id, "event") as connection:
            row = await (
                await connection.execute(
                    "SELECT interrupt -> 'data' -> 'approvals' AS approvals FROM sessions"
                    " WHERE id = %s AND status = 'waiting' AND interrupt_id = %s FOR NO KEY UPDATE",
                    (session_id, answer.interrupt_id),
                )
            ).fetchone()
            if row is None:
                raise SessionConflictError(text("error.question_closed"), hint=text("error.read_session_again"))
            given = [Approval.model_validate(one) for one in row["approvals"] or []]
            same = [one for one in given if one.answer_sha256 == approval.answer_sha256]
            if any(one.by == approval.by for one in same):
                raise SessionConflictError(
                    text("error.answered_before"),
                    details={"reason": "second_person_needed"},
                )
            if same:
                return None
            kept = [*(one for one in given if one.by != approval.by), approval]
            await connection.execute(
                "UPDATE sessions SET interrupt = jsonb_set(interrupt, '{data,approvals}', %s), updated_at = now()"
                " WHERE id = %s",
                (jsonb([one.model_dump(mode="json") for one in kept]), session_id),
            )
            await self._record(connection, session_id, f"{answer.action}.first", words=answer.words)
        return await self.get(session_id)

    async def resume(
        self,
        session_id: UUID,
        answer: Answer,
        *,
        idempotency_key: str | None,
        fingerprint: str | None,
        version: str | None = None,
    ) -> SessionRow | None:
        """Claim the open interrupt for this answer and queue the run; None if it is closed or the version differs."""
        params = {
            "kind": "resume",
            "action": answer.action,
            "words": answer.words,
            "interrupt": answer.interrupt_id,
            "answer": jsonb(answer.value),
            "plan": None if answer.plan is None else jsonb(answer.plan),
            "version": version,
        }
        try:
            return await self._queued(
                _RESUME,
                session_id,
                params,
                key=idempotency_key,
                fingerprint=fingerprint,
                attachments=answer.attachments,
            )
        except UniqueViolation as error:
            raise IdempotencyKeyReusedError(
                "This Idempotency-Key was used for another answer in this session.", hint="Use a new key."
            ) from error

    async def retry(self, session_id: UUID, version: str | None = None) -> SessionRow | None:
        """Queue a failed session again with its last run's answer; None if it has not failed or the version differs."""
        params = {"kind": "retry", "action": "retry", "words": None, "version": version}
        return await self._queued(_RETRY, session_id, params)

    async def _queued(
        self,
        statement: LiteralString,
        session_id: UUID,
        params: Mapping[str, Any],
        *,
        key: str | None = None,
        fingerprint: str | None = None,
        attachments: Sequence[UUID] = (),
    ) -> SessionRow | None:
        """Make the change, and begin its run here if a slot is free; None if nothing is changed."""
        run_id = uuid4()
        run = {"run": run_id, "session": session_id, "key": key, "fingerprint": fingerprint, "caller": stored_caller()}
        with self._queue.slot() as slot:
            params = {**run, **params, "words": spoken(params["words"]), "worker": slot.worker_id}
            # One statement needs no transaction around it.
            async with self._database.transaction() if attachments else self._database.connection() as connection:
                row = await (await connection.execute(statement, params)).fetchone()
                if row is None:
                    return None
                await bind_attachments(connection, session_id, attachments, MAX_SESSION_BYTES)
            claim = claim_of(run_id, row)
            if claim.lease.epoch:
                session = replace(claim.session, has_files=claim.session.has_files or bool(attachments))
                has_webhook = claim.has_webhook or params.get("url") is not None
                await slot.begin(replace(claim, session=session, has_webhook=has_webhook))
        return claim.session

    async def cancel(self, session_id: UUID, version: str | None = None) -> str:
        """End the session in any state; returns the status that it had. A finished one stays unchanged."""
        async with transaction_with_notice(self._database, session_id, "settled") as connection:
            status = await self._lock(connection, session_id, version)
            if status not in {"queued", "running", "waiting"}:
                return status
            await self._end_active_run(connection, session_id)
            await connection.execute(
                "UPDATE sessions SET status = 'cancelled', outcome = 'cancelled', interrupt = NULL,"
                " interrupt_id = NULL, updated_at = now() WHERE id = %s",
                (session_id,),
            )
            done = NewEvent("done", status="cancelled", summary="Cancelled", data={"outcome": "cancelled"})
            await insert(connection, session_id, None, [done])
            if self._on_rest:
                await self._on_rest(connection, session_id)
            await self._record(connection, session_id, "cancel")
        return status

    async def record_rollback(self, rollback: WriteIntent, *, outcome: str, event: NewEvent) -> None:
        """End a rollback and record it in the session's events; `outcome` replaces the outcome of a completed
        session.
        """
        session_id = rollback.session_id
        async with transaction_with_notice(self._database, session_id, "event") as connection:
            await connection.execute(
                "UPDATE sessions SET updated_at = now(),"
                " outcome = CASE status WHEN 'completed' THEN %s ELSE outcome END WHERE id = %s",
                (outcome, session_id),
            )
            await end_rollback(connection, rollback, "done")
            await insert(connection, session_id, None, [event])
            await self._record(connection, session_id, "rollback", version=event.data.get("version"))

    async def rename(self, session_id: UUID, name: str, version: str | None = None) -> None:
        """Rename the session."""
        async with self._database.transaction() as connection:
            await self._lock(connection, session_id, version)
            await connection.execute(
                "UPDATE sessions SET name = %s, updated_at = now() WHERE id = %s", (clean_text(name), session_id)
            )
            await self._record(connection, session_id, "rename", words=name)

    async def delete(
        self, session_id: UUID, *, purge: bool = False, if_ended: bool = False, version: str | None = None
    ) -> None:
        """Delete everything of the session, including checkpoints and jobs, in one transaction.

        A running run loses its lease. The flows that it found and wrote are kept while its chatflow may be in use;
        `purge` removes them too, also those kept by an earlier deletion. With `if_ended` a session that runs (again) or
        waits stays.
        """
        async with transaction_with_notice(self._database, session_id, "deleted") as connection:
            purged = await connection.execute(
                "DELETE FROM kept_flows WHERE session_id = %s AND %s", (session_id, purge)
            )
            if purged.rowcount and not await self._exists(connection, session_id):
                return
            status = await self._lock(connection, session_id, version)
            if if_ended and status in {"queued", "running", "waiting"}:
                return
            await self._end_active_run(connection, session_id)
            await abandon(connection, session_id)
            if not purge:
                await connection.execute(_KEEP_FLOWS, {"session": session_id})
            # A running job was told to end and goes within a day; its row names only the run or delivery.
            await connection.execute(
                "DELETE FROM procrastinate_jobs WHERE status <> 'doing'"
                " AND (args ->> 'run_id' IN (SELECT id::text FROM runs WHERE session_id = %(session)s)"
                " OR args ->> 'delivery_id' IN"
                " (SELECT id::text FROM webhook_deliveries WHERE session_id = %(session)s))",
                {"session": session_id},
            )
            deleted = await connection.execute(
                "DELETE FROM sessions WHERE id = %s RETURNING instance_id, chatflow_id", (session_id,)
            )
            # A checkpoint that passed the fence earlier is committed by now; no other can follow.
            for statement in PRUNE_DELETE_THREADS_SQL:
                await connection.execute(statement, ([str(session_id)],))
            await record(connection, Fact("delete", session_id, **(await deleted.fetchone() or {})))

    async def _record(
        self,
        connection: Connection,
        session_id: UUID,
        action: str,
        *,
        words: str | None = None,
        version: str | None = None,
    ) -> None:
        row = await (
            await connection.execute("SELECT instance_id, chatflow_id FROM sessions WHERE id = %s", (session_id,))
        ).fetchone()
        await record(connection, Fact(action, session_id, **(row or {}), words=words, version=version))

    async def _exists(self, connection: Connection, session_id: UUID) -> bool:
        found = await connection.execute("SELECT 1 FROM sessions WHERE id = %s", (session_id,))
        return await found.fetchone() is not None

    async def _lock(self, connection: Connection, session_id: UUID, version: str | None = None) -> str:
        row = await (
            await connection.execute(
                "SELECT status, xmin::text AS version FROM sessions WHERE id = %s FOR NO KEY UPDATE", (session_id,)
            )
        ).fetchone()
        if row is None:
            raise not_found(session_id)
        if version not in {None, row["version"]}:
            raise changed_meanwhile(session_etag(session_id, row["version"]))
        return str(row["status"])

    async def _end_active_run(self, connection: Connection, session_id: UUID) -> None:
        # The raised epoch fences a run that is running; cancelling its job ends it without waiting for its next write.
        row = await (
            await connection.execute(
                "UPDATE runs SET status = 'cancelled', epoch = epoch + 1, updated_at = now()"
                " WHERE session_id = %s AND status IN ('queued', 'running') RETURNING job_id",
                (session_id,),
            )
        ).fetchone()
        if row is not None:
            await self._queue.cancel_job(connection, row["job_id"])
