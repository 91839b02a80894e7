"""Repository of patterns: accepted results that similar requirements may start from, with their success counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, LiteralString
from uuid import UUID

from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Database, jsonb
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.schemas.etags import Expected, etag_of

PatternCategory = Literal["rag", "tool_agent", "conversational", "custom"]
#: Patterns kept per owner and instance; the ones not used for longest go first.
MAX_PATTERNS: Final = 500
_COLUMNS: Final = (
    "id, owner, instance_id, domain, name, requirement, terms, flow_kind, ops, node_types, category,"
    " schema_fingerprint, success_count, failure_count, created_at, last_used_at, xmin::text AS version"
)


@dataclass(frozen=True)
class NewPattern:
    """A pattern to store. `terms` are the significant words of the requirement, sorted and joined by blanks."""

    owner: str
    instance_id: str
    name: str
    requirement: str
    terms: str
    flow_kind: str
    ops: list[dict[str, Any]]
    node_types: list[str]
    category: PatternCategory
    schema_fingerprint: str
    success_count: int = 0
    failure_count: int = 0


@dataclass(frozen=True)
class StoredPattern(NewPattern):
    """A kept pattern."""

    id: int = 0
    domain: str = "flowise"
    created_at: datetime | None = None
    last_used_at: datetime | None = None
    #: The transaction that wrote the row.
    version: str = ""

    @property
    def etag(self) -> str:
        """The entity tag of this state."""
        return etag_of(self.id, self.version)


# Beside the new pattern, the most recently used ones stay.
_SAVE: Final = """
    WITH kept AS (
        INSERT INTO patterns (owner, instance_id, name, requirement, terms, flow_kind, ops, node_types, category,
            schema_fingerprint, success_count, failure_count)
        VALUES (%(owner)s, %(instance)s, %(name)s, %(requirement)s, %(terms)s, %(flow_kind)s, %(ops)s, %(node_types)s,
            %(category)s, %(fingerprint)s, %(successes)s, %(failures)s)
        ON CONFLICT (owner, instance_id, md5(terms)) $on_conflict RETURNING id
    ), gone AS (
        DELETE FROM patterns WHERE id IN (
            SELECT id FROM patterns
            WHERE owner = %(owner)s AND instance_id = %(instance)s AND md5(terms) <> md5(%(terms)s)
            ORDER BY COALESCE(last_used_at, created_at) DESC, id DESC OFFSET %(others)s)
    )
    SELECT id FROM kept
"""


class Patterns:
    """Repository of patterns. Every call names the owner and is limited to its patterns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, pattern: NewPattern, *, replace: bool = True) -> int | None:
        """Store a pattern and return its id.

        An existing one for the same words is replaced but keeps its counts; without `replace` it stays unchanged
        (None).
        """
        on_conflict: LiteralString = (
            "DO UPDATE SET name = excluded.name, requirement = excluded.requirement, flow_kind = excluded.flow_kind,"
            " ops = excluded.ops, node_types = excluded.node_types, category = excluded.category,"
            " schema_fingerprint = excluded.schema_fingerprint"
            if replace
            else "DO NOTHING"
        )
        statement = _SAVE.replace("$on_conflict", on_conflict)
        params = {
            "owner": pattern.owner,
            "instance": pattern.instance_id,
            "name": clean_text(pattern.name),
            "requirement": clean_text(pattern.requirement),
            "terms": clean_text(pattern.terms),
            "flow_kind": pattern.flow_kind,
            "ops": jsonb(pattern.ops),
            "node_types": pattern.node_types,
            "category": pattern.category,
            "fingerprint": pattern.schema_fingerprint,
            "successes": pattern.success_count,
            "failures": pattern.failure_count,
            "others": MAX_PATTERNS - 1,
        }
        if replace:
            row = await self._database.fetch_one(statement, params)
            return None if row is None else int(row["id"])
        async with self._database.transaction() as connection:
            row = await (await connection.execute(statement, params)).fetchone()
            if row is not None:  # imported by a person; otherwise it follows from an acceptance
                fact = Fact("pattern.import", instance_id=pattern.instance_id, words=pattern.name)
                await record(connection, fact)
        return None if row is None else int(row["id"])

    async def matching(
        self, owner: str, instance_id: str, terms: Sequence[str], *, limit: int = 50
    ) -> list[StoredPattern]:
        """Patterns that share a word with `terms` (letters and digits only), those that share most first."""
        return await self._read(
            "owner = %(owner)s AND instance_id = %(instance)s AND search @@ to_tsquery('simple', %(query)s)"
            " ORDER BY ts_rank(search, to_tsquery('simple', %(query)s)) DESC, success_count DESC, id DESC"
            " LIMIT %(limit)s",
            {"owner": owner, "instance": instance_id, "query": " | ".join(terms), "limit": limit},
        )

    async def page(
        self,
        owner: str,
        *,
        instance_id: str | None,
        category: str | None,
        terms: Sequence[str],
        limit: int,
        pattern_id: int | None = None,
    ) -> list[StoredPattern]:
        """An owner's patterns, the most successful first; the filters that are not None or empty apply."""
        conditions: list[LiteralString] = ["owner = %(owner)s"]
        if instance_id is not None:
            conditions.append("instance_id = %(instance)s")
        if pattern_id is not None:
            conditions.append("id = %(pattern)s")
        if category is not None:
            conditions.append("category = %(category)s")
        if terms:
            conditions.append("search @@ to_tsquery('simple', %(query)s)")
        return await self._read(
            f"{' AND '.join(conditions)} ORDER BY success_count - failure_count DESC, id DESC LIMIT %(limit)s",
            {
                "owner": owner,
                "instance": instance_id,
                "category": category,
                "query": " | ".join(terms),
                "limit": limit,
                "pattern": pattern_id,
            },
        )

    async def record(self, owner: str, pattern_ids: Sequence[int], session_id: UUID, *, accepted: bool) -> None:
        """Count the outcome of a session for its patterns, once per session and pattern."""
        async with self._database.connection() as connection:
            await connection.execute(
                "WITH used AS (INSERT INTO pattern_uses (pattern_id, session_id, accepted)"
                " SELECT id, %(session)s, %(accepted)s FROM patterns WHERE id = ANY(%(ids)s) AND owner = %(owner)s"
                " ON CONFLICT DO NOTHING RETURNING pattern_id, accepted)"
                " UPDATE patterns SET last_used_at = now(), success_count = success_count + used.accepted::int,"
                " failure_count = failure_count + (NOT used.accepted)::int FROM used WHERE id = used.pattern_id",
                {"ids": list(pattern_ids), "owner": owner, "session": session_id, "accepted": accepted},
            )

    async def delete(self, owner: str, pattern_id: int, expected: Expected | None = None) -> bool:
        """Delete a pattern; False if the owner has none with this id. Raises PreconditionFailedError."""
        async with self._database.transaction() as connection:
            if expected is not None:
                found = await connection.execute(
                    "SELECT id, xmin::text AS version FROM patterns WHERE id = %s AND owner = %s FOR UPDATE",
                    (pattern_id, owner),
                )
                if (row := await found.fetchone()) is not None:
                    expected.check(etag_of(row["id"], row["version"]))
            gone = await (
                await connection.execute(
                    "DELETE FROM patterns WHERE id = %s AND owner = %s RETURNING instance_id, name", (pattern_id, owner)
                )
            ).fetchone()
            if gone is not None:
                await record(connection, Fact("pattern.delete", instance_id=gone["instance_id"], words=gone["name"]))
        return gone is not None

    async def _read(self, rest: LiteralString, params: dict[str, Any]) -> list[StoredPattern]:
        return await self._database.rows(StoredPattern, f"SELECT {_COLUMNS} FROM patterns WHERE {rest}", params)
