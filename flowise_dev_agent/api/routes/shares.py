"""Share links: made, listed and revoked by people with a key, and what they show to people without one."""

from typing import Annotated
from uuid import UUID

from fastapi import Path, Query, Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.once import ONCE_WITH_SECRET, OnceRoute
from flowise_dev_agent.api.responses import REPEATED, declared
from flowise_dev_agent.api.routes.flows import Version
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.patch import CanvasView
from flowise_dev_agent.schemas.shares import MadeShare, NewShare, SharedView, ShareList

router = Routes(prefix="/shares", tags=["shares"], route_class=OnceRoute)
shared_router = Routes(prefix="/shared", tags=["shares"])


@router.post(
    "",
    dependencies=[ONCE_WITH_SECRET],
    status_code=201,
    responses=declared("session_not_found", "share_not_signable", "answer_not_kept", *REPEATED),
)
async def create_share(request: Request, body: NewShare) -> MadeShare:
    """Make a link that shows a session, or the history of a flow, to people without a key: read-only, until its end or
    until it is revoked. The link is in this answer and in no later one."""
    return await engine(request).shares.make(body)


@router.get("", responses=declared())
async def list_shares(
    request: Request,
    session: Annotated[UUID | None, Query(description="Only links of this session.")] = None,
    flow: Annotated[UUID | None, Query(description="Only links of this chatflow.")] = None,
) -> ShareList:
    """The newest 500 links with their end and the last day on which they were opened."""
    return await engine(request).shares.all(session_id=session, chatflow_id=flow)


@router.delete("/{share_id}", status_code=204, responses=declared("share_not_found"))
async def revoke_share(request: Request, share_id: Annotated[UUID, Path(description="The link's id.")]) -> None:
    """End a link at once. It stays in the list."""
    await engine(request).shares.revoke(share_id)


@shared_router.get("", responses=declared("share_not_found", "share_ended"))
async def get_shared(request: Request) -> SharedView:
    """The content of a share link. It is sent as `Authorization: Share <the link's last part>`; no key opens this."""
    return await engine(request).shares.shown()


@shared_router.get("/versions/{version}", responses=declared("share_not_found", "share_ended", "version_not_found"))
async def get_shared_version(request: Request, version: Version) -> CanvasView:
    """A version of the flow that a share link shows, to be drawn."""
    return await engine(request).shares.version(int(version.removeprefix("v")))
