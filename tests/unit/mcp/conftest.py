"""The MCP server over sessions in memory, and clients of both eras of the protocol."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.mcp import AgentMcpServer, Host
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.runtime.admin.catalogue import CatalogueHits
from flowise_dev_agent.runtime.flows.views import FlowPage, FlowSummary, SessionChange, change_of
from flowise_dev_agent.runtime.sessions.views import InterruptView
from tests.unit.api.service_double import ServiceDouble

#: The handshake of 2025, and the self-contained requests of 2026.
ERAS = ("legacy", "2026-07-28")
PAGE = "http://agent.test"


class BackendDouble(ServiceDouble):
    """The sessions of `ServiceDouble`, and nothing on the server."""

    async def change(self, session_id: UUID) -> SessionChange | None:
        self._called("change", session_id)
        empty = change_of(None, GraphIR.empty(), labels=("nothing", "the new flow"))
        return SessionChange(**dict(empty), chatflow_id=None, draft_id=None, meanwhile=None)

    async def find_flows(self, query: str = "", *, instance: str | None = None, limit: int = 20) -> FlowPage:
        self._called("find_flows", query, instance, limit)
        return FlowPage(flows=[], total=0, searched=0)

    async def flow_summary(self, chatflow_id: str, *, instance: str | None = None) -> FlowSummary:
        self._called("flow_summary", chatflow_id, instance)
        raise AssertionError("no flow is there")

    async def search_catalogue(self, query: str, *, instance: str | None = None, limit: int = 10) -> CatalogueHits:
        self._called("search_catalogue", query, instance, limit)
        return CatalogueHits(instance="default", flowise_version="3", nodes=[], templates=[])


@pytest.fixture
def backend() -> BackendDouble:
    return BackendDouble()


@pytest.fixture
def asks(backend: BackendDouble) -> UUID:
    """A session that waits for the approval of its plan."""
    session_id = uuid4()
    backend.settle(session_id, interrupt=plan_question())
    return session_id


def plan_question(plan: str = "# Support bot") -> InterruptView:
    value = build_interrupt(
        "plan_approval",
        reason="plan_ready",
        message="Please look at the plan.",
        options=[option("approve", "Approve"), option("request_changes", "Change"), option("cancel", "Cancel")],
        data={"plan": plan, "approaches": []},
    )
    return InterruptView(id="i1", **value)


def server_of(backend: Any, **options: Any) -> AgentMcpServer:
    host = {name: options.pop(name) for name in ("approval", "admit") if name in options}
    return AgentMcpServer(Host(backend, **{"approval": "person", "base_url": lambda _: PAGE, **host}), **options)


class Person:
    """Answers the forms of a client; `asked` is what they were shown."""

    def __init__(self, action: str = "accept", **content: Any) -> None:
        self._result = ElicitResult.model_validate({"action": action, "content": content or None})
        self.asked: list[str] = []

    async def __call__(self, _: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        return self._result


def client_of(server: AgentMcpServer, *, mode: str = ERAS[-1], person: Person | None = None) -> Client:
    return Client(server, mode=mode, elicitation_callback=person, read_timeout_seconds=20)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


def problem_of(result: CallToolResult) -> Mapping[str, Any]:
    assert (result.is_error, result.structured_content) == (True, None)
    return json.loads(text_of(result))


def names_of(backend: BackendDouble) -> list[str]:
    return [name for name, _ in backend.calls]
