"""`build --guided`: what the terminal asks for, and the form that comes of the answers."""

from typing import Any

import pytest
import typer

from flowise_dev_agent.cli.guided import ask_form
from flowise_dev_agent.schemas.designs import DesignForm

_MOST = 200


class Terminal:
    """Answers each question by the beginning of its title, each answer once; Enter to all others."""

    def __init__(self, *answers: tuple[str, str]) -> None:
        self.left, self.asked = [*answers], list[str]()

    def prompt(self, what: str, default: str, *, show_default: bool) -> str:
        self.asked.append(what)
        assert len(self.asked) < _MOST, "it asks again and again"
        found = next((one for one in self.left if what.startswith(one[0])), None)
        if found:
            self.left.remove(found)
        return found[1] if found else default


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(*answers: tuple[str, str]) -> tuple[DesignForm, Terminal]:
        terminal = Terminal(*answers)
        monkeypatch.setattr(typer, "prompt", terminal.prompt)
        form = ask_form()
        assert terminal.left == []
        return form, terminal

    return run


def test_a_chat_is_asked_for_its_parts_and_for_no_other(answered: Any) -> None:
    form, terminal = answered(
        ("Name", "Desk"), ("Prompt", "You help."), ("Temperature", "0.2"), ("Memory", "5"), ("Tools 1", "calculator"),
        ("Sources 1 - Kind", "web"), ("Sources 1 - Address", "https://a.example"), ("Refused words 1", "bet"),
    )  # fmt: skip
    assert form == DesignForm.model_validate({
        "name": "Desk", "prompt": "You help.", "temperature": 0.2, "memory": 5, "tools": ["calculator"],
        "sources": [{"kind": "web", "url": "https://a.example"}], "refused_words": ["bet"],
    })  # fmt: skip
    others = ("Steps", "Fields", "Start", "Schedule", "Sources 1 - Store")
    assert not any(what.startswith(others) for what in terminal.asked)


def test_steps_are_asked_for_one_by_one_with_the_parts_of_their_kind(answered: Any) -> None:
    form, terminal = answered(
        ("Name", "Desk"), ("Kind", "steps"), ("Start", "form"), ("Inputs 1 - Name", "guest"),
        ("Steps 1 - Kind", "sort"), ("Steps 1 - Branches 1", "a"), ("Steps 1 - Branches 2", "b"),
        ("Steps 2 - Kind", "answer"), ("Steps 2 - Branch", "a"), ("Steps 2 - Prompt", "Greet {guest}."),
        ("Steps 3 - Kind", "reply"), ("Steps 3 - Branch", "b"), ("Steps 3 - Message", "Bye, {guest}."),
    )  # fmt: skip
    assert [step.line for step in form.steps] == [
        "Sort into branches: a, b", "A model answers (a): Greet {guest}.", "Reply (b): Bye, {guest}.",
    ]  # fmt: skip
    assert [one.name for one in form.inputs] == ["guest"]
    asked = [what.partition(" (")[0] for what in terminal.asked if what.startswith("Steps 3")]
    assert asked == [f"Steps 3 - {name}" for name in ("Kind", "Title", "Branch", "Message")]
    assert [what for what in terminal.asked if what.startswith("Steps 4")] == [
        "Steps 4 - Kind (answer, sort, approve, call, each, reply, repeat)"
    ]


def test_a_schedule_has_parts_of_its_own(answered: Any) -> None:
    form, _ = answered(
        ("Name", "Desk"), ("Kind", "steps"), ("Start", "schedule"), ("Schedule - Time (", "07:15"),
        ("Schedule - Weekdays 1", "friday"), ("Schedule - Time zone", "Europe/Dublin"), ("Schedule - Text", "Go."),
        ("Steps 1 - Kind", "answer"), ("Steps 1 - Prompt", "Write."),
    )  # fmt: skip
    assert form.schedule is not None
    assert (form.schedule.time, form.schedule.weekdays, form.schedule.text) == ("07:15", ["friday"], "Go.")


def test_what_is_wrong_is_said_and_what_was_right_is_kept(answered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    form, _ = answered(
        ("Name", "Desk"), ("Kind", "flow"), ("Kind", "steps"),
        ("Steps 1 - Kind", "answer"), ("Steps 1 - Title", "Draft"),
        ("Steps 2 - Kind", "reply"), ("Steps 2 - Message", "{Daft}"), ("Steps 1 - Prompt", ""),
        ("Steps 1 - Prompt", "Write."), ("Steps 2 - Message", "{Draft}"),
    )  # fmt: skip
    said = capsys.readouterr().err
    assert "Name one of chat, task, steps." in said
    assert "Step 1 (“Draft”): `prompt` is missing." in said
    assert [step.line for step in form.steps] == ["Draft: Write.", "Reply: {Draft}"]


def test_a_part_that_was_kept_can_be_taken_out(answered: Any) -> None:
    form, _ = answered(
        ("Name", "Desk"), ("Tools 1", "calculator"), ("Sources 1 - Kind", "web"), ("Tools 1", "-"),
        ("Sources 1 - Address", ""), ("Sources 1 - Address", "https://a.example"),
    )  # fmt: skip
    assert (form.tools, form.sources[0].url) == ([], "https://a.example")


def test_a_row_that_is_taken_out_leaves_those_after_it(answered: Any) -> None:
    form, _ = answered(
        ("Name", "Desk"), ("Tools 1", "calculator"), ("Tools 2", "searXNG"), ("Sources 1 - Kind", "web"),
        ("Tools 1", "-"), ("Sources 1 - Address", ""), ("Sources 1 - Address", "https://a.example"),
    )  # fmt: skip
    assert form.tools == ["searXNG"]
