"""The connections that people have stored, each as a sealed text: see `runtime/connections.py` for what is in it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, LiteralString

from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Database, across_owners

ConnectionKind = Literal["flowise", "model"]

_STORE: Final[LiteralString] = """
    INSERT INTO connections (kind, sealed, changed_by) VALUES (%(kind)s, %(sealed)s, %(by)s)
    ON CONFLICT (kind) DO UPDATE SET sealed = excluded.sealed, changed_by = excluded.changed_by, changed_at = now()
"""


@dataclass(frozen=True)
class ConnectionRow:
    """A stored connection."""

    kind: ConnectionKind
    sealed: bytes
    changed_at: datetime
    changed_by: str


class StoredConnections:
    """Repository of connections, which all owners share. Each change is in the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> dict[ConnectionKind, ConnectionRow]:
        """What is stored, by kind. Raises DatabaseUnavailableError."""
        with across_owners():
            rows = await self._database.rows(
                ConnectionRow, "SELECT kind, sealed, changed_at, changed_by FROM connections"
            )
            return {row.kind: row for row in rows}

    async def store(self, kind: ConnectionKind, sealed: bytes, fact: Fact) -> None:
        """Store a connection in the place of the one before."""
        with across_owners():
            async with self._database.transaction() as connection:
                await connection.execute(_STORE, {"kind": kind, "sealed": sealed, "by": current_caller().name})
                await record(connection, fact)

    async def remove(self, kind: ConnectionKind, fact: Fact) -> None:
        """Remove a connection. Safe to repeat."""
        with across_owners():
            async with self._database.transaction() as connection:
                gone = await connection.execute("DELETE FROM connections WHERE kind = %s", (kind,))
                if gone.rowcount:
                    await record(connection, fact)
