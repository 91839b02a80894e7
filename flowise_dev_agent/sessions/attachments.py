"""Uploaded files: read, check and store them before a session uses them."""

import asyncio
import hashlib
from collections.abc import Iterable
from typing import Final
from uuid import UUID, uuid4

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.persistence.attachments import AttachmentRow, Attachments, NewAttachment
from flowise_dev_agent.schemas.attachments import AttachmentView
from flowise_dev_agent.schemas.base import view_of
from flowise_dev_agent.texts import text

#: Seconds that a file is kept without a session.
_KEEP_SECS: Final = 24 * 3600.0
#: Most bytes of files without a session; more are refused until some are used or expire.
_MAX_UNUSED_BYTES: Final = 1024**3
#: Files that are read at the same time in a process: each may take a gigabyte of memory.
_PARALLEL_READS: Final = 2


class AttachmentService:
    """Uploaded files for REST, MCP and the client."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        self._gate = asyncio.Semaphore(_PARALLEL_READS)

    async def add(self, name: str, content: bytes) -> AttachmentView:
        """Read and store a file. Raises InvalidInputError if it cannot be read or too many files are unused."""
        # Imported here: many services never receive files.
        from flowise_dev_agent.knowledge.documents import clean_name, read_apart

        if await self._attachments.unused_bytes() + len(content) > _MAX_UNUSED_BYTES:
            raise InvalidInputError(text("error.too_many_files"), hint=text("error.too_many_files_hint"))
        async with self._gate:
            document = await read_apart(clean_name(name), content)
        row = await self._attachments.add(
            NewAttachment(
                id=uuid4(),
                name=document.facts.name,
                media_type=document.media_type,
                sha256=hashlib.sha256(content).hexdigest(),
                content=content,
                facts=document.facts.model_dump(mode="json"),
                text=document.text,
                text_sha256=hashlib.sha256(document.text.encode()).hexdigest(),
                keep_secs=_KEEP_SECS,
            )
        )
        return _view(row)

    async def get(self, attachment_id: UUID, *, text: bool = False) -> AttachmentView:
        """Facts about a file, with its text on request. Raises AttachmentNotFoundError."""
        view = _view(await self._attachments.get(attachment_id))
        return view.model_copy(update={"text": await self._attachments.text(attachment_id)}) if text else view

    async def of_session(self, session_id: UUID) -> list[AttachmentView]:
        """The files of a session; none for an unknown one."""
        return [_view(row) for row in await self._attachments.of_session(session_id)]

    async def texts(self, ids: Iterable[UUID]) -> dict[str, str]:
        """Extracted texts of these files, by file name. Raises AttachmentNotFoundError."""
        return {(await self._attachments.get(one)).name: await self._attachments.text(one) for one in ids}

    async def delete(self, attachment_id: UUID) -> None:
        """Remove a file that no session uses. Raises AttachmentNotFoundError, InvalidInputError."""
        await self._attachments.delete(attachment_id)


def _view(row: AttachmentRow) -> AttachmentView:
    return view_of(AttachmentView, row)
