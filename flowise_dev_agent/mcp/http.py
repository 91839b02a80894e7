"""Streamable HTTP without sessions: every request stands for itself, so any process of the service may answer it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from flowise_dev_agent.mcp.server import AgentMcpServer

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")


class McpEndpoint:
    """An ASGI app for POST requests. It answers within `running`, which can be entered once.

    `local_only`: take only requests that name this machine as their host, and no origin but it, so that no page of the
    web can reach a service without a key by a name that it lets point here. With a key such a page lacks the key.
    """

    def __init__(self, server: AgentMcpServer, *, local_only: bool, max_body_bytes: int) -> None:
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=local_only,
            allowed_hosts=[f"{name}{port}" for name in _LOCAL for port in ("", ":*")],
            allowed_origins=[f"http://{name}{port}" for name in _LOCAL for port in ("", ":*")],
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
