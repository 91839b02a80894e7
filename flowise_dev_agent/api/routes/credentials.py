"""Secrets on their way to Flowise: this service keeps none."""

from typing import Annotated

from fastapi import Query, Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.once import ONCE_OF_SECRETS, OnceRoute
from flowise_dev_agent.api.responses import FLOWISE, REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.ops.credentials import create_credential, credential_types
from flowise_dev_agent.schemas.credentials import CreatedCredential, CredentialTypeList, NewCredential

router = Routes(tags=["instances"], route_class=OnceRoute)


@router.post("/credentials", dependencies=[ONCE_OF_SECRETS], status_code=201, responses=declared(*REPEATED, *FLOWISE))
async def post_credential(request: Request, body: NewCredential) -> CreatedCredential:
    """Create a credential on a Flowise server. It goes there and is stored nowhere here; sessions use it by its id."""
    return await create_credential(engine(request).instances, engine(request).audit_log, body)


@router.get("/credentials/types", responses=declared(*FLOWISE))
async def list_credential_types(
    request: Request,
    instance: Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")] = None,
) -> CredentialTypeList:
    """The credential types of a Flowise server with the fields that each has."""
    return await credential_types(engine(request).instances, instance)
