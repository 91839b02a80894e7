"""Idempotency keys and the responses stored under them, so that a repeated request is not executed again."""

from dataclasses import dataclass
from typing import Final, LiteralString
from uuid import UUID, uuid4

from flowise_dev_agent.persistence.database import Database

#: Age from which a request without a response may be sent again; no request takes longer.
_LOST: Final[LiteralString] = "interval '15 min'"
#: Maximum number of concurrent requests with one key that fail one after the other.
_TRIES: Final = 5
KEPT: Final[LiteralString] = "interval '1 day'"

_CLAIM: Final[LiteralString] = f"""
    INSERT INTO done_requests AS earlier (key, fingerprint, claim) VALUES (%(key)s, %(fingerprint)s, %(claim)s)
    ON CONFLICT (owner, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, claim = excluded.claim, status = NULL, body = NULL, location = NULL,
            created_at = now()
        WHERE earlier.created_at < now() - CASE WHEN earlier.status IS NULL THEN {_LOST} ELSE {KEPT} END
    RETURNING claim
"""
#: By the primary key (key and owner): there may be many rows.
FINISH: Final[LiteralString] = (
    "UPDATE done_requests SET status = %(status)s, body = %(body)s, location = %(location)s"
    " WHERE key = %(key)s AND claim = %(claim)s"
)
RELEASE: Final[LiteralString] = "DELETE FROM done_requests WHERE key = %(key)s AND claim = %(claim)s"


@dataclass(frozen=True)
class DoneRequest:
    """An earlier request with the same key. `status` is None while it runs, `body` if it is not stored."""

    fingerprint: str
    status: int | None
    body: bytes | None
    location: str | None


class DoneRequests:
    """Repository of the current caller's idempotency keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, key: str, fingerprint: str) -> UUID | DoneRequest:
        """Claim the idempotency key, or return the stored response."""
        values = {"key": key, "fingerprint": fingerprint, "claim": uuid4()}
        for _ in range(_TRIES):
            if row := await self._database.fetch_one(_CLAIM, values):
                return row["claim"]
            row = await self._database.fetch_one(
                "SELECT fingerprint, status, body, location FROM done_requests WHERE key = %s", (key,)
            )
            # Gone again: the other request has just failed.
            if row is not None:
                return DoneRequest(**row)
        return DoneRequest(fingerprint, status=None, body=None, location=None)

    async def finish(self, key: str, claim: UUID, *, status: int, body: bytes | None, location: str | None) -> None:
        """Store the response of a request."""
        values = {"status": status, "body": body, "location": location, "key": key, "claim": claim}
        async with self._database.connection() as connection:
            await connection.execute(FINISH, values)

    async def release(self, key: str, claim: UUID) -> None:
        """Delete the claim of a failed request: it may be sent again."""
        async with self._database.connection() as connection:
            await connection.execute(RELEASE, {"key": key, "claim": claim})
