"""`AgentClient`: sessions over HTTP as typed calls, events as an async iterator."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

import httpx2

from flowise_dev_agent.client.admin import AdminCalls
from flowise_dev_agent.client.errors import ServiceUnreachableError
from flowise_dev_agent.client.flows import FlowCalls
from flowise_dev_agent.client.transport import CONNECT_SECS, problem_of, read_answer
from flowise_dev_agent.contracts.events import SessionEvent, session_event_from_json
from flowise_dev_agent.contracts.plan import Design
from flowise_dev_agent.contracts.requests import ResumeSession, StartSession
from flowise_dev_agent.contracts.session import SessionPage, SessionView
from flowise_dev_agent.contracts.webhooks import DeliveryList, DeliveryView, StartedView

if TYPE_CHECKING:
    from flowise_dev_agent.contracts.attachments import AttachmentView

    # Loaded by the methods that read them: they bring along all that is known of flows and nodes.
    from flowise_dev_agent.contracts.node_artifacts import ArtifactDetail, ArtifactPage
    from flowise_dev_agent.contracts.verdict import Trace

#: Events come at least as keep-alive comments; so much silence is a dead connection.
_STREAM_SILENCE_SECS = 90.0
_RECONNECT_SECS = 1.0
#: Types of the events that end a run: the session asks, has ended or has failed.
RUN_END_EVENTS: Final = frozenset({"interrupt", "done", "error"})


class AgentClient(FlowCalls, AdminCalls):
    """Use it as an async context manager.

    Every call raises `ServiceError` with the service's own words when it answers with a problem, and
    `ServiceUnreachableError` when nothing answers at `base_url`. `timeout` (seconds) is for the answer of a call, on
    top of the time that the call itself waits. `reconnects` is how often in a row `events` reopens a stream that broke;
    with 0 it ends with its first stream. `door` is what the service records as the way by which its callers came,
    `request` the one that its calls belong to, `owner` the one for whom a key with the scope `admin` acts.
    """

    async def start(self, request: StartSession, *, wait: float = 0, idempotency_key: str | None = None) -> StartedView:
        """Start a session; wait up to `wait` seconds for its first question or its end."""
        body = request.model_dump(mode="json", exclude_unset=True)
        return read_answer(StartedView, await self._post("/sessions", body, wait, idempotency_key))

    async def resume(
        self, session_id: UUID, answer: ResumeSession, *, wait: float = 0, idempotency_key: str | None = None
    ) -> SessionView:
        """Answer the open question; wait up to `wait` seconds for the next one or the end."""
        body = answer.model_dump(mode="json", exclude_unset=True)
        view = await self._post(f"/sessions/{session_id}/resume", body, wait, idempotency_key)
        return read_answer(SessionView, view)

    async def cancel(self, session_id: UUID) -> SessionView:
        """Stop a session."""
        return read_answer(SessionView, await self._call("POST", f"/sessions/{session_id}/cancel"))

    async def retry(self, session_id: UUID) -> SessionView:
        """Go on with a session that ended in an error."""
        return read_answer(SessionView, await self._call("POST", f"/sessions/{session_id}/retry"))

    async def get(self, session_id: UUID) -> SessionView:
        """Read a session."""
        return read_answer(SessionView, await self._call("GET", f"/sessions/{session_id}"))

    async def summary(self, session_id: UUID) -> str:
        """The session on one page of Markdown."""
        found = await self._call("GET", f"/sessions/{session_id}/summary")
        return str(found["summary"])

    async def design(self, session_id: UUID) -> Design:
        """The flow that a session builds, part by part."""
        return read_answer(Design, await self._call("GET", f"/sessions/{session_id}/design"))

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
        """A page of sessions, newest first, of those that all filters let through.

        Each word of `text` must begin one of a session's name or requirement; `cursor` is `next_cursor` of the page
        before.
        """
        given = {
            "status": status,
            "instance": instance,
            "chatflow": chatflow,
            "text": text,
            "limit": limit,
            "cursor": cursor,
        }
        params = {name: value for name, value in given.items() if value is not None}
        return read_answer(SessionPage, await self._call("GET", "/sessions", params=params))

    async def delete(self, session_id: UUID) -> None:
        """Remove a session. Its chatflow in Flowise stays."""
        await self._call("DELETE", f"/sessions/{session_id}")

    async def trace(self, session_id: UUID, sha256: str) -> "Trace":
        """What happened inside the flow during one test (`trace_sha256` of a trial)."""
        from flowise_dev_agent.contracts.verdict import Trace

        return read_answer(Trace, await self._call("GET", f"/sessions/{session_id}/traces/{sha256}"))

    async def attach(self, name: str, content: bytes) -> "AttachmentView":
        """Store a file; its id goes into `attachments` of a start or an answer."""
        from flowise_dev_agent.contracts.attachments import AttachmentView

        return read_answer(AttachmentView, await self._call("POST", "/attachments", files={"file": (name, content)}))

    async def artifacts(
        self, session_id: UUID, *, kind: str | None = None, node: str | None = None, limit: int = 50, offset: int = 0
    ) -> "ArtifactPage":
        """What the steps of a session left, newest first."""
        from flowise_dev_agent.contracts.node_artifacts import ArtifactPage

        given = {"kind": kind, "flowchart_node_id": node, "limit": limit, "offset": offset}
        params = {name: value for name, value in given.items() if value is not None}
        return read_answer(ArtifactPage, await self._call("GET", f"/sessions/{session_id}/artifacts", params=params))

    async def artifact(self, session_id: UUID, artifact_id: UUID) -> "ArtifactDetail":
        """One of them."""
        from flowise_dev_agent.contracts.node_artifacts import ArtifactDetail

        return read_answer(ArtifactDetail, await self._call("GET", f"/sessions/{session_id}/artifacts/{artifact_id}"))

    async def deliveries(self, session_id: UUID) -> DeliveryList:
        """The session's webhooks, newest first."""
        return read_answer(DeliveryList, await self._call("GET", f"/sessions/{session_id}/deliveries"))

    async def replay(self, session_id: UUID, delivery_id: UUID) -> DeliveryView:
        """Have one of them sent again."""
        path = f"/sessions/{session_id}/deliveries/{delivery_id}/replay"
        return read_answer(DeliveryView, await self._call("POST", path))

    async def wait(self, session_id: UUID, timeout: float) -> SessionView:  # noqa: ASYNC109 - ends with a view, not an error
        """The session once it asks, ends or fails; as it is when `timeout` seconds are over."""
        view = await self.get(session_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while view.status == "in_progress":
                    async for event in self.events(session_id, after_seq=view.last_event_seq):
                        if event.type in RUN_END_EVENTS:
                            break
                    view = await self.get(session_id)
        return view

    async def events(self, session_id: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
        """Events after `after_seq`, those of the past first, through `done`.

        A stream that ends early is reopened where it ended (see `reconnects`); `ServiceUnreachableError` when that
        keeps failing.
        """
        failures = 0
        while True:
            try:
                async with self._stream(session_id, after_seq) as events:
                    async for event in events:
                        failures = 0
                        after_seq = event.seq or after_seq
                        yield event
                        if event.type == "done":
                            return
            except ServiceUnreachableError:
                failures += 1
                if failures > self._reconnects:
                    raise
            if not self._reconnects:
                return
            await asyncio.sleep(_RECONNECT_SECS)

    @asynccontextmanager
    async def _stream(self, session_id: UUID, after_seq: int) -> AsyncGenerator[AsyncIterator[SessionEvent]]:
        timeout = httpx2.Timeout(_STREAM_SILENCE_SECS, connect=CONNECT_SECS)
        path = f"/sessions/{session_id}/stream"
        with self._in_words():
            async with self._http.stream("GET", path, params={"after_seq": after_seq}, timeout=timeout) as response:
                if response.is_error:
                    await response.aread()
                    raise problem_of(response)

                async def events() -> AsyncIterator[SessionEvent]:
                    async for frame in httpx2.EventSource(response):
                        if frame.data:
                            yield session_event_from_json(frame.data)

                yield events()
