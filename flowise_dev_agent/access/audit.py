"""The audit log for people: pages, export, verification, and erasure of personal text."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, Literal
from uuid import UUID

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.persistence import AuditFilter, AuditLog, Fact
from flowise_dev_agent.sanitize import csv_line
from flowise_dev_agent.schemas.audit import AuditPage, AuditReport, AuditRow, ErasedWords
from flowise_dev_agent.texts import text

ExportFormat = Literal["jsonl", "csv"]
_COLUMNS: Final = tuple(AuditRow.model_fields)


class AuditService:
    """Reads the audit log; raises DatabaseUnavailableError."""

    def __init__(self, audit_log: AuditLog) -> None:
        self._audit_log = audit_log

    async def page(self, which: AuditFilter, *, limit: int, cursor: int | None) -> AuditPage:
        """A page of audit rows, newest first."""
        rows, cursor = await self._audit_log.page(which, limit=limit, before=cursor)
        return AuditPage(rows=rows, next_cursor=cursor)

    async def export(self, which: AuditFilter, format_: ExportFormat) -> AsyncGenerator[str]:
        """Export all matching rows, oldest first, as CSV or JSON lines."""
        line = _csv_line if format_ == "csv" else _json_line
        if format_ == "csv":
            yield csv_line(_COLUMNS)
        async with aclosing(self._audit_log.all(which)) as rows:
            async for row in rows:
                yield line(row)

    async def verify(self, session_id: UUID | None) -> AuditReport:
        """Check that no row of the log was changed or removed."""
        return await self._audit_log.verify(session_id)

    async def erase_words(self, *, session_id: UUID | None, person: str | None) -> ErasedWords:
        """Erase the texts of a session, of a person, or of both. The rows stay. Raises InvalidInputError."""
        if session_id is None and person is None:
            raise InvalidInputError(text("error.erase_whom"))
        # A row of the service's chain, without the person's name, which may have to be erased too.
        fact = Fact("audit.erase_words", words=None if session_id is None else f"session {session_id}")
        return ErasedWords(erased=await self._audit_log.erase_words(session_id=session_id, actor=person, fact=fact))


def _json_line(row: AuditRow) -> str:
    return row.model_dump_json() + "\n"


def _csv_line(row: AuditRow) -> str:
    values: dict[str, Any] = row.model_dump(mode="json")
    return csv_line(values[name] for name in _COLUMNS)
