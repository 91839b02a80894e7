"""Tools for the parts of flows: node types, their params and options, templates, document stores."""

from typing import Annotated, Final, Self
from uuid import UUID

from mcp.server.mcpserver import ElicitationResult, Resolve
from mcp_types import CallToolResult
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.knowledge.document_stores import store_lines
from flowise_dev_agent.mcp.consent import Confirmation, check_confirmed, refresh_confirmation
from flowise_dev_agent.mcp.host import Instance, ToolContext, client_of
from flowise_dev_agent.mcp.results import succeeded
from flowise_dev_agent.ops.catalogue import MOST_HITS
from flowise_dev_agent.patch.model.definitions import PARAM_TYPES
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.document_stores import DocumentStoreList, RefreshedStore
from flowise_dev_agent.schemas.nodes import (
    CatalogueHits,
    NodeExample,
    NodeInputView,
    NodeOptions,
    NodeTypeDetails,
    NodeTypePage,
)
from flowise_dev_agent.schemas.requests import Line

_MOST_NODES: Final = 10


async def search_catalogue(
    ctx: ToolContext,
    query: Annotated[Line, Field(description="What is looked for, such as 'vector store' or 'web search tool'.")],
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="Of node types, and of templates.")] = 10,
) -> Annotated[CallToolResult, CatalogueHits]:
    """Find parts for chatflows on a Flowise server: node types, and marketplace templates.

    Useful to word a requirement; the service itself needs no node names.
    """
    hits = await client_of(ctx).search_catalogue(query, instance=instance, limit=limit)
    nodes = [f"- {hit.name} ({hit.label}, {hit.category}): {hit.description}" for hit in hits.nodes]
    templates = [f"- {hit.name} ({hit.type}): {', '.join(hit.nodes)}" for hit in hits.templates]
    return succeeded(["Node types:", *(nodes or ["none"]), "Templates:", *(templates or ["none"])], hits)


async def get_node_types(
    ctx: ToolContext,
    query: Annotated[str, Field(max_length=200, description="Words; all node types without any.")] = "",
    category: Annotated[str | None, Field(max_length=100, description="Such as 'Chat Models'.")] = None,
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Field(max_length=200, description="next_cursor of the page before.")] = None,
) -> Annotated[CallToolResult, NodeTypePage]:
    """List node types of a Flowise server, by words and category."""
    page = await client_of(ctx).node_types(query, category=category, instance=instance, limit=limit, cursor=cursor)
    lines = [f"- {node.name} ({node.label}, {node.category}): {node.description}" for node in page.nodes]
    more = f"More with cursor {page.next_cursor}" if page.next_cursor else ""
    return succeeded([f"{len(page.nodes)} of {page.total} node types:", *lines, more], page)


async def list_document_stores(
    ctx: ToolContext, instance: Instance = None
) -> Annotated[CallToolResult, DocumentStoreList]:
    """List the document stores of a Flowise server: chunked texts that chatflows can answer from.

    A requirement may name one.
    """
    found = await client_of(ctx).document_stores(instance)
    return succeeded(store_lines(found.stores) or ["There are no document stores."], found)


async def refresh_document_store(
    ctx: ToolContext,
    store_id: Annotated[UUID, Field(description="Id of a document store, see list_document_stores.")],
    confirmed: Annotated[ElicitationResult[Confirmation], Resolve(refresh_confirmation)],
    instance: Instance = None,
) -> Annotated[CallToolResult, RefreshedStore]:
    """Read every source of a document store again and write to its vector store what changed. It may take minutes.

    The decision is a person's: unless the operator of the service has allowed agents to decide (MCP_APPROVAL=agent),
    they confirm it in their client.
    """
    check_confirmed(confirmed)
    done = await client_of(ctx).refresh_document_store(str(store_id), instance)
    return succeeded(store_lines([done.store]), done)


class NodeRef(BaseModel):
    """Reference to a node type."""

    model_config = ConfigDict(extra="forbid")

    node_type: Line = Field(description="Name of a node type such as chatOpenAI, or with `subtype` its category.")
    subtype: Line | None = Field(default=None, description="Name of the node type, where `node_type` is a category.")


class NodeParameter(BaseModel):
    """A field of a node type."""

    name: str
    label: str
    description: str
    type: str
    required: bool
    default: JsonValue
    enum_values: list[str] | None = Field(description="What it may be set to; null: anything of the type.")
    lists_options: bool = Field(description="The server lists what it may be set to: see list_options.")


class NodeConnection(BaseModel):
    """An input that other nodes are connected to."""

    name: str
    accepts: list[str] = Field(description="Classes that fit.")
    required: bool


class NodeDetails(BaseModel):
    """Description of a node type."""

    node_type: str = Field(description="Its category.")
    subtype: str = Field(description="Its name, as ops and requirements use it.")
    name: str = Field(description="What people call it.")
    description: str
    kind: str = Field(description="Flows that it runs in: CHATFLOW, AGENTFLOW or MULTIAGENT.")
    version: float
    credentials: list[str]
    parameters: list[NodeParameter]
    connections: list[NodeConnection]
    outputs: list[str]
    input_params_schema: JsonObject | None = Field(description="JSON Schema of the fields, with `include_schemas`.")
    examples: list[NodeExample] | None = Field(description="From the server's marketplace, with `include_examples`.")

    @classmethod
    def of(cls, found: NodeTypeDetails, *, schemas: bool, examples: bool) -> Self:
        """Convert the answer of the service."""
        node = found.node
        params = [one for one in found.inputs if one.type in PARAM_TYPES]
        return cls(
            node_type=node.category,
            subtype=node.name,
            name=node.label,
            description=node.description,
            kind=node.kind,
            version=node.version,
            credentials=node.credentials,
            parameters=[_parameter(one) for one in params],
            connections=[
                NodeConnection(name=one.name, accepts=one.type.split("|"), required=one.required)
                for one in found.inputs
                if one not in params
            ],
            outputs=found.outputs,
            input_params_schema=found.form if schemas else None,
            examples=found.examples if examples else None,
        )


class NodeDetailsList(BaseModel):
    """Node types, in the order of the request."""

    nodes: list[NodeDetails]


async def get_node_details(
    ctx: ToolContext,
    nodes: Annotated[
        list[NodeRef], Field(min_length=1, max_length=_MOST_NODES, description="Node types (see get_node_types).")
    ],
    include_examples: Annotated[bool, Field(description="Also how the server's marketplace uses each.")] = False,
    include_schemas: Annotated[bool, Field(description="Also the JSON Schema of the fields of each.")] = False,
    instance: Instance = None,
) -> Annotated[CallToolResult, NodeDetailsList]:
    """Show node types: their parameters with allowed values, their connections, outputs and credentials."""
    cards: list[str] = []
    shown: list[NodeDetails] = []
    for ref in nodes:
        name = ref.subtype or ref.node_type
        found = await client_of(ctx).node_type(name, instance=instance, examples=include_examples)
        if ref.subtype and ref.node_type.casefold() != found.node.category.casefold():
            raise InvalidInputError(
                f"{found.node.name} is not of the category {ref.node_type!r}, but of {found.node.category!r}."
            )
        cards.append(found.card)
        shown.append(NodeDetails.of(found, schemas=include_schemas, examples=include_examples))
    return succeeded(cards, NodeDetailsList(nodes=shown))


async def list_options(
    ctx: ToolContext,
    node: Annotated[Line, Field(description="Name of a node type.")],
    param: Annotated[Line, Field(description="Name of a param whose options the server lists, such as modelName.")],
    instance: Instance = None,
) -> Annotated[CallToolResult, NodeOptions]:
    """List the allowed values of a param of a node type: models of a provider, tools, document stores, flows."""
    found = await client_of(ctx).node_options(node, param, instance=instance)
    lines = [f"- {option.name} ({option.label})" for option in found.options]
    return succeeded([f"{found.node}.{found.param}:", *(lines or ["The server lists nothing."])], found)


def _parameter(given: NodeInputView) -> NodeParameter:
    return NodeParameter(
        **given.model_dump(include={"name", "label", "description", "type", "required", "default", "lists_options"}),
        enum_values=given.options or None,
    )
