"""`build` against a service in memory: what it shows, what it answers, how it ends."""

import io
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from rich.console import Console

from flowise_dev_agent.cli import build as build_module
from flowise_dev_agent.cli.answers import default_answer
from flowise_dev_agent.cli.build import Progress, build
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.errors import NeedsPersonError
from flowise_dev_agent.schemas.events import SessionEvent
from flowise_dev_agent.schemas.interrupts import Interrupt
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.schemas.session import SessionView
from tests.fixtures.interrupts import interrupt_of
from tests.unit.api.service_double import event, view

PLAN = {"plan": "# Support bot\n\n- **chatOpenAI**"}
TEST = {"question": "What do you do?", "passed": True, "answer": "I help.", "error": ""}


def asks(type_: str, data: dict[str, Any], *offered: str) -> Interrupt:
    return interrupt_of(type_, *offered, id_=f"id-{type_}", message=f"About {type_}.", **data)


APPROVAL = asks("plan_approval", PLAN, "approve", "request_changes", "cancel")
REVIEW = asks(
    "result_review", {"verdict": {"done": True, "headline": "works"}, "tests": [TEST]}, "accept", "iterate", "rollback"
)
FAILED = asks(
    "result_review",
    {"verdict": {"done": False, "reason": "401 from the provider"}, "tests": [TEST | {"passed": False}]},
    "accept",
    "iterate",
    "rollback",
)


class ClientDouble:
    """A service whose session goes through `states` (interrupts, then how it ends), one per answer."""

    base_url = "http://agent"

    def __init__(self, *states: Interrupt | dict[str, Any]) -> None:
        self.id = uuid4()
        self.states = list(states)
        self.answers: list[dict[str, Any]] = []
        self.seq = 0
        self.attached: list[tuple[str, bytes]] = []

    async def attach(self, name: str, content: bytes) -> Any:
        self.attached = [*self.attached, (name, content)]
        return SimpleNamespace(id=uuid4())

    async def start(self, request: Any) -> SessionView:
        self.given = request.attachments
        self.requirement = request.requirement
        return view(self.id)

    async def resume(self, _: UUID, answer: Any) -> SessionView:
        self.answers.append(answer.answer)
        self.states.pop(0)
        return view(self.id)

    async def events(self, _: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
        assert after_seq == self.seq
        for type_ in ("node_start", "node_end"):
            self.seq += 1
            yield event(self.id, self.seq, type_)
        self.seq += 1
        yield event(self.id, self.seq, "interrupt" if not isinstance(self.states[0], dict) else "done")

    async def get(self, _: UUID) -> SessionView:
        state = self.states[0]
        if isinstance(state, dict):
            return view(self.id, **state)
        return view(self.id, "pending_interrupt", interrupt=state)


ACCEPTED = {"status": "completed", "outcome": "accepted", "chatflow_id": "c-1", "chatflow_url": "http://f/canvas/c-1"}


async def run(client: ClientDouble, *, assume_yes: bool = True) -> bool:
    return await build(client, StartSession(requirement="A bot"), assume_yes=assume_yes)  # type: ignore[arg-type]


async def test_yes_approves_accepts_and_prints_what_was_made(capsys: pytest.CaptureFixture[str]) -> None:
    client = ClientDouble(APPROVAL, REVIEW, ACCEPTED)
    assert await run(client) is Exit.DONE
    assert client.answers == [{"action": "approve"}, {"action": "accept"}]
    out = capsys.readouterr().out
    for expected in (str(client.id), "plan_v2", "Support bot", "I help.", "c-1", "http://f/canvas/c-1", "works"):
        assert expected in out


async def test_yes_does_not_accept_a_result_whose_tests_fail(capsys: pytest.CaptureFixture[str]) -> None:
    client = ClientDouble(APPROVAL, FAILED)
    assert await run(client) is Exit.NEEDS_ANSWER
    assert client.answers == [{"action": "approve"}]
    assert f"http://agent/#/s/{client.id}" in capsys.readouterr().err


async def test_without_a_terminal_and_without_yes_the_session_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    client = ClientDouble(APPROVAL)
    assert await run(client, assume_yes=False) is Exit.NEEDS_ANSWER
    assert client.answers == []
    assert "--yes" in capsys.readouterr().err


async def test_a_failed_session_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "flowise_unreachable", "detail": "Flowise is away.", "hint": "Start it."}
    assert await run(ClientDouble({"status": "error", "error": error})) is Exit.FAILED
    err = capsys.readouterr().err
    assert "Flowise is away." in err
    assert "Start it." in err


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (["1"], {"action": "approve"}),
        ([""], {"action": "approve"}),
        (["2", "", "use Claude"], {"action": "request_changes", "feedback": "use Claude"}),
        (["yes but use Claude"], {"action": "request_changes", "feedback": "yes but use Claude"}),
        (["9", "x", "3"], {"action": "cancel"}),
    ],
)
async def test_p60_at_the_terminal_only_a_choice_approves(
    monkeypatch: pytest.MonkeyPatch, typed: list[str], answer: dict[str, Any]
) -> None:
    lines = iter(typed)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(Console, "input", lambda *_, **__: next(lines))
    monkeypatch.setattr(build_module.sys, "stdin", type("Terminal", (), {"isatty": lambda _: True})())
    client = ClientDouble(APPROVAL, {"status": "completed", "outcome": "cancelled"})
    await run(client, assume_yes=False)
    assert client.answers == [answer]
    assert next(lines, None) is None


@pytest.mark.parametrize(
    ("interrupt", "answer"),
    [
        (asks("clarification", {"questions": ["q"]}, "answer", "go_on", "cancel"), {"action": "go_on"}),
        (
            asks(
                "credential_check",
                {
                    "credentials": [
                        {"type": "openAIApi", "candidates": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
                    ]
                },
                "retry",
                "choose",
                "skip",
                "cancel",
            ),
            {"action": "choose", "choose": {"openAIApi": "a"}},
        ),
        (asks("patch_review", {"ops": []}, "continue", "replan", "cancel"), {"action": "continue"}),
    ],
)
def test_yes_takes_the_obvious_answer(interrupt: Interrupt, answer: dict[str, Any]) -> None:
    assert default_answer(interrupt) == answer


@pytest.mark.parametrize(
    "interrupt",
    [
        asks("plan_approval", PLAN, "request_changes", "cancel"),
        asks("credential_check", {"credentials": [{"type": "t", "candidates": []}]}, "retry", "skip", "cancel"),
        asks("patch_review", {}, "replan", "cancel"),
        asks("select_target", {"candidates": []}, "create_new", "cancel"),
        FAILED,
    ],
)
def test_yes_invents_nothing(interrupt: Interrupt) -> None:
    with pytest.raises(NeedsPersonError):
        default_answer(interrupt)


def test_progress_is_plain_lines_without_a_terminal() -> None:
    stream = io.StringIO()
    with Progress(Console(file=stream, width=100)) as progress:
        for type_ in ("node_start", "token", "node_end"):
            progress.show(event(uuid4(), 1, type_))
    assert stream.getvalue() == "  ✓ plan     plan_v2                  \n"


async def test_files_are_stored_first_and_go_with_the_start(tmp_path: Path) -> None:
    file = tmp_path / "handbook.md"
    file.write_bytes(b"# Leave")
    client = ClientDouble(APPROVAL, {"status": "completed", "outcome": "accepted"})

    done = await build(client, StartSession(requirement="A bot"), assume_yes=True, attach=[file])  # type: ignore[arg-type]
    assert done is Exit.DONE is Exit.DONE

    assert client.attached == [("handbook.md", b"# Leave")]
    assert len(client.given) == 1
