"""Declaration of the routes of each subject, and their assembly to an app."""

from collections.abc import Iterator
from enum import Enum

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from flowise_dev_agent.api.access import authorize


def operation_id(route: APIRoute) -> str:
    """The name of the route's function: clients generated from the document keep it when a path changes."""
    return route.name


def _query_names(route: APIRoute) -> frozenset[str]:
    """Names of the query parameters of a route and of what it depends on."""

    def names(dependant: Dependant) -> Iterator[str]:
        yield from (field.alias for field in dependant.query_params)
        for one in dependant.dependencies:
            yield from names(one)

    return frozenset(names(route.dependant))


async def only_known_queries(request: Request) -> None:
    """Refuse query parameters that the route does not have: ignored, they would give an answer to another question."""
    route: APIRoute = request.scope["route"]
    known = _query_names(route)
    if unknown := [name for name in request.query_params if name not in known]:
        has = f"It has: {', '.join(sorted(known))}." if known else "It has none."
        found = [
            {"type": "extra_forbidden", "loc": ("query", name), "msg": f"There is no such parameter. {has}"}
            for name in dict.fromkeys(unknown)
        ]
        raise RequestValidationError(found)


class Routes(APIRouter):
    """The routes of one subject, each behind `authorize`; they refuse query parameters that they do not have."""

    def __init__(
        self,
        *,
        prefix: str = "",
        tags: list[str | Enum] | None = None,
        route_class: type[APIRoute] = APIRoute,
        include_in_schema: bool = True,
    ) -> None:
        super().__init__(
            prefix=prefix,
            tags=tags,
            route_class=route_class,
            include_in_schema=include_in_schema,
            dependencies=[Depends(authorize), Depends(only_known_queries)],
            generate_unique_id_function=operation_id,
        )

    def add_to(self, app: FastAPI) -> None:
        """Give an app these very routes. `include_router` would build each again: a second of a service's first
        request."""
        app.router.routes.extend(self.routes)
