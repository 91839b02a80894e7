"""Cursors of pages, opaque to clients."""

import base64
import binascii
import json
from datetime import datetime
from typing import Final, Protocol, TypeVar
from uuid import UUID

from pydantic import TypeAdapter

from flowise_dev_agent.errors import InvalidInputError

_Key = TypeVar("_Key")


_FOREIGN_CURSOR: Final = "The cursor is not one that this service gave out."


_SEND_UNCHANGED: Final = "Pass `next_cursor` of the page before unchanged."


class _Listed(Protocol):
    """A row of a list that is ordered by age."""

    @property
    def id(self) -> UUID: ...
    @property
    def created_at(self) -> datetime: ...


def encode_cursor(row: _Listed) -> str:
    """Encode the position after `row` as a cursor, opaque to clients."""
    text = json.dumps([row.created_at.isoformat(), str(row.id)])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    """The inverse. Raises InvalidInputError for a cursor that we did not make."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        created_at, session_id = json.loads(base64.urlsafe_b64decode(padded.encode()))
        moment = datetime.fromisoformat(created_at)
        if moment.tzinfo is None:
            raise ValueError("no time zone")  # noqa: TRY301 - one place says what is wrong
        return moment, UUID(session_id)
    except (ValueError, TypeError, AttributeError, binascii.Error):
        raise foreign_cursor() from None


def encode_key(key: object) -> str:
    """A dataclass that says where a page begins; opaque to clients."""
    return base64.urlsafe_b64encode(TypeAdapter(type(key)).dump_json(key)).decode().rstrip("=")


def decode_key(kind: type[_Key], cursor: str) -> _Key:
    """The inverse. Raises InvalidInputError for a cursor that we did not make."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return TypeAdapter(kind).validate_json(base64.urlsafe_b64decode(padded.encode()), strict=True)
    except ValueError:
        raise foreign_cursor() from None


def foreign_cursor() -> InvalidInputError:
    """The error for a cursor that we did not make."""
    return InvalidInputError(_FOREIGN_CURSOR, hint=_SEND_UNCHANGED)
