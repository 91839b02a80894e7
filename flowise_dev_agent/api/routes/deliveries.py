"""Routes for the webhook deliveries of all sessions; a session's own are under the session."""

from typing import Annotated

from fastapi import Query

from flowise_dev_agent.api.deps import Service
from flowise_dev_agent.api.responses import declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.schemas.webhooks import DeliveryPage, DeliveryStatus

router = Routes(tags=["webhooks"])


@router.get("/deliveries", responses=declared())
async def list_deliveries(
    service: Service,
    status: Annotated[DeliveryStatus | None, Query(description="Only deliveries in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")] = None,
) -> DeliveryPage:
    """Webhooks of all sessions with their results, newest first; replay one by its session's route."""
    return await service.all_deliveries(status, limit=limit, cursor=cursor)
