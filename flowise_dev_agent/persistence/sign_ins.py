"""Sign-ins of people at the page, by the hashes of their cookies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Database, across_owners

_FIND: Final[LiteralString] = (
    "SELECT subject, name, groups FROM sign_ins WHERE token_sha256 = %s AND expires_at > now()"
)
_ADD: Final[LiteralString] = """
    WITH ended AS (DELETE FROM sign_ins WHERE expires_at <= now())
    INSERT INTO sign_ins (token_sha256, subject, name, groups, expires_at)
    VALUES (%(hash)s, %(subject)s, %(name)s, %(groups)s, now() + make_interval(secs => %(seconds)s))
"""


@dataclass(frozen=True)
class SignInRow:
    """Who is signed in, and the groups that the provider named then."""

    subject: str
    name: str
    groups: list[str]


class SignIns:
    """Repository of sign-ins. Each and its end is in the ledger, under the current caller."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, sha256: str) -> SignInRow | None:
        """Who is signed in under this hash; None when nobody is, or not any more."""
        with across_owners():
            row = await self._database.fetch_one(_FIND, (sha256,))
        return None if row is None else SignInRow(**row)

    async def add(self, sha256: str, *, subject: str, name: str, groups: Sequence[str], seconds: int) -> None:
        """Keep a sign-in for some time; those that have ended are removed."""
        values = {"hash": sha256, "subject": subject, "name": name, "groups": list(groups), "seconds": seconds}
        with across_owners():
            async with self._database.transaction() as connection:
                await connection.execute(_ADD, values)
                await record(connection, Fact("sign_in", words=", ".join(groups) or None))

    async def end(self, sha256: str) -> None:
        """End a sign-in."""
        with across_owners():
            async with self._database.transaction() as connection:
                ended = await connection.execute("DELETE FROM sign_ins WHERE token_sha256 = %s", (sha256,))
                if ended.rowcount:
                    await record(connection, Fact("sign_out"))
