"""The documented approval loop, played: the real service and Flowise, the documented relay, the documented workflow.

Only GitHub is a stand-in: it records the dispatches, and the test runs the workflow's own scripts as its runner would.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.runtime.requests import StartSession
from tests.e2e.service import ServiceProcess
from tests.fixtures.receiver import Receiver, running_receiver

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "ci"
KEY = "ci-key"
SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


@pytest.fixture
def github() -> Iterator[Receiver]:
    with running_receiver() as api:
        api.answer = lambda *_: 204
        yield api


@pytest.fixture
async def relay_url(github: Receiver) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(DOCS / "relay.py"),
        env={
            **os.environ,
            "WEBHOOK_SECRET": SECRET,
            "GITHUB_REPOSITORY": "acme/bots",
            "GITHUB_TOKEN": "gh-token",
            "GITHUB_API_URL": github.url(""),
            "PORT": "0",
        },
        stdout=PIPE,
    )
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
    yield f"http://127.0.0.1:{line.split()[-1]}/"
    process.kill()
    await process.wait()


@pytest.fixture
async def service(database_dsn: str, flowise: FlowiseAccess, tmp_path: Path) -> AsyncIterator[ServiceProcess]:
    process = ServiceProcess(
        {
            "POSTGRES_DSN": database_dsn,
            "FLOWISE_API_ENDPOINT": flowise.endpoint,
            "FLOWISE_API_KEY": flowise.api_key.get_secret_value(),
            "AGENT_API_KEY": KEY,
            "WEBHOOK_SECRET": SECRET,
            "WEBHOOK_ALLOW": "127.0.0.1",
        },
        tmp_path,
    )
    await process.start()
    yield process
    await process.stop()


class Runner:
    """Runs jobs of the documented workflow for one dispatch."""

    def __init__(self, folder: Path, service: ServiceProcess) -> None:
        self.folder = folder
        self.service = service
        self.jobs: dict[str, Any] = yaml.safe_load((DOCS / "approval.yml").read_text())["jobs"]
        tool = folder / "bin" / "flowise-dev-agent"
        tool.parent.mkdir()
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m flowise_dev_agent "$@"\n')
        tool.chmod(0o755)

    async def run(self, job: str, event: dict[str, Any]) -> tuple[int, str]:
        """(exit code, summary and output) of the job's last step."""
        step = self.jobs[job]["steps"][-1]
        question = event["client_payload"]["data"]["interrupt"]["type"]
        assert set(step.get("env", {}).values()) <= {"${{ github.event.client_payload.data.interrupt.type }}"}
        summary, event_file = self.folder / "summary.md", self.folder / "event.json"
        summary.write_text("")
        event_file.write_text(json.dumps(event))
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            step["run"],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "GITHUB_EVENT_PATH": str(event_file),
                "GITHUB_STEP_SUMMARY": str(summary),
                "AGENT_URL": self.service.url,
                "AGENT_API_KEY": KEY,
                **dict.fromkeys(step.get("env", {}), question),
            },
            stdout=PIPE,
            stderr=STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), 90)
        return process.returncode or 0, summary.read_text() + output.decode()


async def dispatched(github: Receiver, count: int) -> dict[str, Any]:
    request = (await asyncio.to_thread(github.wait_for, count, 90))[count - 1]
    assert request.path == "/repos/acme/bots/dispatches"
    assert request.headers["authorization"] == "Bearer gh-token"
    return json.loads(request.body)


async def test_the_documented_loop_approves_a_plan_and_accepts_its_result(
    service: ServiceProcess,
    relay_url: str,
    github: Receiver,
    flowise_client: FlowiseClient,
    tmp_path: Path,
) -> None:
    runner = Runner(tmp_path, service)
    requirement = "Build a customer support chatbot with GPT-4o and memory"
    async with AgentClient(service.url, SecretStr(KEY)) as client:
        started = await client.start(StartSession(requirement=requirement, webhook_url=relay_url))

        asked = await dispatched(github, 1)
        assert asked["event_type"] == "session.waiting"
        code, summary = await runner.run("show", asked)
        assert (code, "chatOpenAI" in summary) == (0, True), summary
        code, output = await runner.run("answer", asked)
        assert code == 0, output

        tested = await dispatched(github, 2)
        assert tested["client_payload"]["data"]["interrupt"]["type"] == "result_review"
        code, summary = await runner.run("show", tested)
        assert (code, "test questions passed" in summary) == (0, True), summary

        # Its job was run again: the same answer to the same question, not one to the question that is open now.
        assert (await runner.run("answer", asked))[0] == 0
        assert (await client.get(started.thread_id)).status == "pending_interrupt"

        code, output = await runner.run("answer", tested)
        assert code == 0, output
        ended = await dispatched(github, 3)
        assert (ended["event_type"], ended["client_payload"]["data"]["outcome"]) == ("session.completed", "accepted")
        chatflow_id = ended["client_payload"]["data"]["chatflow_id"]
        assert (await flowise_client.get_chatflow(chatflow_id)).deployed is True

        listed = await client.deliveries(started.thread_id)
        again = await client.replay(started.thread_id, listed.deliveries[0].id)
        assert (again.id, again.attempts) == (listed.deliveries[0].id, 0)
    assert len(github.received) == 3
