"""The document stores of the Flowise servers."""

from typing import Annotated
from uuid import UUID

from fastapi import Query, Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.once import ONCE, OnceRoute
from flowise_dev_agent.api.responses import FLOWISE, REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.ops.document_stores import document_stores, refresh_store
from flowise_dev_agent.schemas.document_stores import DocumentStoreList, RefreshedStore

router = Routes(tags=["instances"], route_class=OnceRoute)
_Instance = Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")]


@router.get("/document-stores", responses=declared(*FLOWISE))
async def list_document_stores(request: Request, instance: _Instance = None) -> DocumentStoreList:
    """The document stores of a Flowise server, which flows can answer from; without their settings."""
    return await document_stores(engine(request).instances, instance)


@router.post(
    "/document-stores/{store_id}/refresh",
    dependencies=[ONCE],
    responses=declared("flowise_not_found", *REPEATED, *FLOWISE),
)
async def refresh_document_store(request: Request, store_id: UUID, instance: _Instance = None) -> RefreshedStore:
    """Read every source of a document store again and write to its vector store what changed. A store whose vector
    store would hold every piece twice is refused."""
    return await refresh_store(engine(request).instances, engine(request).audit_log, store_id, instance)
