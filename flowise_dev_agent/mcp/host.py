"""Dependencies of the tools: the client of the service, and the rule of approval."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from mcp.server.mcpserver import Context
from pydantic import Field
from starlette.requests import Request

from flowise_dev_agent.client import AgentClient

#: Decides on answers that let something be written: a person, or the agent that calls the tool.
Approval = Literal["person", "agent"]


@dataclass(frozen=True)
class Host:
    """Dependencies of one server. Both functions take the HTTP request of the tool call, None over stdio.

    `client` returns the client that acts for the caller; the tools do not close it. `base_url` returns the address of
    the service's page.
    """

    client: Callable[[Request | None], AgentClient]
    approval: Approval
    base_url: Callable[[Request | None], str]


ToolContext = Context[Host, Any]


def host_of(ctx: ToolContext) -> Host:
    """The host of the server that received the request."""
    return ctx.request_context.lifespan_context


def client_of(ctx: ToolContext) -> AgentClient:
    """The client for the current request."""
    return host_of(ctx).client(ctx.request_context.request)


def page_of(ctx: ToolContext, session_id: UUID) -> str:
    """Address of the page on which a person sees the session and answers its questions."""
    return f"{host_of(ctx).base_url(ctx.request_context.request).rstrip('/')}/#/s/{session_id}"


SessionId = Annotated[UUID, Field(description="The session's id.")]


ChatflowId = Annotated[UUID, Field(description="The chatflow's id (see list_chatflows).")]


Instance = Annotated[str | None, Field(max_length=200, description="Flowise instance; the default one when left out.")]


WaitSecs = Annotated[
    float,
    Field(
        ge=0,
        le=300,
        description="Seconds to wait for the next question or the end; keep it below your client's own time limit.",
    ),
]
