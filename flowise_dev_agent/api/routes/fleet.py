"""The fleet: all flows of a server with their states."""

from typing import Annotated

from fastapi import Query, Request, Response
from starlette.responses import PlainTextResponse

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.responses import FLOWISE, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.flows.fleet import as_csv
from flowise_dev_agent.persistence.fleet import FleetFilter
from flowise_dev_agent.schemas.fleet import FleetPage, FleetState

router = Routes(tags=["flows"])

Instance = Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")]
State = Annotated[FleetState | None, Query(description="Only flows in this state.")]
Owner = Annotated[str | None, Query(max_length=200, description="Only flows that this person's sessions wrote last.")]
Words = Annotated[str | None, Query(max_length=200, description="Only flows with this in their name.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")]
_FILE = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "One flow a line."}}


@router.get("/fleet", responses=declared(*FLOWISE))
async def get_fleet(
    request: Request,
    instance: Instance = None,
    state: State = None,
    owner: Owner = None,
    query: Words = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Cursor = None,
) -> FleetPage:
    """Flows of a server with their states, changed last first: healthy, changed outside, failing, broken, on an ending
    model, with outdated nodes, without a credential, never tested. Beside them those that were deleted in Flowise."""
    return await engine(request).fleet.page(instance, FleetFilter(state, owner, query), limit=limit, cursor=cursor)


@router.get("/fleet/export", response_class=PlainTextResponse, responses=_FILE | declared(*FLOWISE))
async def export_fleet(
    request: Request, instance: Instance = None, state: State = None, owner: Owner = None, query: Words = None
) -> Response:
    """The same as CSV, of at most 20 000 flows."""
    page = await engine(request).fleet.page(instance, FleetFilter(state, owner, query), limit=20_000, cursor=None)
    return Response(as_csv(page), media_type="text/csv; charset=utf-8")
