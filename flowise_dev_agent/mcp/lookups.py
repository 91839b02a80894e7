"""The tools that only look: chatflows of a server, one of them in words, node types and templates."""

from typing import Annotated
from uuid import UUID

from mcp_types import CallToolResult
from pydantic import Field

from flowise_dev_agent.mcp.host import ToolContext, host_of
from flowise_dev_agent.mcp.results import succeeded
from flowise_dev_agent.runtime.admin.catalogue import MOST_HITS, CatalogueHits
from flowise_dev_agent.runtime.flows.views import FlowPage, FlowSummary
from flowise_dev_agent.runtime.sessions.requests import Line

Instance = Annotated[str | None, Field(max_length=200, description="Flowise instance; the default one when left out.")]


async def list_chatflows(
    ctx: ToolContext,
    query: Annotated[str, Field(max_length=200, description="Each word must begin a word of the flow.")] = "",
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> Annotated[CallToolResult, FlowPage]:
    """Find chatflows and agentflows of a Flowise server by name, id, tags, node types and prompts; without words those
    changed last. Drafts of sessions are left out."""
    page = await host_of(ctx).backend.find_flows(query, instance=instance, limit=limit)
    lines = [f"- {row.id} {row.name} ({row.type}, {row.nodes} nodes, changed {row.updated})" for row in page.flows]
    return succeeded([f"{len(page.flows)} of {page.total} chatflows that fit:", *lines], page)


async def read_chatflow(
    ctx: ToolContext,
    chatflow_id: Annotated[UUID, Field(description="The chatflow's id (see list_chatflows).")],
    instance: Instance = None,
) -> Annotated[CallToolResult, FlowSummary]:
    """Say what a chatflow is made of: its nodes with what is set on them, and how they are connected. Credentials and
    secrets are never shown."""
    found = await host_of(ctx).backend.flow_summary(str(chatflow_id), instance=instance)
    return succeeded([f"{found.flow.name} ({found.flow.type}) {found.flow.url or ''}", found.summary], found)


async def search_catalogue(
    ctx: ToolContext,
    query: Annotated[Line, Field(description="What is looked for, such as 'vector store' or 'web search tool'.")],
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="Of node types, and of templates.")] = 10,
) -> Annotated[CallToolResult, CatalogueHits]:
    """Find what chatflows can be made of on a Flowise server: node types, and marketplace templates of such flows.
    Useful to word a requirement; the service itself needs no node names."""
    hits = await host_of(ctx).backend.search_catalogue(query, instance=instance, limit=limit)
    nodes = [f"- {hit.name} ({hit.label}, {hit.category}): {hit.description}" for hit in hits.nodes]
    templates = [f"- {hit.name} ({hit.type}): {', '.join(hit.nodes)}" for hit in hits.templates]
    return succeeded(["Node types:", *(nodes or ["none"]), "Templates:", *(templates or ["none"])], hits)
