"""The documented approval loop, played: the real service and Flowise, the documented relay, the documented workflow.

Only GitHub is a stand-in: it records the dispatches, and the test runs the workflow's own scripts as its runner would.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import KEY, LOCKED, SharedService
from tests.e2e.scripted import SUPPORT, model_environment, script
from tests.e2e.service import ServiceProcess
from tests.e2e.workflow import ROOT, Workflow
from tests.fixtures.receiver import Receiver, running_receiver
from tests.support.sessions import new_flow

pytestmark = pytest.mark.nightly

DOCS = ROOT / "docs" / "ci"


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
            "WEBHOOK_SECRET": LOCKED["WEBHOOK_SECRET"],
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
async def service(shared_service: SharedService) -> ServiceProcess:
    return await shared_service(**LOCKED)


def workflow(name: str, folder: Path, service: ServiceProcess, **context: Any) -> Workflow:
    variables = {"AGENT_URL": service.url, "AGENT_PACKAGE": ""}
    return Workflow(DOCS / name, folder, vars=variables, secrets={"AGENT_API_KEY": KEY}, **context)


async def dispatched(github: Receiver, count: int) -> dict[str, Any]:
    request = (await asyncio.to_thread(github.wait_for, count, 90))[count - 1]
    assert request.path == "/repos/acme/bots/dispatches"
    assert request.headers["authorization"] == "Bearer gh-token"
    return json.loads(request.body)


async def test_the_documented_loop_approves_a_plan_and_accepts_its_result(
    service: ServiceProcess, relay_url: str, github: Receiver, flowise_client: FlowiseClient, tmp_path: Path
) -> None:
    runner = workflow("approval.yml", tmp_path, service)
    async with AgentClient(service.url, SecretStr(KEY)) as client:
        started = await client.start(new_flow(webhook_url=relay_url))

        asked = await dispatched(github, 1)
        assert asked["event_type"] == "session.waiting"
        shown = await runner.run("show", asked)
        assert (shown.code, "Conversation Chain" in shown.summary) == (0, True), shown
        answered = await runner.run("answer", asked)
        assert answered.code == 0, answered

        tested = await dispatched(github, 2)
        assert tested["client_payload"]["data"]["interrupt"]["type"] == "result_review"
        shown = await runner.run("show", tested)
        assert (shown.code, "It answers" in shown.summary) == (0, True), shown

        # Its job was run again: the same answer to the same question, not one to the question that is open now.
        assert (await runner.run("answer", asked)).code == 0
        assert (await client.get(started.thread_id)).status == "pending_interrupt"

        answered = await runner.run("answer", tested)
        assert answered.code == 0, answered
        ended = await dispatched(github, 3)
        assert (ended["event_type"], ended["client_payload"]["data"]["outcome"]) == ("session.completed", "accepted")
        chatflow_id = ended["client_payload"]["data"]["chatflow_id"]
        assert (await flowise_client.get_chatflow(chatflow_id)).deployed is True

        listed = await client.deliveries(started.thread_id)
        again = await client.replay(started.thread_id, listed.deliveries[0].id)
        assert (again.id, again.attempts) == (listed.deliveries[0].id, 0)
    assert len(github.received) == 3


async def test_the_documented_workflow_builds_tests_and_accepts_a_chatflow_by_itself(
    shared_service: SharedService, standin: ModelStandIn, flowise_client: FlowiseClient, tmp_path: Path
) -> None:
    script(standin, SUPPORT)
    service = await shared_service(**LOCKED, **model_environment(standin))
    requirement = 'A customer support chatbot with GPT-4o and memory, called "Support" $(exit 1) \'; #'
    built = workflow("build.yml", tmp_path, service, inputs={"requirement": requirement})
    assert built.jobs == ["plan", "build", "accept"]

    planned = await built.run("plan")
    assert (planned.code, "Conversation Chain" in planned.summary) == (0, True), planned
    # Run again after a failure of the runner: the same session, by its idempotency key.
    assert (await built.run("plan")).code == 0
    tested = await built.run("build")
    assert (tested.code, "It answers" in tested.summary) == (0, True), tested
    accepted = await built.run("accept")
    assert accepted.code == 0, accepted

    async with AgentClient(service.url, SecretStr(KEY)) as client:
        (session,) = (await client.list(limit=1)).sessions
        view = await client.get(session.thread_id)
    assert (view.status, view.outcome, view.requirement) == ("completed", "accepted", requirement)
    assert view.result is not None
    assert all(test.passed for test in view.result.tests)
    assert (await flowise_client.get_chatflow(str(view.chatflow_id))).deployed is True
    assert KEY not in planned.output + planned.summary + tested.output + accepted.output
