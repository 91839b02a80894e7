"""The audit log: who answered what, and what was written."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query
from starlette.responses import StreamingResponse

from flowise_dev_agent.access.audit import AuditService, ExportFormat
from flowise_dev_agent.api.deps import MAX_SEQ, part_of
from flowise_dev_agent.api.responses import declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.persistence import AuditFilter
from flowise_dev_agent.schemas.audit import AuditPage, AuditReport, ErasedWords
from flowise_dev_agent.schemas.requests import Moment

router = Routes(prefix="/audit", tags=["audit"])

Session = Annotated[UUID | None, Query(description="Only rows of this session.")]
Person = Annotated[str | None, Query(max_length=64, description="Only rows of this person or program (`actor`).")]


def _which(
    session: Session = None,
    flow: Annotated[str | None, Query(max_length=200, description="Only rows about this chatflow id.")] = None,
    person: Person = None,
    action: Annotated[str | None, Query(max_length=64, description="Only this action.")] = None,
    since: Annotated[Moment | None, Query(description="Only rows from this time on.")] = None,
    until: Annotated[Moment | None, Query(description="Only rows before this time.")] = None,
) -> AuditFilter:
    return AuditFilter(session_id=session, chatflow_id=flow, actor=person, action=action, since=since, until=until)


Audit = Annotated[AuditService, part_of("audit")]
Which = Annotated[AuditFilter, Depends(_which)]

_FILE = {
    200: {
        "content": {"application/jsonl": {"schema": {"type": "string"}}, "text/csv": {"schema": {"type": "string"}}},
        "description": "One row a line.",
    }
}


@router.get("", responses=declared())
async def list_audit(
    audit: Audit,
    which: Which,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="`next_cursor` of the page before.")] = None,
) -> AuditPage:
    """Answers and writes, newest first: who, by which door, what, when, on which flow and version."""
    return await audit.page(which, limit=limit, cursor=cursor)


@router.get("/export", response_class=StreamingResponse, responses=_FILE | declared())
async def export_audit(audit: Audit, which: Which, format: ExportFormat = "jsonl") -> StreamingResponse:  # noqa: A002 - the parameter's name
    """All rows that the filters let through, oldest first, as JSON Lines or CSV."""
    media_type = "text/csv" if format == "csv" else "application/jsonl"
    headers = {"Content-Disposition": f'attachment; filename="audit.{format}"'}
    return StreamingResponse(audit.export(which, format), media_type=media_type, headers=headers)


@router.get("/verify", responses=declared())
async def verify_audit(audit: Audit, session: Session = None) -> AuditReport:
    """Check that every row is there as it was written: of one session, or of all."""
    return await audit.verify(session)


@router.delete("/words", responses=declared())
async def erase_audit_words(audit: Audit, session: Session = None, person: Person = None) -> ErasedWords:
    """Erase what was said in a session, by a person, or by a person in a session. The rows and their hashes stay."""
    return await audit.erase_words(session_id=session, person=person)
