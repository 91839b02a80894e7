"""Turns of a session: texts of the person, and questions of the session."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from flowise_dev_agent.patch import EditView
from flowise_dev_agent.schemas.answers import Action, InterruptType
from flowise_dev_agent.schemas.base import Contract, Outcome, Worded
from flowise_dev_agent.schemas.interrupts import ListedInterrupt
from flowise_dev_agent.schemas.session import PublicStatus

TurnKind: TypeAlias = Literal[
    "requirement", "question", "answer", "choice", "approval", "feedback", "edits", "decision"
]


class TurnQuestion(Contract):
    """The question that a turn asks or answers."""

    id: str
    type: InterruptType | None
    reason: str


class Answered(Contract):
    """A question of a clarification with its answer; '' for an unanswered one."""

    question: str
    answer: str


class Turn(Worded):
    """One turn. Secrets are masked, as in everything that a session stores."""

    at: datetime
    who: Literal["person", "session"]
    by: str | None = Field(default=None, description="The name of the person's key.")
    kind: TurnKind = Field(description="`question` is the session's; all others are the person's.")
    words: str = Field(description="The person's own text; for a choice or decision without text its meaning.")
    action: Action | None = Field(default=None, description="Of an answer.")
    interrupt: TurnQuestion | None = None
    answered: list[Answered] = Field(default_factory=list, description="Of a clarification.")
    edits: list[EditView] = Field(default_factory=list, description="Manual edits; `words` describes them, too.")


class TurnList(Contract):
    """Turns of a session, oldest first."""

    turns: list[Turn]


class ConversationSession(Contract):
    """A session on a flow as a part of the conversation about it."""

    thread_id: UUID
    session_name: str | None
    status: PublicStatus
    outcome: Outcome | None
    operation_mode: str | None
    created_at: datetime
    updated_at: datetime
    answer: str | None = Field(default=None, description="For a question about the flow: the answer.")
    interrupt: ListedInterrupt | None
    turns: list[Turn]


class Conversation(Contract):
    """The sessions on a flow, newest last. `next_cursor` gets the page before, None when there is none."""

    sessions: list[ConversationSession]
    next_cursor: str | None
