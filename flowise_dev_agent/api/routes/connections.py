"""The Flowise server and the model that the service is connected to."""

from fastapi import APIRouter, Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.problems import declared
from flowise_dev_agent.contracts.connections import ConnectFlowise, ConnectionsView, ConnectModel

router = APIRouter(prefix="/connections", tags=["instances"])


@router.get("", responses=declared())
async def get_connections(request: Request) -> ConnectionsView:
    """The default Flowise server and the model that plans, and where each was set. Keys are not shown."""
    return await engine(request).connections.view()


@router.put("/flowise", responses=declared(409, 502, 504))
async def connect_flowise(request: Request, body: ConnectFlowise) -> ConnectionsView:
    """Try a Flowise server, and use it from now on. The key is kept encrypted and never shown."""
    return await engine(request).connections.connect_flowise(body)


@router.put("/model", responses=declared(409, 502))
async def connect_model(request: Request, body: ConnectModel) -> ConnectionsView:
    """Try a model, and plan with it from now on. The key is kept encrypted and never shown."""
    return await engine(request).connections.connect_model(body)


@router.delete("/flowise", responses=declared())
async def disconnect_flowise(request: Request) -> ConnectionsView:
    """Forget the Flowise server that was stored. Safe to repeat."""
    return await engine(request).connections.disconnect("flowise")


@router.delete("/model", responses=declared())
async def disconnect_model(request: Request) -> ConnectionsView:
    """Forget the model that was stored. Safe to repeat."""
    return await engine(request).connections.disconnect("model")
