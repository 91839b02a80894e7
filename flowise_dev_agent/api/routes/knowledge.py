"""What is known of the Flowise servers, and reading it anew."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.problems import declared
from flowise_dev_agent.runtime.knowledge import KnowledgeList, RefreshView

router = APIRouter(prefix="/knowledge", tags=["instances"])


@router.get("", responses=declared())
async def known(request: Request) -> KnowledgeList:
    """By instance: node types and templates, how old they are, and the last refresh with its progress."""
    return await engine(request).knowledge.list()


@router.post("/{instance_id}/refresh", status_code=202, responses=declared())
async def refresh(
    request: Request, instance_id: Annotated[str, Path(max_length=200, description="Flowise instance.")]
) -> RefreshView:
    """Read an instance anew in the background, or join the refresh that is under way; GET /knowledge shows it."""
    return await engine(request).knowledge.refresh(instance_id)
