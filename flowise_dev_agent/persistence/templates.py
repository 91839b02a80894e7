"""Marketplace templates: what each instance offers, and the flows themselves by hash."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from flowise_dev_agent.persistence.database import Database, jsonb


class InstanceTemplates:
    """Entries are opaque JSON objects here, contents opaque texts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_at(self, instance_id: str, endpoint: str) -> tuple[datetime, float] | None:
        """When the instance was last read, and how many seconds ago that was; None when it never was."""
        row = await self._database.fetch_one(
            "SELECT fetched_at, EXTRACT(EPOCH FROM now() - fetched_at)::float AS age_secs FROM instance_templates"
            " WHERE instance_id = %s AND endpoint = %s",
            (instance_id, endpoint),
        )
        return None if row is None else (row["fetched_at"], float(row["age_secs"]))

    async def listed(self, instance_id: str, endpoint: str) -> tuple[list[dict[str, Any]], float] | None:
        """(entries, age in seconds) of what the instance offers; None when it was never read."""
        row = await self._database.fetch_one(
            "SELECT templates, EXTRACT(EPOCH FROM now() - fetched_at)::float AS age_secs FROM instance_templates"
            " WHERE instance_id = %s AND endpoint = %s",
            (instance_id, endpoint),
        )
        return None if row is None else (list(row["templates"]), float(row["age_secs"]))

    async def save(
        self, instance_id: str, endpoint: str, entries: Sequence[Mapping[str, Any]], contents: Mapping[str, str]
    ) -> None:
        """Keep what an instance offers, and the contents by SHA-256."""
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
        """The flow or tool with this hash, byte for byte; None when no instance brought it yet."""
        row = await self._database.fetch_one("SELECT content FROM template_contents WHERE sha256 = %s", (sha256,))
        return None if row is None else str(row["content"])
