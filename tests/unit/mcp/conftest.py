"""The MCP server over the app with sessions in memory, and clients of both eras of the protocol."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult
from pydantic import SecretStr

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.client.asgi import StreamingASGITransport
from flowise_dev_agent.mcp import AgentMcpServer, Approval, Host
from flowise_dev_agent.schemas.interrupts import Interrupt
from tests.fixtures.interrupts import interrupt_of
from tests.unit.api.service_double import EngineDouble, app_of

#: The handshake of 2025, and the self-contained requests of 2026.
ERAS = ("legacy", "2026-07-28")
PAGE = "http://agent.test"


@pytest.fixture
def engine() -> EngineDouble:
    return EngineDouble()


@pytest.fixture
def asks(engine: EngineDouble) -> UUID:
    """A session that waits for the approval of its plan."""
    session_id = uuid4()
    engine.service.settle(session_id, interrupt=plan_question())
    return session_id


def plan_question(plan: str = "# Support bot") -> Interrupt:
    return interrupt_of("plan_approval", message="Please look at the plan.", plan=plan)


def server_of(
    engine: EngineDouble, *, approval: Approval = "person", secret: SecretStr | None = None, **server: Any
) -> AgentMcpServer:
    """The tools over the REST API of an app in this process; `server` are settings of the app."""
    transport = StreamingASGITransport(app_of(engine, **server), client=("agent", 1))
    client = AgentClient("http://localhost", reconnects=0, transport=transport)
    return AgentMcpServer(Host(lambda _: client, approval, lambda _: PAGE), secret=secret)


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


def names_of(engine: EngineDouble) -> list[str]:
    return [name for name, _ in engine.service.calls]
