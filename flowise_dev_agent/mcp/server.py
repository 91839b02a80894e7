"""The MCP server with its tools, and its endpoint for Streamable HTTP."""

import hashlib
import inspect
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import SecretStr, TypeAdapter, ValidationError
from starlette.types import Receive, Scope, Send

from flowise_dev_agent import __version__
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.mcp import artifact_tools, tools, version_tools
from flowise_dev_agent.mcp.host import Host
from flowise_dev_agent.mcp.results import failed

logger = logging.getLogger(__name__)

_NAME: Final = "flowise-dev-agent"
_INSTRUCTIONS: Final = """Builds and changes chatflows on a Flowise server. start_session takes a requirement in plain
words; the service plans, asks, builds, tests with real questions, and asks again. Every question belongs to a person:
show it to them and give their answer with answer_question. Nothing is written to Flowise before a plan is approved, and
a chatflow in use changes only after its tested draft is accepted."""
#: How long a person may take to confirm.
_CONFIRMATION_SECS: Final = 3_600.0
_MAX_FIELDS: Final = 5

_READ_ONLY: Final = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
)
_TOOLS: Final[tuple[tuple[Callable[..., Any], str, ToolAnnotations], ...]] = (
    (
        tools.start_session,
        "Start a session",
        ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True),
    ),
    (tools.get_session, "Look at a session", _READ_ONLY),
    (
        tools.answer_question,
        "Answer a session's question",
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True),
    ),
    (
        tools.cancel_session,
        "Cancel a session",
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
    ),
    (tools.list_sessions, "List sessions", _READ_ONLY),
    (tools.list_chatflows, "Find chatflows", _READ_ONLY),
    (tools.read_chatflow, "Read a chatflow", _READ_ONLY),
    (tools.search_catalogue, "Search nodes and templates", _READ_ONLY),
    (tools.get_node_types, "List node types", _READ_ONLY),
    (tools.get_node_details, "Show a node type", _READ_ONLY),
    (tools.list_options, "List options of a param", _READ_ONLY),
    (tools.check_flow, "Check a flow", _READ_ONLY),
    (
        tools.test_flow,
        "Test a chatflow",
        # What the flow's own tools do is done.
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True),
    ),
    (tools.read_trace, "Show what happened in a test", _READ_ONLY),
    (version_tools.list_versions, "List versions", _READ_ONLY),
    (version_tools.compare_versions, "Compare versions", _READ_ONLY),
    (artifact_tools.get_plan, "Show the plan", _READ_ONLY),
    (artifact_tools.get_memory, "Find what is remembered", _READ_ONLY),
    (artifact_tools.get_milestone, "Show the milestones", _READ_ONLY),
    (artifact_tools.get_decision_artifact, "Show a decision", _READ_ONLY),
    (artifact_tools.get_node_artifact, "Show artifacts", _READ_ONLY),
)


class AgentMcpServer(MCPServer[Host]):
    """The tools over a host.

    `secret` is shared by all processes of a service: with it, a confirmation that began in one of them can end in any
    other; without it only in the same one.
    """

    def __init__(self, host: Host, *, secret: SecretStr | None = None) -> None:
        @asynccontextmanager
        async def lifespan(_: MCPServer[Host]) -> AsyncGenerator[Host]:
            yield host

        super().__init__(
            _NAME,
            title="Flowise Dev Agent",
            instructions=_INSTRUCTIONS,
            version=__version__,
            tools=[_tool(*described) for described in _TOOLS],
            lifespan=lifespan,
            request_state_security=_state_security(secret),
            # Nothing here changes while the server runs, and subscriptions would hold connections.
            subscriptions=False,
        )

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Host, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Errors become results with a problem in them, without internal details."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            return failed(_problem(name, error))


class McpEndpoint:
    """An ASGI app for POST requests, without sessions: any process of the service can answer any request.

    It answers within `running`, which can be entered once. Hosts and origins are the app's to check.
    """

    def __init__(self, server: AgentMcpServer, *, max_body_bytes: int) -> None:
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
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


def _tool(function: Callable[..., Any], title: str, annotations: ToolAnnotations) -> Tool:
    tool = Tool.from_function(function, title=title, description=inspect.getdoc(function), annotations=annotations)
    # The SDK's argument models accept unknown names.
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    tool.parameters = model.model_json_schema(by_alias=True)
    # The SDK describes what a model reads; a result also has its computed fields.
    metadata = tool.fn_metadata
    metadata.output_schema = TypeAdapter(metadata.output_model).json_schema(mode="serialization")
    return tool


def _state_security(secret: SecretStr | None) -> RequestStateSecurity:
    if secret is None:
        return RequestStateSecurity.ephemeral(ttl=_CONFIRMATION_SECS)
    key = hashlib.sha256(b"mcp request state\0" + secret.get_secret_value().encode()).digest()
    return RequestStateSecurity(keys=[key], ttl=_CONFIRMATION_SECS)


def _problem(name: str, error: ToolError) -> dict[str, Any]:
    cause = error.__cause__
    if isinstance(cause, AgentError):
        return cause.as_problem()
    if isinstance(error, UnexpectedToolError):
        logger.error("unexpected error in tool %s", name, exc_info=cause)
        return {
            "code": "internal_error",
            "detail": "Something unexpected went wrong inside the service.",
            "hint": "The service's log says more. Trying again may help.",
        }
    if isinstance(cause, ValidationError):
        # Without the values: they may be long, or a secret in the wrong field.
        found = cause.errors(include_input=False, include_url=False, include_context=False)[:_MAX_FIELDS]
        errors = "; ".join(f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in found)
        return {"code": "invalid_request", "detail": f"{errors}.", "hint": "See the tool's input schema."}
    return {"code": "tool_error", "detail": str(error)}
