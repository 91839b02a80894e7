"""The MCP server with its tools, and its endpoint for Streamable HTTP."""

import hashlib
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, ToolAnnotations
from pydantic import AnyUrl, SecretStr, TypeAdapter, ValidationError
from starlette.types import Receive, Scope, Send

from flowise_dev_agent import __version__
from flowise_dev_agent.errors import AgentError, SecretInTextError
from flowise_dev_agent.mcp import artifact_tools, flow_tools, node_tools, session_tools, upkeep_tools
from flowise_dev_agent.mcp.host import Host
from flowise_dev_agent.mcp.prompts import PROMPTS
from flowise_dev_agent.mcp.resources import RESOURCES
from flowise_dev_agent.mcp.results import failed
from flowise_dev_agent.redaction import holds_secret

logger = logging.getLogger(__name__)

_NAME: Final = "flowise-dev-agent"
_INSTRUCTIONS: Final = """Builds and changes chatflows on a Flowise server. start_session takes a requirement in plain
words; the service plans, asks, builds, tests with real questions, and asks again. Every question belongs to a person:
show it to them and give their answer with answer_question. Nothing is written to Flowise before a plan is approved, and
a chatflow in use changes only after its tested draft is accepted."""
#: Time limit for a person's confirmation.
_CONFIRMATION_SECS: Final = 3_600.0
_MAX_FIELDS: Final = 5


def _acts(*, destroys: bool = False, repeatable: bool = False, outside: bool = True) -> ToolAnnotations:
    """Annotations of a tool that changes something. `outside`: it reaches a Flowise server."""
    return ToolAnnotations(
        read_only_hint=False, destructive_hint=destroys, idempotent_hint=repeatable, open_world_hint=outside
    )


_READS: Final = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
_TOOLS: Final[tuple[tuple[Callable[..., Any], str, ToolAnnotations], ...]] = (
    (session_tools.start_session, "Start a session", _acts()),
    (session_tools.get_session, "Look at a session", _READS),
    (session_tools.answer_question, "Answer a session's question", _acts(destroys=True, repeatable=True)),
    (session_tools.attach_file, "Hand over a file", _acts(outside=False)),
    (session_tools.cancel_session, "Cancel a session", _acts(destroys=True, repeatable=True, outside=False)),
    (session_tools.list_sessions, "List sessions", _READS),
    (session_tools.read_trace, "Show what happened in a test", _READS),
    (flow_tools.list_chatflows, "Find chatflows", _READS),
    (flow_tools.read_chatflow, "Read a chatflow", _READS),
    (flow_tools.export_chatflow, "Export a chatflow", _READS),
    (flow_tools.check_flow, "Check a flow", _READS),
    # What only reads is really asked.
    (flow_tools.test_flow, "Test a chatflow", _acts(destroys=True)),
    (flow_tools.list_versions, "List versions of a session", _READS),
    (flow_tools.compare_versions, "Compare versions of a session", _READS),
    (flow_tools.list_chatflow_versions, "List versions of a chatflow", _READS),
    (flow_tools.compare_chatflow_versions, "Compare versions of a chatflow", _READS),
    (flow_tools.rollback, "Put a version back", _acts(destroys=True, repeatable=True)),
    (upkeep_tools.restore_chatflow_version, "Restore a version of a chatflow", _acts(destroys=True, repeatable=True)),
    (upkeep_tools.list_fleet, "List chatflows with their states", _READS),
    (upkeep_tools.get_test_set, "Show the tests of a chatflow", _READS),
    (
        upkeep_tools.put_test_set,
        "Replace the tests of a chatflow",
        _acts(destroys=True, repeatable=True, outside=False),
    ),
    (upkeep_tools.get_guard, "Show a guarded chatflow", _READS),
    (upkeep_tools.put_guard, "Guard a chatflow", _acts(repeatable=True)),
    (upkeep_tools.get_certificate, "Show a certificate", _READS),
    (node_tools.search_catalogue, "Search nodes and templates", _READS),
    (node_tools.get_node_types, "List node types", _READS),
    (node_tools.get_node_details, "Show node types", _READS),
    (node_tools.list_options, "List options of a param", _READS),
    (node_tools.list_document_stores, "List document stores", _READS),
    (node_tools.refresh_document_store, "Refresh a document store", _acts(repeatable=True)),
    (artifact_tools.get_plan, "Show the plan", _READS),
    (artifact_tools.get_memory, "Find patterns and notes", _READS),
    (artifact_tools.add_memory, "Remember a note", _acts(outside=False)),
    (artifact_tools.delete_memory, "Forget a note", _acts(destroys=True, repeatable=True, outside=False)),
    (artifact_tools.get_milestone, "Show the milestones", _READS),
    (artifact_tools.get_decision_artifact, "Show a decision", _READS),
    (artifact_tools.get_node_artifact, "Show artifacts", _READS),
)


class AgentMcpServer(MCPServer[Host]):
    """MCP server with the tools over a host.

    `secret` is shared by all processes of a service: with it, a confirmation that began in one process can end in any
    other; without it, only in the same one.
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
            tools=_tools(),
            lifespan=lifespan,
            request_state_security=_state_security(secret),
            # Nothing changes while the server runs, and subscriptions would hold connections.
            subscriptions=False,
        )
        for address, title, function in RESOURCES:
            self.resource(address, title=title, mime_type="text/markdown")(function)
        for prompt in PROMPTS:
            self.add_prompt(prompt)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Host, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Errors become results with a problem, without internal details."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            return failed(_problem(name, error, isinstance(error, UnexpectedToolError)))

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Host, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource. Errors are protocol errors with the problem as their data."""
        try:
            return await super().read_resource(uri, context)
        except ResourceError as error:
            raise _protocol_error(_problem(str(uri), error, isinstance(error, UnexpectedResourceError))) from None

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Host, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Fill in a prompt. Errors are protocol errors with the problem as their data."""
        for argument, text in (arguments or {}).items():
            if holds_secret(str(text)):
                error = SecretInTextError(
                    f"`{argument}` holds a secret, which a model would read.",
                    hint="Create a credential with it in Flowise, and name the credential instead.",
                    details={"field": argument},
                )
                raise _protocol_error(error.as_problem())
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            cause = error.__cause__ and error.__cause__.__cause__
            if isinstance(cause, ValidationError):
                raise _protocol_error(_invalid(cause)) from None
            raise _protocol_error({"code": "invalid_request", "detail": f"{error}."}) from None


class McpEndpoint:
    """ASGI app for POST requests, without sessions: any process of the service can answer any request.

    It answers within `running`, which can be entered once. The app around it checks hosts and origins.
    """

    def __init__(self, server: AgentMcpServer, *, max_body_bytes: int) -> None:
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(
            stateless_http=True, transport_security=security, max_request_body_size=max_body_bytes
        )
        self._manager = server.session_manager

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Accept requests during the block; its end ends requests in flight."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)


@cache
def _tools() -> list[Tool]:
    """The tools of all servers of a process: their schemas take a second to build."""
    return [_tool(*described) for described in _TOOLS]


def _tool(function: Callable[..., Any], title: str, annotations: ToolAnnotations) -> Tool:
    tool = Tool.from_function(function, title=title, description=inspect.getdoc(function), annotations=annotations)
    # The SDK's argument models accept unknown names.
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    tool.parameters = model.model_json_schema(by_alias=True)
    # The SDK's output schema lacks the computed fields that a result has.
    metadata = tool.fn_metadata
    metadata.output_schema = TypeAdapter(metadata.output_model).json_schema(mode="serialization")
    return tool


def _state_security(secret: SecretStr | None) -> RequestStateSecurity:
    if secret is None:
        return RequestStateSecurity.ephemeral(ttl=_CONFIRMATION_SECS)
    key = hashlib.sha256(b"mcp request state\0" + secret.get_secret_value().encode()).digest()
    return RequestStateSecurity(keys=[key], ttl=_CONFIRMATION_SECS)


def _problem(name: str, error: ToolError | ResourceError, unexpected: bool) -> dict[str, Any]:
    cause = error.__cause__
    if isinstance(cause, AgentError):
        return cause.as_problem()
    if unexpected:
        logger.error("unexpected error in %s", name, exc_info=cause)
        return {
            "code": "internal_error",
            "detail": "Something unexpected went wrong inside the service.",
            "hint": "The service's log says more. Trying again may help.",
        }
    if isinstance(cause, ValidationError):
        return _invalid(cause) | {"hint": "See the tool's input schema."}
    return {"code": "tool_error", "detail": str(error)}


def _invalid(error: ValidationError) -> dict[str, Any]:
    # Without the values: they may be long, or a secret in the wrong field.
    found = error.errors(include_input=False, include_url=False, include_context=False)[:_MAX_FIELDS]
    errors = "; ".join(f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in found)
    return {"code": "invalid_request", "detail": f"{errors}."}


def _protocol_error(problem: dict[str, Any]) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=problem["detail"], data=problem)
