"""`sessions` and `approve`: list sessions, show one, answer its question at the terminal or from a CI job."""

import hashlib
import json
import sys
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError
from rich.table import Column, Table
from rich.text import Text

from flowise_dev_agent.cli.answers import ask_person
from flowise_dev_agent.cli.build import conclude, present
from flowise_dev_agent.cli.console import err, fail, out, say
from flowise_dev_agent.client import AgentClient, ServiceError
from flowise_dev_agent.contracts.base import JsonObject
from flowise_dev_agent.contracts.requests import ResumeSession
from flowise_dev_agent.contracts.session import SessionView
from flowise_dev_agent.errors import InvalidInputError


async def show_sessions(client: AgentClient, session_id: UUID | None, *, status: str | None, limit: int) -> None:
    """One session as JSON, or a table of the newest ones."""
    if session_id is not None:
        say((await client.get(session_id)).model_dump_json(indent=2, exclude={"interrupt": {"response_schema"}}))
        return
    page = await client.list(status=status, limit=limit)
    # The id is what a person copies: it stays whole on a narrow terminal, the name gives way.
    table = Table(Column("Session", no_wrap=True), "State", "Asks", "Name", box=None, pad_edge=False)
    for one in page.sessions:
        asks = one.interrupt.type if one.interrupt else ""
        table.add_row(str(one.thread_id), one.outcome or one.status, asks, Text(one.session_name or ""))
    out.print(table)
    if page.next_cursor:
        say("There are older sessions: raise --limit, or see the page.")


class Exit(IntEnum):
    """Exit codes of `approve`; 2 means a wrong command line."""

    #: The answer was accepted and the session has not failed since; or the question was only shown.
    DONE = 0
    #: The service refused or did not answer, or the session failed.
    FAILED = 1
    #: Nothing was answered: no question is open, or another one than was named.
    NOTHING_OPEN = 3
    #: A question is open and no answer was given.
    NEEDS_ANSWER = 4


@dataclass(frozen=True)
class Question:
    """What to answer. Without an interrupt it is what the session asks now; `over`: the session asks nothing."""

    session_id: UUID
    interrupt_id: str | None = None
    over: bool = False


@dataclass(frozen=True)
class Given:
    """The answer of the command line; without an action it is asked at the terminal."""

    action: str | None = None
    feedback: str | None = None
    approach: str | None = None

    def as_answer(self) -> JsonObject | None:
        """The typed answer, None when there is none."""
        if self.action is None:
            if self.feedback or self.approach:
                raise InvalidInputError("--feedback and --approach need an --answer.")
            return None
        fields = {"action": self.action, "feedback": self.feedback, "approach": self.approach}
        return {name: value for name, value in fields.items() if value is not None}


class _Interrupt(BaseModel):
    id: str


class _Data(BaseModel):
    session_id: UUID
    interrupt: _Interrupt | None


class _Payload(BaseModel):
    data: _Data


def from_payload(source: str) -> Question:
    """The question in a file with a webhook payload, or with a GitHub event that contains one (`-`: standard input).

    Raises InvalidInputError.
    """
    name = "Standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
        payload: Any = json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{name} cannot be read as a webhook payload ({type(error).__name__}).") from None
    # repository_dispatch puts the payload under `client_payload`.
    found: Any = payload.get("client_payload", payload) if isinstance(payload, dict) else payload
    try:
        data = _Payload.model_validate(found).data
    except ValidationError:
        raise InvalidInputError(
            f"{name} is not a webhook payload of this service.",
            hint="It must have `data.session_id` and `data.interrupt`.",
        ) from None
    return Question(data.session_id, data.interrupt.id if data.interrupt else None, over=data.interrupt is None)


async def show_question(client: AgentClient, question: Question, *, wait: float, as_json: bool) -> Exit:
    """Print the session with its question, once it asks or after `wait` seconds."""
    view = await client.wait(question.session_id, wait)
    if as_json:
        _print_json(view)
    else:
        _present(client, view)
    return Exit.DONE


async def approve(client: AgentClient, question: Question, given: Given, *, wait: float, as_json: bool) -> Exit:
    """Answer the question, then wait up to `wait` seconds for the next one or the end.

    Repeating the same answer to the same interrupt has no further effect, so a job can be run again.
    """
    answer = given.as_answer()
    view = await client.get(question.session_id)
    interrupt_id = question.interrupt_id or (view.interrupt.id if view.interrupt else None)
    if interrupt_id is None or question.over:
        return _nothing_open(view)
    if answer is None:
        if view.interrupt is None or view.interrupt.id != interrupt_id:
            return _nothing_open(view)
        _present(client, view)
        if not sys.stdin.isatty():
            fail("A question is open, and no terminal is attached to answer it.", "Use --answer.")
            return Exit.NEEDS_ANSWER
        answer = ask_person(view.interrupt)
    key = _key(interrupt_id, answer)
    try:
        view = await client.resume(
            question.session_id, ResumeSession(interrupt_id=interrupt_id, answer=answer), idempotency_key=key
        )
    except ServiceError as error:
        if error.problem_code != "session_conflict":
            raise
        fail(error.message, error.hint)
        return Exit.NOTHING_OPEN
    err.print(f"Answered {answer['action']}.", markup=False)
    if view.in_progress and wait > 0:
        view = await client.wait(question.session_id, wait)
    if as_json:
        _print_json(view)
    else:
        _present(client, view)
    return Exit.FAILED if view.status == "error" else Exit.DONE


def _present(client: AgentClient, view: SessionView) -> None:
    say(f"Session {view.thread_id} at {client.base_url}/#/s/{view.thread_id}")
    if view.interrupt is not None:
        present(view.interrupt)
        offered = ", ".join(option.value for option in view.interrupt.options)
        say(f"Interrupt {view.interrupt.id}; possible answers: {offered}")
    elif view.in_progress:
        say("The session is running.")
    else:
        conclude(view)


def _print_json(view: SessionView) -> None:
    # Not through the console, which wraps and colours.
    sys.stdout.write(view.model_dump_json() + "\n")


def _nothing_open(view: SessionView) -> Exit:
    now = f"it asks {view.interrupt.id}" if view.interrupt else f"its status is {view.status}"
    fail(f"No such question is open in session {view.thread_id}: {now}.")
    return Exit.NOTHING_OPEN


def _key(interrupt_id: str, answer: JsonObject) -> str:
    content = json.dumps([interrupt_id, answer], sort_keys=True)
    return f"approve-{hashlib.sha256(content.encode()).hexdigest()[:32]}"
