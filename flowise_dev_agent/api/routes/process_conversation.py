"""The chat entry: a message of a person, and what follows from it as frames of a chat."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from flowise_dev_agent.api.deps import IdempotencyKey, engine
from flowise_dev_agent.api.limits import count_session_start
from flowise_dev_agent.api.responses import FLOWISE, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.api.sse import stream_of
from flowise_dev_agent.caller import require
from flowise_dev_agent.schemas.process_conversation import ChatFrame, ProcessConversation
from flowise_dev_agent.sessions.chat_entry import ChatEntry

router = Routes(tags=["sessions"])

_FRAMES = {
    200: {
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/ChatFrame"}}},
        "description": "A stream of frames: `event` is the `response_type`, `data` the frame as JSON.",
    }
}


@router.post(
    "/process-conversation",
    response_class=EventSourceResponse,
    responses=_FRAMES
    | declared(
        "session_not_found",
        "session_conflict",
        "session_exists",
        "idempotency_key_reused",
        "approval_needed",
        "invalid_answer",
        "secret_in_text",
        "attachment_not_found",
        "flowise_not_found",
        "rate_limited",
        *FLOWISE,
    ),
)
async def process_conversation(
    request: Request, body: ProcessConversation, idempotency_key: IdempotencyKey = None
) -> EventSourceResponse:
    """Send a message to a session, or start one, and stream the frames through its next question or its end.

    Errors of the message itself are problems; later ones are `ERROR` frames.
    """
    running = engine(request)
    chat = ChatEntry(running.service, running.conversations, running.flows)
    if is_new := await chat.is_new(body):
        require("build")
        count_session_start(request)
    return stream_of(request, _frames(chat.turn(body, is_new=is_new, idempotency_key=idempotency_key)))


async def _frames(told: AsyncGenerator[ChatFrame]) -> AsyncGenerator[ServerSentEvent]:
    async with aclosing(told):
        async for frame in told:
            yield ServerSentEvent(frame.model_dump_json(), event=frame.response_type, sep="\n")
