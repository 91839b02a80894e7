"""The Flowise servers: connections, credentials, document stores, node types, and what the service knows of them."""

from typing import Annotated
from uuid import UUID

from fastapi import Path, Query, Request, Response

from flowise_dev_agent.api.deps import TAGGED, IfMatch, engine, tagged, words
from flowise_dev_agent.api.once import ONCE, ONCE_OF_SECRETS, OnceRoute
from flowise_dev_agent.api.responses import FLOWISE, MODEL, REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.ops.catalogue import MOST_HITS
from flowise_dev_agent.ops.credentials import create_credential, credential_list, credential_types
from flowise_dev_agent.ops.document_stores import document_stores, refresh_store
from flowise_dev_agent.ops.instances import survey
from flowise_dev_agent.schemas.connections import ConnectFlowise, ConnectionsView, ConnectModel
from flowise_dev_agent.schemas.credentials import CreatedCredential, CredentialList, CredentialTypeList, NewCredential
from flowise_dev_agent.schemas.document_stores import DocumentStoreList, RefreshedStore
from flowise_dev_agent.schemas.knowledge import KnowledgeList, RefreshView
from flowise_dev_agent.schemas.nodes import (
    CatalogueHits,
    NodeIcons,
    NodeOptions,
    NodeTypeDetails,
    NodeTypePage,
    OptionsRequest,
    VariableList,
)
from flowise_dev_agent.schemas.service import InstanceList

#: A browser asks again for icons after a day.
_ICON_SECS = 86_400

router = Routes(tags=["instances"], route_class=OnceRoute)

Instance = Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")]
Name = Annotated[str, Path(max_length=120, description="Name of a node type, such as chatOpenAI.")]


@router.get("/instances", responses=declared())
async def list_instances(request: Request) -> InstanceList:
    """The Flowise servers with version, reachability and how their node types differ from the committed snapshot."""
    return await survey(engine(request).instances)


@router.get("/document-stores", responses=declared(*FLOWISE))
async def list_document_stores(request: Request, instance: Instance = None) -> DocumentStoreList:
    """The document stores of a Flowise server, which flows can answer from; without their settings."""
    return await document_stores(engine(request).instances, instance)


@router.get("/variables", responses=declared(*FLOWISE))
async def list_variables(request: Request, instance: Instance = None) -> VariableList:
    """The variables of a Flowise server by name, never their values."""
    return await engine(request).node_types.variables(instance)


@router.post(
    "/document-stores/{store_id}/refresh",
    dependencies=[ONCE],
    responses=declared("flowise_not_found", *REPEATED, *FLOWISE),
)
async def refresh_document_store(request: Request, store_id: UUID, instance: Instance = None) -> RefreshedStore:
    """Read every source of a document store again and write to its vector store what changed. A store whose vector
    store would hold every piece twice is refused."""
    return await refresh_store(engine(request).instances, engine(request).audit_log, store_id, instance)


@router.get("/connections", responses=TAGGED | declared())
async def get_connections(request: Request, response: Response) -> ConnectionsView:
    """The default Flowise server and the model that plans, and where each was set. Keys are not shown."""
    return tagged(response, await engine(request).connections.view())


@router.put("/connections/flowise", responses=TAGGED | declared("connection_not_storable", "sessions_open", *FLOWISE))
async def connect_flowise(
    request: Request, response: Response, body: ConnectFlowise, if_match: IfMatch
) -> ConnectionsView:
    """Try a Flowise server, and use it from now on. The key is kept encrypted and never shown."""
    return tagged(response, await engine(request).connections.connect_flowise(body, if_match))


@router.put("/connections/model", responses=TAGGED | declared("connection_not_storable", *MODEL))
async def connect_model(request: Request, response: Response, body: ConnectModel, if_match: IfMatch) -> ConnectionsView:
    """Try a model, and plan with it from now on. The key is kept encrypted and never shown."""
    return tagged(response, await engine(request).connections.connect_model(body, if_match))


@router.delete("/connections/flowise", responses=TAGGED | declared("sessions_open"))
async def disconnect_flowise(
    request: Request,
    response: Response,
    if_match: IfMatch,
    force: Annotated[bool, Query(description="Although sessions are open: they end in `server_changed`.")] = False,
) -> ConnectionsView:
    """Forget the Flowise server that was stored. Safe to repeat."""
    return tagged(response, await engine(request).connections.disconnect("flowise", if_match, force=force))


@router.delete("/connections/model", responses=TAGGED | declared())
async def disconnect_model(request: Request, response: Response, if_match: IfMatch) -> ConnectionsView:
    """Forget the model that was stored. Safe to repeat."""
    return tagged(response, await engine(request).connections.disconnect("model", if_match))


@router.post("/credentials", dependencies=[ONCE_OF_SECRETS], status_code=201, responses=declared(*REPEATED, *FLOWISE))
async def post_credential(request: Request, body: NewCredential) -> CreatedCredential:
    """Create a credential on a Flowise server. It goes there and is stored nowhere here; sessions use it by its id."""
    return await create_credential(engine(request).instances, engine(request).audit_log, body)


@router.get("/credentials", responses=declared(*FLOWISE))
async def list_credentials(request: Request, instance: Instance = None) -> CredentialList:
    """The credentials of a Flowise server with name and type, never their values."""
    return await credential_list(engine(request).instances, instance)


@router.get("/credentials/types", responses=declared(*FLOWISE))
async def list_credential_types(
    request: Request,
    instance: Instance = None,
) -> CredentialTypeList:
    """The credential types of a Flowise server with the fields that each has."""
    return await credential_types(engine(request).instances, instance)


@router.get("/knowledge", responses=declared())
async def list_knowledge(request: Request) -> KnowledgeList:
    """By instance: node types and templates, how old they are, and the last refresh with its progress."""
    return await engine(request).knowledge.list()


@router.get("/knowledge/search", responses=declared())
async def search_knowledge(
    request: Request,
    query: Annotated[str, Query(min_length=1, max_length=200, description="What is looked for, in words.")],
    instance: Instance = None,
    limit: Annotated[int, Query(ge=1, le=MOST_HITS)] = 10,
) -> CatalogueHits:
    """Node types and marketplace templates of an instance that fit, best first."""
    return await engine(request).catalogue.search(query, instance=instance, limit=limit)


@router.post("/knowledge/{instance_id}/refresh", dependencies=[ONCE], status_code=202, responses=declared(*REPEATED))
async def refresh_knowledge(
    request: Request, instance_id: Annotated[str, Path(max_length=200, description="Flowise instance.")]
) -> RefreshView:
    """Read an instance again in the background, or join a running refresh; GET /knowledge shows it."""
    return await engine(request).knowledge.refresh(instance_id)


@router.get("/nodes", responses=declared())
async def list_nodes(
    request: Request,
    query: Annotated[str, words("q")],
    category: Annotated[str | None, Query(max_length=100, description="Such as `Chat Models`.")] = None,
    accepting: Annotated[
        str | None,
        Query(max_length=500, description="Only types that fit an input of these classes, the most used ones first."),
    ] = None,
    instance: Instance = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="next_cursor of the page before.")] = None,
) -> NodeTypePage:
    """Node types of an instance. With `accepting` there is one page."""
    types = engine(request).node_types
    if accepting is not None:
        return await types.fitting(instance, accepting, query=query, limit=limit)
    return await types.list(instance, query=query, category=category, limit=limit, cursor=cursor)


@router.get("/nodes/icons", responses=declared(*FLOWISE))
async def list_icons(
    request: Request,
    response: Response,
    names: Annotated[list[str], Query(max_length=60, description="Names of node types.")],
    instance: Instance = None,
) -> NodeIcons:
    """The icons of node types, as the Flowise server has them."""
    response.headers["Cache-Control"] = f"private, max-age={_ICON_SECS}"
    return await engine(request).node_types.icons(instance, names)


@router.get("/nodes/{name}", responses=declared("node_type_not_found", *FLOWISE))
async def get_node(
    request: Request,
    name: Name,
    instance: Instance = None,
    options: Annotated[bool, Query(description="Put what the server lists for its fields into `form`.")] = False,
    examples: Annotated[bool, Query(description="Also how flows of the server's marketplace use it.")] = False,
) -> NodeTypeDetails:
    """A node type with its inputs, and a JSON Schema of its fields for a form; an unknown name is an error that lists
    close ones."""
    found = await engine(request).node_types.details(instance, name, with_options=options)
    if not examples:
        return found
    return found.model_copy(update={"examples": await engine(request).catalogue.examples(name, instance=instance)})


@router.post("/nodes/{name}/options", responses=declared("node_type_not_found", "flowise_not_found", *FLOWISE))
async def list_options(request: Request, name: Name, body: OptionsRequest, instance: Instance = None) -> NodeOptions:
    """The allowed values of a param: models of a provider, tools, document stores, flows. Nothing is changed."""
    return await engine(request).node_types.options(instance, name, body.param, credential_id=body.credential_id)
