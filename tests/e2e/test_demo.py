"""`demo`, as `make demo` runs it, on a stack of its own."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from flowise_dev_agent.cli import demo
from flowise_dev_agent.devkit.flowise import FLOWISE_VERSION
from flowise_dev_agent.devkit.stack import DevStack
from flowise_dev_agent.settings import ReasoningSettings, load_settings
from tests.support.folders import server_folder


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DevStack]]:
    """The stacks that the demo starts, in a folder of the test (short: a Unix socket lives in it)."""
    folder = server_folder("demo")
    made: list[DevStack] = []

    def make() -> DevStack:
        made.append(DevStack(folder, flowise_port=0))
        return made[-1]

    monkeypatch.setattr(demo, "DevStack", make)
    yield made
    shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@pytest.mark.timeout(600)
def test_the_demo_builds_a_chatbot_visibly_and_leaves_nothing_running(
    stacks: list[DevStack], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FLOWISE_API_ENDPOINT", "FLOWISE_API_KEY", "FLOWISE_INSTANCES", "AGENT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings = load_settings(reasoning=ReasoningSettings(engine_choice="deterministic"))
    before = {process.pid for process in psutil.Process().children(recursive=True)}

    assert demo.run(settings, once=True, port=_free_port()) is True

    out = capsys.readouterr().out
    for expected in (
        "about 3 GB",
        "FLOWISE_API_ENDPOINT",
        f"real Flowise {FLOWISE_VERSION}",
        "LOCAL STAND-IN",
        demo.REQUIREMENT,
        "plan approval",
        "apply_patch",
        "result review",
        "Chatflow ",
        "/canvas/",
        "test questions.",
    ):
        assert expected in out, expected
    assert out.index("about 3 GB") < out.index("Starting the embedded Postgres")
    assert len(stacks) == 1
    # A browser of other tests starts processes of its own meanwhile.
    left = [
        process
        for process in psutil.Process().children(recursive=True)
        if not before & {process.pid, *(parent.pid for parent in process.parents())}
    ]
    assert [process.name() for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
