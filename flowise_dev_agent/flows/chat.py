"""Trial conversations with a flow, marked to keep them apart from conversations of visitors."""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from flowise_dev_agent.errors import FlowiseTimeoutError, InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import HumanAnswer, Prediction
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.chat import CHAT_ID_PATTERN, CHAT_PREFIX, ChatAnswer, SourceText, ToolUse, WaitingStep
from flowise_dev_agent.testing.traces import Exchange, trace_of
from flowise_dev_agent.texts import text

_AT_A_TIME: Final = 4
_TURN_SECS: Final = 30.0
_LONGEST_ANSWER: Final = 32_000
_MOST_SOURCES: Final = 10
_LONGEST_SOURCE: Final = 600


@dataclass(frozen=True)
class ChatInput:
    """Input for one turn of a flow: a question, form fields or a decision, with the texts of files."""

    question: str | None = None
    form: JsonObject | None = None
    human: HumanAnswer | None = None
    files: Mapping[str, str] | None = None


class TryOut:
    """Sends questions to flows. A process sends four at a time; others wait up to 30 s for a free place."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def ask(self, client: FlowiseClient, chatflow_id: str, said: ChatInput, chat_id: str | None) -> ChatAnswer:
        """Take one turn; without `chat_id` it begins a conversation. Raises FlowiseError, InvalidInputError."""
        if chat_id is None:
            chat_id = f"{CHAT_PREFIX}{uuid4()}"
        _check(chat_id)
        try:
            async with asyncio.timeout(_TURN_SECS):
                await self._turns.acquire()
        except TimeoutError:
            raise FlowiseTimeoutError(
                text("error.too_many_questions_at_once", seconds=f"{_TURN_SECS:.0f}"),
                hint=text("error.ask_in_a_moment"),
            ) from None
        try:
            started = time.monotonic()
            prediction = await client.predict(
                chatflow_id,
                said.question,
                session_id=chat_id,
                form=said.form,
                human=said.human,
                files=said.files,
            )
            duration = time.monotonic() - started
        finally:
            self._turns.release()
        return ChatAnswer(
            chat_id=chat_id,
            answer=prediction.answer[:_LONGEST_ANSWER],
            duration_ms=round(duration * 1000),
            used_tools=[_tool(item) for item in prediction.used_tools[:_MOST_SOURCES]],
            sources=_sources(prediction),
            waits=_waits(prediction),
            trace=trace_of([Exchange([said.question or ""], prediction, [prediction.answer])]),
        )

    async def forget(self, client: FlowiseClient, chatflow_id: str, chat_id: str) -> None:
        """Remove the conversation from Flowise and from the flow's memory. Raises FlowiseError, InvalidInputError."""
        _check(chat_id)
        await client.delete_messages(chatflow_id, chat_id)


def _check(chat_id: str) -> None:
    if not re.fullmatch(CHAT_ID_PATTERN, chat_id):
        raise InvalidInputError(text("error.conversation_not_here"), hint=text("error.start_conversation"))


def _tool(item: dict[str, Any]) -> ToolUse:
    error = item.get("error")
    return ToolUse(tool=str(item.get("tool") or "?")[:200], error=str(error)[:_LONGEST_SOURCE] if error else None)


def _waits(prediction: Prediction) -> WaitingStep | None:
    if prediction.waits_at is None:
        return None
    data = (prediction.action or {}).get("data")
    told = data if isinstance(data, dict) else {}
    settings = told.get("input")
    feedback = settings.get("humanInputEnableFeedback") if isinstance(settings, dict) else None
    return WaitingStep(
        node_id=prediction.waits_at,
        label=str(told.get("nodeLabel") or "")[:200],
        feedback=feedback not in (False, "false"),
    )


def _sources(prediction: Prediction) -> list[SourceText]:
    found: list[SourceText] = []
    for item in prediction.source_documents[:_MOST_SOURCES]:
        metadata = item.get("metadata")
        origin = metadata.get("source") if isinstance(metadata, dict) else None
        found.append(
            SourceText(text=str(item.get("pageContent") or "")[:_LONGEST_SOURCE], origin=str(origin or "")[:200])
        )
    return found
