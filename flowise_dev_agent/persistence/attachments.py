"""Repository of uploaded files: stored before a session uses them, removed with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from flowise_dev_agent.errors import AttachmentNotFoundError, InvalidInputError
from flowise_dev_agent.persistence.database import Connection, Database, jsonb
from flowise_dev_agent.schemas.attachments import MOST_ATTACHMENTS
from flowise_dev_agent.texts import text

_COLUMNS: Final[LiteralString] = (
    "id, session_id, name, media_type, size, sha256, text_sha256, facts, created_at, expires_at"
)


@dataclass(frozen=True)
class AttachmentRow:
    """A file without its content."""

    id: UUID
    session_id: UUID | None
    name: str
    media_type: str
    size: int
    sha256: str
    text_sha256: str
    facts: dict[str, Any]
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class NewAttachment:
    """A file to store; hashes are SHA-256 in hex."""

    id: UUID
    name: str
    media_type: str
    sha256: str
    content: bytes = field(repr=False)
    facts: Mapping[str, Any]
    text: str = field(repr=False)
    text_sha256: str
    keep_secs: float


class Attachments:
    """Repository of attachments. Unknown ids raise AttachmentNotFoundError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, new: NewAttachment) -> AttachmentRow:
        """Store a file that no session uses yet."""
        found = await self._rows(
            "INSERT INTO attachments (id, name, media_type, size, sha256, content, facts, text, text_sha256,"
            " expires_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, now() + make_interval(secs => %s))"
            f" RETURNING {_COLUMNS}",
            (
                new.id,
                new.name,
                new.media_type,
                len(new.content),
                new.sha256,
                new.content,
                jsonb(new.facts),
                new.text,
                new.text_sha256,
                new.keep_secs,
            ),
        )
        return found[0]

    async def get(self, attachment_id: UUID) -> AttachmentRow:
        """The file's row."""
        found = await self._rows(f"SELECT {_COLUMNS} FROM attachments WHERE id = %s", (attachment_id,))
        if not found:
            raise _not_found([attachment_id])
        return found[0]

    async def unused_bytes(self) -> int:
        """Bytes of all files that no session uses."""
        row = await self._database.fetch_one(
            "SELECT COALESCE(sum(size), 0)::bigint AS bytes FROM attachments WHERE session_id IS NULL"
        )
        return int(row["bytes"]) if row else 0

    async def of_session(self, session_id: UUID) -> list[AttachmentRow]:
        """The files of a session, in the order in which they were stored."""
        return await self._rows(
            f"SELECT {_COLUMNS} FROM attachments WHERE session_id = %s ORDER BY created_at, id", (session_id,)
        )

    async def content(self, session_id: UUID, name: str) -> tuple[str, bytes, str] | None:
        """(media type, bytes, text) of a file of a session."""
        row = await self._database.fetch_one(
            "SELECT media_type, content, text FROM attachments WHERE session_id = %s AND name = %s", (session_id, name)
        )
        return (row["media_type"], bytes(row["content"]), row["text"]) if row else None

    async def text(self, attachment_id: UUID) -> str:
        """The extracted text of a file. Raises AttachmentNotFoundError."""
        row = await self._database.fetch_one("SELECT text FROM attachments WHERE id = %s", (attachment_id,))
        if row is None:
            raise _not_found([attachment_id])
        return row["text"]

    async def delete(self, attachment_id: UUID) -> None:
        """Remove a file. Raises InvalidInputError while a session uses it."""
        if (await self.get(attachment_id)).session_id is not None:
            raise InvalidInputError(text("error.attachment_in_use"))
        async with self._database.connection() as connection:
            await connection.execute("DELETE FROM attachments WHERE id = %s AND session_id IS NULL", (attachment_id,))

    async def _rows(self, query: LiteralString, params: Sequence[object]) -> list[AttachmentRow]:
        return await self._database.rows(AttachmentRow, query, params)


async def bind_attachments(connection: Connection, session_id: UUID, ids: Sequence[UUID], max_bytes: int) -> None:
    """Add files to a session, in the transaction that creates it or takes an answer.

    Raises AttachmentNotFoundError, and InvalidInputError for files of another session, of the same name, too many, or
    too large together.
    """
    if not ids:
        return
    rows = await (
        await connection.execute(
            "SELECT id, session_id, name, size FROM attachments WHERE id = ANY(%s) OR session_id = %s FOR UPDATE",
            (list(ids), session_id),
        )
    ).fetchall()
    if missing := [id_ for id_ in ids if id_ not in {row["id"] for row in rows}]:
        raise _not_found(missing)
    if len(rows) > MOST_ATTACHMENTS:
        raise InvalidInputError(text("error.most_attachments", count=MOST_ATTACHMENTS))
    if any(row["session_id"] not in (None, session_id) for row in rows):
        raise InvalidInputError(text("error.attachment_elsewhere"), hint=text("error.upload_again"))
    if len({row["name"] for row in rows}) < len(rows):
        raise InvalidInputError(text("error.attachment_same_name"), hint=text("error.rename_file"))
    if sum(row["size"] for row in rows) > max_bytes:
        raise InvalidInputError(text("error.attachments_large", mb=max_bytes // 1024**2))
    await connection.execute("UPDATE attachments SET session_id = %s WHERE id = ANY(%s)", (session_id, list(ids)))


def _not_found(ids: Sequence[UUID]) -> AttachmentNotFoundError:
    return AttachmentNotFoundError(
        text("error.no_attachment", ids=[*map(str, ids)]),
        hint=text("error.no_attachment_hint"),
    )
