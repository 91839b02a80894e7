"""Streamable HTTP without sessions: every request stands for itself, so any process of the service may answer it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from flowise_dev_agent.mcp.server import AgentMcpServer


class McpEndpoint:
    """An ASGI app for POST requests. It answers within `running`, which can be entered once.

    `hosts`: take only requests to one of these names, and from no origin but them, so that no page of the web reaches
    the service by a name that it lets point here. None takes all: a service with a key needs no such care.
    """

    def __init__(self, server: AgentMcpServer, *, hosts: Sequence[str] | None, max_body_bytes: int) -> None:
        names = [f"{host}{port}" for host in hosts or () for port in ("", ":*")]
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=hosts is not None,
            allowed_hosts=names,
            allowed_origins=[f"{scheme}://{name}" for name in names for scheme in ("http", "https")],
        )
        server.streamable_http_app(
            stateless_http=True, transport_security=security, max_request_body_size=max_body_bytes
        )
        self._manager = server.session_manager

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Requests in flight end with the block."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)
