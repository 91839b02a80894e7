"""API keys of people and programs: create, list, rotate, revoke and authenticate."""

import hashlib
import re
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid4

from flowise_dev_agent.caller import Caller, Door, acting_for, current_caller, require, with_implied
from flowise_dev_agent.errors import InvalidInputError, OwnerNotFoundError
from flowise_dev_agent.persistence import ApiKeys, Database, KeyRow
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.etags import Expected
from flowise_dev_agent.schemas.keys import OWNER_PATTERN, KeyList, KeyView, MadeKey, NewKey, OwnerList, OwnerView
from flowise_dev_agent.texts import text

_PREFIX: Final = "fda_"
_FORM: Final = re.compile(r"fda_[A-Za-z0-9_-]{43}")
_OWNER: Final = re.compile(OWNER_PATTERN)
_MAX_LISTED: Final = 1_000


class KeyService:
    """Stored API keys, besides AGENT_API_KEY. Raises what `ApiKeys` raises."""

    def __init__(self, database: Database) -> None:
        self._rows = ApiKeys(database)

    async def caller(self, key: str, door: Door) -> Caller | None:
        """Authenticate a key; None if it is unknown or no longer valid. A malformed key costs no query."""
        if not _FORM.fullmatch(key):
            return None
        found = await self._rows.find(_hash(key))
        return found and Caller(found.name, with_implied(found.scopes), str(found.id), door, found.owner)

    async def acting_for(self, caller: Caller, owner: str) -> Caller:
        """Switch the caller to another owner, which requires the scope `admin`.

        Raises ScopeMissingError, and OwnerNotFoundError for an unknown owner.
        """
        if owner == caller.owner:
            return caller
        with acting_for(caller):
            require("admin")
        if not _OWNER.fullmatch(owner) or not await self._rows.has_owner(owner):
            raise OwnerNotFoundError(
                text("error.no_owner", name=shortened(owner, 63)), hint=text("error.no_owner_hint")
            )
        return replace(caller, owner=owner)

    async def all(self) -> KeyList:
        """All keys, newest first."""
        return KeyList(keys=[KeyView(**vars(row), etag=row.etag) for row in await self._rows.page(limit=_MAX_LISTED)])

    async def owners(self) -> OwnerList:
        """All owners, by id."""
        return OwnerList(owners=[OwnerView(**row) for row in await self._rows.owners(limit=_MAX_LISTED)])

    async def make(self, new: NewKey) -> MadeKey:
        """Create a key for a person or program. Raises InvalidInputError for an end in the past."""
        if new.expires_at is not None and new.expires_at <= datetime.now(UTC):
            raise InvalidInputError(text("error.expires_in_past"))
        key = _new_key()
        row = await self._rows.add(
            uuid4(),
            name=new.name,
            owner=new.owner,
            scopes=sorted(set(new.scopes)),
            sha256=_hash(key),
            created_by=current_caller().name,
            expires_at=new.expires_at,
        )
        return _made(row, key)

    async def rotate(self, key_id: UUID, *, keep_old_secs: int, expected: Expected | None = None) -> MadeKey:
        """Replace a key; the old one stays valid for `keep_old_secs` more."""
        key = _new_key()
        row = await self._rows.rotate(key_id, _hash(key), keep_old_secs=keep_old_secs, expected=expected)
        return _made(row, key)

    async def revoke(self, key_id: UUID, *, expected: Expected | None = None) -> None:
        """End a key at once."""
        await self._rows.revoke(key_id, expected)


def _new_key() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _made(row: KeyRow, key: str) -> MadeKey:
    return MadeKey(**vars(row), etag=row.etag, key=key)
