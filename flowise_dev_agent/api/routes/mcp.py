"""`/mcp`: the tools for other agents. Each call goes through the routes of this app, as a request of its caller."""

from typing import Final

from fastapi import FastAPI
from pydantic import SecretStr
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Scope

from flowise_dev_agent.api.problems import MAX_BODY_BYTES
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.mcp import AgentMcpServer, Host, McpEndpoint
from flowise_dev_agent.settings import ServerSettings

PATH: Final = "/mcp"


class _NamedRoute(Route):
    """A plain ASGI route that metrics can name, as they do FastAPI's."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, ({**child, "route": self} if match is not Match.NONE else child)


def mount(app: FastAPI, server: ServerSettings) -> McpEndpoint:
    """Add the route; the endpoint must run as long as the app does."""

    def client(request: Request | None) -> AgentClient:
        """A client with the caller's key and address: the same access, limits and answers as over REST."""
        assert request is not None  # noqa: S101 - the endpoint speaks HTTP only
        _, _, key = request.headers.get("authorization", "").partition(" ")
        return AgentClient(
            "http://localhost",
            SecretStr(key.strip()) if server.api_key else None,
            # A stream that ends without `done` was ended by the stopping service.
            reconnects=0,
            transport=StreamingASGITransport(app, client=request.client),
        )

    def base_url(request: Request | None) -> str:
        if server.public_base_url is not None:
            return str(server.public_base_url)
        assert request is not None  # noqa: S101
        return str(request.base_url)

    endpoint = McpEndpoint(
        AgentMcpServer(Host(client, server.mcp_approval, base_url), secret=server.api_key),
        max_body_bytes=MAX_BODY_BYTES,
    )
    # Only POST: there is no stream to open and no session to delete.
    app.router.routes.append(_NamedRoute(PATH, endpoint, methods=["POST"], include_in_schema=False))
    return endpoint
