"""`/mcp`: the service for other agents, behind the same key, body limit and rate limit as everything else."""

from typing import Any, Final

from fastapi import FastAPI
from slowapi import Limiter
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Scope

from flowise_dev_agent.api.limits import count_start
from flowise_dev_agent.api.problems import MAX_BODY_BYTES
from flowise_dev_agent.mcp import AgentMcpServer, Host
from flowise_dev_agent.mcp.http import McpEndpoint
from flowise_dev_agent.mcp.local import LocalBackend
from flowise_dev_agent.settings import ServerSettings

PATH: Final = "/mcp"
_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")


class _NamedRoute(Route):
    """A plain ASGI route that metrics can name, as they do FastAPI's."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, ({**child, "route": self} if match is not Match.NONE else child)


def mount(app: FastAPI, server: ServerSettings, limiter: Limiter) -> McpEndpoint:
    """Add the route; the endpoint has to run as long as the app does."""

    def base_url(request: Request | None) -> str:
        if server.public_base_url is not None:
            return str(server.public_base_url)
        return str(request.base_url) if request is not None else ""

    def admit(request: Request | None) -> None:
        if request is not None:
            count_start(limiter, server, request)

    def engine() -> Any:
        return app.state.engine

    host = Host(LocalBackend(engine), server.mcp_approval, base_url, admit)
    endpoint = McpEndpoint(
        AgentMcpServer(host, secret=server.api_key), hosts=_hosts(server), max_body_bytes=MAX_BODY_BYTES
    )
    # Only POST: there is no stream to open and no session to delete.
    app.router.routes.append(_NamedRoute(PATH, endpoint, methods=["POST"], include_in_schema=False))
    return endpoint


def _hosts(server: ServerSettings) -> list[str] | None:
    """The names under which a service without a key may be called: those of this machine and the one it was given."""
    if server.api_key is not None:
        return None
    public = server.public_base_url.host if server.public_base_url else None
    return [*_LOCAL, *(name for name in (server.host, public) if name)]
