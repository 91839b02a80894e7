"""Sessions as a chat: a message starts or answers a session, and its events are streamed as chat frames."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Literal
from uuid import UUID

from flowise_dev_agent.errors import AgentError, SessionExistsError, SessionNotFoundError
from flowise_dev_agent.flows.service import FlowService
from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.events import DoneEvent, ErrorEvent, InterruptEvent, NodeStartEvent, SessionEvent
from flowise_dev_agent.schemas.process_conversation import (
    ChatError,
    ChatFrame,
    ChatPair,
    ChatStage,
    ErrorFrame,
    MessageFrame,
    ProcessConversation,
    StageState,
    StatusChange,
    StatusFrame,
    WorkflowFrame,
)
from flowise_dev_agent.schemas.question_text import question_text
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.schemas.turns import Turn
from flowise_dev_agent.sessions.conversation import Conversations
from flowise_dev_agent.sessions.service import SessionService

#: The stage of each phase; docs/api.md has the same table.
STAGES: Final[Mapping[str, ChatStage]] = {
    "intent": "clarification",
    "target": "clarification",
    "baseline": "clarification",
    "plan": "clarification",
    "patch": "workflow_generation",
    "check": "workflow_generation",
    "apply": "conversion_generation",
    "test": "conversion_generation",
    "review": "conversion_generation",
}
_OPERATIONS: Final[Mapping[str, Literal["create", "update", "copy"]]] = {
    "create": "create",
    "edit": "update",
    "copy": "copy",
}
MOST_PAIRS: Final = 10
_PAIR_CHARS: Final = 1_000


class ChatEntry:
    """Chat on top of the session service, with the same sessions, rights and answers."""

    def __init__(self, service: SessionService, conversations: Conversations, flows: FlowService) -> None:
        self._service = service
        self._conversations = conversations
        self._flows = flows

    async def is_new(self, body: ProcessConversation) -> bool:
        """True if the message starts a session."""
        if body.session_id is None:
            return True
        try:
            await self._service.get(body.session_id)
        except SessionNotFoundError:
            return True
        return False

    async def turn(
        self, body: ProcessConversation, *, is_new: bool, idempotency_key: str | None
    ) -> AsyncGenerator[ChatFrame]:
        """Handle a message and stream its frames, up to the next question or the end. Errors are frames, too."""
        session_id = body.session_id
        try:
            started = await self._started(body, is_new=is_new, key=idempotency_key)
            if started is not None:
                session_id, stage = started.thread_id, None
                events = self._service.events(session_id, 0)
            else:
                assert session_id is not None  # noqa: S101 - without one the message starts a session
                stage = _stage_of(await self._service.get(session_id))
                answer = ResumeSession(response=body.message)
                events = await self._service.resume_events(session_id, answer, idempotency_key=idempotency_key)
            async for frame in self._told(session_id, events, stage):
                yield frame
        except AgentError as error:
            open_ = not is_new and error.details.get("status") not in {"completed", "cancelled", "error"}
            told = ChatError(
                error_code=error.code, message=error.message, details=error.hint or "", is_recoverable=open_
            )
            yield ErrorFrame(session_id=str(session_id or ""), error=told, is_final=True)

    async def _started(self, body: ProcessConversation, *, is_new: bool, key: str | None) -> SessionView | None:
        """Start the session, or find the one started with this key; None if the message is an answer."""
        if not is_new and key is None:
            return None
        given = {
            "requirement": body.message,
            "thread_id": body.session_id,
            "operation": _OPERATIONS[body.origin],
            "target": body.source_workflow_id,
        }
        request = StartSession.model_validate({name: value for name, value in given.items() if value is not None})
        try:
            return await self._service.start(request, idempotency_key=key)
        except SessionExistsError:
            if is_new:
                raise
            return None

    async def _told(
        self, session_id: UUID, events: AsyncGenerator[SessionEvent], stage: ChatStage | None
    ) -> AsyncGenerator[ChatFrame]:
        turns = (await self._conversations.of_session(session_id)).turns
        current: ChatStage = stage or "clarification"
        opening = StageState(phase=None, history=pairs_of(turns))
        yield _status(session_id, stage, current, opening, None)
        async with aclosing(events):
            async for event in events:
                match event:
                    case NodeStartEvent():
                        following = _stage(event.phase, current)
                        if following != current:
                            state = StageState(phase=event.phase)
                            yield _status(session_id, current, following, state, event.node)
                            current = following
                    case InterruptEvent():
                        yield await self._question(session_id)
                        return
                    case ErrorEvent() | DoneEvent():
                        async for frame in self._end(session_id, current):
                            yield frame
                        return
                    case _:
                        pass
        told = ChatError(
            error_code="stream_interrupted",
            message="The service stops; the session goes on without this stream.",
            details="Send the same message again with its Idempotency-Key, or read the session.",
            is_recoverable=True,
        )
        yield ErrorFrame(session_id=str(session_id), error=told, is_final=True)

    async def _question(self, session_id: UUID) -> ChatFrame:
        asked = (await self._service.get(session_id)).interrupt
        # None: another caller has answered already.
        text = "The question was answered elsewhere."
        if asked is not None:
            text = f"{question_text(asked)}\n\nPossible answers: {', '.join(item.value for item in asked.options)}."
        return MessageFrame(session_id=str(session_id), message=text, is_final=True)

    async def _end(self, session_id: UUID, stage: ChatStage) -> AsyncGenerator[ChatFrame]:
        view = await self._service.get(session_id)
        if view.status == "error":
            yield _status(session_id, stage, "failed", _state(view), None)
            failure = view.error
            told = ChatError(
                error_code=failure.code if failure else "internal_error",
                message=(failure.detail if failure else None) or "The session failed.",
                details=(failure.hint if failure else None) or "",
                is_recoverable=False,
            )
            yield ErrorFrame(session_id=str(session_id), error=told, is_final=True)
            return
        if text := view.answer or (view.result.summary if view.result else ""):
            yield MessageFrame(session_id=str(session_id), message=text)
        if view.outcome == "accepted" and view.chatflow_id is not None:
            yield await self._workflow(view, view.chatflow_id)
        yield _status(session_id, stage, "completed", _state(view), None, is_final=True)

    async def _workflow(self, view: SessionView, chatflow_id: str) -> ChatFrame:
        flow = await self._flows.document(chatflow_id, view.instance)
        shown = {"id": flow.id, "name": flow.name, "type": flow.type, "flowData": redacted(json.loads(flow.flow_data))}
        return WorkflowFrame(session_id=str(view.thread_id), workflow=json.dumps(shown, ensure_ascii=False))


def pairs_of(turns: Sequence[Turn]) -> list[ChatPair]:
    """The last turns as pairs of the person's text and the agent's reply."""
    pairs: list[ChatPair] = []
    for turn in turns:
        words = shortened(turn.words, _PAIR_CHARS)
        if turn.who == "person":
            pairs.append(ChatPair(user=words, agent=""))
        elif pairs:
            pairs[-1] = pairs[-1].model_copy(update={"agent": words})
    return pairs[-MOST_PAIRS:]


def _stage(phase: str | None, otherwise: ChatStage) -> ChatStage:
    found = STAGES.get(phase or "")
    return found or otherwise


def _stage_of(view: SessionView) -> ChatStage:
    if view.status in {"completed", "cancelled"}:
        return "completed"
    return "failed" if view.status == "error" else _stage(view.phase, "clarification")


def _state(view: SessionView) -> StageState:
    return StageState(phase=view.phase, iteration=view.iteration, outcome=view.outcome, chatflow_id=view.chatflow_id)


def _status(
    session_id: UUID,
    previous: ChatStage | None,
    current: ChatStage,
    state: StageState,
    node: str | None,
    *,
    is_final: bool = False,
) -> StatusFrame:
    change = StatusChange(previous_stage=previous, current_stage=current, stage_state=state, node_name=node)
    return StatusFrame(session_id=str(session_id), status_change=change, is_final=is_final)
