"""Repository of what models take (`models/capabilities.py` defines its content), which all processes share."""

from typing import Final, LiteralString

from psycopg.types.json import Jsonb

from flowise_dev_agent.patch.model.json_text import JsonObject
from flowise_dev_agent.persistence.database import Database, across_owners

#: Servers and models get better: what is older is found out again.
_FRESH: Final[LiteralString] = "interval '30 days'"
_LOAD: Final[LiteralString] = f"""
    SELECT known FROM model_capabilities
    WHERE server = %(server)s AND model = %(model)s AND learned_at > now() - {_FRESH}
"""
_SAVE: Final[LiteralString] = f"""
    INSERT INTO model_capabilities AS earlier (server, model, known) VALUES (%(server)s, %(model)s, %(known)s)
    ON CONFLICT (server, model) DO UPDATE SET
        known = CASE WHEN earlier.learned_at > now() - {_FRESH} THEN earlier.known ELSE '{{}}' END
            || jsonb_strip_nulls(excluded.known),
        learned_at = CASE WHEN earlier.learned_at > now() - {_FRESH} THEN earlier.learned_at ELSE now() END
"""


class ModelCapabilityRows:
    """Repository of capabilities by server and model."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, server: str, model: str) -> JsonObject | None:
        """Capabilities learned within 30 days. Raises DatabaseUnavailableError."""
        with across_owners():
            row = await self._database.fetch_one(_LOAD, {"server": server, "model": model})
        return row["known"] if row else None

    async def save(self, server: str, model: str, known: JsonObject) -> None:
        """Keep it in place of what was known; what is null stays as another process found it.

        Raises DatabaseUnavailableError.
        """
        with across_owners():
            async with self._database.connection() as connection:
                await connection.execute(_SAVE, {"server": server, "model": model, "known": Jsonb(known)})
