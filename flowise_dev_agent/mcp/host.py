"""What the tools work with: where the sessions are, who may approve, and what a request passes first."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from mcp.server.mcpserver import Context
from starlette.requests import Request

from flowise_dev_agent.mcp.backend import Backend

#: Whose word an answer needs that lets something be written: a person's, or that of the agent that calls the tool.
Approval = Literal["person", "agent"]


def _admit_all(_: Request | None) -> None: ...


@dataclass(frozen=True)
class Host:
    """One per server. A request is None where there is none (stdio).

    `base_url` gives the address of the service's page. `admit` is called before each start and raises RateLimitedError.
    """

    backend: Backend
    approval: Approval
    base_url: Callable[[Request | None], str]
    admit: Callable[[Request | None], None] = _admit_all

    def page(self, request: Request | None, session_id: UUID) -> str:
        """Where a person sees the session and answers its questions."""
        return f"{self.base_url(request).rstrip('/')}/#/s/{session_id}"


ToolContext = Context[Host, Any]


def host_of(ctx: ToolContext) -> Host:
    """The host of the server that the request came to."""
    return ctx.request_context.lifespan_context


def page_of(ctx: ToolContext, session_id: UUID) -> str:
    """See `Host.page`, for the request that is being answered."""
    return host_of(ctx).page(ctx.request_context.request, session_id)
