"""Sessions at the terminal: show one, answer its question there or from a CI job, check its certificate."""

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from flowise_dev_agent.access.signing import check_certificate, read_keys
from flowise_dev_agent.cli.answers import ask_person
from flowise_dev_agent.cli.build import Progress, conclude, present
from flowise_dev_agent.cli.console import fail, fail_with, note, out, print_json, say, show
from flowise_dev_agent.cli.files import exported, is_file, one_flow, read_text
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.client import RUN_END_EVENTS, AgentClient, ServiceError
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.interrupts import PlanApprovalInterrupt
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.schemas.session import SessionView


async def verify_certificate(file: Path, *, flow: Path | None, key: str | None, as_json: bool) -> bool:
    """Check a certificate by what is at hand; True if it is valid."""
    flow_data, keys = None, None
    if flow is not None:
        flow_data = one_flow(exported(flow), str(flow)).flow_data
    if key is not None:
        keys = read_keys(read_text(Path(key)) if is_file(key) else key)
    found = check_certificate(read_text(file), flow_data=flow_data, keys=keys)
    show(found, as_json, found.text)
    return found.valid


async def watch(client: AgentClient, session_id: UUID, *, as_json: bool) -> Exit:
    """Show the events of a session, past ones first, until it asks, ends or fails."""
    view = await client.get(session_id)
    with Progress(out()) as progress:
        async for event in client.events(session_id):
            if as_json:
                print_json(event)
            else:
                progress.show(event)
            if event.type in RUN_END_EVENTS and (event.seq or 0) >= view.last_event_seq:
                break
    view = await client.get(session_id)
    if not as_json:
        _present(client, view)
    return _exit_of(view)


async def settle(client: AgentClient, view: SessionView, *, wait: float, as_json: bool, full: bool = False) -> Exit:
    """Print a session once it asks, ends or fails, or after `wait` seconds; its plan with whole texts if `full`."""
    if view.in_progress and wait > 0:
        view = await client.wait(view.thread_id, wait)
    if as_json:
        print_json(view)
    else:
        _present(client, view, full=full)
    return _exit_of(view)


@dataclass(frozen=True)
class Question:
    """The question to answer.

    Without an interrupt it is the session's current one; `over`: the session asks nothing.
    """

    session_id: UUID
    interrupt_id: str | None = None
    over: bool = False


@dataclass(frozen=True)
class Given:
    """The answer of the command line; without an action it is asked at the terminal."""

    action: str | None = None
    feedback: str | None = None
    approach: str | None = None
    real: list[str] | None = None

    def as_answer(self) -> JsonObject | None:
        """The typed answer, None when there is none."""
        if self.action is None:
            if self.feedback or self.approach or self.real:
                raise InvalidInputError("--feedback, --approach and --real need an --answer.")
            return None
        fields: JsonObject = {"action": self.action, "feedback": self.feedback, "approach": self.approach}
        fields |= {"real": [*self.real]} if self.real else {}
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
        fail_with(error)
        return Exit.NO
    note(f"Answered {answer['action']}.")
    return await settle(client, view, wait=wait, as_json=as_json)


def _present(client: AgentClient, view: SessionView, *, full: bool = False) -> None:
    say(f"Session {view.thread_id} at {client.base_url}/#/s/{view.thread_id}")
    if view.interrupt is not None:
        present(view.interrupt, full=full)
        if isinstance(view.interrupt, PlanApprovalInterrupt) and not full:
            say(f"Long texts as a whole: flowise-dev-agent sessions show {view.thread_id} --full")
        offered = ", ".join(option.value for option in view.interrupt.options)
        say(f"Interrupt {view.interrupt.id}; possible answers: {offered}")
    elif view.in_progress:
        say("The session is running.")
    else:
        conclude(view)


def _exit_of(view: SessionView) -> Exit:
    return Exit.FAILED if view.status == "error" else Exit.DONE


def _nothing_open(view: SessionView) -> Exit:
    now = f"it asks {view.interrupt.id}" if view.interrupt else f"its status is {view.status}"
    fail(f"No such question is open in session {view.thread_id}: {now}.")
    return Exit.NO


def _key(interrupt_id: str, answer: JsonObject) -> str:
    content = json.dumps([interrupt_id, answer], sort_keys=True)
    return f"approve-{hashlib.sha256(content.encode()).hexdigest()[:32]}"
