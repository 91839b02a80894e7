"""`/mcp`: the tools for other agents. Each call goes through the routes of this app, as a request of its caller."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from pydantic import SecretStr
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from flowise_dev_agent.api.access import OWNER_HEADER
from flowise_dev_agent.api.problems import MAX_BODY_BYTES
from flowise_dev_agent.settings import ServerSettings

if TYPE_CHECKING:
    # The SDK takes a third of the time in which a service starts, and most are never asked by an agent.
    from flowise_dev_agent.client import AgentClient
    from flowise_dev_agent.mcp import McpEndpoint

PATH: Final = "/mcp"


class _NamedRoute(Route):
    """A plain ASGI route that metrics can name, as they do FastAPI's."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, ({**child, "route": self} if match is not Match.NONE else child)


class LazyEndpoint:
    """An endpoint that is made at the first request, in a thread. It answers within `running`."""

    def __init__(self, make: "Callable[[], McpEndpoint]") -> None:
        self._make = make
        self._wanted = asyncio.Event()
        self._made: asyncio.Future[McpEndpoint] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Requests in flight end with the block."""
        made = self._made = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(made), name="mcp")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            made.cancel()

    async def _run(self, made: "asyncio.Future[McpEndpoint]") -> None:
        await self._wanted.wait()
        try:
            endpoint = await asyncio.to_thread(self._make)
        except Exception as error:  # noqa: BLE001 - each request reports it
            made.set_exception(error)
            return
        async with endpoint.running():
            made.set_result(endpoint)
            await asyncio.Event().wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._made is not None  # noqa: S101 - the app's lifespan has begun
        self._wanted.set()
        endpoint = await asyncio.shield(self._made)
        await endpoint(scope, receive, send)


def mount(app: FastAPI, server: ServerSettings) -> LazyEndpoint:
    """Add the route; the endpoint must run as long as the app does."""

    def client(request: Request | None) -> "AgentClient":
        """A client with the caller's key and address: the same access, limits and answers as over REST."""
        from flowise_dev_agent.client import AgentClient
        from flowise_dev_agent.client.asgi import StreamingASGITransport

        assert request is not None  # noqa: S101 - the endpoint speaks HTTP only
        _, _, key = request.headers.get("authorization", "").partition(" ")
        return AgentClient(
            "http://localhost",
            SecretStr(key.strip()) if key.strip() else None,
            door="mcp",
            request=request.state.request,
            owner=request.headers.get(OWNER_HEADER),
            # A stream that ends without `done` was ended by the stopping service.
            reconnects=0,
            transport=StreamingASGITransport(app, client=request.client),
        )

    def base_url(request: Request | None) -> str:
        if server.public_base_url is not None:
            return str(server.public_base_url)
        assert request is not None  # noqa: S101
        return str(request.base_url)

    def make() -> "McpEndpoint":
        from flowise_dev_agent.mcp import AgentMcpServer, Host, McpEndpoint

        tools = AgentMcpServer(Host(client, server.mcp_approval, base_url), secret=server.api_key)
        return McpEndpoint(tools, max_body_bytes=MAX_BODY_BYTES)

    endpoint = LazyEndpoint(make)
    # Only POST: there is no stream to open and no session to delete.
    app.router.routes.append(_NamedRoute(PATH, endpoint, methods=["POST"], include_in_schema=False))
    return endpoint
