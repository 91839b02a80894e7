"""Files that go with a requirement."""

from typing import Annotated
from uuid import UUID

from fastapi import File, Path, Query, Request, UploadFile

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.once import ONCE, OnceRoute
from flowise_dev_agent.api.responses import REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.attachments import AttachmentList, AttachmentView
from flowise_dev_agent.texts import text

router = Routes(prefix="/attachments", tags=["attachments"], route_class=OnceRoute)

AttachmentId = Annotated[UUID, Path(description="The attachment's id.")]


@router.post("", dependencies=[ONCE], status_code=201, responses=declared(*REPEATED, "body_too_large"))
async def add_attachment(
    request: Request,
    file: Annotated[UploadFile, File(description="PDF, DOCX, text, Markdown, CSV, OpenAPI 3, PNG, JPEG or WebP.")],
) -> AttachmentView:
    """Store a file (`multipart/form-data`, at most 20 MB); give its id to `POST /sessions` within a day."""
    if not file.filename:
        raise InvalidInputError(text("error.file_has_no_name"), hint="Send it as `file` with its file name.")
    return await engine(request).attachments.add(file.filename, await file.read())


@router.get("", responses=declared())
async def list_attachments(
    request: Request, session_id: Annotated[UUID, Query(description="The session that uses the files.")]
) -> AttachmentList:
    """The files of a session."""
    return AttachmentList(attachments=await engine(request).attachments.of_session(session_id))


@router.get("/{attachment_id}", responses=declared("attachment_not_found"))
async def get_attachment(
    request: Request,
    attachment_id: AttachmentId,
    text: Annotated[bool, Query(description="Also all that was read in it.")] = False,
) -> AttachmentView:
    """Read a file's metadata."""
    return await engine(request).attachments.get(attachment_id, text=text)


@router.delete("/{attachment_id}", status_code=204, responses=declared("attachment_not_found"))
async def delete_attachment(request: Request, attachment_id: AttachmentId) -> None:
    """Remove a file that no session uses; the others go with their session."""
    await engine(request).attachments.delete(attachment_id)
