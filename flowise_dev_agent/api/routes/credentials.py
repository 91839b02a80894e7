"""Secrets on their way to Flowise: this service keeps none."""

from fastapi import APIRouter, Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.problems import declared
from flowise_dev_agent.runtime.admin.credentials import CreatedCredential, NewCredential, create_credential

router = APIRouter(tags=["instances"])


@router.post("/credentials", status_code=201, responses=declared(413, 502, 504))
async def post_credential(request: Request, body: NewCredential) -> CreatedCredential:
    """Create a credential on a Flowise server. It goes there and is stored nowhere here; sessions use it by its id."""
    return await create_credential(engine(request).instances, body)
