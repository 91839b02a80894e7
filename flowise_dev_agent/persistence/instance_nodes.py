"""Node types of each Flowise instance, shared by all workers: the current list, former ones, repaired entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from flowise_dev_agent.persistence.database import Connection, Database, jsonb

#: Number of lists kept per instance: the current one and former ones to compare it with.
_KEPT: Final = 3


@dataclass(frozen=True)
class CatalogueHead:
    """The current node list of an instance. `fingerprint` is None if the list was never read.

    `age_secs` counts from the server's last confirmation of the list.
    """

    revision: int
    fingerprint: str | None
    flowise_version: str | None
    etag: str | None
    age_secs: float | None
    node_count: int
    repaired: int


class InstanceNodes:
    """Repository of node lists. They are opaque JSON texts here; the caller names their fingerprints."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def head(self, instance_id: str, endpoint: str) -> CatalogueHead | None:
        """The current list of the instance; None if nothing is known of a server at this endpoint."""
        return await self._database.row(
            CatalogueHead,
            "SELECT head.revision, head.fingerprint, list.flowise_version, head.etag,"
            " EXTRACT(EPOCH FROM now() - head.checked_at)::float AS age_secs,"
            " COALESCE(list.node_count, 0) AS node_count,"
            " (SELECT count(*) FROM repaired_nodes WHERE instance_id = head.instance_id) AS repaired"
            " FROM instance_nodes AS head LEFT JOIN node_catalogues AS list USING (instance_id, fingerprint)"
            " WHERE head.instance_id = %s AND head.endpoint = %s",
            (instance_id, endpoint),
        )

    async def load(self, instance_id: str, fingerprint: str) -> tuple[str, str] | None:
        """(Flowise version, node list) of a current or former state; None if it is no longer stored."""
        row = await self._database.fetch_one(
            "SELECT flowise_version, nodes FROM node_catalogues WHERE instance_id = %s AND fingerprint = %s",
            (instance_id, fingerprint),
        )
        return None if row is None else (str(row["flowise_version"]), str(row["nodes"]))

    async def save(
        self,
        instance_id: str,
        endpoint: str,
        *,
        fingerprint: str,
        flowise_version: str,
        etag: str | None,
        nodes: str,
        names: Sequence[str],
    ) -> None:
        """Make a list that was just read the current one; repaired entries of its `names` become outdated."""
        async with self._database.transaction() as connection:
            await _forget_other_server(connection, instance_id, endpoint)
            await connection.execute(
                "INSERT INTO instance_nodes AS head (instance_id, endpoint, fingerprint, etag, checked_at)"
                " VALUES (%s, %s, %s, %s, now()) ON CONFLICT (instance_id) DO UPDATE SET"
                " fingerprint = EXCLUDED.fingerprint, etag = EXCLUDED.etag, checked_at = now(),"
                " revision = head.revision + 1",
                (instance_id, endpoint, fingerprint, etag),
            )
            await connection.execute(
                "INSERT INTO node_catalogues (instance_id, fingerprint, flowise_version, node_count, nodes)"
                " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (instance_id, fingerprint) DO UPDATE SET"
                " flowise_version = EXCLUDED.flowise_version, nodes = EXCLUDED.nodes, fetched_at = now()",
                (instance_id, fingerprint, flowise_version, len(names), nodes),
            )
            await connection.execute(
                "DELETE FROM repaired_nodes WHERE instance_id = %s AND name = ANY(%s)", (instance_id, list(names))
            )
            await connection.execute(
                "DELETE FROM node_catalogues WHERE instance_id = %s AND fingerprint NOT IN"
                " (SELECT fingerprint FROM node_catalogues WHERE instance_id = %s ORDER BY fetched_at DESC LIMIT %s)",
                (instance_id, instance_id, _KEPT),
            )

    async def confirm(self, instance_id: str, endpoint: str) -> None:
        """Record the server's confirmation that the current list is still valid."""
        async with self._database.connection() as connection:
            await connection.execute(
                "UPDATE instance_nodes SET checked_at = now() WHERE instance_id = %s AND endpoint = %s",
                (instance_id, endpoint),
            )

    async def repaired(self, instance_id: str) -> dict[str, str]:
        """Repaired entries as JSON texts by node name."""
        rows = await self._database.fetch_all(
            "SELECT name, node FROM repaired_nodes WHERE instance_id = %s ORDER BY name", (instance_id,)
        )
        return {str(row["name"]): str(row["node"]) for row in rows}

    async def save_repaired(
        self, instance_id: str, endpoint: str, name: str, node: str, decision: Mapping[str, str]
    ) -> None:
        """Store one repaired entry for all workers, with the reason for it."""
        async with self._database.transaction() as connection:
            await _forget_other_server(connection, instance_id, endpoint)
            await connection.execute(
                "INSERT INTO instance_nodes AS head (instance_id, endpoint) VALUES (%s, %s)"
                " ON CONFLICT (instance_id) DO UPDATE SET revision = head.revision + 1",
                (instance_id, endpoint),
            )
            await connection.execute(
                "INSERT INTO repaired_nodes (instance_id, name, node, decision) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (instance_id, name) DO UPDATE SET node = EXCLUDED.node, decision = EXCLUDED.decision,"
                " repaired_at = now()",
                (instance_id, name, node, jsonb(decision)),
            )


async def _forget_other_server(connection: Connection, instance_id: str, endpoint: str) -> None:
    """Delete the data of another server: the settings may name a new one for the same instance id."""
    await connection.execute(
        "DELETE FROM instance_nodes WHERE instance_id = %s AND endpoint <> %s", (instance_id, endpoint)
    )


class InstanceTemplates:
    """Repository of templates. Entries are opaque JSON objects here, contents opaque texts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_at(self, instance_id: str, endpoint: str) -> tuple[datetime, float] | None:
        """Time of the last read of the instance, and its age in seconds; None if it was never read."""
        row = await self._database.fetch_one(
            "SELECT fetched_at, EXTRACT(EPOCH FROM now() - fetched_at)::float AS age_secs FROM instance_templates"
            " WHERE instance_id = %s AND endpoint = %s",
            (instance_id, endpoint),
        )
        return None if row is None else (row["fetched_at"], float(row["age_secs"]))

    async def listed(self, instance_id: str, endpoint: str) -> tuple[list[dict[str, Any]], float] | None:
        """(entries, age in seconds) of the instance's templates; None if it was never read."""
        row = await self._database.fetch_one(
            "SELECT templates, EXTRACT(EPOCH FROM now() - fetched_at)::float AS age_secs FROM instance_templates"
            " WHERE instance_id = %s AND endpoint = %s",
            (instance_id, endpoint),
        )
        return None if row is None else (list(row["templates"]), float(row["age_secs"]))

    async def save(
        self, instance_id: str, endpoint: str, entries: Sequence[Mapping[str, Any]], contents: Mapping[str, str]
    ) -> None:
        """Store the templates of an instance, and the contents by SHA-256."""
        async with self._database.transaction() as connection:
            await connection.execute(
                "INSERT INTO instance_templates (instance_id, endpoint, templates) VALUES (%s, %s, %s)"
                " ON CONFLICT (instance_id) DO UPDATE SET endpoint = EXCLUDED.endpoint,"
                " templates = EXCLUDED.templates, fetched_at = now()",
                (instance_id, endpoint, jsonb([dict(entry) for entry in entries])),
            )
            async with connection.cursor() as cursor:
                await cursor.executemany(
                    "INSERT INTO template_contents (sha256, content) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                    sorted(contents.items()),
                )

    async def content(self, sha256: str) -> str | None:
        """The flow or tool with this hash, byte for byte; None if no instance had it."""
        row = await self._database.fetch_one("SELECT content FROM template_contents WHERE sha256 = %s", (sha256,))
        return None if row is None else str(row["content"])
