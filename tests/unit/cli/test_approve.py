"""`approve` against a service in memory: what it answers, and its exit codes."""

import io
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from flowise_dev_agent.cli import sessions as sessions_module
from flowise_dev_agent.cli.sessions import Exit, Given, Question, approve, from_payload, settle
from flowise_dev_agent.client import ServiceError
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.session import SessionView
from tests.fixtures.interrupts import interrupt_of
from tests.unit.api.service_double import view
from tests.unit.cli.conftest import Run

PLAN = interrupt_of("plan_approval", plan="# Support bot")


class ClientDouble:
    base_url = "http://agent"

    def __init__(self, now: SessionView, later: SessionView | ServiceError) -> None:
        self.now = now
        self.later = later
        self.answers: list[tuple[Any, Any]] = []
        self.keys: list[str | None] = []

    async def get(self, _: UUID) -> SessionView:
        return self.now

    async def resume(self, session_id: UUID, body: Any, *, idempotency_key: str | None = None) -> SessionView:
        self.answers.append((body.interrupt_id, body.answer))
        self.keys.append(idempotency_key)
        if isinstance(self.later, ServiceError):
            raise self.later
        return view(session_id)

    async def wait(self, _: UUID, timeout: float) -> SessionView:  # noqa: ASYNC109 - as the client has it
        assert timeout > 0
        return self.now if isinstance(self.later, ServiceError) or not self.answers else self.later


ID = UUID(int=1)
ASKING = view(ID, "pending_interrupt", interrupt=PLAN)
DONE = view(ID, "completed", outcome="accepted", chatflow_id="c1", chatflow_url="http://f/canvas/c1")


def client(now: SessionView = ASKING, later: SessionView | ServiceError = DONE) -> ClientDouble:
    return ClientDouble(now, later)


async def give(client: ClientDouble, question: Question, *, as_json: bool = False, **given: Any) -> Exit:
    return await approve(client, question, Given(**given), wait=5, as_json=as_json)  # type: ignore[arg-type]


async def test_the_open_question_is_answered_and_what_follows_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    agent = client()
    assert await give(agent, Question(ID), action="approve") == Exit.DONE
    assert agent.answers == [("i1", {"action": "approve"})]
    assert "http://f/canvas/c1" in capsys.readouterr().out


async def test_feedback_and_approach_are_part_of_the_answer() -> None:
    agent = client()
    await give(agent, Question(ID), action="request_changes", feedback="Use Claude")
    await give(agent, Question(ID), action="approve", approach="small")
    assert [answer for _, answer in agent.answers] == [
        {"action": "request_changes", "feedback": "Use Claude"},
        {"action": "approve", "approach": "small"},
    ]
    with pytest.raises(InvalidInputError):
        await give(agent, Question(ID), feedback="Use Claude")


async def test_the_same_answer_has_the_same_key_and_another_one_another() -> None:
    agent = client()
    for action in ("approve", "approve", "cancel"):
        await give(agent, Question(ID, "i1"), action=action)
    first, second, third = agent.keys
    assert first is not None
    assert first == second
    assert first != third


async def test_an_interrupt_that_is_named_is_left_to_the_service_to_judge() -> None:
    """It may have been answered by this very command before."""
    agent = client(now=DONE)
    assert await give(agent, Question(ID, "i0"), action="approve") == Exit.DONE
    assert agent.answers == [("i0", {"action": "approve"})]


async def test_a_conflict_answers_nothing_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    conflict = ServiceError(409, {"code": "session_conflict", "detail": "Interrupt i0 is not the open one."})
    assert await give(client(later=conflict), Question(ID, "i0"), action="approve") == Exit.NO
    assert "not the open one" in capsys.readouterr().err


@pytest.mark.parametrize(
    "question", [Question(ID), Question(ID, over=True)], ids=["nothing open", "a payload without a question"]
)
async def test_without_a_question_nothing_is_sent(question: Question) -> None:
    agent = client(now=ASKING if question.over else DONE)
    assert await give(agent, question, action="approve") == Exit.NO
    assert agent.answers == []


async def test_without_an_answer_and_a_terminal_it_shows_and_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    agent = client()
    assert await give(agent, Question(ID)) == Exit.NEEDS_ANSWER
    assert agent.answers == []
    assert "Support bot" in capsys.readouterr().out


async def test_a_person_at_the_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module.sys, "stdin", type("Terminal", (), {"isatty": lambda _: True})())
    monkeypatch.setattr("rich.console.Console.input", lambda *_, **__: "3")
    agent = client()
    assert await give(agent, Question(ID)) == Exit.DONE
    assert agent.answers == [("i1", {"action": "cancel"})]


async def test_a_session_that_fails_afterwards_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    failed = view(ID, "error", error={"code": "flowise_auth", "detail": "Flowise refused the key."})
    assert await give(client(later=failed), Question(ID), action="approve") == Exit.FAILED
    assert "Flowise refused the key." in capsys.readouterr().err


async def test_json_is_the_session_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    await give(client(), Question(ID), action="approve", as_json=True)
    assert json.loads(capsys.readouterr().out)["outcome"] == "accepted"
    agent = client()
    assert await settle(agent, await agent.get(ID), wait=1, as_json=True) == Exit.DONE  # type: ignore[arg-type]
    assert json.loads(capsys.readouterr().out)["interrupt"]["id"] == "i1"


async def test_show_prints_question_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    agent = client()
    assert await settle(agent, await agent.get(ID), wait=1, as_json=False) == Exit.DONE  # type: ignore[arg-type]
    out = capsys.readouterr().out
    for expected in ("Support bot", "i1", "approve, request_changes, cancel"):
        assert expected in out


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("interrupt", "question"), [({"id": "i1", "type": "t"}, Question(ID, "i1")), (None, Question(ID, None, over=True))]
)
def test_a_payload_names_the_question(
    tmp_path: Path, wrapped: bool, interrupt: dict[str, str] | None, question: Question
) -> None:
    payload: dict[str, Any] = {"type": "session.waiting", "data": {"session_id": str(ID), "interrupt": interrupt}}
    file = tmp_path / "event.json"
    file.write_text(json.dumps({"action": "session.waiting", "client_payload": payload} if wrapped else payload))
    assert from_payload(str(file)) == question


def test_a_payload_may_come_by_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"data": {"session_id": str(ID), "interrupt": {"id": "i1"}}})
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert from_payload("-") == Question(ID, "i1")


@pytest.mark.parametrize("text", ["", "no json", "[]", "{}", '{"data": 1}', '{"data": {"session_id": "x"}}'])
def test_what_is_no_payload_is_said(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "event.json").write_text(text)
    code, _, err = run("approve", "--payload", "event.json", "--answer", "approve")
    assert (code, "event.json" in err) == (1, True)
    assert "Traceback" not in err


def test_standard_input_that_is_no_payload_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", "{}"):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        with pytest.raises(InvalidInputError, match=r"^Standard input "):
            from_payload("-")


def test_a_session_or_a_payload_must_be_named(run: Run) -> None:
    for arguments in ([], [str(ID), "--payload", "x"]):
        code, _, err = run("approve", *arguments)
        assert (code, "--payload" in err) == (2, True)


def test_without_a_service_it_is_a_sentence(run: Run) -> None:
    code, _, err = run("approve", str(ID), "--answer", "approve", "--url", "http://127.0.0.1:1")
    assert (code, "http://127.0.0.1:1" in err) == (1, True)
