"""Repository of stored connections, each as an encrypted text; `ops/connections.py` defines its content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, LiteralString

from psycopg.rows import class_row

from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Connection, Database, across_owners

ConnectionKind = Literal["flowise", "model"]

_ALL: Final[LiteralString] = "SELECT kind, sealed, changed_at, changed_by FROM connections"
_STORE: Final[LiteralString] = """
    INSERT INTO connections (kind, sealed, changed_by) VALUES (%(kind)s, %(sealed)s, %(by)s)
    ON CONFLICT (kind) DO UPDATE SET sealed = excluded.sealed, changed_by = excluded.changed_by, changed_at = now()
"""
_OPEN: Final[LiteralString] = """
    SELECT count(*) AS open FROM sessions
    WHERE instance_id = %(instance)s AND status IN ('queued', 'running', 'waiting') AND endpoint = ANY(%(addresses)s)
"""


@dataclass(frozen=True)
class ConnectionRow:
    """A stored connection."""

    kind: ConnectionKind
    sealed: bytes
    changed_at: datetime
    changed_by: str


StoredRows = Mapping[ConnectionKind, ConnectionRow]


class StoredConnections:
    """Repository of connections, which all owners share. Each change is in the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> StoredRows:
        """Stored connections by kind. Raises DatabaseUnavailableError."""
        with across_owners():
            return {row.kind: row for row in await self._database.rows(ConnectionRow, _ALL)}

    async def store(self, kind: ConnectionKind, sealed: bytes, fact: Fact, *, seen: StoredRows | None = None) -> bool:
        """Store a connection, replacing the previous one; False if the rows differ from those `seen`."""
        with across_owners():
            async with self._database.transaction() as connection:
                if not await _still(connection, seen):
                    return False
                await connection.execute(_STORE, {"kind": kind, "sealed": sealed, "by": current_caller().name})
                await record(connection, fact)
                return True

    async def open_sessions(self, instance_id: str, addresses: Sequence[str]) -> int:
        """Number of open sessions of all owners that began at one of these addresses of an instance."""
        with across_owners():
            row = await self._database.fetch_one(_OPEN, {"instance": instance_id, "addresses": list(addresses)})
            return row["open"] if row else 0

    async def reseal(self, row: ConnectionRow, sealed: bytes) -> None:
        """Re-encrypt a stored connection unless it was replaced meanwhile."""
        with across_owners():
            async with self._database.connection() as connection:
                await connection.execute(
                    "UPDATE connections SET sealed = %s WHERE kind = %s AND sealed = %s", (sealed, row.kind, row.sealed)
                )

    async def remove(self, kind: ConnectionKind, fact: Fact, *, seen: StoredRows | None = None) -> bool:
        """Remove a connection; False if the rows differ from those `seen`. Idempotent."""
        with across_owners():
            async with self._database.transaction() as connection:
                if not await _still(connection, seen):
                    return False
                gone = await connection.execute("DELETE FROM connections WHERE kind = %s", (kind,))
                if gone.rowcount:
                    await record(connection, fact)
                return True


async def _still(connection: Connection, seen: StoredRows | None) -> bool:
    # One writer at a time: the compared rows stay unchanged until the end of the transaction.
    await connection.execute("LOCK TABLE connections IN SHARE ROW EXCLUSIVE MODE")
    if seen is None:
        return True
    async with connection.cursor(row_factory=class_row(ConnectionRow)) as cursor:
        rows = await (await cursor.execute(_ALL)).fetchall()
    return {row.kind: row for row in rows} == seen
