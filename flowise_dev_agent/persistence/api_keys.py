"""Repository of API keys (stored as hashes), owners and sign-ins."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, LiteralString
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.rows import class_row

from flowise_dev_agent.caller import Scope
from flowise_dev_agent.errors import KeyConflictError, KeyNotFoundError
from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Connection, Database, across_owners
from flowise_dev_agent.schemas.etags import Expected, etag_of
from flowise_dev_agent.texts import text

_ACTIVE: Final = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"
_COLUMNS: Final = (
    "id, name, owner, scopes, created_by, created_at, expires_at, rotated_at, last_used_at, revoked_at,"
    f" {_ACTIVE} AS active"
)
# Last use is shown to people: one write a minute is enough.
_FIND: Final = f"""
    WITH found AS (
        SELECT id, name, owner, scopes, last_used_at FROM api_keys WHERE {_ACTIVE}
        AND (sha256 = %(hash)s OR previous_sha256 = %(hash)s AND previous_until > now())
    ), used AS (
        UPDATE api_keys SET last_used_at = now() FROM found
        WHERE api_keys.id = found.id AND COALESCE(found.last_used_at < now() - interval '1 minute', true)
    )
    SELECT id, name, owner, scopes FROM found
"""
_ADD_OWNER: Final = "INSERT INTO owners (id, name, kind) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"


@dataclass(frozen=True)
class KeyRow:
    """A key without its hash."""

    id: UUID
    name: str
    owner: str
    scopes: list[Scope]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    rotated_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    active: bool

    @property
    def etag(self) -> str:
        """The entity tag of this state; using the key does not change it."""
        return etag_of(str(self.id), self.rotated_at, self.revoked_at)


@dataclass(frozen=True)
class KeyHolder:
    """The scopes of a valid key, and the team or person that it acts for."""

    id: UUID
    name: str
    owner: str
    scopes: list[Scope]


class ApiKeys:
    """Repository of keys.

    Unknown ids raise KeyNotFoundError, revoked keys and taken names KeyConflictError, keys in an unexpected state
    PreconditionFailedError.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, sha256: str) -> KeyHolder | None:
        """The holder of the valid key with this hash; None if there is none. Records the use, once a minute."""
        async with (
            self._connection() as connection,
            connection.cursor(row_factory=class_row(KeyHolder)) as cursor,
        ):
            await cursor.execute(_FIND, {"hash": sha256})
            return await cursor.fetchone()

    async def page(self, *, limit: int) -> list[KeyRow]:
        """Keys, newest first."""
        async with (
            self._connection() as connection,
            connection.cursor(row_factory=class_row(KeyRow)) as cursor,
        ):
            await cursor.execute(f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at DESC, id LIMIT %s", (limit,))
            return await cursor.fetchall()

    async def add(
        self,
        key_id: UUID,
        *,
        name: str,
        owner: str,
        scopes: Sequence[Scope],
        sha256: str,
        created_by: str,
        expires_at: datetime | None,
    ) -> KeyRow:
        """Store a new key. An owner that has no key yet is added as a team."""
        await self.add_owner(owner)
        try:
            row = await self._change(
                "INSERT INTO api_keys (id, name, owner, scopes, sha256, created_by, expires_at)"
                f" VALUES (%(id)s, %(name)s, %(owner)s, %(scopes)s, %(hash)s, %(by)s, %(expires)s)"
                f" RETURNING {_COLUMNS}",
                {
                    "id": key_id,
                    "name": name,
                    "owner": owner,
                    "scopes": list(scopes),
                    "hash": sha256,
                    "by": created_by,
                    "expires": expires_at,
                },
                Fact("key.create", words=f"{name} of {owner}: {', '.join(scopes)}"),
            )
        except UniqueViolation:
            raise KeyConflictError(text("error.key_there", name=name), hint=text("error.key_there_hint")) from None
        assert row is not None  # noqa: S101 - an insert returns its row
        return row

    async def add_owner(self, owner: str, *, name: str | None = None, kind: Literal["team", "person"] = "team") -> None:
        """Add an owner unless this id exists."""
        async with self._connection() as connection:
            await connection.execute(_ADD_OWNER, (owner, name or owner, kind))

    async def owners(self, *, limit: int) -> list[dict[str, Any]]:
        """Owners by id: `id`, `name`, `kind`, `created_at`, and the number of their valid `keys`."""
        async with self._connection() as connection:
            found = await connection.execute(
                "SELECT id, name, kind, created_at,"
                f" (SELECT count(*) FROM api_keys WHERE owner = owners.id AND {_ACTIVE}) AS keys"
                " FROM owners ORDER BY id LIMIT %s",
                (limit,),
            )
            return await found.fetchall()

    async def has_owner(self, owner: str) -> bool:
        """True if an owner with this id exists."""
        async with self._connection() as connection:
            found = await connection.execute("SELECT 1 FROM owners WHERE id = %s", (owner,))
        return found.rowcount > 0

    async def rotate(
        self, key_id: UUID, sha256: str, *, keep_old_secs: int, expected: Expected | None = None
    ) -> KeyRow:
        """Replace a key's hash; the old one stays valid for `keep_old_secs` more seconds."""
        row = await self._change(
            "UPDATE api_keys SET previous_sha256 = sha256, previous_until = now() + make_interval(secs => %(keep)s),"
            f" sha256 = %(hash)s, rotated_at = now() WHERE id = %(id)s AND {_ACTIVE} RETURNING {_COLUMNS}",
            {"id": key_id, "hash": sha256, "keep": keep_old_secs},
            Fact("key.rotate", words=str(key_id)),
            expected,
        )
        if row is None:
            await self._assert_exists(key_id)
            raise KeyConflictError(text("error.key_over"), hint=text("error.key_over_hint"))
        return row

    async def revoke(self, key_id: UUID, expected: Expected | None = None) -> KeyRow:
        """Revoke a key at once. Idempotent."""
        row = await self._change(
            f"UPDATE api_keys SET revoked_at = COALESCE(revoked_at, now()) WHERE id = %(id)s RETURNING {_COLUMNS}",
            {"id": key_id},
            Fact("key.revoke", words=str(key_id)),
            expected,
        )
        if row is None:
            raise _not_found(key_id)
        return row

    async def _change(
        self, statement: str, params: dict[str, object], fact: Fact, expected: Expected | None = None
    ) -> KeyRow | None:
        async with (
            self._connection() as connection,
            connection.transaction(),
            connection.cursor(row_factory=class_row(KeyRow)) as cursor,
        ):
            if expected is not None:
                await cursor.execute(f"SELECT {_COLUMNS} FROM api_keys WHERE id = %(id)s FOR UPDATE", params)
                if (found := await cursor.fetchone()) is not None:
                    expected.check(found.etag)
            await cursor.execute(statement, params)  # pyright: ignore[reportArgumentType]
            row = await cursor.fetchone()
            if row is not None:
                await record(connection, fact)
        return row

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Connection]:
        """Connection across owners: a key is looked up before its owner is known, and its manager manages all keys."""
        with across_owners():
            async with self._database.connection() as connection:
                yield connection

    async def _assert_exists(self, key_id: UUID) -> None:
        async with self._connection() as connection:
            found = await connection.execute("SELECT 1 FROM api_keys WHERE id = %s", (key_id,))
        if found.rowcount == 0:
            raise _not_found(key_id)


def _not_found(key_id: UUID) -> KeyNotFoundError:
    return KeyNotFoundError(text("error.no_key", key=str(key_id)), hint=text("error.no_key_hint"))


_FIND_SIGN_IN: Final[LiteralString] = (
    "SELECT subject, name, groups FROM sign_ins WHERE token_sha256 = %s AND expires_at > now()"
)


_ADD: Final[LiteralString] = """
    WITH ended AS (DELETE FROM sign_ins WHERE expires_at <= now())
    INSERT INTO sign_ins (token_sha256, subject, name, groups, expires_at)
    VALUES (%(hash)s, %(subject)s, %(name)s, %(groups)s, now() + make_interval(secs => %(seconds)s))
"""


@dataclass(frozen=True)
class SignInRow:
    """A signed-in person, with the groups that the provider named at sign-in."""

    subject: str
    name: str
    groups: list[str]


class SignIns:
    """Repository of sign-ins. Starts and ends are in the audit log, under the current caller."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, sha256: str) -> SignInRow | None:
        """The person signed in under this hash; None if there is none or the sign-in has ended."""
        with across_owners():
            row = await self._database.fetch_one(_FIND_SIGN_IN, (sha256,))
        return None if row is None else SignInRow(**row)

    async def add(self, sha256: str, *, subject: str, name: str, groups: Sequence[str], seconds: int) -> None:
        """Store a sign-in for `seconds`; ended ones are removed."""
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
