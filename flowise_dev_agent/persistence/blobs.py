"""Content-addressed texts (whole flows, prompts, raw bodies), referenced by checkpoints by their hash."""

import hashlib
import zlib
from uuid import UUID

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.texts import text as said


class Blobs:
    """Texts of sessions. A row belongs to its session and is deleted with it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, session_id: UUID, text: str) -> str:
        """Store `text` byte for byte; returns its hash. Idempotent. Raises InvalidInputError as `encoded` does."""
        content, sha256 = encoded(text)
        async with self._database.connection() as connection:
            await connection.execute(
                "INSERT INTO blobs (session_id, sha256, content) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (session_id, sha256, content),
            )
        return sha256

    async def get(self, sha256: str) -> str:
        """The text with this hash: from a session, kept from a deleted one, or seen by the watch.

        Raises InvalidInputError if there is none.
        """
        row = await self._database.fetch_one(
            "SELECT content, false AS packed FROM blobs WHERE sha256 = %(sha256)s"
            " UNION ALL SELECT content, false FROM kept_flows WHERE sha256 = %(sha256)s"
            " UNION ALL SELECT content, true FROM watched_texts WHERE sha256 = %(sha256)s LIMIT 1",
            {"sha256": sha256},
        )
        if row is None:
            raise InvalidInputError(said("error.no_blob", sha=sha256[:12]))
        content = bytes(row["content"])
        return (zlib.decompress(content) if row["packed"] else content).decode()

    async def of_session(self, session_id: UUID, sha256: str) -> str | None:
        """The text with this hash if it belongs to the session, else None."""
        row = await self._database.fetch_one(
            "SELECT content FROM blobs WHERE session_id = %s AND sha256 = %s", (session_id, sha256)
        )
        return bytes(row["content"]).decode() if row else None


def encoded(text: str) -> tuple[bytes, str]:
    """The UTF-8 of a text and its SHA-256 in lower-case hex.

    Raises InvalidInputError for a text with lone surrogates, which has no UTF-8.
    """
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(said("error.lone_surrogates")) from None
    return content, hashlib.sha256(content).hexdigest()
