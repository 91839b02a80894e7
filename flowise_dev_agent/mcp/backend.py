"""What the tools call: `local.LocalBackend` in the service itself, `client.AgentClient` in front of a running one."""

from collections.abc import AsyncGenerator
from typing import Protocol
from uuid import UUID

from flowise_dev_agent.runtime.admin.catalogue import CatalogueHits
from flowise_dev_agent.runtime.flows.views import FlowPage, FlowSummary, SessionChange
from flowise_dev_agent.runtime.sessions.requests import ResumeSession, StartSession
from flowise_dev_agent.runtime.sessions.views import SessionEvent, SessionPage, SessionView


class Backend(Protocol):
    """Sessions, flows and the catalogue, in the shapes of the REST API. Failures are AgentErrors."""

    async def start(self, request: StartSession, *, idempotency_key: str | None = None) -> SessionView:
        """Start a session; returns at once."""
        ...

    async def resume(
        self, session_id: UUID, answer: ResumeSession, *, idempotency_key: str | None = None
    ) -> SessionView:
        """Answer the open question; returns at once."""
        ...

    async def cancel(self, session_id: UUID) -> SessionView:
        """Stop a session."""
        ...

    async def get(self, session_id: UUID) -> SessionView:
        """Read a session."""
        ...

    async def list(
        self,
        *,
        status: str | None = None,
        instance: str | None = None,
        chatflow: str | None = None,
        text: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SessionPage:
        """A page of sessions, newest first."""
        ...

    def events(self, session_id: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
        """Events after a number, then live ones, through `done`."""
        ...

    async def change(self, session_id: UUID) -> SessionChange | None:
        """What the session does to its flow."""
        ...

    async def find_flows(self, query: str = "", *, instance: str | None = None, limit: int = 20) -> FlowPage:
        """Flows of a server by words."""
        ...

    async def flow_summary(self, chatflow_id: str, *, instance: str | None = None) -> FlowSummary:
        """A flow in words."""
        ...

    async def search_catalogue(self, query: str, *, instance: str | None = None, limit: int = 10) -> CatalogueHits:
        """Node types and templates of a server by words."""
        ...
