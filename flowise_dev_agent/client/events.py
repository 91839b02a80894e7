"""Calls that follow sessions: their events as they happen, and a chat with a session."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Final
from uuid import UUID, uuid4

from pydantic import BaseModel, TypeAdapter

from flowise_dev_agent.client.transport import Http, ServiceUnreachableError, given, if_still, read_answer
from flowise_dev_agent.schemas.events import EventPage, SessionEvent, session_event_from_json
from flowise_dev_agent.schemas.process_conversation import ChatFrame, ProcessConversation
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionView

_RECONNECT_SECS = 1.0
_CHAT_FRAME: Final = TypeAdapter[ChatFrame](ChatFrame)
#: Types of the events that end a run: the session asks, has ended or has failed.
RUN_END_EVENTS: Final = frozenset({"interrupt", "done", "error"})


class EventCalls(Http):
    """Calls that follow sessions at work."""

    async def wait(self, session_id: UUID, timeout: float) -> SessionView:  # noqa: ASYNC109 - ends with a view, not an error
        """Wait until the session asks, ends or fails; after `timeout` seconds return its current view."""
        path = f"/sessions/{session_id}"
        view = await self._get(SessionView, path)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while view.status == "in_progress":
                    async for event in self.events(session_id, after_seq=view.last_event_seq):
                        if event.type in RUN_END_EVENTS:
                            break
                    view = await self._get(SessionView, path)
        return view

    async def events(self, session_id: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
        """Stream events after `after_seq`, past ones first, through `done`.

        A stream that ends early is reopened where it ended (see `reconnects`); `ServiceUnreachableError` when that
        keeps failing.
        """
        failures = 0
        while True:
            try:
                path = f"/sessions/{session_id}/stream"
                async with self._frames("GET", path, params={"after_seq": after_seq}) as frames:
                    async for data in frames:
                        event = session_event_from_json(data)
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

    async def start_events(
        self, request: StartSession, *, idempotency_key: str | None = None
    ) -> AsyncGenerator[SessionEvent]:
        """Start a session and stream its events through its first question, its end or an error.

        A broken stream is not reopened; `events` does that.
        """
        async with self._frames("POST", "/sessions/stream", **_request_options(request, idempotency_key)) as frames:
            async for data in frames:
                yield session_event_from_json(data)

    async def resume_events(
        self,
        session_id: UUID,
        answer: ResumeSession,
        *,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> AsyncGenerator[SessionEvent]:
        """Answer the open question and stream the following events, as in `start_events`."""
        path = f"/sessions/{session_id}/stream"
        async with self._frames("POST", path, **_request_options(answer, idempotency_key, if_match)) as frames:
            async for data in frames:
                yield session_event_from_json(data)

    async def converse(
        self, message: ProcessConversation, *, idempotency_key: str | None = None
    ) -> AsyncGenerator[ChatFrame]:
        """Send a message to a session, or start one, and stream the frames of the chat."""
        async with self._frames(
            "POST", "/process-conversation", **_request_options(message, idempotency_key)
        ) as frames:
            async for data in frames:
                yield _CHAT_FRAME.validate_json(data, extra="ignore")

    async def event_page(
        self, session_id: UUID, *, after_seq: int = 0, limit: int = 100, types: list[str] | None = None
    ) -> EventPage:
        """Read a page of stored events in order; `types` filters them."""
        params = given({"after_seq": after_seq, "limit": limit, "type": types})
        return read_answer(EventPage, await self._call("GET", f"/sessions/{session_id}/events", params=params))

    async def decisions(self, session_id: UUID, *, after_seq: int = 0, limit: int = 100) -> EventPage:
        """Read the routing decisions of a session, with reasons."""
        return await self._get(EventPage, f"/sessions/{session_id}/decisions", after_seq=after_seq, limit=limit)


def _request_options(body: BaseModel, idempotency_key: str | None, if_match: str | None = None) -> dict[str, Any]:
    return {
        "json": body.model_dump(mode="json", exclude_unset=True),
        "headers": {"Idempotency-Key": idempotency_key or uuid4().hex, **if_still(if_match)},
    }
