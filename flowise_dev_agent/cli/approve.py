"""`approve`: one question of a session, shown and answered, by a person or by a job of a CI server."""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from flowise_dev_agent.cli.answers import asked
from flowise_dev_agent.cli.build import conclude, present
from flowise_dev_agent.cli.console import err, fail, say
from flowise_dev_agent.client import AgentClient, ServiceError
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.runtime.sessions.requests import ResumeSession
from flowise_dev_agent.runtime.sessions.views import SessionView


class Exit(IntEnum):
    """Exit codes; 2 is the shell's for a wrong command line."""

    #: The answer was taken and the session has not failed since; or there was only something to show.
    DONE = 0
    #: The service refused or did not answer, or the session failed.
    FAILED = 1
    #: Nothing was answered: no question is open, or not the one that was meant.
    NOTHING_OPEN = 3
    #: A question waits and no answer was given.
    NEEDS_ANSWER = 4


@dataclass(frozen=True)
class Question:
    """What is to be answered. Without an interrupt it is whatever the session asks now; `over`: it asks nothing."""

    session_id: UUID
    interrupt_id: str | None = None
    over: bool = False


@dataclass(frozen=True)
class Given:
    """The answer of the command line; `action` None asks at the terminal."""

    action: str | None = None
    feedback: str | None = None
    approach: str | None = None

    def as_answer(self) -> dict[str, Any] | None:
        """The typed answer, None when there is none."""
        if self.action is None:
            if self.feedback or self.approach:
                raise InvalidInputError("--feedback and --approach go with an --answer.")
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
    """The question of a webhook's payload in a file (`-`: standard input), also inside a GitHub event.

    Raises InvalidInputError.
    """
    name = "Standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
        payload: Any = json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{name} cannot be read as a webhook's payload ({type(error).__name__}).") from None
    # repository_dispatch puts what it was sent under `client_payload`.
    found: Any = payload.get("client_payload", payload) if isinstance(payload, dict) else payload
    try:
        data = _Payload.model_validate(found).data
    except ValidationError:
        raise InvalidInputError(
            f"{name} is not a webhook of this service.", hint="It needs `data.session_id` and `data.interrupt`."
        ) from None
    return Question(data.session_id, data.interrupt.id if data.interrupt else None, over=data.interrupt is None)


async def show(client: AgentClient, question: Question, *, wait: float, as_json: bool) -> Exit:
    """Print the session with its question, once it asks or after `wait` seconds."""
    view = await client.wait(question.session_id, wait)
    if as_json:
        _print_json(view)
    else:
        _present(client, view)
    return Exit.DONE


async def approve(client: AgentClient, question: Question, given: Given, *, wait: float, as_json: bool) -> Exit:
    """Answer the question and wait up to `wait` seconds for what comes of it.

    A repeated call with the same answer to the same interrupt is the same answer: a job may be run again.
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
            fail("A question waits, and there is no terminal to ask at.", "Answer it with --answer.")
            return Exit.NEEDS_ANSWER
        answer = asked(view.interrupt)
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
        offered = ", ".join(str(option["value"]) for option in view.interrupt.options)
        say(f"Interrupt {view.interrupt.id}; possible answers: {offered}")
    elif view.in_progress:
        say("The session is at work.")
    else:
        conclude(view, {})


def _print_json(view: SessionView) -> None:
    # Not through the console, which knows about widths and colours.
    sys.stdout.write(view.model_dump_json() + "\n")


def _nothing_open(view: SessionView) -> Exit:
    now = f"it asks {view.interrupt.id} now" if view.interrupt else f"it is {view.status}"
    fail(f"There is nothing to answer in session {view.thread_id}: {now}.")
    return Exit.NOTHING_OPEN


def _key(interrupt_id: str, answer: Mapping[str, Any]) -> str:
    content = json.dumps([interrupt_id, answer], sort_keys=True)
    return f"approve-{hashlib.sha256(content.encode()).hexdigest()[:32]}"
