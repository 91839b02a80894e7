"""The Flowise servers, and flows between them."""

from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.api.deps import FlowId, engine
from flowise_dev_agent.api.problems import declared
from flowise_dev_agent.runtime.admin.instances import InstanceList, survey
from flowise_dev_agent.runtime.flows.promotion import Promoted

router = APIRouter(tags=["instances"])


class PromoteFlow(BaseModel):
    """The body of `POST /flows/{id}/promote`."""

    model_config = ConfigDict(extra="forbid")

    source: str | None = Field(default=None, max_length=200, description="Instance of the flow; the default one.")
    target: str = Field(min_length=1, max_length=200, description="Instance that gets the flow.")
    name: str | None = Field(default=None, min_length=1, max_length=200, description="Name there; the same by default.")
    target_chatflow_id: UUID | None = Field(
        default=None, description="Flow there to write over; a new one is created when left out."
    )


@router.get("/instances", responses=declared())
async def list_instances(request: Request) -> InstanceList:
    """The Flowise servers with version, reachability and how their node types differ from the committed snapshot."""
    return await survey(engine(request).instances)


@router.post("/flows/{chatflow_id}/promote", responses=declared(502, 504))
async def promote_flow(request: Request, chatflow_id: FlowId, body: PromoteFlow) -> Promoted:
    """Bring a flow to another server, credentials mapped by name and type; checked before and read back after.

    What a flow there held before is kept: `POST /sessions/{session_id}/rollback` with the answer's `session_id` puts it
    back.
    """
    return await engine(request).promotions.promote(
        str(chatflow_id),
        source=body.source,
        target=body.target,
        name=body.name,
        target_chatflow_id=str(body.target_chatflow_id) if body.target_chatflow_id else None,
    )
