"""Session events on the wire: `id` is the sequence number, `event` the type, `data` the event as JSON."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.schemas.events import SessionEvent

logger = logging.getLogger(__name__)

_RETRY_MS = 2000
#: A client that takes nothing for so long is gone.
_SEND_TIMEOUT_SECS = 30
#: Where the two POST streams end; the GET stream goes on to `done`.
STREAM_ENDS = frozenset({"interrupt", "done", "error"})


def event_stream(
    request: Request,
    events: AsyncGenerator[SessionEvent],
    *,
    until: frozenset[str] = frozenset(),
    headers: dict[str, str] | None = None,
) -> EventSourceResponse:
    """Stream `events` to their end or through the first whose type is in `until`.

    Comments keep the connection alive (SSE_KEEPALIVE_SECS). The stream ends when the service stops; the `retry` sent at
    the start tells clients to come back, with `Last-Event-ID`.
    """
    return stream_of(request, _frames(events, until), headers=headers)


def stream_of(
    request: Request, frames: AsyncGenerator[ServerSentEvent], *, headers: dict[str, str] | None = None
) -> EventSourceResponse:
    """A response of frames, kept alive by comments."""
    return EventSourceResponse(
        frames,
        ping=request.app.state.settings.server.sse_keepalive_secs,
        ping_message_factory=lambda: ServerSentEvent(comment="keepalive", sep="\n"),
        sep="\n",
        send_timeout=_SEND_TIMEOUT_SECS,
        headers=headers,
    )


async def _frames(events: AsyncGenerator[SessionEvent], until: frozenset[str]) -> AsyncGenerator[ServerSentEvent]:
    yield ServerSentEvent(retry=_RETRY_MS, sep="\n")
    try:
        async with aclosing(events):
            async for event in events:
                yield ServerSentEvent(
                    event.model_dump_json(),
                    event=event.type,
                    id=str(event.seq) if event.seq is not None else None,
                    sep="\n",
                )
                if event.type in until:
                    return
    except AgentError as error:
        # The answer has begun, so there is no status left to say it with: end, and the client comes back.
        logger.warning("event stream interrupted: %s", error)
        yield ServerSentEvent(comment=f"interrupted: {error.code}", sep="\n")
