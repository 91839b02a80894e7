"""Declaration of the routes of each subject, and their assembly to an app."""

from enum import Enum

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute

from flowise_dev_agent.api.access import authorize


def operation_id(route: APIRoute) -> str:
    """The name of the route's function: clients generated from the document keep it when a path changes."""
    return route.name


class Routes(APIRouter):
    """The routes of one subject, each behind `authorize`."""

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
            dependencies=[Depends(authorize)],
            generate_unique_id_function=operation_id,
        )

    def add_to(self, app: FastAPI) -> None:
        """Give an app these very routes. `include_router` would build each again: a second of a service's first
        request."""
        app.router.routes.extend(self.routes)
