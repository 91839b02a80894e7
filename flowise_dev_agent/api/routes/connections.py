"""The Flowise server and the model that the service is connected to."""

from typing import Annotated

from fastapi import Query, Request, Response

from flowise_dev_agent.api.deps import TAGGED, IfMatch, engine, tagged
from flowise_dev_agent.api.responses import FLOWISE, MODEL, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.schemas.connections import ConnectFlowise, ConnectionsView, ConnectModel

router = Routes(prefix="/connections", tags=["instances"])


@router.get("", responses=TAGGED | declared())
async def get_connections(request: Request, response: Response) -> ConnectionsView:
    """The default Flowise server and the model that plans, and where each was set. Keys are not shown."""
    return tagged(response, await engine(request).connections.view())


@router.put("/flowise", responses=TAGGED | declared("connection_not_storable", "sessions_open", *FLOWISE))
async def connect_flowise(
    request: Request, response: Response, body: ConnectFlowise, if_match: IfMatch
) -> ConnectionsView:
    """Try a Flowise server, and use it from now on. The key is kept encrypted and never shown."""
    return tagged(response, await engine(request).connections.connect_flowise(body, if_match))


@router.put("/model", responses=TAGGED | declared("connection_not_storable", *MODEL))
async def connect_model(request: Request, response: Response, body: ConnectModel, if_match: IfMatch) -> ConnectionsView:
    """Try a model, and plan with it from now on. The key is kept encrypted and never shown."""
    return tagged(response, await engine(request).connections.connect_model(body, if_match))


@router.delete("/flowise", responses=TAGGED | declared("sessions_open"))
async def disconnect_flowise(
    request: Request,
    response: Response,
    if_match: IfMatch,
    force: Annotated[bool, Query(description="Although sessions are open: they end in `server_changed`.")] = False,
) -> ConnectionsView:
    """Forget the Flowise server that was stored. Safe to repeat."""
    return tagged(response, await engine(request).connections.disconnect("flowise", if_match, force=force))


@router.delete("/model", responses=TAGGED | declared())
async def disconnect_model(request: Request, response: Response, if_match: IfMatch) -> ConnectionsView:
    """Forget the model that was stored. Safe to repeat."""
    return tagged(response, await engine(request).connections.disconnect("model", if_match))
