"""Answers of requests that came with an Idempotency-Key, so that a repeated one is not carried out again."""

from dataclasses import dataclass
from typing import Final, LiteralString
from uuid import UUID, uuid4

from flowise_dev_agent.persistence.database import Database

#: A request whose process was lost may be sent again after this time; no request takes longer.
_LOST: Final[LiteralString] = "interval '15 min'"
#: Requests under one key that fail one after the other while another one asks for it.
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
#: By the key, with the owner the primary key: there may be many.
FINISH: Final[LiteralString] = (
    "UPDATE done_requests SET status = %(status)s, body = %(body)s, location = %(location)s"
    " WHERE key = %(key)s AND claim = %(claim)s"
)
RELEASE: Final[LiteralString] = "DELETE FROM done_requests WHERE key = %(key)s AND claim = %(claim)s"


@dataclass(frozen=True)
class DoneRequest:
    """An earlier request under the same key. `status` is None while it goes on, `body` where it is not kept."""

    fingerprint: str
    status: int | None
    body: bytes | None
    location: str | None


class DoneRequests:
    """Repository of such answers, of the current caller's owner."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, key: str, fingerprint: str) -> UUID | DoneRequest:
        """The claim of whoever is to carry the request out, or what became of it earlier."""
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
        """Keep the answer of a request."""
        values = {"status": status, "body": body, "location": location, "key": key, "claim": claim}
        async with self._database.connection() as connection:
            await connection.execute(FINISH, values)

    async def release(self, key: str, claim: UUID) -> None:
        """Forget a request that failed: it may be sent again."""
        async with self._database.connection() as connection:
            await connection.execute(RELEASE, {"key": key, "claim": claim})
