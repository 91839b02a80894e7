"""Trying out a flow: one question at a time, in conversations marked as tries, apart from those of visitors."""

import asyncio
import re
import time
from typing import Any, Final
from uuid import uuid4

from pydantic import BaseModel, ConfigDict

from flowise_dev_agent.errors import FlowiseTimeoutError, InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Prediction

#: Prefix of these conversations. It separates them from visitors' in Flowise, which cannot be read here.
CHAT_PREFIX: Final = "fda-try-"
CHAT_ID_PATTERN: Final = rf"^{CHAT_PREFIX}[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$"
_AT_A_TIME: Final = 4
_TURN_SECS: Final = 30.0
_LONGEST_ANSWER: Final = 32_000
_MOST_SOURCES: Final = 10
_LONGEST_SOURCE: Final = 600


class ToolUse(BaseModel):
    """A tool that the flow used."""

    tool: str
    error: str | None


class SourceText(BaseModel):
    """A piece of a document that the flow found."""

    text: str
    origin: str


class ChatAnswer(BaseModel):
    """What the flow said. `chat_id` goes with the next question of the conversation."""

    model_config = ConfigDict(frozen=True)

    chat_id: str
    answer: str
    duration_ms: int
    used_tools: list[ToolUse]
    sources: list[SourceText]


class TryOut:
    """Asks flows; at most four questions of a process at once, others wait for their turn, up to 30 s."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def ask(self, client: FlowiseClient, chatflow_id: str, question: str, chat_id: str | None) -> ChatAnswer:
        """One question; a new conversation without `chat_id`. Raises FlowiseError, InvalidInputError."""
        if chat_id is None:
            chat_id = f"{CHAT_PREFIX}{uuid4()}"
        _check(chat_id)
        try:
            async with asyncio.timeout(_TURN_SECS):
                await self._turns.acquire()
        except TimeoutError:
            raise FlowiseTimeoutError(
                f"Too many questions at once; no turn within {_TURN_SECS:.0f} s.",
                hint="Ask again in a moment.",
            ) from None
        try:
            started = time.monotonic()
            prediction = await client.predict(chatflow_id, question, session_id=chat_id)
            duration = time.monotonic() - started
        finally:
            self._turns.release()
        return ChatAnswer(
            chat_id=chat_id,
            answer=prediction.answer[:_LONGEST_ANSWER],
            duration_ms=round(duration * 1000),
            used_tools=[_tool(item) for item in prediction.used_tools[:_MOST_SOURCES]],
            sources=_sources(prediction),
        )

    async def forget(self, client: FlowiseClient, chatflow_id: str, chat_id: str) -> None:
        """Remove the conversation from Flowise and from the flow's memory. Raises FlowiseError, InvalidInputError."""
        _check(chat_id)
        await client.delete_messages(chatflow_id, chat_id)


def _check(chat_id: str) -> None:
    if not re.fullmatch(CHAT_ID_PATTERN, chat_id):
        raise InvalidInputError(
            "This conversation was not started here.", hint="Leave out `chat_id` to start one, then pass it on."
        )


def _tool(item: dict[str, Any]) -> ToolUse:
    error = item.get("error")
    return ToolUse(tool=str(item.get("tool") or "?")[:200], error=str(error)[:_LONGEST_SOURCE] if error else None)


def _sources(prediction: Prediction) -> list[SourceText]:
    found: list[SourceText] = []
    for item in prediction.source_documents[:_MOST_SOURCES]:
        metadata = item.get("metadata")
        origin = metadata.get("source") if isinstance(metadata, dict) else None
        found.append(
            SourceText(text=str(item.get("pageContent") or "")[:_LONGEST_SOURCE], origin=str(origin or "")[:200])
        )
    return found
