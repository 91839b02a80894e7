"""Node types of a Flowise server, and the options of their params."""

from typing import Annotated

from fastapi import Path, Query, Request

from flowise_dev_agent.api.deps import engine, words
from flowise_dev_agent.api.responses import FLOWISE, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.schemas.nodes import NodeOptions, NodeTypeDetails, NodeTypePage, OptionsRequest

router = Routes(prefix="/nodes", tags=["instances"])

Instance = Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")]
Name = Annotated[str, Path(max_length=120, description="Name of a node type, such as chatOpenAI.")]


@router.get("", responses=declared())
async def list_nodes(
    request: Request,
    query: Annotated[str, words("q")],
    category: Annotated[str | None, Query(max_length=100, description="Such as `Chat Models`.")] = None,
    instance: Instance = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="next_cursor of the page before.")] = None,
) -> NodeTypePage:
    """Node types of an instance."""
    return await engine(request).node_types.list(instance, query=query, category=category, limit=limit, cursor=cursor)


@router.get("/{name}", responses=declared("node_type_not_found", *FLOWISE))
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


@router.post("/{name}/options", responses=declared("node_type_not_found", "flowise_not_found", *FLOWISE))
async def list_options(request: Request, name: Name, body: OptionsRequest, instance: Instance = None) -> NodeOptions:
    """The allowed values of a param: models of a provider, tools, document stores, flows. Nothing is changed."""
    return await engine(request).node_types.options(instance, name, body.param, credential_id=body.credential_id)
