"""Flows as code on a real Flowise: plan, apply, drift, tests, words."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest
import yaml

from flowise_dev_agent.devkit.flowise.account import credential_id
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import SharedService
from tests.e2e.scripted import SUPPORT
from tests.e2e.service import OWN_VARIABLES, ServiceProcess

_ROOT = Path(__file__).resolve().parents[2]
_KEY = credential_id("openAIApi")
_MODEL, *_REST = SUPPORT["patch"]["ops"]
OPS: list[dict[str, Any]] = [
    _MODEL,
    {"op_type": "BindCredential", "node_id": "chatOpenAI_0", "credential_id": _KEY, "credential_type": "openAIApi"},
    *_REST,
]


class Repository:
    """A folder with `flows/`, and the command in it."""

    def __init__(self, folder: Path, service: ServiceProcess) -> None:
        self.folder = folder
        self.flows = folder / "flows"
        self.flows.mkdir()
        self._url = service.url

    def write(self, file: str, **content: Any) -> None:
        (self.flows / file).write_text(yaml.safe_dump(content))

    async def sync(self, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
        """The exit code, and what the report says of each file."""
        environment = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "flowise_dev_agent",
            *("sync", "--json", "--url", self._url, *options),
            cwd=self.folder,
            env={**environment, "PYTHONPATH": str(_ROOT)},
            stdout=PIPE,
            stderr=PIPE,
        )
        output, errors = await asyncio.wait_for(process.communicate(), 200)
        assert b"Traceback" not in errors, errors.decode()
        items = json.loads(output)["items"] if output.startswith(b"{") else []
        return process.returncode or 0, {item["file"]: item for item in items} or {"": {"note": errors.decode()}}


@pytest.fixture
async def repository(shared_service: SharedService, tmp_path: Path) -> Repository:
    return Repository(tmp_path, await shared_service())


async def test_a_directory_is_planned_applied_and_watched_for_drift(
    repository: Repository, flowise_client: FlowiseClient
) -> None:
    tests = [{"turns": ["Where is my parcel?"], "expect": {"contains": ["parcel"]}}]
    repository.write("support.yaml", name="Synced support", ops=OPS, tests=tests)
    code, planned = await repository.sync("--plan")
    assert (code, planned["support.yaml"]["state"], planned["support.yaml"]["result"]) == (3, "new", "planned")
    # Without a terminal nobody can agree to the plan.
    assert (await repository.sync())[0] == 4
    assert not (repository.flows / "flows.lock.json").exists()

    code, done = await repository.sync("--yes", "--report", "report.md")
    assert (code, done["support.yaml"]["result"], done["support.yaml"]["tests_passed"]) == (0, "done", 1), done
    flow_id = done["support.yaml"]["chatflow_id"]
    assert (await flowise_client.get_chatflow(flow_id)).name == "Synced support"
    assert '["OpenAI"]' in (repository.folder / "report.md").read_text()
    code, again = await repository.sync("--yes")
    assert (code, again["support.yaml"]["state"], again["support.yaml"]["chatflow_id"]) == (0, "same", flow_id)

    changed = [{**OPS[0], "params": {"modelName": "gpt-4o-mini"}}, *OPS[1:]]
    repository.write("support.yaml", name="Synced support", ops=changed, tests=tests)
    code, done = await repository.sync("--yes")
    assert (code, done["support.yaml"]["state"], done["support.yaml"]["action"]) == (0, "changed", "update"), done
    live = await flowise_client.get_chatflow(flow_id)
    assert "gpt-4o-mini" in live.flow_data

    # Somebody changes it in Flowise: it is left alone until somebody says what counts.
    edited = live.flow_data.replace("gpt-4o-mini", "gpt-4-turbo")
    await flowise_client.update_chatflow(flow_id, flow_data=edited)
    code, drifted = await repository.sync("--yes")
    assert (code, drifted["support.yaml"]["state"], drifted["support.yaml"]["action"]) == (3, "drifted", "none")
    assert "gpt-4-turbo" in (await flowise_client.get_chatflow(flow_id)).flow_data
    code, done = await repository.sync("--yes", "--overwrite")
    assert (code, done["support.yaml"]["result"]) == (0, "done"), done
    assert "gpt-4-turbo" not in (await flowise_client.get_chatflow(flow_id)).flow_data

    # A file that goes deletes nothing.
    (repository.flows / "support.yaml").unlink()
    repository.write("other.yaml", name="Synced support", ops=OPS)
    code, left = await repository.sync("--yes")
    assert (code, left["support.yaml"]["state"], left["other.yaml"]["state"]) == (3, "removed", "conflict")
    assert flow_id in left["other.yaml"]["note"]
    assert (await flowise_client.get_chatflow(flow_id)).id == flow_id


@pytest.mark.nightly
async def test_what_fails_its_tests_is_not_written(repository: Repository, flowise_client: FlowiseClient) -> None:
    tests = [{"turns": ["Hello"], "expect": {"contains": ["a text that nobody says"]}}]
    repository.write("bad.yaml", name="Synced failing", ops=OPS, tests=tests)
    code, tested = await repository.sync("--test")
    assert (code, tested["bad.yaml"]["result"], tested["bad.yaml"]["tests_passed"]) == (3, "tests_failed", 0), tested
    code, done = await repository.sync("--yes")
    assert (code, done["bad.yaml"]["result"]) == (3, "tests_failed")
    repository.write("bad.yaml", name="Synced failing", ops=OPS[:4])
    code, done = await repository.sync("--yes")
    assert (code, done["bad.yaml"]["result"]) == (1, "failed")
    assert "could not run" in done["bad.yaml"]["note"]
    names = {row.name async for row in flowise_client.iter_chatflows()}
    assert "Synced failing" not in names


@pytest.mark.nightly
async def test_words_become_a_session_that_waits_for_an_answer_or_takes_the_defaults(repository: Repository) -> None:
    repository.write("cook.yaml", name="Synced cook", requirement="A cooking assistant with memory")
    code, first = await repository.sync("--yes", "--wait", "0")
    assert (code, first["cook.yaml"]["result"]) == (4, "waiting")
    # The same words join the session that is there.
    code, done = await repository.sync("--yes", "--accept")
    assert (code, done["cook.yaml"]["result"]) == (0, "done"), done
    assert done["cook.yaml"]["session_id"] == first["cook.yaml"]["session_id"]
    code, same = await repository.sync("--plan")
    assert (code, same["cook.yaml"]["state"]) == (0, "same")
