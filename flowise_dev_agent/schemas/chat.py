"""Messages of a trial conversation with a flow."""

from typing import Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.requests import OneOf, Question
from flowise_dev_agent.schemas.verdict import Trace

#: Prefix of these conversations. It separates them from visitors' in Flowise, which cannot be read here.
CHAT_PREFIX: Final = "fda-try-"
CHAT_ID_PATTERN: Final = rf"^{CHAT_PREFIX}[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$"


class ChatDecision(BaseModel):
    """Decision about the step at which a flow waits; `waits` is the value from the previous answer."""

    model_config = ConfigDict(extra="forbid")

    node_id: str = Field(min_length=1, max_length=200)
    decision: Literal["proceed", "reject"]
    feedback: str = Field(default="", max_length=4_000)


class ChatQuestion(OneOf):
    """The body of `POST /flows/{id}/chat`: a `question`, the fields of the flow's `form`, or a decision (`human`)."""

    choices = (("question",), ("form",), ("human", "chat_id"))

    question: Question | None = None
    form: JsonObject | None = Field(default=None, description="By the names of the fields.", max_length=100)
    human: ChatDecision | None = None
    files: list[UUID] = Field(
        default_factory=list, max_length=10, description="Ids of `POST /attachments`; the flow reads their text."
    )
    chat_id: str | None = Field(
        default=None, pattern=CHAT_ID_PATTERN, description="Of the answer before; a new conversation when left out."
    )


class ToolUse(BaseModel):
    """A tool that the flow used."""

    tool: str
    error: str | None


class SourceText(BaseModel):
    """A piece of a document that the flow found."""

    text: str
    origin: str


class WaitingStep(BaseModel):
    """Step at which the flow waits for a person; the next message is `proceed` or `reject`."""

    node_id: str
    label: str
    feedback: bool = Field(description="True if the flow reads the person's remark.")


class ChatAnswer(BaseModel):
    """Answer of the flow. Send `chat_id` with the next question to continue the conversation."""

    model_config = ConfigDict(frozen=True)

    chat_id: str
    answer: str
    duration_ms: int
    used_tools: list[ToolUse]
    sources: list[SourceText]
    waits: WaitingStep | None = Field(
        description="Step at which the flow waits for a person; null when it ran to its end."
    )
    trace: Trace = Field(description="Execution of the flow; only agentflows report steps.")
