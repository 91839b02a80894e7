"""Conversations: the turns of a session in order, and the sessions on a flow in order."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from flowise_dev_agent.cursors import decode_cursor, encode_cursor
from flowise_dev_agent.persistence import SessionFilter, SessionRow, Sessions, Turns
from flowise_dev_agent.persistence.read_model import TurnRow, public_status
from flowise_dev_agent.schemas.base import JsonMapping, read, view_of
from flowise_dev_agent.schemas.event_data import InterruptData
from flowise_dev_agent.schemas.interrupts import ListedInterrupt
from flowise_dev_agent.schemas.turns import (
    Answered,
    Conversation,
    ConversationSession,
    Turn,
    TurnKind,
    TurnList,
    TurnQuestion,
)
from flowise_dev_agent.sessions.manual_edits import edits_of
from flowise_dev_agent.texts import lines, text

_KINDS: Final[Mapping[str, TurnKind]] = {
    "answer": "answer",
    "select": "choice",
    "create_new": "choice",
    "choose": "choice",
    "skip": "choice",
    "approve": "approval",
    "request_changes": "feedback",
    "replan": "feedback",
    "iterate": "feedback",
}
#: A flow that the question did not list.
_ANOTHER: Final = text("turn.another_flow")


class Conversations:
    """Reads conversations. An unknown session raises SessionNotFoundError, a foreign cursor InvalidInputError."""

    def __init__(self, sessions: Sessions, turns: Turns) -> None:
        self._sessions = sessions
        self._turns = turns

    async def of_session(self, session_id: UUID) -> TurnList:
        """Turns of a session, oldest first."""
        row = await self._sessions.get(session_id)
        starts = await self._turns.starts([session_id])
        return TurnList(turns=_said(row, starts, await self._turns.of([session_id])))

    async def of_flow(
        self, chatflow_id: str, instance_id: str | None, *, limit: int, cursor: str | None = None
    ) -> Conversation:
        """The newest sessions on a flow, newest last; with a cursor, the ones before it."""
        which = SessionFilter(chatflow_id=chatflow_id, instance_id=instance_id)
        rows = await self._sessions.page(which, limit=limit + 1, before=decode_cursor(cursor) if cursor else None)
        shown = rows[:limit]
        return Conversation(
            sessions=await self.of(shown[::-1]),
            next_cursor=encode_cursor(shown[-1]) if len(rows) > limit else None,
        )

    async def of(self, rows: Sequence[SessionRow]) -> list[ConversationSession]:
        """Convert sessions to parts of a conversation."""
        ids = [row.id for row in rows]
        turns, starts = await self._turns.of(ids), await self._turns.starts(ids)
        return [
            view_of(
                ConversationSession,
                row,
                thread_id=row.id,
                session_name=row.name,
                status=public_status(row.status),
                interrupt=read(ListedInterrupt, row.interrupt) if row.interrupt else None,
                turns=_said(row, starts, [turn for turn in turns if turn.session_id == row.id]),
            )
            for row in rows
        ]


def _said(row: SessionRow, starts: Mapping[UUID, tuple[str, str | None]], turns: Sequence[TurnRow]) -> list[Turn]:
    words, by = starts.get(row.id, (row.requirement, None))
    first = Turn(at=row.created_at, who="person", by=by, kind="requirement", words=words)
    return [first, *map(_turn, turns)]


def _turn(row: TurnRow) -> Turn:
    asked = InterruptData.model_validate(row.asked or {}, extra="ignore")
    about = TurnQuestion(id=asked.interrupt_id, type=asked.type, reason=asked.reason)
    if row.answer is None:
        words = "\n".join(asked.questions) or row.summary
        return Turn(at=row.at, who="session", kind="question", words=words, interrupt=about)
    action = row.answer.get("action", "answer")
    edits = edits_of(row.answer)
    kind: TurnKind = "edits" if row.answer.get("ops") else _KINDS.get(action, "decision")
    answered = [
        Answered(question=question, answer=str(given))
        for question, given in zip(asked.questions, row.answer.get("answers") or [], strict=False)
    ]
    return Turn(
        at=row.at,
        who="person",
        by=row.by,
        kind=kind,
        words=_words(action, row.answer, asked, [edit.in_words for edit in edits]),
        action=action,
        interrupt=about,
        answered=answered,
        edits=edits,
    )


def _words(action: str, answer: JsonMapping, asked: InterruptData, edits: Sequence[str]) -> str:
    """Text of a turn: the person's own text, else the meaning of the answer's action."""
    said: list[str] = []
    if isinstance(feedback := answer.get("feedback"), str) and feedback:
        said.append(feedback)
    if isinstance(answers := answer.get("answers"), list):
        said += [str(one) for one in answers if str(one).strip()]
    if isinstance(chatflow_id := answer.get("chatflow_id"), str):
        said.append(asked.names.get(chatflow_id, _ANOTHER))
    if not said:
        said.append(text("turn.form" if answer.get("design") else f"turn.{action}"))
    if isinstance(approach := answer.get("approach"), str) and approach:
        said.append(approach)
    if isinstance(questions := answer.get("test_questions"), list):
        said += [str(question) for question in questions]
    if isinstance(budget := answer.get("budget"), dict):
        said += [f"{name}: {value}" for name, value in budget.items() if value is not None]
    return lines(*(() if answer.get("ops") else said), *edits)
