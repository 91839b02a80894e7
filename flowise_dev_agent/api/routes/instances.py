"""The Flowise servers."""

from fastapi import Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.responses import declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.ops.instances import survey
from flowise_dev_agent.schemas.service import InstanceList

router = Routes(tags=["instances"])


@router.get("/instances", responses=declared())
async def list_instances(request: Request) -> InstanceList:
    """The Flowise servers with version, reachability and how their node types differ from the committed snapshot."""
    return await survey(engine(request).instances)
