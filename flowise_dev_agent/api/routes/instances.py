"""The Flowise servers."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.problems import declared
from flowise_dev_agent.contracts.document_stores import DocumentStoreList
from flowise_dev_agent.runtime.admin.instances import InstanceList, document_stores, survey

router = APIRouter(tags=["instances"])


@router.get("/instances", responses=declared())
async def list_instances(request: Request) -> InstanceList:
    """The Flowise servers with version, reachability and how their node types differ from the committed snapshot."""
    return await survey(engine(request).instances)


@router.get("/document-stores", responses=declared(502, 504))
async def list_document_stores(
    request: Request,
    instance: Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")] = None,
) -> DocumentStoreList:
    """The document stores of a Flowise server, which flows can answer from; without their settings."""
    return await document_stores(engine(request).instances, instance)
