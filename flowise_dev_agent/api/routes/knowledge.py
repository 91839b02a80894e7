"""Routes for the knowledge of the Flowise servers and its refresh."""

from typing import Annotated

from fastapi import Path, Query, Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.once import ONCE, OnceRoute
from flowise_dev_agent.api.responses import REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.ops.catalogue import MOST_HITS
from flowise_dev_agent.schemas.knowledge import KnowledgeList, RefreshView
from flowise_dev_agent.schemas.nodes import CatalogueHits

router = Routes(prefix="/knowledge", tags=["instances"], route_class=OnceRoute)


@router.get("", responses=declared())
async def list_knowledge(request: Request) -> KnowledgeList:
    """By instance: node types and templates, how old they are, and the last refresh with its progress."""
    return await engine(request).knowledge.list()


@router.get("/search", responses=declared())
async def search_knowledge(
    request: Request,
    query: Annotated[str, Query(min_length=1, max_length=200, description="What is looked for, in words.")],
    instance: Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_HITS)] = 10,
) -> CatalogueHits:
    """Node types and marketplace templates of an instance that fit, best first."""
    return await engine(request).catalogue.search(query, instance=instance, limit=limit)


@router.post("/{instance_id}/refresh", dependencies=[ONCE], status_code=202, responses=declared(*REPEATED))
async def refresh_knowledge(
    request: Request, instance_id: Annotated[str, Path(max_length=200, description="Flowise instance.")]
) -> RefreshView:
    """Read an instance again in the background, or join a running refresh; GET /knowledge shows it."""
    return await engine(request).knowledge.refresh(instance_id)
