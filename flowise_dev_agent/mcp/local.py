"""The tools' backend inside the service."""

from collections.abc import AsyncGenerator, Callable
from uuid import UUID

from flowise_dev_agent.runtime.admin.catalogue import CatalogueHits
from flowise_dev_agent.runtime.flows.views import FlowPage, FlowSummary, SessionChange
from flowise_dev_agent.runtime.runtime import Runtime
from flowise_dev_agent.runtime.sessions.requests import ResumeSession, StartSession
from flowise_dev_agent.runtime.sessions.views import SessionEvent, SessionPage, SessionView


class LocalBackend:
    """The services of this process; `engine` gives it once it runs."""

    def __init__(self, engine: Callable[[], Runtime]) -> None:
        self._engine = engine

    async def start(self, request: StartSession, *, idempotency_key: str | None = None) -> SessionView:
        return await self._engine().service.start(request, idempotency_key=idempotency_key)

    async def resume(
        self, session_id: UUID, answer: ResumeSession, *, idempotency_key: str | None = None
    ) -> SessionView:
        return await self._engine().service.resume(session_id, answer, idempotency_key=idempotency_key)

    async def cancel(self, session_id: UUID) -> SessionView:
        return await self._engine().service.cancel(session_id)

    async def get(self, session_id: UUID) -> SessionView:
        return await self._engine().service.get(session_id)

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
        return await self._engine().service.list(status, limit, cursor, instance=instance, chatflow=chatflow, text=text)

    def events(self, session_id: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
        return self._engine().service.events(session_id, after_seq)

    async def change(self, session_id: UUID) -> SessionChange | None:
        return await self._engine().flows.session_change(session_id)

    async def find_flows(self, query: str = "", *, instance: str | None = None, limit: int = 20) -> FlowPage:
        return await self._engine().flows.find(instance, query, limit=limit)

    async def flow_summary(self, chatflow_id: str, *, instance: str | None = None) -> FlowSummary:
        return await self._engine().flows.summary(chatflow_id, instance)

    async def search_catalogue(self, query: str, *, instance: str | None = None, limit: int = 10) -> CatalogueHits:
        return await self._engine().catalogue.search(query, instance=instance, limit=limit)
