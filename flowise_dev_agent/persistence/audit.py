"""The audit log of answers and writes: rows are added in the transaction of the fact, read, exported and verified."""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from flowise_dev_agent.caller import as_stored
from flowise_dev_agent.persistence.database import Connection, Database, jsonb
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.schemas.audit import AuditEntry, AuditFinding, AuditReport, AuditRow

#: Chain of facts without a session of the default owner; other owners have their own.
SERVICE_CHAIN: Final = UUID(int=0)
_MAX_WORDS: Final = 40_000
_MAX_FINDINGS: Final = 100
_BATCH: Final = 500

_FIELDS: Final = tuple(AuditEntry.model_fields)
_COLUMNS: Final[LiteralString] = (
    "audit_log.owner, chain, seq, ts, actor, key_id, door, action, session_id, instance_id, chatflow_id, version,"
    " words_sha256, before_sha256, after_sha256, request_id, prev_hash, hash"
)
_ADD: Final[LiteralString] = (
    "SELECT audit_add(%(caller)s, %(action)s, %(session_id)s, %(instance_id)s, %(chatflow_id)s, %(version)s, %(words)s,"
    " %(before_sha256)s, %(after_sha256)s)"
)
_READ: Final[LiteralString] = f"SELECT id, {_COLUMNS}, words FROM audit_log LEFT JOIN audit_words USING (chain, seq)"


@dataclass(frozen=True)
class Fact:
    """An action for the audit log; the actor is the current caller. `words` are already free of secrets."""

    action: str
    session_id: UUID | None = None
    instance_id: str | None = None
    chatflow_id: str | None = None
    version: str | None = None
    words: str | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None


async def record(connection: Connection, fact: Fact) -> None:
    """Add a row inside the caller's transaction. Call it last: the lock of the chain is taken after all others."""
    await connection.execute(_ADD, {**vars(fact), "words": spoken(fact.words), "caller": stored_caller()})


def stored_caller() -> Jsonb:
    """The current caller, as stored by `audit_add` and in the column `runs.caller`."""
    return jsonb(as_stored())


def spoken(words: str | None) -> str | None:
    """Clean and cut a text for the audit log."""
    return None if words is None else clean_text(words)[:_MAX_WORDS]


@dataclass(frozen=True)
class AuditFilter:
    """Filter of audit rows; None matches all."""

    session_id: UUID | None = None
    chatflow_id: str | None = None
    actor: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def where(self) -> tuple[LiteralString, dict[str, Any]]:
        """The SQL condition and the values of its parameters."""
        conditions: list[LiteralString] = ["true"]
        params: dict[str, Any] = {}
        known: dict[LiteralString, LiteralString] = {
            "session_id": "session_id = %(session_id)s",
            "chatflow_id": "chatflow_id = %(chatflow_id)s",
            "actor": "actor = %(actor)s",
            "action": "action = %(action)s",
            "since": "ts >= %(since)s",
            "until": "ts < %(until)s",
        }
        for name, condition in known.items():
            if (value := getattr(self, name)) is not None:
                conditions.append(condition)
                params[name] = value
        return " AND ".join(conditions), params


class AuditLog:
    """Repository of the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, fact: Fact) -> None:
        """Add a row for an action that was done elsewhere, without a transaction here."""
        async with self._database.transaction() as connection:
            await record(connection, fact)

    async def page(
        self, which: AuditFilter, *, limit: int, before: int | None = None
    ) -> tuple[list[AuditRow], int | None]:
        """A page of rows, newest first, and the start of the next page."""
        condition, params = which.where()
        params |= {"limit": limit + 1, "before": before}
        rows = await self._database.fetch_all(
            f"{_READ} WHERE {condition} AND COALESCE(id < %(before)s, true) ORDER BY id DESC LIMIT %(limit)s", params
        )
        shown = rows[:limit]
        return [_row(row) for row in shown], shown[-1]["id"] if len(rows) > limit else None

    async def all(self, which: AuditFilter) -> AsyncGenerator[AuditRow]:
        """All rows, oldest first, read in batches."""
        condition, params = which.where()
        after = 0
        while True:
            rows = await self._database.fetch_all(
                f"{_READ} WHERE {condition} AND id > %(after)s ORDER BY id LIMIT %(limit)s",
                {**params, "after": after, "limit": _BATCH},
            )
            for row in rows:
                yield _row(row)
            if len(rows) < _BATCH:
                return
            after = rows[-1]["id"]

    async def erase_words(self, *, session_id: UUID | None, actor: str | None, fact: Fact) -> int:
        """Erase the texts of a session, of a person, or of a person in a session; the rows stay. Records `fact`."""
        condition, params = AuditFilter(session_id=session_id, actor=actor).where()
        async with self._database.transaction() as connection:
            gone = await connection.execute(
                "DELETE FROM audit_words WHERE (chain, seq) IN"
                f" (SELECT chain, seq FROM audit_log WHERE {condition} AND words_sha256 IS NOT NULL)",
                params,
            )
            await record(connection, fact)
        return gone.rowcount

    async def verify(self, session_id: UUID | None = None) -> AuditReport:
        """Verify that every row exists and is unchanged, in one session or in all."""
        check = _Check()
        chain, seq = UUID(int=0), 0
        while True:
            rows = await self._database.fetch_all(
                f"SELECT {_COLUMNS}, salt, words FROM audit_log LEFT JOIN audit_words USING (chain, seq)"
                " WHERE (chain, seq) > (%(chain)s, %(seq)s) AND (%(only)s::uuid IS NULL OR chain = %(only)s)"
                " ORDER BY chain, seq LIMIT %(limit)s",
                {"chain": chain, "seq": seq, "only": session_id, "limit": _BATCH},
            )
            for row in rows:
                check.take(row)
            if len(rows) < _BATCH:
                break
            chain, seq = rows[-1]["chain"], rows[-1]["seq"]
        for head in await self._database.fetch_all(
            "SELECT head.chain, head.seq, last.seq AS last FROM audit_heads AS head LEFT JOIN LATERAL"
            " (SELECT seq, hash FROM audit_log WHERE chain = head.chain ORDER BY seq DESC LIMIT 1) AS last ON true"
            " WHERE (%(only)s::uuid IS NULL OR head.chain = %(only)s)"
            " AND (last.seq IS DISTINCT FROM head.seq OR last.hash IS DISTINCT FROM head.hash) LIMIT 100",
            {"only": session_id},
        ):
            whole = head["last"] is None
            check.find(head["chain"], None if whole else head["seq"], "missing")
        # Every session has begun with a row since there is a audit log.
        for row in await self._database.fetch_all(
            "SELECT id FROM sessions WHERE (%(only)s::uuid IS NULL OR id = %(only)s)"
            " AND created_at > (SELECT applied_at FROM schema_migrations WHERE name = '0820_audit.sql')"
            " AND NOT EXISTS (SELECT 1 FROM audit_heads WHERE chain = sessions.id) LIMIT 100",
            {"only": session_id},
        ):
            check.find(row["id"], None, "missing")
        return AuditReport(rows=check.rows, chains=check.chains, findings=check.findings[:_MAX_FINDINGS])


class _Check:
    """Verification of rows in the order of their chains."""

    def __init__(self) -> None:
        self.rows = 0
        self.chains = 0
        self.findings: list[AuditFinding] = []
        self._last: AuditEntry | None = None

    def take(self, row: Mapping[str, Any]) -> None:
        entry = AuditEntry.model_validate({name: row[name] for name in _FIELDS})
        before = self._last if self._last is not None and self._last.chain == entry.chain else None
        self.rows += 1
        self.chains += before is None
        expected = before.seq + 1 if before else 1
        for seq in range(expected, min(entry.seq, expected + _MAX_FINDINGS)):
            self.find(entry.chain, seq, "missing")
        follows = entry.seq != expected or entry.prev_hash == (before.hash if before else None)
        if entry.hash != entry.computed_hash() or not follows:
            self.find(entry.chain, entry.seq, "changed")
        elif row["words"] is not None and _hash_of_words(row["salt"], row["words"]) != entry.words_sha256:
            self.find(entry.chain, entry.seq, "words_changed")
        self._last = entry

    def find(self, chain: UUID, seq: int | None, problem: Any) -> None:
        """Record a finding; those beyond the limit are dropped."""
        if len(self.findings) < _MAX_FINDINGS:
            self.findings.append(AuditFinding(chain=chain, seq=seq, problem=problem))


def _row(row: dict[str, Any]) -> AuditRow:
    return AuditRow.model_validate({name: row[name] for name in (*_FIELDS, "words")})


def _hash_of_words(salt: str, words: str) -> str:
    return hashlib.sha256(f"{salt}{words}".encode()).hexdigest()
